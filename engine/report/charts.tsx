import { countText, dateText, percentText } from './text.ts'

/** Drawing area of the chart of the risk, in SVG units. */
const WIDTH = 600
const HEIGHT = 120
const RISK_MAX = 100
const BAR_HEIGHT = 14

export interface RiskPoint {
  readonly atMs: number
  readonly risk: number
}

/** The overall risk until `untilMs`, as steps: it is that of a scan until the next one. */
export function RiskChart({ points, untilMs }: { readonly points: readonly RiskPoint[]; readonly untilMs: number }) {
  const first = points[0]?.atMs ?? 0
  const span = Math.max(1, untilMs - first)
  const x = (atMs: number): number => Math.round(((atMs - first) / span) * WIDTH)
  const y = (risk: number): number => Math.round((1 - risk / RISK_MAX) * HEIGHT)
  const steps = points.map(({ atMs, risk }, index) =>
    index === 0 ? `M${x(atMs)} ${y(risk)}` : `H${x(atMs)}V${y(risk)}`,
  )
  const [from, to] = [points[0]?.risk ?? 0, points.at(-1)?.risk ?? 0]
  const label = `Overall risk from ${dateText(first)} (${from}) to ${dateText(untilMs)} (${to})`
  return (
    <figure>
      <svg viewBox={`0 -4 ${WIDTH} ${HEIGHT + 8}`} role="img" aria-label={label}>
        <path class="grid" d={`M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}`} />
        <path class="line" d={`${steps.join('')}H${WIDTH}`} />
      </svg>
      <figcaption>{label}. The lines are 0, 50 and 100.</figcaption>
    </figure>
  )
}

export interface SharePart {
  readonly tone: 'good' | 'warn' | 'bad' | 'plain'
  readonly name: string
  readonly count: number
}

/** Parts of a whole as one bar, with their numbers below: color alone says nothing. */
export function ShareBar({ label, parts }: { readonly label: string; readonly parts: readonly SharePart[] }) {
  const all = parts.reduce((sum, { count }) => sum + count, 0)
  if (all === 0) return null
  let from = 0
  const bars = parts.map(({ tone, count }) => {
    const bar = { tone, from, width: (count / all) * WIDTH }
    from += bar.width
    return bar
  })
  return (
    <figure>
      <svg viewBox={`0 0 ${WIDTH} ${BAR_HEIGHT}`} role="img" aria-label={label}>
        {bars.map(({ tone, from: start, width }) => (
          <rect key={tone} class={tone} x={start} y="0" width={width} height={BAR_HEIGHT} />
        ))}
      </svg>
      <figcaption>
        {label}:{' '}
        {parts.map(({ tone, name, count }, index) => (
          <span key={name}>
            {index > 0 && ' · '}
            <i class={tone} /> {name} {countText(count)} ({percentText(count / all)})
          </span>
        ))}
      </figcaption>
    </figure>
  )
}
