import { RECENT_DAYS } from '../../engine/scan/recent-use.ts'
import { FilterSelect } from './filters.tsx'
import { lastDays } from './parts.tsx'

/** The days of the query (`days=7`) that are fewer than the evidence window. undefined: all of it. */
export function daysOf(query: URLSearchParams, windowDays: number): number | undefined {
  return rangesOf(windowDays).find((each) => String(each) === query.get('days'))
}

export function rangesOf(windowDays: number): readonly number[] {
  return RECENT_DAYS.filter((each) => each < windowDays)
}

/** `today (UTC)`, `last 7 days` */
export function rangeText(days: number): string {
  return days === 1 ? 'today (UTC)' : lastDays(days)
}

/** The filter of lists by time. */
export function RangeSelect({ days, windowDays }: { readonly days: number | undefined; readonly windowDays: number }) {
  const options = rangesOf(windowDays).map((each) => [String(each), rangeText(each)] as const)
  return (
    <FilterSelect
      name="days"
      label="Seen"
      value={days === undefined ? '' : String(days)}
      options={[['', rangeText(windowDays)], ...options.toReversed()]}
    />
  )
}
