import type { AnswerTotals } from '../engine/http/answer-counters.ts'
import type { MetricRow } from '../engine/process/metrics.ts'

/**
 * Metrics of the API, for Prometheus. `tableFull` counts the requests that were rejected because a
 * table of the rate limit was full, by table.
 */
export function apiRows(answers: AnswerTotals, tableFull: Readonly<Record<string, number>>): MetricRow[] {
  return [
    ['posture_api_answers_total', 'counter', 'API answers by status', answers.byStatus, 'status'],
    ['posture_api_body_bytes_total', 'counter', 'Bytes of bodies sent by the API', answers.bodyBytes],
    [
      'posture_api_answers_aborted_total',
      'counter',
      'Answers aborted because too many waited for slow clients',
      answers.aborted,
    ],
    [
      'posture_api_rate_table_full_total',
      'counter',
      'Requests rejected because the rate limit table was full',
      tableFull,
      'table',
    ],
  ]
}
