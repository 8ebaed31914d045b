import { dayNumberOf, type ScanDiff, type ScanDifference, scanDiff } from '../../engine/admin/scan-diff.ts'
import type { Visit } from '../http/visit.ts'

/** A platform that differs, by its name. */
export interface DifferenceRow extends ScanDifference {
  readonly platform: string
  /** The platform is in the registry, so it has a page. */
  readonly isRegistered: boolean
}

export interface ComparisonView {
  /** The days with a scan, newest first. */
  readonly choices: readonly number[]
  /** undefined if there are no two days with a scan. */
  readonly diff: Omit<ScanDiff, 'rows'> | undefined
  readonly rows: readonly DifferenceRow[]
}

/** Compares the last scans of the query's days `before` and `after`. */
export function comparisonView({ site, organization, request: { query } }: Visit): ComparisonView {
  const { store, registry } = site
  const days = store.history.days(organization.id)
  const choices = days.toReversed()
  if (days.length < 2) return { choices, diff: undefined, rows: [] }
  const chosen = (name: string): number | undefined => {
    const day = dayNumberOf(query.get(name) ?? '')
    return day !== undefined && days.includes(day) ? day : undefined
  }
  const after = chosen('after') ?? days.at(-1)
  const before = chosen('before') ?? days.findLast((day) => day < (after ?? 0)) ?? after
  const { rows, ...diff } = scanDiff(store, organization.id, before, after)
  const names = new Map(registry.catalogOf(organization.id).platforms.map(({ id, name }) => [id, name]))
  return {
    choices,
    diff,
    rows: rows.map((row) => ({
      ...row,
      platform: names.get(row.platformId) ?? row.platformId,
      isRegistered: names.has(row.platformId),
    })),
  }
}
