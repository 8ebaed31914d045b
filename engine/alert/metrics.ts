import type { MetricRow } from '../kernel/process/metrics.ts'
import { ALERT_CHANNEL_KINDS } from '../store/alert-channels.ts'
import { ALERT_RULES } from '../store/alerts.ts'
import type { AlertStatus } from './alert-runner.ts'

/** Before the thread of the alerts has started. */
const NOTHING: AlertStatus = {
  raised: {},
  evaluations: 0,
  failedEvaluations: 0,
  evaluationMs: 0,
  messages: {},
  channels: 0,
  waiting: 0,
  deadLetters: 0,
}

/** The Prometheus metrics of alerts. */
export function alertRows(status: AlertStatus = NOTHING): MetricRow[] {
  const raised = Object.fromEntries(ALERT_RULES.map((rule) => [rule, status.raised[rule] ?? 0]))
  const messages = ALERT_CHANNEL_KINDS.flatMap((kind) =>
    ['delivered', 'failed', 'dead'].map((outcome) => {
      return { labels: { kind, outcome }, value: status.messages[`${kind} ${outcome}`] ?? 0 }
    }),
  )
  return [
    ['posture_alerts_raised_total', 'counter', 'Alerts by rule', raised, 'rule'],
    [
      'posture_alert_messages_total',
      'counter',
      'Attempts to send messages about alerts, by kind of channel: delivered, failed and retried, or dead letter',
      messages,
    ],
    [
      'posture_alert_evaluations_total',
      'counter',
      'Evaluations of the alert rules of one organization',
      status.evaluations,
    ],
    [
      'posture_alert_evaluations_failed_total',
      'counter',
      'Of these, evaluations that failed; they are repeated',
      status.failedEvaluations,
    ],
    ['posture_alert_evaluation_seconds_total', 'counter', 'Duration of evaluations', status.evaluationMs / 1000],
    ['posture_alert_channels', 'gauge', 'Alert channels', status.channels],
    ['posture_alert_messages_waiting', 'gauge', 'Messages that wait for their channel', status.waiting],
    ['posture_alert_dead_letters', 'gauge', 'Messages that were not delivered and are kept', status.deadLetters],
  ]
}
