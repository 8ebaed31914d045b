import { ALERT_TEXT_BYTES_MAX } from '../limits.ts'
import type { AlertDetails, AlertRule, AlertSeverity, AlertSubject } from '../store/alerts.ts'
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
  /**
   * Distinguishes alerts about the same subject. A condition that holds on with another period is
   * reported again. Absent: it is reported again only after it did not hold.
   */
  readonly period?: string
  /** Only remembered if it was reported: it is too weak to be reported itself. */
  readonly isWeak?: boolean
  /** Counts as reported without an alert, because another rule reports it. */
  readonly isCovered?: boolean
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
  readonly remembered: readonly AlertRule[]
  /** Changes with what the group reads. '': evaluate it each time, because time matters. */
  fingerprint(input: ConditionInput): string
  conditions(input: ConditionInput): Partial<Record<AlertRule, readonly Condition[]>>
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
