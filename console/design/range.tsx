import { RECENT_DAYS } from '../../engine/scan/recent-use.ts'
import { FilterSelect } from './filters.tsx'
import { lastDays } from './parts.tsx'

/** The days that a page can have, at most those of the evidence window. */
export function rangesOf(windowDays: number): readonly number[] {
  return RECENT_DAYS.filter((each) => each <= windowDays)
}

/** `today (UTC)`, `last 7 days` */
export function rangeText(days: number): string {
  return days === 1 ? 'today (UTC)' : lastDays(days)
}

/** The filter of lists by time. */
export function RangeSelect({ days, windowDays }: { readonly days: number | undefined; readonly windowDays: number }) {
  const options = rangesOf(windowDays - 1).map((each) => [String(each), rangeText(each)] as const)
  return (
    <FilterSelect
      name="days"
      label="Seen"
      value={days === undefined ? '' : String(days)}
      options={[['', rangeText(windowDays)], ...options.toReversed()]}
    />
  )
}
