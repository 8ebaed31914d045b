import { DAY_MS, HOUR_MS } from '../kernel/process/clock.ts'
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
