import type { AlertRule, AlertRules, AlertSeverity } from '../store/alerts.ts'

/** The threshold of a rule: a whole number with a unit. */
interface RuleThreshold {
  readonly byDefault: number
  readonly min: number
  readonly max: number
  /** Such as `hours`; '' for a score. */
  readonly unit: string
  /** What the number is compared with. */
  readonly about: string
}

export interface RuleDefinition {
  /** What raises an alert. */
  readonly about: string
  /** The severity of its alerts, unless the condition sets another. */
  readonly severity: AlertSeverity
  readonly threshold?: RuleThreshold
  /** The title of a message about several alerts, after their number. */
  readonly plural: string
}

/** All rules with their defaults. docs/reference/alerts.md has the same table. */
export const RULES: Readonly<Record<AlertRule, RuleDefinition>> = {
  'new-platform': {
    about: 'A scan found an AI platform for the first time, unless unapproved-platform reports it',
    severity: 'low',
    plural: 'new AI platforms',
  },
  'unapproved-platform': {
    about: 'An AI platform that is neither approved nor rejected has at least this risk',
    severity: 'high',
    threshold: { byDefault: 70, min: 0, max: 100, unit: '', about: 'Risk of the platform' },
    plural: 'AI platforms with a high risk, not approved',
  },
  'rejected-platform': {
    about: 'A platform was used after it was rejected; at most once a day',
    severity: 'high',
    plural: 'rejected AI platforms in use',
  },
  'rejected-platform-blocked': {
    about: 'Requests for a rejected platform were blocked, and none was use; at most once a day',
    severity: 'low',
    plural: 'rejected AI platforms of which requests are blocked',
  },
  'platform-volume': {
    about: 'An AI platform that is not approved had more matches of use than this on one day (UTC)',
    severity: 'medium',
    threshold: { byDefault: 10_000, min: 1, max: 1_000_000_000, unit: 'matches', about: 'Matches on one day' },
    plural: 'AI platforms with a high volume',
  },
  'bytes-sent': {
    about: 'Clients sent more than this on one day (UTC): one client, a group, or all to a platform not approved',
    severity: 'medium',
    threshold: { byDefault: 1000, min: 1, max: 1_000_000_000, unit: 'MB', about: 'Megabytes sent on one day' },
    plural: 'days with much data sent',
  },
  'bytes-unusual': {
    about: 'A client, a group, or the clients of a platform not approved sent so many times their usual day (UTC)',
    severity: 'medium',
    threshold: { byDefault: 10, min: 2, max: 1000, unit: 'times', about: 'Multiple of the usual day' },
    plural: 'days with unusually much data sent',
  },
  'source-silent': {
    about: 'A sender of logs has sent nothing for this time, and had sent for at least as long before',
    severity: 'medium',
    threshold: { byDefault: 24, min: 1, max: 720, unit: 'hours', about: 'Time since the last message' },
    plural: 'senders of logs are silent',
  },
  'source-degraded': {
    about: 'More than this share of the messages of a sender in an hour, at least 100, was not understood',
    severity: 'low',
    threshold: { byDefault: 50, min: 1, max: 99, unit: '%', about: 'Share that was not understood' },
    plural: 'senders of logs are not understood',
  },
  'sensor-silent': {
    about: 'A sensor has sent no coverage report for this time, and did not end normally',
    severity: 'medium',
    threshold: { byDefault: 60, min: 5, max: 10_080, unit: 'minutes', about: 'Time since the last report' },
    plural: 'sensors are silent',
  },
  'sensor-degraded': {
    about: 'A sensor lost more than this share of its packets, today and yesterday (UTC)',
    severity: 'low',
    threshold: { byDefault: 5, min: 1, max: 99, unit: '%', about: 'Share of packets lost' },
    plural: 'sensors lost packets',
  },
  'coverage-low': {
    about: 'A sensor could read the names of less than this share of its traffic, today and yesterday (UTC)',
    severity: 'low',
    threshold: { byDefault: 50, min: 1, max: 100, unit: '%', about: 'Visible share of the traffic' },
    plural: 'sensors with a low coverage',
  },
  'score-fell': {
    about: 'A completed assessment scored at least this many points less than the one before',
    severity: 'medium',
    threshold: { byDefault: 5, min: 1, max: 100, unit: 'points', about: 'Difference of the scores' },
    plural: 'scores fell',
  },
  'recommendation-opened': {
    about: 'A recommendation was opened with this priority or a higher one; 1 is the highest',
    severity: 'low',
    threshold: { byDefault: 2, min: 1, max: 5, unit: '', about: 'Priority of the recommendation' },
    plural: 'assessments with new recommendations',
  },
  'answer-unsupported': {
    about: 'Discovery supported an answer when its assessment was completed, and no longer does',
    severity: 'medium',
    plural: 'topics of completed assessments that discovery no longer supports',
  },
  'item-overdue': {
    about: 'An item of an open assessment, or a recommendation, is past its due date (UTC)',
    severity: 'medium',
    plural: 'items are overdue',
  },
  'api-key-unused': {
    about: 'An API key was not used for this time',
    severity: 'low',
    threshold: { byDefault: 90, min: 1, max: 3650, unit: 'days', about: 'Time since the last use' },
    plural: 'unused API keys',
  },
  'api-key-expiring': {
    about: 'An API key expires within this time',
    severity: 'medium',
    threshold: { byDefault: 14, min: 1, max: 365, unit: 'days', about: 'Time until it expires' },
    plural: 'API keys expire soon',
  },
  'approval-expiring': {
    about: 'The approval of a platform expires within this time',
    severity: 'low',
    threshold: { byDefault: 14, min: 1, max: 365, unit: 'days', about: 'Time until it expires' },
    plural: 'approvals expire soon',
  },
}

/** The rules of an organization as they apply: its settings over the defaults. */
export interface RuleInForce {
  readonly muted: boolean
  /** 0 if the rule has none. */
  readonly threshold: number
}

export function ruleInForce(settings: AlertRules, rule: AlertRule): RuleInForce {
  const given = settings[rule]
  return { muted: given?.muted ?? false, threshold: given?.threshold ?? RULES[rule].threshold?.byDefault ?? 0 }
}
