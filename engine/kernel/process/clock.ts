/** The current time, replaceable in tests. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. Jumps when the system clock is set. */
  nowMs(): number
}

export const systemClock: Clock = { nowMs: () => Date.now() }

export const SECOND_MS = 1000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** Days since 1970-01-01 in UTC. */
export function dayOf(timeMs: number): number {
  return Math.floor(timeMs / DAY_MS)
}

/** ISO 8601 in UTC with seconds, as in all API timestamps: `2026-11-20T09:15:02Z`. */
export function isoSeconds(timeMs: number): string {
  const day = dayOf(timeMs)
  if (day !== lastDay) {
    const text = new Date(timeMs).toISOString()
    lastDate = text.slice(0, text.indexOf('T') + 1)
    lastDay = day
  }
  const seconds = Math.floor(timeMs / SECOND_MS) - day * SECONDS_PER_DAY
  const minutes = Math.floor(seconds / 60)
  return `${lastDate}${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}:${twoDigits(seconds % 60)}Z`
}

/** The day in UTC, as in due dates: `2026-11-20`. */
export function isoDay(timeMs: number): string {
  return isoSeconds(timeMs).slice(0, 10)
}

/** A number of a day, as text: `2026-11-20`. */
export function dayText(day: number): string {
  return isoDay(day * DAY_MS)
}

const SECONDS_PER_DAY = DAY_MS / SECOND_MS
/** The last formatted day, and its date up to the T: most times in a response are of few days. */
let lastDay = Number.NaN
let lastDate = ''

function twoDigits(number: number): string {
  return number < 10 ? `0${number}` : `${number}`
}

/**
 * 2025-01-01 in milliseconds since 1970. A clock before this instant was never set, so its time is
 * not used.
 */
export const CLOCK_SET_MS = 1_735_689_600_000
