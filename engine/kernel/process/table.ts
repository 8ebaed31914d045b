import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** How a column shrinks if the table is wider than the terminal. */
export interface ColumnFit {
  /**
   * Columns with a number are hidden until the table fits, the greatest number first. Others are
   * never hidden.
   */
  readonly hide?: number
  /** Wraps the cells of the column. */
  readonly wrap?: boolean
  /** Formats a cell for people. JSON keeps the raw value. */
  readonly text?: (value: unknown) => string
}

/** Heading of a column and the property that it shows. `risk.score` is a nested property. */
export type Column = readonly [heading: string, property: string, fit?: ColumnFit]

/** The output of a command: a table for people, or JSON for programs. */
export interface Shown {
  readonly columns: readonly Column[]
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  /** Prints one line for each field of a row, regardless of the terminal width. */
  readonly vertical?: boolean
}

/** For terminals that do not report their width. */
const COLUMNS_DEFAULT = 80
/** Minimum width of a wrapped column. */
const WRAP_WIDTH_MIN = 20
/** Minimum width of the values of a record that is printed as lines. */
const VALUE_WIDTH_MIN = 10
/** A border and two spaces for each column. One more border ends the table. */
const FRAME_WIDTH = 3
const WITHOUT_COLORS = { head: [], border: [] }

/**
 * Width of the terminal in characters: COLUMNS if set (POSIX), else as reported by the terminal.
 */
export function terminalWidth(stream: { readonly columns?: number } = process.stdout): number {
  const { COLUMNS = '' } = process.env
  // A terminal of unknown width reports 0.
  return (/^[1-9]\d{0,3}$/.test(COLUMNS) ? Number(COLUMNS) : stream.columns) || COLUMNS_DEFAULT
}

/**
 * Draws a table of at most `widthMax` characters, without colors, so that it can be pasted
 * anywhere. A wider table first wraps columns. If it is still too wide, a single row is printed as
 * one line per field; of several rows, the least important columns are hidden and listed in the
 * last line. Only a record whose headings alone exceed `widthMax` is wider.
 */
export function tableOf({ columns, rows, vertical = false }: Shown, widthMax = terminalWidth()): string {
  const cells = rows.map((row) => columns.map(([, property, fit]) => cellOf(propertyOf(row, property), fit)))
  if (vertical) return recordsOf(columns, cells, widthMax)
  const every = columns.map((_, at) => at)
  const least = columns.map((column, at) => widthOf(column, at, cells))
  const visible = rows.length === 1 ? every : withoutLeast(columns, least, widthMax)
  if (sum(visible, least) > widthMax) return recordsOf(columns, cells, widthMax)
  const table = drawn(columns, visible, cells, widthMax)
  if (visible.length === columns.length) return table
  const hidden = columns.filter((_, at) => !visible.includes(at)).map(([heading]) => heading)
  return `${table}\n${wrapped(`Hidden to fit ${widthMax} columns: ${hidden.join(', ')}`, widthMax).join('\n')}`
}

/** The minimum width of a column, with its frame. */
function widthOf([heading, , fit]: Column, at: number, cells: readonly (readonly string[])[]): number {
  const natural = Math.max(displayWidth(heading), ...cells.map((row) => displayWidth(row[at] ?? '')))
  const least = fit?.wrap ? Math.max(displayWidth(heading), Math.min(natural, WRAP_WIDTH_MIN)) : natural
  return least + FRAME_WIDTH
}

function sum(visible: readonly number[], widths: readonly number[]): number {
  return visible.reduce((total, at) => total + (widths[at] ?? 0), 1)
}

/** Hides the least important columns until the others fit. Returns the visible ones. */
function withoutLeast(columns: readonly Column[], widths: readonly number[], widthMax: number): number[] {
  const rank = (at: number): number => columns[at]?.[2]?.hide ?? 0
  let visible = columns.map((_, at) => at)
  while (sum(visible, widths) > widthMax) {
    const least = visible.reduce((worst, at) => (rank(at) >= rank(worst) ? at : worst), visible[0] ?? 0)
    if (rank(least) === 0) break
    visible = visible.filter((at) => at !== least)
  }
  return visible
}

function drawn(
  columns: readonly Column[],
  visible: readonly number[],
  cells: readonly (readonly string[])[],
  widthMax: number,
): string {
  // Loaded on demand: a pipe gets JSON and needs no table.
  const Table = require('cli-table3') as typeof import('cli-table3')
  const head = visible.map((at) => columns[at]?.[0] ?? '')
  const table = new Table({ head, style: { ...WITHOUT_COLORS, compact: true } })
  const widths = wrapWidths(columns, visible, cells, widthMax)
  table.push(...cells.map((row) => visible.map((at) => wrapped(row[at] ?? '', widths[at] ?? widthMax).join('\n'))))
  return table.toString()
}

/**
 * The width of each wrapped column: the remaining width, shared evenly between the columns that
 * need more than their share.
 */
function wrapWidths(
  columns: readonly Column[],
  visible: readonly number[],
  cells: readonly (readonly string[])[],
  widthMax: number,
): readonly (number | undefined)[] {
  const natural = (at: number): number => {
    const [heading = ''] = columns[at] ?? []
    return Math.max(displayWidth(heading), ...cells.map((row) => displayWidth(row[at] ?? '')))
  }
  const wrapping = visible.filter((at) => columns[at]?.[2]?.wrap === true)
  const fixed = visible.filter((at) => !wrapping.includes(at))
  let free = widthMax - 1 - visible.length * FRAME_WIDTH - fixed.reduce((total, at) => total + natural(at), 0)
  const widths: (number | undefined)[] = columns.map(() => undefined)
  const narrowFirst = wrapping.map((at) => ({ at, wanted: natural(at) })).sort((a, b) => a.wanted - b.wanted)
  for (const [index, { at, wanted }] of narrowFirst.entries()) {
    const width = Math.min(wanted, Math.floor(free / (narrowFirst.length - index)))
    widths[at] = Math.max(1, width)
    free -= width
  }
  return widths
}

/** Prints each record as lines of heading and value, separated by empty lines. */
function recordsOf(columns: readonly Column[], cells: readonly (readonly string[])[], widthMax: number): string {
  const headings = Math.max(...columns.map(([heading]) => displayWidth(heading)))
  const indent = ' '.repeat(headings + 2)
  const width = Math.max(VALUE_WIDTH_MIN, widthMax - indent.length)
  const records = cells.map((row) =>
    columns.map(([heading], at) => {
      const [first = '', ...more] = wrapped(row[at] ?? '', width)
      return [`${heading.padEnd(headings + 2)}${first}`.trimEnd(), ...more.map((line) => indent + line)].join('\n')
    }),
  )
  return records.map((lines) => lines.join('\n')).join('\n\n')
}

/** Wraps a text at spaces. A word longer than a line is split anywhere. */
function wrapped(text: string, width: number): string[] {
  if (displayWidth(text) <= width) return [text]
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (displayWidth(longer) <= width) {
      line = longer
      continue
    }
    if (line !== '') lines.push(line)
    line = ''
    for (const character of word) {
      if (line !== '' && displayWidth(line + character) > width) {
        lines.push(line)
        line = ''
      }
      line += character
    }
  }
  return [...lines, line]
}

/** Terminal columns of a text: wide East Asian characters take two. */
function displayWidth(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII is the fast path
  if (/^[\u0000-\u007f]*$/.test(text)) return text.length
  const stringWidth = require('string-width') as (text: string) => number
  return stringWidth(text)
}

export interface PrintOptions {
  /** Prints JSON on a terminal, too. */
  readonly json?: boolean
}

/** Whether to print a table: on a terminal, unless JSON was requested. */
export function printsTable({ json }: PrintOptions): boolean {
  return json !== true && process.stdout.isTTY
}

/** Prints a table on a terminal, otherwise one JSON object per row. */
export function printRows(shown: Shown, options: PrintOptions, write = toStandardOutput): void {
  if (printsTable(options)) write(shown.rows.length === 0 ? 'none\n' : `${tableOf(shown)}\n`)
  else for (const row of shown.rows) write(`${jsonLine(row)}\n`)
}

function toStandardOutput(text: string): void {
  process.stdout.write(text)
}

/** One line of JSON. The '' of missing values becomes null. */
export function jsonLine(row: object): string {
  return JSON.stringify(row, (_, value) => (value === '' ? null : value))
}

/** A secret on one line of its own, never wrapped, so that it can be copied. */
export function secretText(name: string, secret: string): string {
  return `${name}:\n\n${secret}\n\nSave it now; it will not be shown again\n`
}

/**
 * Untrusted text may contain control characters, which a terminal executes, and characters that
 * change the visible text: text direction, zero width.
 */
const CONTROL_CHARACTERS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are replaced
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

export function printable(text: string): string {
  return text.replace(CONTROL_CHARACTERS, '�')
}

function propertyOf(row: Readonly<Record<string, unknown>>, property: string): unknown {
  let value: unknown = row
  for (const name of property.split('.'))
    value = (value as Readonly<Record<string, unknown>> | null | undefined)?.[name]
  return value
}

function cellOf(value: unknown, fit?: ColumnFit): string {
  if (fit?.text !== undefined) return printable(fit.text(value))
  if (value === undefined || value === null) return ''
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return printable(value.join(', '))
  if (typeof value !== 'object') return printable(String(value))
  const parts = Object.entries(value).map(([name, part]) => `${name} ${Array.isArray(part) ? part.join(', ') : part}`)
  return printable(parts.join('; '))
}
