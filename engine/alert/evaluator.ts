import { createHash } from 'node:crypto'
import type { Clock } from '../kernel/process/clock.ts'
import { faultPoint } from '../kernel/process/fault-point.ts'
import { ALERTS_LISTED_MAX, ALERTS_PER_RULE_MAX } from '../limits.ts'
import { type Alert, type AlertRule, type AlertState, subjectHash } from '../store/alerts.ts'
import type { Organization } from '../store/organizations.ts'
import type { Registries } from '../store/registry-in-force.ts'
import type { Store } from '../store/store.ts'
import { ASSESSMENT_RULES } from './assessment-conditions.ts'
import { type Condition, type ConditionInput, lineOf, type RuleGroup } from './condition.ts'
import { EVIDENCE_RULES } from './evidence-conditions.ts'
import { EXPIRY_RULES } from './expiry-conditions.ts'
import { atLeast, bySeverity, messageOf } from './message.ts'
import { PLATFORM_RULES } from './platform-conditions.ts'
import { RULES, ruleInForce } from './rules.ts'
import { SENDER_RULES } from './sender-conditions.ts'

export const RULE_GROUPS: readonly RuleGroup[] = [
  PLATFORM_RULES,
  SENDER_RULES,
  EXPIRY_RULES,
  ASSESSMENT_RULES,
  EVIDENCE_RULES,
]

/** Bytes of the alerts in one message: an entry of a queue has at most 64 KB. */
const LISTED_BYTES_MAX = 48 * 1024

/** What an evaluation of one rule changes. */
interface RuleChange {
  readonly rule: AlertRule
  readonly muted: boolean
  readonly raised: readonly { readonly hash: string; readonly period: string; readonly condition: Condition }[]
  /** Hashes of subjects whose condition no longer holds. */
  readonly ended: readonly string[]
}

interface Evaluation {
  readonly organization: Organization
  readonly before: AlertState
  readonly inputs: AlertState['inputs']
  readonly changes: readonly RuleChange[]
  readonly isFirstScan: boolean
}

/** New alerts, and messages about them. */
export interface EvaluationResult {
  readonly alerts: Readonly<Partial<Record<AlertRule, number>>>
  readonly messages: number
}

const NOTHING: EvaluationResult = { alerts: {}, messages: 0 }

/**
 * Evaluates the alert rules of organizations.
 *
 * Level-triggered: compares what holds now with what was reported, so it may run at any time and as
 * often as needed, and the next evaluation covers one that was missed. One
 * transaction writes the alerts, their messages in the queues of channels, and what was reported.
 */
export class AlertEvaluator {
  readonly #store: Store
  readonly #registries: Registries
  readonly #clock: Clock

  constructor(store: Store, registries: Registries, clock: Clock) {
    this.#store = store
    this.#registries = registries
    this.#clock = clock
  }

  /** @throws Fault of the store; then nothing was changed. */
  evaluate(organizationId: string): EvaluationResult {
    const nowMs = this.#clock.nowMs()
    const evaluation = this.#store.environment.read(() => this.#prepare(organizationId, nowMs))
    if (evaluation === undefined) return NOTHING
    faultPoint('alerts:prepared')
    const result = this.#store.environment.write(() => this.#write(evaluation, nowMs))
    faultPoint('alerts:written')
    return result
  }

  /** undefined: nothing is to be written. */
  #prepare(organizationId: string, nowMs: number): Evaluation | undefined {
    const { organizations, alerts } = this.#store
    const organization = organizations.get(organizationId)
    if (organization === undefined) return undefined
    const settings = alerts.rules(organizationId)
    const before = alerts.state(organizationId)
    const input: ConditionInput = {
      store: this.#store,
      organization,
      nowMs,
      threshold: (rule) => ruleInForce(settings, rule).threshold,
      isMuted: (rule) => ruleInForce(settings, rule).muted,
      lastInput: (group) => before.inputs[group],
      nameOf: (id) => this.#registries.matcherOf(organizationId).platform(id)?.name ?? id,
    }
    const inputs: Record<string, string> = { ...before.inputs }
    const changes: RuleChange[] = []
    for (const group of RULE_GROUPS) {
      const thresholds = group.rules.map((rule) => ruleInForce(settings, rule).threshold)
      const fingerprint = group.fingerprint(input)
      const now = fingerprint === '' ? '' : `${fingerprint} ${thresholds.join(' ')}`
      if (now !== '' && now === before.inputs[group.name]) continue
      if (now !== '') inputs[group.name] = now
      const conditions = group.conditions(input)
      for (const rule of group.rules) {
        const { muted } = ruleInForce(settings, rule)
        const reported = alerts.reported(organizationId, rule)
        const isRemembered = group.remembered.includes(rule)
        changes.push(changeOf(rule, conditions[rule] ?? [], reported, { muted, isRemembered, before }))
      }
    }
    const hasInputs = Object.entries(inputs).some(([name, value]) => before.inputs[name] !== value)
    const hasChanges = changes.some(({ raised, ended }) => raised.length + ended.length > 0)
    if (!hasInputs && !hasChanges) return undefined
    const isFirstScan = isBeforeFirstScan(before.inputs) && !isBeforeFirstScan(inputs)
    return { organization, before, inputs, changes, isFirstScan }
  }

  #write({ organization, before, inputs, changes, isFirstScan }: Evaluation, nowMs: number): EvaluationResult {
    const { organizations, alerts } = this.#store
    const { id: organizationId } = organization
    // Another process evaluated meanwhile, or the organization was removed.
    if (!organizations.exists(organizationId)) return NOTHING
    if (alerts.state(organizationId).generation !== before.generation) return NOTHING
    const counts: Partial<Record<AlertRule, number>> = {}
    let messages = 0
    let sequence = alerts.lastSequence(organizationId)
    for (const { rule, muted, raised, ended } of changes) {
      for (const hash of ended) alerts.removeReported(organizationId, rule, hash)
      for (const { hash, period } of raised) alerts.putReported(organizationId, rule, hash, { period })
      const reported = muted ? [] : raised.filter(({ condition }) => condition.isCovered !== true)
      if (reported.length === 0) continue
      const made = bySeverity(
        reported.map(
          ({ hash, period, condition: { subject, title, details, severity } }): Alert => ({
            id: alertId(organizationId, rule, hash, period),
            organizationId,
            sequence: 0,
            rule,
            severity: severity ?? RULES[rule].severity,
            createdAtMs: nowMs,
            title: lineOf(title),
            subject,
            details,
            messages: [],
          }),
        ),
      )
      const sent = this.#queue(organization, rule, made, isFirstScan, nowMs)
      const numbered = made.map((alert, at) => ({ ...alert, sequence: ++sequence, messages: sent.of(at) }))
      alerts.append(organizationId, numbered)
      counts[rule] = made.length
      messages += sent.count
    }
    alerts.putState(organizationId, { generation: before.generation + 1, inputs })
    faultPoint('alerts:queued')
    return { alerts: counts, messages }
  }

  /** Queues messages about the alerts of a rule for each channel that wants them. */
  #queue(
    organization: Organization,
    rule: AlertRule,
    alerts: readonly Alert[],
    isFirstScan: boolean,
    nowMs: number,
  ): { readonly count: number; of(at: number): Alert['messages'] } {
    const { alertChannels } = this.#store
    const { id: organizationId } = organization
    /** The sequence of the message with each alert, in the order of the alerts. */
    const sent: { readonly channelId: string; readonly messages: number; readonly sequences: readonly number[] }[] = []
    for (const { id: channelId, kind, severityMin } of alertChannels.ofOrganization(organizationId)) {
      // The most severe alerts are first.
      const wanted = alerts.filter(({ severity }) => atLeast(severity, severityMin))
      const sequences: number[] = []
      const all = partsOf(wanted)
      // A person reads the first ones and their number. A program gets all.
      const parts = kind === 'syslog' || kind === 'webhook' ? all : all.slice(0, 1)
      for (const [at, listed] of parts.entries()) {
        const part = { count: wanted.length, isFirstScan, part: at + 1, parts: parts.length }
        const json = JSON.stringify(messageOf(organization, rule, listed, part))
        const sequence = alertChannels.append(organizationId, channelId, json, nowMs)
        for (const _alert of listed) sequences.push(sequence)
      }
      const counted = sequences.at(-1) ?? 0
      while (sequences.length < wanted.length) sequences.push(counted)
      sent.push({ channelId, messages: parts.length, sequences })
    }
    return {
      count: sent.reduce((sum, each) => sum + each.messages, 0),
      of: (at) =>
        sent.flatMap(({ channelId, sequences }) => {
          const sequence = sequences[at]
          return sequence === undefined ? [] : [[channelId, sequence] as const]
        }),
    }
  }
}

/** Divides alerts into those that one message lists. */
function partsOf(alerts: readonly Alert[]): Alert[][] {
  const parts: Alert[][] = []
  let part: Alert[] = []
  let bytes = 0
  for (const alert of alerts) {
    const added = Buffer.byteLength(JSON.stringify(alert))
    bytes += added
    if (part.length === 0 || part.length === ALERTS_LISTED_MAX || bytes > LISTED_BYTES_MAX) {
      part = []
      parts.push(part)
      bytes = added
    }
    part.push(alert)
  }
  return parts
}

function changeOf(
  rule: AlertRule,
  conditions: readonly Condition[],
  reported: ReadonlyMap<string, { readonly period: string }>,
  { muted, isRemembered, before }: { muted: boolean; isRemembered: boolean; before: AlertState },
): RuleChange {
  const holding = new Set<string>()
  const raised: { hash: string; period: string; condition: Condition }[] = []
  for (const condition of conditions) {
    const hash = subjectHash(condition.key ?? condition.subject.id)
    holding.add(hash)
    const known = reported.get(hash)
    if (condition.isWeak === true || raised.length === ALERTS_PER_RULE_MAX) continue
    if (known !== undefined && (condition.period === undefined || condition.period === known.period)) continue
    raised.push({ hash, period: condition.period ?? `generation ${before.generation}`, condition })
  }
  const ended = isRemembered ? [] : [...reported.keys()].filter((hash) => !holding.has(hash))
  return { rule, muted, raised, ended }
}

/** The platforms of generation 0 were never published. */
function isBeforeFirstScan(inputs: AlertState['inputs']): boolean {
  return (inputs[PLATFORM_RULES.name] ?? '0 ').startsWith('0 ')
}

function alertId(organizationId: string, rule: AlertRule, hash: string, period: string): string {
  return createHash('sha256').update([organizationId, rule, hash, period].join('\n')).digest('hex').slice(0, 32)
}
