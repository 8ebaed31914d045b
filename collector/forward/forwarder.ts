import type { CoverageReport } from '../../engine/kernel/event/coverage-report.ts'
import type { Event } from '../../engine/kernel/event/event.ts'
import { RETRY_FIRST_MS, RETRY_LONGEST_MS } from '../limits.ts'

/** The transports to the service. */
export type Transport = 'https' | 'syslog'

/** The outcome of a batch, and whether a retry can help. */
export type Outcome =
  /**
   * Accepted: on the service's disk (HTTPS), or with the operating system (syslog). The `rejected`
   * events will never be accepted and count as refused. `coverageError` says why the coverage
   * report was not accepted; undefined if it was or there was none.
   */
  | {
      readonly kind: 'accepted'
      readonly duplicates: number
      /** Older than what the service remembers of this collector: not counted. */
      readonly outsideDedupWindow: number
      readonly rejected: readonly string[]
      readonly coverageError?: string
    }
  /** A retry may help. `afterMs` is the delay that the service requested. */
  | { readonly kind: 'retry'; readonly why: string; readonly afterMs?: number }
  /** The batch as a whole is not accepted. Without the invalid event it would be. */
  | { readonly kind: 'refused'; readonly why: string }
  /** An intermediary does not forward the batch. A smaller batch may pass. No event is dropped. */
  | { readonly kind: 'notPassed'; readonly why: string }
  /** The token is unknown. Nothing will be accepted until it is replaced. */
  | { readonly kind: 'unauthorized'; readonly why: string }

/** Sends batches of events to the service. */
export interface Forwarder {
  /**
   * False once an established connection is lost. A transport that connects for each batch is
   * always alive.
   */
  readonly alive: boolean
  /**
   * A batch without events tests the path and may carry a coverage report. Rejects only on an
   * internal error.
   */
  send(events: readonly Event[], coverage?: CoverageReport): Promise<Outcome>
  /** Aborts the send in progress, which then returns `retry`. */
  close(): Promise<void>
}

/**
 * Returns the delay before attempt number `attempt` (from 1): exponential backoff with full jitter.
 * The delay is random between 0 and a bound that doubles, so that a thousand sensors do not return
 * in the same second.
 */
export function backoffMs(attempt: number, random: () => number = Math.random): number {
  const bound = Math.min(RETRY_LONGEST_MS, RETRY_FIRST_MS * 2 ** Math.min(attempt - 1, 30))
  return Math.round(random() * bound)
}

/**
 * Parses Retry-After (RFC 9110 §10.2.3), seconds or a date, to milliseconds. Undefined if it is
 * neither.
 */
export function retryAfterMs(field: string, nowMs: number): number | undefined {
  if (/^\d{1,9}$/.test(field)) return Math.min(Number(field) * 1000, RETRY_LONGEST_MS)
  const dateMs = Date.parse(field)
  return Number.isNaN(dateMs) ? undefined : Math.min(Math.max(0, dateMs - nowMs), RETRY_LONGEST_MS)
}
