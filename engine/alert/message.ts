import { isoSeconds } from '../kernel/process/clock.ts'
import type { AlertChannel } from '../store/alert-channels.ts'
import { ALERT_SEVERITIES, type Alert, type AlertDetails, type AlertRule, type AlertSeverity } from '../store/alerts.ts'
import type { Organization } from '../store/organizations.ts'
import type { ReportMessage } from '../store/report-schedules.ts'
import { RULES } from './rules.ts'

/** The version of the JSON form. Fields may be added to it. */
const VERSION = 1

/** An alert in a message. */
export interface AlertJson {
  readonly id: string
  readonly title: string
  readonly severity: AlertSeverity
  readonly created_at: string
  readonly subject: { readonly kind: string; readonly id: string; readonly name: string }
  readonly details: AlertDetails
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
}

/** Which of the messages about the alerts of one evaluation. */
interface MessagePart {
  readonly count: number
  readonly isFirstScan: boolean
  readonly part: number
  readonly parts: number
}

/** A message in the queue of a channel. */
export type ChannelMessage = AlertMessage | ReportMessage

export function atLeast(severity: AlertSeverity, min: AlertSeverity): boolean {
  return ALERT_SEVERITIES.indexOf(severity) >= ALERT_SEVERITIES.indexOf(min)
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

function alertJson({ id, title, severity, createdAtMs, subject, details }: Alert): AlertJson {
  return { id, title, severity, created_at: isoSeconds(createdAtMs), subject, details }
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
