import { dayNumberOf } from '../../engine/admin/scan-diff.ts'
import { dayOf, dayText } from '../../engine/kernel/process/clock.ts'
import { type DayRange, lastDaysOf } from '../../engine/scan/periods.ts'
import { FieldFrame } from './form.tsx'
import { FilterSelect } from './list.tsx'
import { lastDays, Notice } from './parts.tsx'
import type { Column } from './table.tsx'

/** Ranges that pages offer: today (UTC), and the last 7 or 30 days with today. */
const OFFERED_DAYS = [1, 7, 30] as const

/** The days that the query of a page chose. */
export interface ChosenRange extends DayRange {
  /** The last days; undefined from one date to another. */
  readonly days: number | undefined
  /** The parameters of the query that choose it. */
  readonly query: Readonly<Record<string, string>>
  /** `today (UTC)`, `in the last 7 days`, `from 2026-11-01 to 2026-11-10` */
  readonly text: string
}

/**
 * The range of the query: `days=7`, or `from` and `to` as dates, of which one is enough; `instead=7`
 * or `instead=usual` replaces the dates of a form. undefined: the usual time of the page, which is
 * the evidence window unless `offersWindow`.
 */
export function rangeOf(
  query: URLSearchParams,
  windowDays: number,
  nowMs: number,
  { offersWindow = false } = {},
): ChosenRange | undefined {
  const [from, to] = [dayNumberOf(query.get('from') ?? ''), dayNumberOf(query.get('to') ?? '')]
  const hasDates = from !== undefined || to !== undefined
  const days = query.get('instead') || (hasDates ? '' : query.get('days')) || ''
  if (days !== '') {
    const offered = rangesOf(windowDays).find((each) => String(each) === days)
    const isUsual = offered === undefined || (offered === windowDays && !offersWindow)
    return isUsual ? undefined : lastDaysRange(offered, nowMs)
  }
  if (!hasDates) return undefined
  const window = lastDaysOf(windowDays, nowMs)
  const firstDay = Math.max(from ?? 0, window.firstDay)
  const lastDay = Math.min(to ?? window.lastDay, dayOf(nowMs))
  if (firstDay > lastDay) return undefined
  const [first, last] = [dayText(firstDay), dayText(lastDay)]
  return { firstDay, lastDay, days: undefined, query: { from: first, to: last }, text: `from ${first} to ${last}` }
}

/** Why a page shows other days than its query asks for. undefined: it does not. */
export function rangeProblem(query: URLSearchParams, windowDays: number, nowMs: number): string | undefined {
  const [from = '', to = ''] = [query.get('from') ?? '', query.get('to') ?? '']
  const days = query.get('instead') || (from + to === '' && query.get('days')) || ''
  if (days !== '' && !rangesOf(windowDays).some((each) => String(each) === days))
    return `days=${days} is not one of ${rangesOf(windowDays).join(', ')}`
  if (days !== '' || from + to === '') return undefined
  const wrong = [from, to].find((text) => text !== '' && dayNumberOf(text) === undefined)
  if (wrong !== undefined) return `${JSON.stringify(wrong)} is not a date such as 2026-11-20`
  if (from !== '' && to !== '' && from > to) return `${from} is after ${to}`
  if (rangeOf(query, windowDays, nowMs) !== undefined) return undefined
  return `The days are not from ${dayText(lastDaysOf(windowDays, nowMs).firstDay)} to ${dayText(dayOf(nowMs))}`
}

interface RangeNoticeProps {
  readonly query: URLSearchParams
  readonly windowDays: number
  readonly nowMs: number
}

/** Says why a page shows other days than its query asks for. */
export function RangeNotice({ query, windowDays, nowMs }: RangeNoticeProps) {
  const problem = rangeProblem(query, windowDays, nowMs)
  return problem === undefined ? null : (
    <Notice tone="warn" title="The page shows its usual days">
      <p class="break">{problem}.</p>
    </Notice>
  )
}

export function lastDaysRange(days: number, nowMs: number): ChosenRange {
  const text = `${days === 1 ? '' : 'in the '}${rangeText(days)}`
  return { ...lastDaysOf(days, nowMs), days, query: { days: String(days) }, text }
}

/** The ranges of the last days that a page offers. */
export function rangesOf(windowDays: number): readonly number[] {
  return OFFERED_DAYS.filter((each) => each <= windowDays)
}

/** The query of a link to a page of the same range; '' for the evidence window. */
export function queryOf(range: ChosenRange | undefined): string {
  return range === undefined ? '' : `?${new URLSearchParams(range.query)}`
}

/** Of a range in the past, it is not known which platforms a client used in it: only the last use is stored. */
export function columnsOfRange<Row>(
  columns: readonly Column<Row>[],
  range: DayRange | undefined,
  nowMs: number,
): readonly Column<Row>[] {
  const isPast = range !== undefined && range.lastDay < dayOf(nowMs)
  return isPast ? columns.filter(({ id }) => !OF_LAST_USE.has(id)) : columns
}

const OF_LAST_USE: ReadonlySet<string> = new Set(['platforms', 'risk', 'riskiest'])

/** `today (UTC)`, `last 7 days` */
export function rangeText(days: number): string {
  return days === 1 ? 'today (UTC)' : lastDays(days)
}

interface RangeFieldsProps {
  readonly range: ChosenRange | undefined
  readonly windowDays: number
  readonly nowMs: number
}

/** The filter of pages by time: the last days, or dates. `usual`: the time that is not the window. */
export function RangeFields({
  range,
  windowDays,
  nowMs,
  label = 'Seen',
  usual,
}: RangeFieldsProps & { readonly label?: string; readonly usual?: string }) {
  const hasDates = range !== undefined && range.days === undefined
  const options = rangesOf(usual === undefined ? windowDays - 1 : windowDays).map(
    (each) => [String(each), rangeText(each)] as const,
  )
  // A form sends its dates, too: then the usual time needs a value of its own.
  const all = [hasDates ? 'usual' : '', usual ?? rangeText(windowDays)] as const
  return (
    <>
      <FilterSelect
        name={hasDates ? 'instead' : 'days'}
        label={label}
        value={range?.query['days'] ?? ''}
        options={[...(hasDates ? ([['', 'from – to']] as const) : []), all, ...options.toReversed()]}
      />
      <DateFields range={range} windowDays={windowDays} nowMs={nowMs} />
    </>
  )
}

/** The first and the last day. */
export function DateFields({ range, windowDays, nowMs }: RangeFieldsProps) {
  const { firstDay } = lastDaysOf(windowDays, nowMs)
  return (
    <>
      {(['from', 'to'] as const).map((name) => (
        <FieldFrame key={name} name={name} label={name === 'from' ? 'From' : 'To'}>
          <input
            id={name}
            name={name}
            type="date"
            min={dayText(firstDay)}
            max={dayText(dayOf(nowMs))}
            value={range?.query[name] ?? ''}
          />
        </FieldFrame>
      ))}
    </>
  )
}
