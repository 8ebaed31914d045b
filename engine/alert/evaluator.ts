import { createHash } from 'node:crypto'
import type { Clock } from '../kernel/process/clock.ts'
import { faultPoint } from '../kernel/process/fault-point.ts'
import { ALERTS_LISTED_MAX, ALERTS_PER_RULE_MAX } from '../limits.ts'
import { type GroupOf, namableGroupsOf } from '../scan/group-use.ts'
import { type DayRange, lastDaysOf } from '../scan/periods.ts'
import { type Alert, type AlertRule, type AlertState, subjectHash } from '../store/alerts.ts'
import { ClientSum, type ClientUse } from '../store/client-sum.ts'
import { mayNamePeople, type Organization } from '../store/organizations.ts'
import type { Registries } from '../store/registry-in-force.ts'
import type { Store } from '../store/store.ts'
import {
  type Condition,
  type ConditionInput,
  type ConditionUse,
  lineOf,
  NAMED_PEOPLE_MAX,
  personText,
  type RuleGroup,
} from './condition.ts'
import { ASSESSMENT_RULES, EVIDENCE_RULES, EXPIRY_RULES, SENDER_RULES } from './conditions.ts'
import { alertJson, bySeverity, isWanted, messageOf, namedGroups } from './message.ts'
import { PLATFORM_RULES } from './platform-conditions.ts'
import { RULES, ruleInForce } from './rules.ts'

/**
 * Adds to conditions whose use they are about: groups, and people if the organization allows it.
 * Call it inside Environment.read.
 */
class Audience {
  readonly #store: Store
  readonly #organization: Organization
  readonly #window: DayRange
  readonly #isErasing: boolean
  #groupOf: GroupOf | undefined
  /** The groups that used each platform in the evidence window. */
  #groups: ReadonlyMap<string, ReadonlySet<string>> | undefined

  constructor(store: Store, organization: Organization, nowMs: number) {
    this.#store = store
    this.#organization = organization
    this.#window = lastDaysOf(organization.evidenceWindowDays, nowMs)
    this.#isErasing = store.clientErasures.isErasing(organization.id)
  }

  of(condition: Condition): Condition {
    const { use, people = [] } = condition
    if (this.#isErasing) return { ...condition, people: [] }
    const mayName = mayNamePeople(this.#organization)
    return {
      ...condition,
      ...(use && { groups: this.#groupsOf(use) }),
      people: mayName ? (use ? this.#peopleOf(use) : people) : [],
    }
  }

  #groupsOf(use: ConditionUse): string[] {
    this.#groupOf ??= namableGroupsOf(this.#store, this.#organization)
    const groupOf = this.#groupOf
    this.#groups ??= this.#groupsOfWindow(groupOf)
    const ofWindow = [...(this.#groups.get(use.platformId) ?? [])]
    if (use.day === undefined || ofWindow.length === 0) return ofWindow
    const ofDay = this.#clientsOf(use).map(({ client, user }) =>
      groupOf({ client: user === '' ? client : user, isUser: user !== '', addresses: [client] }),
    )
    return [...new Set(ofDay)].filter((name) => name !== undefined)
  }

  /** From summaries, because the records of days have only the clients with the most matches. */
  #groupsOfWindow(groupOf: GroupOf): ReadonlyMap<string, ReadonlySet<string>> {
    const groups = new Map<string, Set<string>>()
    for (const summary of this.#store.clientSummaries.all(this.#organization.id)) {
      const group = groupOf(summary)
      if (group === undefined) continue
      for (const [at, platformId] of summary.platformIds.split(' ').entries()) {
        if ((summary.platformDays[at] ?? 0) < this.#window.firstDay) continue
        const ofPlatform = groups.get(platformId) ?? new Set<string>()
        groups.set(platformId, ofPlatform.add(group))
      }
    }
    return groups
  }

  #peopleOf(use: ConditionUse): string[] {
    const clients = this.#clientsOf(use)
    if (use.isByBytes) clients.sort((a, b) => b.bytesSent - a.bytesSent)
    const people = clients.map(personText)
    return [...new Set(people.filter((each) => each !== ''))].slice(0, NAMED_PEOPLE_MAX)
  }

  #clientsOf({ platformId, day, isMeant = () => true }: ConditionUse): ClientUse[] {
    const sum = new ClientSum()
    const { firstDay, lastDay } = this.#window
    for (let at = day ?? firstDay; at <= (day ?? lastDay); at++) {
      const bytes = this.#store.clientDays.get(this.#organization.id, at, platformId)
      // Of early records it is not known who used the platform.
      if (bytes !== undefined) sum.add({ day: at, platformId, bytes }, (each) => each.used > 0 && isMeant(each))
    }
    return sum.clients()
  }
}

const RULE_GROUPS: readonly RuleGroup[] = [PLATFORM_RULES, SENDER_RULES, EXPIRY_RULES, ASSESSMENT_RULES, EVIDENCE_RULES]

/** Bytes of the alerts in one message: an entry of a queue has at most 64 KB. */
const LISTED_BYTES_MAX = 48 * 1024

/** A condition that is to be reported. */
interface Raised {
  readonly hash: string
  readonly period: string
  readonly condition: Condition
}

/** What an evaluation of one rule changes. */
interface RuleChange {
  readonly rule: AlertRule
  readonly muted: boolean
  readonly raised: readonly Raised[]
  /** Hashes of subjects whose condition no longer holds. */
  readonly ended: readonly string[]
}

interface Evaluation {
  readonly organization: Organization
  readonly before: AlertState
  readonly scanGeneration: number
  readonly inputs: AlertState['inputs']
  readonly changes: readonly RuleChange[]
  readonly isFirstScan: boolean
}

/** New alerts, and messages about them. */
interface EvaluationResult {
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
    const audience = new Audience(this.#store, organization, nowMs)
    const inputs: Record<string, string> = { ...before.inputs }
    const changes: RuleChange[] = []
    for (const group of RULE_GROUPS) {
      const thresholds = group.rules.map((rule) => ruleInForce(settings, rule).threshold)
      const fingerprint = group.fingerprint(input)
      const now = fingerprint === '' ? '' : `${fingerprint} ${thresholds.join(' ')}`
      if (now !== '' && now === before.inputs[group.name]) continue
      if (now !== '') inputs[group.name] = now
      const conditions = group.conditions(input)
      const remembered = group.remembered(input)
      for (const rule of group.rules) {
        const { muted } = ruleInForce(settings, rule)
        const reported = alerts.reported(organizationId, rule)
        const isRemembered = remembered.includes(rule)
        const change = changeOf(rule, conditions[rule] ?? [], reported, { muted, isRemembered, before })
        const raised = muted ? change.raised : change.raised.map((each) => withAudience(each, audience))
        changes.push({ ...change, raised })
      }
    }
    const hasInputs = Object.entries(inputs).some(([name, value]) => before.inputs[name] !== value)
    const hasChanges = changes.some(({ raised, ended }) => raised.length + ended.length > 0)
    if (!hasInputs && !hasChanges) return undefined
    const isFirstScan = isBeforeFirstScan(before.inputs) && !isBeforeFirstScan(inputs)
    const scanGeneration = this.#store.scanStates.get(organizationId).generation
    return { organization, before, scanGeneration, inputs, changes, isFirstScan }
  }

  #write(
    { organization, before, scanGeneration, inputs, changes, isFirstScan }: Evaluation,
    nowMs: number,
  ): EvaluationResult {
    const { organizations, alerts } = this.#store
    const { id: organizationId } = organization
    // Another process evaluated meanwhile, or the organization was removed.
    const now = organizations.get(organizationId)
    if (now === undefined) return NOTHING
    if (alerts.state(organizationId).generation !== before.generation) return NOTHING
    // Clients were erased meanwhile, maybe those that the conditions name.
    if (this.#store.scanStates.get(organizationId).generation !== scanGeneration) return NOTHING
    if (mayNamePeople(organization) && !mayNamePeople(now)) return NOTHING
    const counts: Partial<Record<AlertRule, number>> = {}
    let messages = 0
    let sequence = alerts.lastSequence(organizationId)
    for (const { rule, muted, raised, ended } of changes) {
      for (const hash of ended) alerts.removeReported(organizationId, rule, hash)
      for (const { hash, period, condition } of raised) {
        const { clients } = condition
        alerts.putReported(organizationId, rule, hash, { period, ...(clients && { clients }) })
      }
      const reported = muted ? [] : raised.filter(({ condition }) => condition.isCovered !== true)
      if (reported.length === 0) continue
      const made = bySeverity(
        bundled(reported).map(
          ({ hash, period, condition: { subject, title, details, severity, groups = [], people = [] } }) => ({
            id: alertId(organizationId, rule, hash, period),
            organizationId,
            rule,
            severity: severity ?? RULES[rule].severity,
            createdAtMs: nowMs,
            title: lineOf(title),
            subject,
            details,
            ...(groups.length > 0 && { groups }),
            ...(people.length > 0 && { people }),
          }),
        ),
      ).map((alert): Alert => ({ ...alert, sequence: ++sequence, messages: [] }))
      const sent = this.#queue(organization, rule, made, isFirstScan, nowMs)
      alerts.append(
        organizationId,
        made.map((alert) => ({ ...alert, ...namedGroups(alert), messages: sent.of(alert) })),
      )
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
  ): { readonly count: number; of(alert: Alert): Alert['messages'] } {
    const { alertChannels } = this.#store
    const { id: organizationId } = organization
    const sent = new Map<Alert, (readonly [channelId: string, sequence: number])[]>(alerts.map((each) => [each, []]))
    let count = 0
    for (const channel of alertChannels.ofOrganization(organizationId)) {
      const { id: channelId, kind } = channel
      // The most severe alerts are first.
      const wanted = alerts.filter((alert) => isWanted(channel, alert))
      const all = partsOf(wanted)
      // A person reads the first ones and their number. A program gets all.
      const parts = kind === 'syslog' || kind === 'webhook' ? all : all.slice(0, 1)
      for (const [at, listed] of parts.entries()) {
        const part = { count: wanted.length, isFirstScan, part: at + 1, parts: parts.length }
        const json = JSON.stringify(messageOf(organization, rule, listed, part))
        const sequence = alertChannels.append(organizationId, channelId, json, nowMs)
        // The last message counts those that are not listed.
        const counted = at === parts.length - 1 ? all.slice(at).flat() : listed
        for (const alert of counted) sent.get(alert)?.push([channelId, sequence])
      }
      count += parts.length
    }
    return { count, of: (alert) => sent.get(alert) ?? [] }
  }
}

/** Divides alerts into those that one message lists. */
function partsOf(alerts: readonly Alert[]): Alert[][] {
  const parts: Alert[][] = []
  let part: Alert[] = []
  let bytes = 0
  for (const alert of alerts) {
    const added = Buffer.byteLength(JSON.stringify(alertJson(alert)))
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

function withAudience(raised: Raised, audience: Audience): Raised {
  const { condition } = raised
  return condition.isCovered === true ? raised : { ...raised, condition: audience.of(condition) }
}

/** Replaces the conditions of a bundle by one about all of them. */
function bundled(raised: readonly Raised[]): Raised[] {
  const bundles = new Map<string, Raised[]>()
  for (const each of raised) {
    const id = each.condition.bundle?.id ?? each.hash
    bundles.set(id, [...(bundles.get(id) ?? []), each])
  }
  return [...bundles.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return []
    const { bundle } = first.condition
    if (bundle === undefined || others.length === 0) return [first]
    const conditions = [first, ...others].map(({ condition }) => condition)
    const [severity] = bySeverity(conditions.flatMap(({ severity }) => (severity ? { severity } : [])))
    return [{ ...first, condition: { ...bundle.merged(conditions), ...severity } }]
  })
}

function changeOf(
  rule: AlertRule,
  conditions: readonly Condition[],
  reported: ReadonlyMap<string, { readonly period: string }>,
  { muted, isRemembered, before }: { muted: boolean; isRemembered: boolean; before: AlertState },
): RuleChange {
  const holding = new Set<string>()
  const raised: Raised[] = []
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
