import { COMPACT } from './chart.tsx'

/** A platform in the chart. */
export interface Dot {
  readonly name: string
  /** 0 to 100. */
  readonly risk: number
  /** From 1. */
  readonly clients: number
  readonly approved: boolean
}

const WIDTH = 480
const HEIGHT = 260
const LEFT = 40
const RIGHT = 12
const TOP = 12
const BOTTOM = 24
const RADIUS = 4.5
const RISKS = [0, 25, 50, 75, 100]
/** Maximum number of drawn dots. The dots with the highest risk and the most clients are drawn. */
const DOTS_MAX = 120
const LABELS_MAX = 6
const CHARACTER_WIDTH = 7
const LABEL_HEIGHT = 14

/**
 * Risk against clients, with a logarithmic scale of clients. Labels that would overlap are omitted.
 */
export function Scatter({ dots: all, label }: { readonly dots: readonly Dot[]; readonly label: string }) {
  const dots = [...all].sort((a, b) => weight(b) - weight(a)).slice(0, DOTS_MAX)
  const decades = Math.max(1, Math.ceil(Math.log10(Math.max(1, ...dots.map(({ clients }) => clients)))))
  const last = 10 ** decades
  const x = (clients: number): number =>
    rounded(LEFT + 8 + ((WIDTH - LEFT - RIGHT - 16) * Math.log10(Math.max(1, clients))) / decades)
  const y = (risk: number): number => rounded(HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * risk) / 100)
  return (
    <svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      {RISKS.map((risk) => (
        <g key={risk}>
          <line class="grid" x1={LEFT} x2={WIDTH} y1={y(risk)} y2={y(risk)} />
          <text x={LEFT - 6} y={y(risk) + 4} text-anchor="end">
            {risk}
          </text>
        </g>
      ))}
      {Array.from({ length: decades + 1 }, (_, power) => 10 ** power).map((clients) => (
        <text key={clients} x={x(clients)} y={HEIGHT - 4} text-anchor={clients === last ? 'end' : 'middle'}>
          {COMPACT.format(clients)}
        </text>
      ))}
      {dots.toReversed().map(({ name, risk, clients, approved }) => (
        <circle key={name} class={approved ? 'ring' : 'dot'} cx={x(clients)} cy={y(risk)} r={RADIUS}>
          <title>{`${name}: risk ${risk}, ${clients} clients`}</title>
        </circle>
      ))}
      {labels(dots, x, y).map(({ text, at, top, anchor }) => (
        <text key={text} class="label" x={at} y={top} text-anchor={anchor}>
          {text}
        </text>
      ))}
    </svg>
  )
}

interface Label {
  readonly text: string
  readonly at: number
  readonly top: number
  readonly anchor: 'start' | 'end'
}

/**
 * Labels of the most important dots, next to the dots, where they cover no dot and no other label.
 */
function labels(dots: readonly Dot[], x: (clients: number) => number, y: (risk: number) => number): Label[] {
  const boxes = dots.map(({ clients, risk }) => box(x(clients) - RADIUS, x(clients) + RADIUS, y(risk)))
  const placed: Label[] = []
  for (const [index, { name, risk, clients }] of dots.entries()) {
    if (placed.length === LABELS_MAX) break
    const width = name.length * CHARACTER_WIDTH
    const begins = x(clients) + RADIUS + 4
    const isEnd = begins + width > WIDTH
    const from = isEnd ? x(clients) - RADIUS - 4 - width : begins
    const own = box(from, from + width, y(risk))
    if (boxes.some((other, at) => at !== index && overlap(own, other))) continue
    boxes.push(own)
    const at = isEnd ? rounded(from + width) : rounded(from)
    placed.push({ text: name, at, top: rounded(y(risk) + 4), anchor: isEnd ? 'end' : 'start' })
  }
  return placed
}

type Box = readonly [left: number, right: number, middle: number]

function box(left: number, right: number, middle: number): Box {
  return [left, right, middle]
}

function overlap(a: Box, b: Box): boolean {
  return a[0] < b[1] && b[0] < a[1] && Math.abs(a[2] - b[2]) < LABEL_HEIGHT
}

function weight({ risk, clients, approved }: Dot): number {
  return risk * Math.log10(1 + clients) * (approved ? 0.5 : 1)
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}
