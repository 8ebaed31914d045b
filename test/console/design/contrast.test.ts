import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { REPOSITORY } from '../../support/programs.ts'

const TOKENS = readFileSync(join(REPOSITORY, 'console/design/tokens.css'), 'utf8')
/** WCAG 2.2: 4.5 for text (1.4.3), 3 for borders of fields and parts of charts (1.4.11). */
const TEXT = 4.5
const GRAPHIC = 3

const PAIRS: readonly (readonly [text: string, ground: string, ratio: number])[] = [
  ...['ground', 'surface', 'sunken', 'good-soft', 'warn-soft', 'bad-soft'].map((on) => ['text', on, TEXT] as const),
  ...['ground', 'surface', 'sunken', 'good-soft'].map((on) => ['muted', on, TEXT] as const),
  ...['ground', 'surface', 'sunken'].map((on) => ['accent', on, TEXT] as const),
  ['on-accent', 'accent', TEXT],
  ['bad', 'bad-soft', TEXT],
  ['bad', 'surface', TEXT],
  ['warn', 'warn-soft', TEXT],
  ['good', 'good-soft', TEXT],
  ...['edge', 'mark', 'calm', 'third', 'fourth'].map((part) => [part, 'surface', GRAPHIC] as const),
]

/** The color of a token in the light or the dark theme. */
function color(token: string, theme: 0 | 1): readonly number[] {
  const [, light = '', dark = ''] =
    new RegExp(`--${token}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\)`).exec(TOKENS) ?? []
  const hex = theme === 0 ? light : dark
  if (hex === '') throw new Error(`no token ${token}`)
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
}

/** WCAG 2.2, relative luminance. */
function luminance(channels: readonly number[]): number {
  const [red = 0, green = 0, blue = 0] = channels.map((value) =>
    value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4,
  )
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrast(one: readonly number[], other: readonly number[]): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

t.test('every pair of text and ground has the contrast of WCAG 2.2 AA', async (t) => {
  t.equal(Math.round(contrast([0, 0, 0], [1, 1, 1])), 21)
  for (const theme of [0, 1] as const) {
    for (const [text, ground, least] of PAIRS) {
      const found = contrast(color(text, theme), color(ground, theme))
      t.ok(found >= least, `${text} on ${ground}, ${theme === 0 ? 'light' : 'dark'}: ${found.toFixed(2)}`)
    }
  }
})
