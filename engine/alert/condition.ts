import { NO_CLIENT } from '../kernel/event/client.ts'
import { ALERT_TEXT_BYTES_MAX } from '../limits.ts'
import type { AlertDetails, AlertRule, AlertSeverity, AlertSubject } from '../store/alerts.ts'
import type { ClientReader } from '../store/client-records.ts'
import type { ClientUse } from '../store/client-sum.ts'
import type { Organization } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'

/** Something that holds now and that a rule reports. */
export interface Condition {
  readonly subject: AlertSubject
  /** Identifies the condition among those of its rule; the id of the subject if absent. */
  readonly key?: string
  /** One line, without a period. */
  readonly title: string
  readonly details: AlertDetails
  readonly severity?: AlertSeverity
  /** Conditions of one bundle that begin to hold at the same time raise one alert. */
  readonly bundle?: ConditionBundle
  /** The use that it is about, from which its groups and people follow. */
  readonly use?: ConditionUse
  readonly groups?: readonly string[]
  /** User names, addresses or pseudonyms as they are stored, at most NAMED_PEOPLE_MAX. */
  readonly people?: readonly string[]
  /**
   * Distinguishes alerts about the same subject. A condition that holds on with another period is
   * reported again. Absent: it is reported again only after it did not hold.
   */
  readonly period?: string
  /** What the report remembers: the clients that it was raised about (ReportedCondition). */
  readonly clients?: Uint8Array
  /** Only remembered if it was reported: it is too weak to be reported itself. */
  readonly isWeak?: boolean
  /** Counts as reported without an alert, because another rule reports it. */
  readonly isCovered?: boolean
}

/** The use of a platform. */
export interface ConditionUse {
  readonly platformId: string
  /** Absent: the evidence window. */
  readonly day?: number
  /** Whether the use of a client on one day is meant. */
  isMeant?(client: ClientReader): boolean
  /** Names those who sent the most bytes, not those with the most matches. */
  readonly isByBytes?: boolean
}

/** Conditions that are reported together. */
export interface ConditionBundle {
  readonly id: string
  /** The alert about several of them. */
  merged(conditions: readonly Condition[]): Pick<Condition, 'subject' | 'title' | 'details'>
}

/** What conditions are computed from. */
export interface ConditionInput {
  readonly store: Store
  readonly organization: Organization
  readonly nowMs: number
  /** The threshold in force of a rule. */
  threshold(rule: AlertRule): number
  isMuted(rule: AlertRule): boolean
  /** The fingerprint of a group when it was last evaluated, with its thresholds; undefined: never. */
  lastInput(group: string): string | undefined
  /** The name of a platform; its id if the registry no longer has it. */
  nameOf(platformId: string): string
}

/** Rules that read the same records are evaluated together. */
export interface RuleGroup {
  readonly name: string
  readonly rules: readonly AlertRule[]
  /**
   * Rules whose reports are kept while the condition does not hold: the subject is reported once,
   * or once per period.
   */
  remembered(input: ConditionInput): readonly AlertRule[]
  /** Changes with what the group reads. '': evaluate it each time, because time matters. */
  fingerprint(input: ConditionInput): string
  conditions(input: ConditionInput): Partial<Record<AlertRule, readonly Condition[]>>
}

/** People and groups that an alert names, at most. */
export const NAMED_PEOPLE_MAX = 10
export const NAMED_GROUPS_MAX = 20

/** The name by which an alert names a client; '' if it is not known. */
export function personText({ client, user }: Pick<ClientUse, 'client' | 'user'>): string {
  return user !== '' ? user : client === NO_CLIENT ? '' : client
}

/** A text of another system or of a member: one line, not too long. */
export function lineOf(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim()
  if (Buffer.byteLength(line) <= ALERT_TEXT_BYTES_MAX) return line
  // The last character may be incomplete.
  return Buffer.from(line)
    .toString('utf8', 0, ALERT_TEXT_BYTES_MAX)
    .replace(/\uFFFD$/, '')
}
