import { RETRY_FIRST_MS, RETRY_LONGEST_MS } from '../limits.ts'

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
