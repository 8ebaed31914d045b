import { createHash } from 'node:crypto'
import type { Environment } from '../kernel/lmdb/environment.ts'
import { ALERTS_MAX } from '../limits.ts'
import { Family } from './family.ts'
import { u64Bytes, uuidBytes } from './keys.ts'

/** The rules that raise alerts. engine/alert/rules.ts describes them. */
export const ALERT_RULES = [
  'new-platform',
  'unapproved-platform',
  'rejected-platform',
  'rejected-platform-blocked',
  'platform-volume',
  'bytes-sent',
  'bytes-unusual',
  'source-silent',
  'source-degraded',
  'sensor-silent',
  'sensor-degraded',
  'coverage-low',
  'score-fell',
  'recommendation-opened',
  'answer-unsupported',
  'item-overdue',
  'api-key-unused',
  'api-key-expiring',
  'approval-expiring',
] as const
export type AlertRule = (typeof ALERT_RULES)[number]

export const ALERT_SEVERITIES = ['informational', 'low', 'medium', 'high', 'critical'] as const
export type AlertSeverity = (typeof ALERT_SEVERITIES)[number]

/** Values of an alert. Names are in snake_case. */
export type AlertDetails = Readonly<Record<string, string | number | boolean>>

/** What an alert is about: an object of the organization. */
export interface AlertSubject {
  /** Such as `platform` or `api-key`. */
  readonly kind: string
  readonly id: string
  readonly name: string
}

/** Something that people should know, once. */
export interface Alert {
  /** 32 hex digits, derived from organization, rule, subject and period. */
  readonly id: string
  readonly organizationId: string
  /** From 1, without gaps. Only the oldest alerts are ever removed. */
  readonly sequence: number
  readonly rule: AlertRule
  readonly severity: AlertSeverity
  readonly createdAtMs: number
  /** One line. */
  readonly title: string
  readonly subject: AlertSubject
  readonly details: AlertDetails
  /** Names of groups that it is about, at most NAMED_GROUPS_MAX; absent if there are none. */
  readonly groups?: readonly string[]
  /**
   * People whose use it is about, as they are stored; absent if there are none. Messages get them
   * when they are sent, so that queues and dead letters contain no person.
   */
  readonly people?: readonly string[]
  /** The messages that contain or count the alert: id of the channel, sequence in its queue. */
  readonly messages: readonly (readonly [channelId: string, sequence: number])[]
}

/** The settings of one rule. Absent fields have the default of the rule. */
export interface AlertRuleSettings {
  readonly muted?: boolean
  readonly threshold?: number
}
export type AlertRules = Readonly<Partial<Record<AlertRule, AlertRuleSettings>>>

/** A condition that was reported, and holds or is remembered. */
export interface ReportedCondition {
  /** Distinguishes the alerts about one subject, such as the day. */
  readonly period: string
  /** The hashes of the clients that were reported, of a condition about clients (clientHash). */
  readonly clients?: Uint8Array
}

/** What the next evaluation of an organization needs to know of earlier ones. */
export interface AlertState {
  /** Incremented by each evaluation that changed a record. */
  readonly generation: number
  /** Fingerprints of what groups of rules last read. A group with the same is not read again. */
  readonly inputs: Readonly<Record<string, string>>
}

const NEVER: AlertState = { generation: 0, inputs: {} }

/**
 * The alerts of each organization, and what was reported already:
 *
 *   alerts         organization (16) + sequence (8)                            Alert
 *   alert-rules    organization (16)                                           AlertRules
 *   alert-states   organization (16)                                           AlertState
 *   alert-reports  organization (16) + rule, 0 + SHA-256 of the subject (16)   ReportedCondition
 *
 * An evaluation compares what holds now with what was reported. It writes new alerts, reports and
 * messages in one transaction, so that neither a repeated evaluation nor a kill duplicates or loses
 * an alert.
 */
export class Alerts {
  readonly #alerts: Family<Alert>
  readonly #rules: Family<AlertRules>
  readonly #states: Family<AlertState>
  readonly #reports: Family<ReportedCondition>

  constructor(environment: Environment) {
    this.#alerts = new Family(environment.table('alerts'), 'alert')
    this.#rules = new Family(environment.table('alert-rules'), 'alert rules')
    this.#states = new Family(environment.table('alert-states'), 'state of alerts')
    this.#reports = new Family(environment.table('alert-reports'), 'reported condition')
  }

  rules(organizationId: string): AlertRules {
    return this.#rules.get(uuidBytes(organizationId)) ?? {}
  }

  putRules(organizationId: string, rules: AlertRules): void {
    this.#rules.put(uuidBytes(organizationId), rules)
  }

  state(organizationId: string): AlertState {
    return this.#states.get(uuidBytes(organizationId)) ?? NEVER
  }

  putState(organizationId: string, state: AlertState): void {
    this.#states.put(uuidBytes(organizationId), state)
  }

  /** The reported conditions of a rule, by the hash of their subject (subjectHash). */
  reported(organizationId: string, rule: AlertRule): Map<string, ReportedCondition> {
    const prefix = rulePrefix(organizationId, rule)
    const range = this.#reports.range(prefix)
    return new Map(Array.from(range, ({ key, value }) => [key.toString('hex', prefix.length), value]))
  }

  putReported(organizationId: string, rule: AlertRule, hash: string, reported: ReportedCondition): void {
    this.#reports.put(reportKey(organizationId, rule, hash), reported)
  }

  removeReported(organizationId: string, rule: AlertRule, hash: string): void {
    this.#reports.remove(reportKey(organizationId, rule, hash))
  }

  /** Removes clients from all reports; undefined: every client. */
  eraseReportedClients(organizationId: string, clients: ReadonlySet<string> | undefined): void {
    const erased = clients && new Set(Array.from(clients, (client) => clientHash(organizationId, client)))
    const changed: { readonly key: Buffer; readonly value: ReportedCondition }[] = []
    for (const { key, value } of this.#reports.range(uuidBytes(organizationId))) {
      if (value.clients === undefined) continue
      const left = clientsOf(value).filter((hash) => erased?.has(hash) === false)
      changed.push({ key: Buffer.from(key), value: { ...value, clients: reportedClients(left) } })
    }
    for (const { key, value } of changed) this.#reports.put(key, value)
  }

  /** The sequence of the last alert. 0: there is none. */
  lastSequence(organizationId: string): number {
    return this.#alerts.last(uuidBytes(organizationId))?.sequence ?? 0
  }

  /** Stores alerts whose sequences continue those before. Beyond the limit, removes the oldest. */
  append(organizationId: string, alerts: readonly Alert[]): void {
    for (const alert of alerts) this.#alerts.put(alertKey(organizationId, alert.sequence), alert)
    const firstKept = this.lastSequence(organizationId) - ALERTS_MAX + 1
    const prefix = uuidBytes(organizationId)
    const old: Buffer[] = []
    for (const key of this.#alerts.keys(prefix)) {
      if (Number(key.readBigUInt64BE(prefix.length)) >= firstKept) break
      old.push(Buffer.from(key))
    }
    for (const key of old) this.#alerts.remove(key)
  }

  /** Undefined: it is not kept, or there was none. */
  get(organizationId: string, sequence: number): Alert | undefined {
    return this.#alerts.get(alertKey(organizationId, sequence))
  }

  /**
   * Removes people from up to `countMax` alerts from the sequence `from` on. Returns the next
   * sequence; undefined: none is left.
   */
  erasePeople(
    organizationId: string,
    from: number,
    countMax: number,
    isErased: (person: string, alert: Pick<Alert, 'createdAtMs'>) => boolean,
  ): number | undefined {
    const changed: Alert[] = []
    let count = 0
    let next: number | undefined
    for (const { value } of this.#alerts.range(uuidBytes(organizationId), alertKey(organizationId, from))) {
      const { people = [], ...alert } = value
      if (count++ === countMax) {
        next = alert.sequence
        break
      }
      const left = people.filter((person) => !isErased(person, alert))
      if (left.length < people.length) changed.push({ ...alert, ...(left.length > 0 && { people: left }) })
    }
    for (const alert of changed) this.#alerts.put(alertKey(organizationId, alert.sequence), alert)
    return next
  }

  /** At most `countMax`, newest first. */
  newest(organizationId: string, countMax: number): Alert[] {
    return this.#alerts.newest(uuidBytes(organizationId), countMax)
  }
}

/** 32 hex digits. Subjects may be of any length. */
export function subjectHash(subject: string): string {
  return createHash('sha256').update(subject).digest('hex').slice(0, 32)
}

/** Characters of the hash of a client in hex: reports of 20,000 clients fit into one record. */
const CLIENT_HASH_DIGITS = 16

/** The hash by which a report remembers a client. */
export function clientHash(organizationId: string, client: string): string {
  return subjectHash(`${organizationId} ${client}`).slice(0, CLIENT_HASH_DIGITS)
}

/** The hashes of the clients that were reported. */
export function clientsOf({ clients = new Uint8Array() }: Partial<ReportedCondition> = {}): string[] {
  const digits = Buffer.from(clients.buffer, clients.byteOffset, clients.length).toString('hex')
  return Array.from({ length: digits.length / CLIENT_HASH_DIGITS }, (_, at) =>
    digits.slice(at * CLIENT_HASH_DIGITS, (at + 1) * CLIENT_HASH_DIGITS),
  )
}

export function reportedClients(hashes: readonly string[]): Uint8Array {
  return Buffer.from(hashes.join(''), 'hex')
}

function rulePrefix(organizationId: string, rule: AlertRule): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(`${rule}\0`)])
}

function reportKey(organizationId: string, rule: AlertRule, hash: string): Buffer {
  return Buffer.concat([rulePrefix(organizationId, rule), Buffer.from(hash, 'hex')])
}

function alertKey(organizationId: string, sequence: number): Buffer {
  return Buffer.concat([uuidBytes(organizationId), u64Bytes(sequence)])
}
