import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from './clock.ts'
import { textOf } from './settings.ts'

const UNITS_MS: Readonly<Record<string, number>> = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS }

/**
 * Milliseconds of a duration such as `90s`, `5m`, `12h` or `30d`; undefined if the text is not a
 * duration.
 */
export function durationMs(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  const unitMs = UNITS_MS[unit]
  return unitMs === undefined ? undefined : Number(digits) * unitMs
}

/** A duration from `min` to `max`, both written as durations. In ms. */
export function duration(min: string, max: string) {
  const expected = `expected a duration from ${min} to ${max}, such as 90s, 5m, 12h or 30d`
  return textOf(durationMs, expected).refine(
    (ms) => ms >= (durationMs(min) ?? 0) && ms <= (durationMs(max) ?? 0),
    expected,
  )
}

const TIME_FORMATS = 'a duration such as 90d, a day such as 2027-03-31, or a time such as 2027-03-31T12:00:00Z'

/** A time to come: a duration from now, or a time in UTC. In ms since 1970. */
export function futureTime(nowMs: () => number) {
  const read = (text: string): number | undefined => {
    const ms = durationMs(text)
    return ms === undefined ? utcTimeMs(text) : nowMs() + ms
  }
  return textOf(read, `expected ${TIME_FORMATS}`)
    .refine((atMs) => atMs > nowMs(), 'expected a time in the future')
    .refine((atMs) => atMs <= nowMs() + FUTURE_DAYS_MAX * DAY_MS, `expected a time within ${FUTURE_DAYS_MAX} days`)
}

/** Ten years. */
const FUTURE_DAYS_MAX = 3653

/** The beginning of a time until now: a duration, or a time in UTC. In ms since 1970. */
export function sinceTime(nowMs: () => number) {
  return pastTime(nowMs, (text) => {
    const ms = durationMs(text)
    return ms === undefined ? utcTimeMs(text) : Math.max(1, nowMs() - ms)
  })
}

/** A time in the past, in UTC. In ms since 1970. */
export function pastTime(nowMs: () => number, read = utcTimeMs) {
  return textOf(read, 'expected a date such as 2026-03-31, or a time such as 2026-03-31T12:00:00Z').refine(
    (atMs) => atMs > 0 && atMs <= nowMs(),
    'expected a time in the past, from 1970',
  )
}

/**
 * Milliseconds since 1970 of `2026-03-31` (its first instant) or `2026-03-31T12:00:00Z`; undefined
 * if there is no such time.
 */
export function utcTimeMs(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}Z)?$/.test(text)) return undefined
  const timeMs = Date.parse(text.length === DAY_CHARACTERS ? `${text}T00:00:00Z` : text)
  // Date.parse takes February 30 for March 2.
  if (Number.isNaN(timeMs) || !new Date(timeMs).toISOString().startsWith(text.slice(0, DAY_CHARACTERS)))
    return undefined
  return timeMs
}

const DAY_CHARACTERS = '2026-03-31'.length
