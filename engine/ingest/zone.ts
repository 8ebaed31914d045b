import { DAY_MS, MINUTE_MS } from '../process/clock.ts'

/** `+01:00`, `-0930`, `+11`: hours and minutes east of UTC, up to 18 hours. */
const FIXED = /^([+-])(\d\d):?(\d\d)?$/
const FIXED_MINUTES_MAX = 18 * 60
const QUARTER_MS = 15 * MINUTE_MS

/** Whether this is the zone of a clock: UTC, an offset, or a name of the IANA time zone database. */
export function isZone(text: string): boolean {
  if (text === 'UTC') return true
  const minutes = fixedMinutes(text)
  if (minutes !== undefined) return Math.abs(minutes) <= FIXED_MINUTES_MAX
  // Node takes offsets here, too, in forms that depend on its version.
  if (!/^[A-Za-z]/.test(text)) return false
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: text })
    return true
  } catch {
    return false
  }
}

/** Turns what a clock on the wall in a zone shows into UTC. */
export class WallClock {
  readonly #fixedMs: number | undefined
  readonly #format: Intl.DateTimeFormat | undefined
  /** Zones change their offset at full quarters of an hour, so it is asked for once a quarter that is read. */
  #quarter = Number.NaN
  #offsetMs = 0

  /** @param zone one that isZone() takes */
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

  /** UTC of a wall time, both in milliseconds since 1970. Of an hour that comes twice it is the first, of one that never comes an hour later. */
  toUtc(wallMs: number): number {
    if (this.#fixedMs !== undefined) return wallMs - this.#fixedMs
    const quarter = Math.floor(wallMs / QUARTER_MS)
    if (quarter !== this.#quarter) {
      // The offset is known for instants; the one a day before is near enough to find the right instant by.
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
