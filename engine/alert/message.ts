import { isoSeconds } from '../kernel/process/clock.ts'
import type { AlertChannel } from '../store/alert-channels.ts'
import { ALERT_SEVERITIES, type Alert, type AlertDetails, type AlertRule, type AlertSeverity } from '../store/alerts.ts'
import type { Organization } from '../store/organizations.ts'
import type { ReportMessage } from '../store/report-schedules.ts'
import { lineOf, NAMED_GROUPS_MAX } from './condition.ts'
import { RULES } from './rules.ts'

/** The version of the JSON form. Fields may be added to it. */
const VERSION = 1

/** An alert in a message. */
export interface AlertJson {
  readonly id: string
  /** From 1, in the organization. Absent in messages that an older version queued. */
  readonly number?: number
  readonly title: string
  readonly severity: AlertSeverity
  readonly created_at: string
  readonly subject: { readonly kind: string; readonly id: string; readonly name: string }
  readonly details: AlertDetails
  /** Groups that the alert is about, if there are any. */
  readonly groups?: readonly string[]
  /** People whose use it is about, if the organization allows that alerts name them. */
  readonly people?: readonly string[]
  /** The page of the console about the subject, if the service knows the origin of the console. */
  readonly url?: string
}

/**
 * The alerts of one rule in one evaluation, or a test. Webhooks receive it as it is; payload.ts has
 * its schema.
 */
export interface AlertMessage {
  readonly version: typeof VERSION
  readonly type: 'alerts' | 'test'
  /** 32 hex digits. A message that is sent again has the same. */
  readonly id: string
  readonly organization: { readonly id: string; readonly name: string }
  /** '' in a test. */
  readonly rule: AlertRule | ''
  /** The highest of its alerts. */
  readonly severity: AlertSeverity
  readonly title: string
  readonly created_at: string
  /** Number of alerts in all parts, including those that are not listed. */
  readonly count: number
  /** From 1. Absent in messages that an older version queued. */
  readonly part?: number
  readonly parts?: number
  readonly alerts: readonly AlertJson[]
  /** The page of the console with the alerts. */
  readonly url?: string
}

/** Which of the messages about the alerts of one evaluation. */
interface MessagePart {
  readonly count: number
  readonly isFirstScan: boolean
  readonly part: number
  readonly parts: number
}

/** Which alerts a channel gets. */
export type AlertFilter = Pick<AlertChannel, 'severityMin' | 'rules' | 'groups'>

/** A mail to the manager of a group about its use of a platform. */
export interface ManagerMessage {
  readonly version: 1
  readonly type: 'manager'
  /** 32 hex digits. A message that is sent again has the same. */
  readonly id: string
  readonly organization: { readonly id: string; readonly name: string }
  /** The subject of the mail. */
  readonly title: string
  readonly created_at: string
  /** What a member wrote, which the mail begins with. */
  readonly text: string
  readonly platform: { readonly id: string; readonly name: string }
  /** The name of the group, whose manager is looked up when the mail is sent. */
  readonly group: string
  /** Days (UTC) of the use. */
  readonly first_day: number
  readonly last_day: number
}

/** A message in the queue of a channel. */
export type ChannelMessage = AlertMessage | ReportMessage | ManagerMessage

/** A message as its receiver gets it. */
export type CompletedMessage = AlertMessage | ReportMessage | (ManagerMessage & { readonly to: string })

/** Whether a channel gets an alert. */
export function isWanted({ severityMin, rules, groups }: AlertFilter, alert: Alert): boolean {
  if (ALERT_SEVERITIES.indexOf(alert.severity) < ALERT_SEVERITIES.indexOf(severityMin)) return false
  if (rules !== undefined && !rules.includes(alert.rule)) return false
  const wanted = groups?.map((name) => name.toLowerCase())
  return wanted === undefined || alert.groups?.some((name) => wanted.includes(name.toLowerCase())) === true
}

/** Highest severity first, then in the order given. */
export function bySeverity<T extends { readonly severity: AlertSeverity }>(alerts: readonly T[]): T[] {
  return [...alerts].sort((a, b) => ALERT_SEVERITIES.indexOf(b.severity) - ALERT_SEVERITIES.indexOf(a.severity))
}

/**
 * A message about alerts of one rule, the most severe first.
 *
 * @param listed the alerts that the message lists; `count` is the number of all
 * @param part from 1, if a channel gets several messages
 */
export function messageOf(
  organization: Organization,
  rule: AlertRule,
  listed: readonly Alert[],
  { count, isFirstScan, part, parts }: MessagePart,
): AlertMessage {
  const [first] = listed
  if (first === undefined) throw new Error('a message without alerts')
  const many = `${count} ${RULES[rule].plural}${parts === 1 ? '' : ` (part ${part} of ${parts})`}`
  const title = count === 1 ? first.title : many
  return {
    version: VERSION,
    type: 'alerts',
    id: part === 1 ? first.id : `${first.id.slice(0, -4)}${(part - 1).toString(16).padStart(4, '0')}`,
    organization: { id: organization.id, name: organization.name },
    rule,
    severity: first.severity,
    title: isFirstScan ? `First scan: ${title}` : title,
    created_at: isoSeconds(first.createdAtMs),
    count,
    part,
    parts,
    alerts: listed.map(alertJson),
  }
}

export function alertJson({ id, sequence, title, severity, createdAtMs, subject, details, groups }: Alert): AlertJson {
  const created_at = isoSeconds(createdAtMs)
  return { id, number: sequence, title, severity, created_at, subject, details, ...namedGroups({ groups }) }
}

/** A channel can select an alert by any of its groups, but it names only some. */
export function namedGroups({ groups }: { readonly groups?: Alert['groups'] | undefined }): Pick<Alert, 'groups'> {
  return groups === undefined ? {} : { groups: groups.slice(0, NAMED_GROUPS_MAX) }
}

/** What is known about an alert, as lines for people. */
export function linesOfAlert({ details, groups = [], people = [] }: AlertJson): string[] {
  // People read the category, programs the type.
  const { platform_type: _, ...shown } = details
  const facts = Object.entries(shown).filter(([, value]) => value !== '')
  return [
    ...facts.map(([name, value]) => `${wordsOf(name)}: ${value}`),
    ...(groups.length > 0 ? [`Groups: ${groups.join(', ')}`] : []),
    ...(people.length > 0 ? [`People: ${people.map(lineOf).join(', ')}`] : []),
  ]
}

/** An identifier such as `risk_reason` or `new-platform` in words. */
export function wordsOf(name: string): string {
  return `${name.charAt(0).toUpperCase()}${name.slice(1).replace(/[-_]/g, ' ')}`.replace(/^Api\b/, 'API')
}

export function testMessage(
  organization: Organization,
  { name }: Pick<AlertChannel, 'name'>,
  id: string,
  nowMs: number,
): AlertMessage {
  return {
    version: VERSION,
    type: 'test',
    id,
    organization: { id: organization.id, name: organization.name },
    rule: '',
    severity: 'informational',
    title: `Test of the alert channel ${name}`,
    created_at: isoSeconds(nowMs),
    count: 0,
    part: 1,
    parts: 1,
    alerts: [],
  }
}
