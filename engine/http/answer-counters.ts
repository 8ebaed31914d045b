import { type HttpListenOptions, REASON_PHRASE } from './port.ts'

/*
 * Counters of answers in shared memory. Each thread of a listener writes only its own row, so
 * counting is an addition without a lock.
 *
 *   0      bytes of bodies
 *   1 + i  responses with the i-th status
 *   last   aborted responses
 */
const STATUSES = Object.keys(REASON_PHRASE).map(Number)
const COLUMN = new Map(STATUSES.map((status, index) => [status, index + 1]))
const ABORTED = 1 + STATUSES.length
const COLUMNS = ABORTED + 1

export function makeAnswerCounters(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * COLUMNS * Float64Array.BYTES_PER_ELEMENT)
}

/** Returns the functions with which a thread counts its responses. */
export function answerCountersOf(
  memory: SharedArrayBuffer,
  thread = 0,
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

/** The sums of all threads of a listener. */
export interface AnswerTotals {
  /** Only statuses that were sent. */
  readonly byStatus: Readonly<Record<string, number>>
  readonly bodyBytes: number
  readonly aborted: number
}

export function answerTotals(memory: SharedArrayBuffer): AnswerTotals {
  const counts = new Float64Array(memory)
  const sum = (column: number): number => {
    let total = 0
    for (let at = column; at < counts.length; at += COLUMNS) total += counts[at] ?? 0
    return total
  }
  const byStatus = STATUSES.map((status, index) => [String(status), sum(index + 1)] as const)
  return {
    byStatus: Object.fromEntries(byStatus.filter(([, count]) => count > 0)),
    bodyBytes: sum(0),
    aborted: sum(ABORTED),
  }
}
