import { RETRY_FIRST_MS, RETRY_LONGEST_MS } from '../limits.ts'

/**
 * How long to wait before try number `attempt` (from 1): exponential backoff with full jitter, a random time between 0 and
 * the bound that doubles, so that a thousand sensors do not come back in the same second.
 */
export function backoffMs(attempt: number, random: () => number = Math.random): number {
  const bound = Math.min(RETRY_LONGEST_MS, RETRY_FIRST_MS * 2 ** Math.min(attempt - 1, 30))
  return Math.round(random() * bound)
}

/** Retry-After (RFC 9110 §10.2.3) in milliseconds: seconds, or a date; undefined where it is neither. */
export function retryAfterMs(field: string, nowMs: number): number | undefined {
  if (/^\d{1,9}$/.test(field)) return Math.min(Number(field) * 1000, RETRY_LONGEST_MS)
  const dateMs = Date.parse(field)
  return Number.isNaN(dateMs) ? undefined : Math.min(Math.max(0, dateMs - nowMs), RETRY_LONGEST_MS)
}
