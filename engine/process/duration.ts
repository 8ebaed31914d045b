import { InvalidArgumentError } from 'commander'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from './clock.ts'

const UNITS_MS: Readonly<Record<string, number>> = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS }

/** Milliseconds of a duration such as `90s`, `5m`, `12h` or `30d`; undefined if the text is not a duration. */
export function durationMs(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  const unitMs = UNITS_MS[unit]
  return unitMs === undefined ? undefined : Number(digits) * unitMs
}

/** Reads the value of an option that is a duration from `min` to `max`, both written as durations. */
export function durationOption(min: string, max: string): (text: string) => number {
  return (text) => {
    const ms = durationMs(text)
    if (ms !== undefined && ms >= (durationMs(min) ?? 0) && ms <= (durationMs(max) ?? 0)) return ms
    throw new InvalidArgumentError(`expected a duration from ${min} to ${max}, such as 90s, 5m, 12h or 30d`)
  }
}
