import { type HttpListenOptions, REASON_PHRASE } from '../engine/http/port.ts'
import type { MetricRow } from '../engine/process/metrics.ts'

/*
 * Counters of the API's threads in shared memory. Each thread writes only its own row, so counting
 * is an addition without a lock.
 *
 *   0      bytes of bodies
 *   1 + i  responses with the i-th status
 *   last   aborted responses
 */
const STATUSES = Object.keys(REASON_PHRASE).map(Number)
const COLUMN = new Map(STATUSES.map((status, index) => [status, index + 1]))
const ABORTED = 1 + STATUSES.length
const COLUMNS = ABORTED + 1

export function makeCounters(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * COLUMNS * Float64Array.BYTES_PER_ELEMENT)
}

/** Returns the functions with which a thread counts its responses. */
export function countersOf(
  memory: SharedArrayBuffer,
  thread: number,
): Required<Pick<HttpListenOptions, 'onAnswer' | 'onAnswerAborted'>> {
  const row = new Float64Array(memory, thread * COLUMNS * Float64Array.BYTES_PER_ELEMENT, COLUMNS)
  return {
    onAnswer(_request, status, bytes) {
      const column = COLUMN.get(status) ?? 0
      row[column] = (row[column] ?? 0) + 1
      row[0] = (row[0] ?? 0) + bytes
    },
    onAnswerAborted() {
      row[ABORTED] = (row[ABORTED] ?? 0) + 1
    },
  }
}

/**
 * Totals of all threads, for Prometheus. `tableFull` counts the requests that were rejected because
 * a table of the rate limit was full, by table.
 */
export function apiRows(memory: SharedArrayBuffer, tableFull: Readonly<Record<string, number>>): MetricRow[] {
  const counts = new Float64Array(memory)
  const sum = (column: number): number => {
    let total = 0
    for (let at = column; at < counts.length; at += COLUMNS) total += counts[at] ?? 0
    return total
  }
  const byStatus = STATUSES.map((status, index) => [String(status), sum(index + 1)] as const)
  return [
    [
      'posture_api_answers_total',
      'counter',
      'API answers by status',
      Object.fromEntries(byStatus.filter(([, count]) => count > 0)),
      'status',
    ],
    ['posture_api_body_bytes_total', 'counter', 'Bytes of bodies sent by the API', sum(0)],
    [
      'posture_api_answers_aborted_total',
      'counter',
      'Answers aborted because too many waited for slow clients',
      sum(ABORTED),
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
