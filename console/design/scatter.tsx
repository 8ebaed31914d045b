import { COMPACT } from './chart.tsx'
import { countOf } from './parts.tsx'

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

/** The size of the letters of a label, at most. */
interface Letters {
  readonly width: number
  readonly height: number
}
/** On a phone, the chart is half as wide, and its letters are larger (small.css). */
const PHONE: Letters = { width: 11, height: 22 }
const DESKTOP: Letters = { width: 7, height: 14 }

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
          <title>{`${name}: risk ${risk}, ${countOf(clients, 'client')}`}</title>
        </circle>
      ))}
      {labels(dots, x, y).map(({ text, at, top, anchor, wide }) => (
        <text key={text} class={wide ? 'label wide-only' : 'label'} x={at} y={top} text-anchor={anchor}>
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
  /** There is no place for it on a phone. */
  readonly wide: boolean
}

/**
 * Labels of the most important dots, next to the dots, where they cover no dot and no other label.
 * Labels that a phone shows come first, so that the others keep clear of them.
 */
function labels(dots: readonly Dot[], x: (clients: number) => number, y: (risk: number) => number): Label[] {
  const circles = dots.map(({ clients, risk }): Box => [x(clients) - RADIUS, x(clients) + RADIUS, y(risk)])
  const placed: Label[] = []
  for (const letters of [PHONE, DESKTOP]) {
    const boxes = [...circles]
    for (const { text, at, top, anchor } of placed) boxes.push(boxOf(text, at, top - 4, anchor, letters))
    for (const [index, { name, risk, clients }] of dots.entries()) {
      if (placed.length === LABELS_MAX) break
      if (placed.some(({ text }) => text === name)) continue
      const begins = x(clients) + RADIUS + 4
      const isEnd = begins + name.length * letters.width > WIDTH
      const at = rounded(isEnd ? x(clients) - RADIUS - 4 : begins)
      const anchor = isEnd ? 'end' : 'start'
      const own = boxOf(name, at, y(risk), anchor, letters)
      if (own[0] < LEFT || boxes.some((other, which) => which !== index && overlap(own, other, letters))) continue
      boxes.push(own)
      placed.push({ text: name, at, top: rounded(y(risk) + 4), anchor, wide: letters === DESKTOP })
    }
  }
  return placed
}

type Box = readonly [left: number, right: number, middle: number]

function boxOf(text: string, at: number, middle: number, anchor: Label['anchor'], { width }: Letters): Box {
  const length = text.length * width
  return anchor === 'end' ? [at - length, at, middle] : [at, at + length, middle]
}

function overlap(a: Box, b: Box, { height }: Letters): boolean {
  return a[0] < b[1] && b[0] < a[1] && Math.abs(a[2] - b[2]) < height
}

function weight({ risk, clients, approved }: Dot): number {
  return risk * Math.log10(1 + clients) * (approved ? 0.5 : 1)
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}
