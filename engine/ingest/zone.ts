import { DAY_MS, MINUTE_MS } from '../kernel/process/clock.ts'

/**
 * Time zone offsets are multiples of 15 minutes. A clock that differs by nearly such a multiple may
 * be in another zone.
 */
const QUARTER_MINUTES = 15
const ZONE_SLACK_MS = 2 * MINUTE_MS

/** `+01:00`, `-0930`, `+11`: hours and minutes east of UTC, up to 18 hours. */
const FIXED = /^([+-])(\d\d):?(\d\d)?$/
const FIXED_MINUTES_MAX = 18 * 60
const QUARTER_MS = 15 * MINUTE_MS

/** Whether the text is a time zone: UTC, an offset, or a name in the IANA time zone database. */
export function isZone(text: string): boolean {
  if (text === 'UTC') return true
  const minutes = fixedMinutes(text)
  if (minutes !== undefined) return Math.abs(minutes) <= FIXED_MINUTES_MAX
  // Intl accepts offsets as well, in forms that depend on the Node version.
  if (!/^[A-Za-z]/.test(text)) return false
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: text })
    return true
  } catch {
    return false
  }
}

/** Converts local time in a zone to UTC. */
export class WallClock {
  readonly #fixedMs: number | undefined
  readonly #format: Intl.DateTimeFormat | undefined
  /**
   * Offsets change only at multiples of 15 minutes, so one is computed for each quarter of an hour.
   */
  #quarter = Number.NaN
  #offsetMs = 0

  /** @param zone one that isZone() accepts */
  constructor(zone: string) {
    const minutes = zone === 'UTC' ? 0 : fixedMinutes(zone)
    this.#fixedMs = minutes === undefined ? undefined : minutes * MINUTE_MS
    if (minutes === undefined) {
      this.#format = new Intl.DateTimeFormat('en-US', {
        timeZone: zone,
        hourCycle: 'h23',
        year: 'numeric',
        month: 'numeric',
        day: 'numeric',
        hour: 'numeric',
        minute: 'numeric',
        second: 'numeric',
      })
    }
  }

  /**
   * Converts local time to UTC, both in milliseconds since 1970. Of a repeated hour, the first is
   * assumed. A skipped hour is moved one hour later.
   */
  toUtc(wallMs: number): number {
    if (this.#fixedMs !== undefined) return wallMs - this.#fixedMs
    const quarter = Math.floor(wallMs / QUARTER_MS)
    if (quarter !== this.#quarter) {
      // Intl gives the offset at an instant. The offset of the previous day yields an instant close
      // enough to find the right one.
      const before = this.#offsetAt(wallMs - DAY_MS)
      const guess = wallMs - before
      const after = this.#offsetAt(guess)
      this.#offsetMs = this.#offsetAt(wallMs - after) === after ? after : before
      this.#quarter = quarter
    }
    return wallMs - this.#offsetMs
  }

  #offsetAt(timeMs: number): number {
    const parts: Record<string, number> = {}
    for (const { type, value } of this.#format?.formatToParts(timeMs) ?? []) parts[type] = Number(value)
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(timeMs / 1000) * 1000
  }
}

function fixedMinutes(text: string): number | undefined {
  const [, sign, hours, minutes] = FIXED.exec(text) ?? []
  if (sign === undefined) return undefined
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes ?? 0))
}

/** The offset of a clock in minutes if it is nearly a multiple of 15 minutes, else 0. */
export function zoneMinutes(differenceMs: number): number {
  const quarters = Math.round(differenceMs / (QUARTER_MINUTES * MINUTE_MS))
  if (quarters === 0 || Math.abs(quarters) > 4 * 18) return 0
  return Math.abs(differenceMs - quarters * QUARTER_MINUTES * MINUTE_MS) <= ZONE_SLACK_MS
    ? quarters * QUARTER_MINUTES
    : 0
}
