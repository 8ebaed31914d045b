import { DAY_MS, dayOf, HOUR_MS } from '../kernel/process/clock.ts'
import type { Organization, ScanFrequency } from '../store/organizations.ts'

const PERIOD_MS: Readonly<Record<ScanFrequency, number>> = { hourly: HOUR_MS, daily: DAY_MS, weekly: 7 * DAY_MS }

/** The number of scan periods since the organization was created. */
export function periodOf(organization: Organization, timeMs: number): number {
  return Math.floor((timeMs - organization.createdAtMs) / PERIOD_MS[organization.scanFrequency])
}

/** When the next scheduled scan is due: the end of the current period. */
export function nextScanMs(organization: Organization, nowMs: number): number {
  const period = Math.max(0, periodOf(organization, nowMs))
  return organization.createdAtMs + (period + 1) * PERIOD_MS[organization.scanFrequency]
}

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
