import { DAY_MS, dayText, isoDay } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import type { HistoryDay, HistoryPlatform } from '../store/history.ts'
import type { Store } from '../store/store.ts'

/** The first that applies. `use`: clients, matches or the kind of use. */
export const SCAN_CHANGES = ['new', 'gone', 'decision', 'risk', 'use', 'none'] as const
export type ScanChange = (typeof SCAN_CHANGES)[number]

/** A platform whose results on two days differ. */
export interface ScanDifference {
  readonly platformId: string
  readonly change: ScanChange
  readonly before: HistoryPlatform | undefined
  readonly after: HistoryPlatform | undefined
}

/** What differs between the last scans of two days. */
export interface ScanDiff {
  /** Days since 1970-01-01. */
  readonly days: readonly [before: number, after: number]
  readonly results: readonly [before: HistoryDay, after: HistoryDay]
  /** In the order of SCAN_CHANGES. */
  readonly rows: readonly ScanDifference[]
}

/**
 * Compares the results of two days; by default of the last day with a scan, and the one before it.
 * Call it inside Environment.read.
 *
 * @throws Fault NOT_FOUND
 */
export function scanDiff(
  store: Store,
  organizationId: string,
  first: number | undefined,
  second: number | undefined,
): ScanDiff {
  const days = store.history.days(organizationId)
  const after = second ?? days.at(-1)
  const before = first ?? days.findLast((day) => day < (after ?? 0))
  if (after === undefined || before === undefined) {
    throw new Fault('NOT_FOUND', 'no two days with a completed scan; compare again after the scan of another day')
  }
  const results = [resultOf(store, organizationId, before, days), resultOf(store, organizationId, after, days)] as const
  return { days: [before, after], results, rows: differences(...results) }
}

function resultOf(store: Store, organizationId: string, day: number, days: readonly number[]): HistoryDay {
  const result = store.history.get(organizationId, day)
  if (result !== undefined) return result
  const span = days.length === 0 ? 'no day has one' : `${dayText(days[0] ?? 0)} to ${dayText(days.at(-1) ?? 0)}`
  throw new Fault('NOT_FOUND', `no completed scan on ${dayText(day)}; days with scans: ${span}`)
}

/** The number of a day such as 2026-11-20; undefined: the text is no day. */
export function dayNumberOf(text: string): number | undefined {
  const timeMs = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN
  // Date.parse takes February 31 as March 3.
  return Number.isNaN(timeMs) || isoDay(timeMs) !== text ? undefined : timeMs / DAY_MS
}

function differences(before: HistoryDay, after: HistoryDay): ScanDifference[] {
  const was = new Map(before.platforms.map((each) => [each.id, each]))
  const is = new Map(after.platforms.map((each) => [each.id, each]))
  return [...new Set([...is.keys(), ...was.keys()])]
    .map((platformId): ScanDifference => {
      const [old, now] = [was.get(platformId), is.get(platformId)]
      return { platformId, change: changeOf(old, now), before: old, after: now }
    })
    .filter(({ change }) => change !== 'none')
    .sort((a, b) => SCAN_CHANGES.indexOf(a.change) - SCAN_CHANGES.indexOf(b.change))
}

function changeOf(old: HistoryPlatform | undefined, now: HistoryPlatform | undefined): ScanChange {
  if (old === undefined) return 'new'
  if (now === undefined) return 'gone'
  if (old.decision !== now.decision) return 'decision'
  if (old.risk !== now.risk) return 'risk'
  return old.use === now.use && old.clients === now.clients && old.matches === now.matches ? 'none' : 'use'
}
