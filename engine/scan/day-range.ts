import { dayOf } from '../kernel/process/clock.ts'

/** Days (UTC) whose use counts, from the first to the last. */
export interface DayRange {
  readonly firstDay: number
  readonly lastDay: number
}

/** Today (UTC) and the days before it. The clock of a sender may be ahead by less than a day. */
export function lastDaysOf(days: number, nowMs: number): DayRange {
  const today = dayOf(nowMs)
  return { firstDay: Math.max(0, today - days + 1), lastDay: today + 1 }
}
