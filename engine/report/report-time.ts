import { DAY_MS, HOUR_MS } from '../process/clock.ts'
import type { ReportInterval } from '../store/report-schedules.ts'

/** Reports are made at this hour (UTC), on Mondays and on the first of a month. */
const HOUR = 6
const MONDAY = 1
const WEEK_DAYS = 7

/** The last time until `nowMs` at which reports of an interval were due. */
export function lastDueMs(every: ReportInterval, nowMs: number): number {
  const hour = new Date(nowMs - HOUR * HOUR_MS)
  const [year, month] = [hour.getUTCFullYear(), hour.getUTCMonth()]
  if (every === 'monthly') return Date.UTC(year, month, 1, HOUR)
  const sinceMonday = (hour.getUTCDay() - MONDAY + WEEK_DAYS) % WEEK_DAYS
  return Date.UTC(year, month, hour.getUTCDate() - sinceMonday, HOUR)
}

/** The first time after `nowMs` at which reports of an interval are due. */
export function nextDueMs(every: ReportInterval, nowMs: number): number {
  const last = lastDueMs(every, nowMs)
  if (every === 'weekly') return last + WEEK_DAYS * DAY_MS
  const first = new Date(last)
  return Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 1, HOUR)
}

/** The beginning of the interval that ends at a due time. */
export function previousDueMs(every: ReportInterval, dueMs: number): number {
  return lastDueMs(every, dueMs - 1)
}
