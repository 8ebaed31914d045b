import type { ComponentChildren } from 'preact'
import { DAY_MS, dayText, isoDay } from '../../engine/kernel/process/clock.ts'
import { countOf, countText } from './parts.tsx'
import type { Column } from './table.tsx'

/** One bar of a timeline. */
export interface DayBar {
  /** Days since 1970-01-01. */
  readonly day: number
  readonly approved: number
  readonly notApproved: number
  /** Blocked requests, which nobody's use is. */
  readonly blocked?: number
  /** Why the bars before this day count something else. */
  readonly mark?: string
}

/** A tenth of a unit is precise enough for coordinates. */
function rounded(value: number): number {
  return Math.round(value * 10) / 10
}

const AXIS_WIDTH = 40
const AXIS_HEIGHT = 24
const TOP = 12
const BAR_GAP = 4
const DAYS_PER_LABEL = 7

/** Compact numbers such as `1.2K`, so that any number fits the axis. */
export const COMPACT = new Intl.NumberFormat('en-US', { notation: 'compact' })

interface TimelineProps {
  readonly days: readonly DayBar[]
  readonly label: string
  /** One of the counted things, for the title of each bar. */
  readonly unit: string
  /** Several of them; `unit` and an s if absent. */
  readonly units?: string
  readonly width?: number
  readonly height?: number
}

/** Stacked bars per day: approved at the bottom, then not approved, then blocked. */
export function Timeline({ days, label, unit, units, width = 940, height = 150 }: TimelineProps) {
  const most = Math.max(1, ...days.map(({ approved, notApproved, blocked = 0 }) => approved + notApproved + blocked))
  const top = niceTop(most)
  const base = height - AXIS_HEIGHT
  const step = (width - AXIS_WIDTH) / Math.max(1, days.length)
  const y = (value: number): number => rounded(base - (base - TOP) * (value / top))
  return (
    <svg class="plot" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {[0, top / 2, top].map((value) => (
        <g key={value}>
          <line class="grid" x1={AXIS_WIDTH} x2={width} y1={y(value)} y2={y(value)} />
          <text x={AXIS_WIDTH - 6} y={y(value) + 4} text-anchor="end">
            {COMPACT.format(value)}
          </text>
        </g>
      ))}
      {days.map(({ day, approved, notApproved, blocked = 0 }, at) => {
        const title = `${shortDay(day)}: ${countOf(notApproved, unit, units)} not approved, ${countText(approved)} approved`
        let below = 0
        return (
          <g key={day}>
            <title>{blocked > 0 ? `${title}, ${countText(blocked)} blocked` : title}</title>
            {(
              [
                ['approved', approved],
                ['shadow', notApproved],
                ['rest', blocked],
              ] as const
            ).map(([tone, count]) => {
              const bottom = y(below)
              below += count
              return (
                count > 0 && (
                  <rect
                    class={tone}
                    x={rounded(AXIS_WIDTH + at * step + BAR_GAP / 2)}
                    y={y(below)}
                    width={rounded(Math.max(1, step - BAR_GAP))}
                    height={rounded(bottom - y(below))}
                  />
                )
              )
            })}
          </g>
        )
      })}
      {days.map(({ day, mark }, at) => {
        const x = rounded(AXIS_WIDTH + at * step)
        return mark === undefined ? null : (
          <line key={day} class="mark" x1={x} x2={x} y1={TOP} y2={base}>
            <title>{mark}</title>
          </line>
        )
      })}
      {days.map(({ day }, at) =>
        at % DAYS_PER_LABEL === 3 ? (
          <text key={day} x={rounded(AXIS_WIDTH + (at + 0.5) * step)} y={height - 4} text-anchor="middle">
            {shortDay(day)}
          </text>
        ) : null,
      )}
    </svg>
  )
}

/**
 * Returns the smallest of 1, 2, 4, 5 and 10 times a power of ten that is at least `most`. Adds 1 to
 * an odd result, so that half of it is a whole number.
 */
export function niceTop(most: number): number {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, most)))
  const top = [1, 2, 4, 5, 10].map((times) => times * unit).find((each) => each >= most) ?? most
  return top % 2 === 0 ? top : top + 1
}

/** The bars of a timeline as a table, for a CSV file. */
export const DAY_COLUMNS: readonly Column<DayBar>[] = [
  { id: 'day', name: 'Day', csv: ({ day }) => dayText(day) },
  { id: 'not-approved', name: 'Clients of platforms that are not approved', csv: ({ notApproved }) => notApproved },
  { id: 'approved', name: 'Clients of approved platforms only', csv: ({ approved }) => approved },
]

const SHORT_DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** `17 Nov` */
export function shortDay(day: number): string {
  return SHORT_DAY.format(day * DAY_MS)
}

/** Days in order: `30 Oct to 2 Nov, 4 Nov` */
export function daysText(days: readonly number[]): string {
  const runs: [first: number, last: number][] = []
  for (const day of days) {
    const run = runs.at(-1)
    if (run?.[1] === day - 1) run[1] = day
    else runs.push([day, day])
  }
  return runs
    .map(([first, last]) => (first === last ? shortDay(first) : `${shortDay(first)} to ${shortDay(last)}`))
    .join(', ')
}

export type ChartTone = 'approved' | 'shadow' | 'third' | 'fourth' | 'rest' | 'dot' | 'ring'

/** An entry of a chart's legend. */
export function Key({ tone, children }: { readonly tone: ChartTone; readonly children: ComponentChildren }) {
  const isRound = tone === 'dot' || tone === 'ring'
  return (
    <span class="key">
      <svg viewBox="0 0 10 10" aria-hidden="true">
        {isRound ? <circle cx="5" cy="5" r="4" class={tone} /> : <rect width="10" height="10" rx="2" class={tone} />}
      </svg>
      {children}
    </span>
  )
}

const SHARES_WIDTH = 640
const SHARES_HEIGHT = 16

export interface Share {
  readonly tone: ChartTone
  /** 0 to 1. */
  readonly share: number
}

/** One bar that is divided into shares. The text below names the shares. */
export function Shares({ parts, label }: { readonly parts: readonly Share[]; readonly label: string }) {
  let at = 0
  return (
    <svg
      class="plot"
      viewBox={`0 0 ${SHARES_WIDTH} ${SHARES_HEIGHT}`}
      role="img"
      aria-label={label}
      preserveAspectRatio="none"
    >
      {parts.map(({ tone, share }) => {
        const x = at
        at += share * SHARES_WIDTH
        const width = Math.max(0, rounded(share * SHARES_WIDTH - 2))
        return <rect key={tone} class={tone} x={rounded(x)} y="0" width={width} height={SHARES_HEIGHT} />
      })}
    </svg>
  )
}

/** One share of a whole. */
export function Bar({ share, label }: { readonly share: number; readonly label: string }) {
  return (
    <svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={label}>
      <rect class="track" width="100" height="6" />
      <rect class="value" width={rounded(Math.min(1, Math.max(0, share)) * 100)} height="6" />
    </svg>
  )
}

const TREND_WIDTH = 100
const TREND_HEIGHT = 24

interface TrendProps {
  /** The oldest first. */
  readonly points: readonly { readonly atMs: number; readonly score: number }[]
  readonly label: string
}

/** Scores of 0 to 100 over time, as steps: a score is that of its assessment until the next one. */
export function Trend({ points, label }: TrendProps) {
  const [first, last] = [points[0]?.atMs ?? 0, points.at(-1)?.atMs ?? 0]
  const x = (atMs: number): number => rounded(((atMs - first) / Math.max(1, last - first)) * TREND_WIDTH)
  const y = (score: number): number => rounded(TREND_HEIGHT - 1 - (score / 100) * (TREND_HEIGHT - 2))
  const steps = points.map(({ atMs, score }, at) => (at === 0 ? `M0 ${y(score)}` : `H${x(atMs)}V${y(score)}`))
  const texts = points.map(({ atMs, score }) => `${score} (${isoDay(atMs)})`)
  return (
    <svg
      class="trend"
      viewBox={`0 0 ${TREND_WIDTH} ${TREND_HEIGHT}`}
      role="img"
      aria-label={`${label}: ${texts.join(', ')}`}
    >
      <path d={steps.join('')} />
    </svg>
  )
}
