import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** How a column gives way where the table is wider than the terminal. */
export interface ColumnFit {
  /** Columns with a number are hidden while the table is too wide, the greatest number first. Others always stay. */
  readonly hide?: number
  /** Breaks the cells of the column into lines. */
  readonly wrap?: boolean
  /** The text of a cell, where the plain value is hard to read. JSON keeps the value. */
  readonly text?: (value: unknown) => string
}

/** Heading of a column and the property of a row that it shows. `risk.score` is a property of a property. */
export type Column = readonly [heading: string, property: string, fit?: ColumnFit]

/** What a command prints: a table for people, or JSON for programs. */
export interface Shown {
  readonly columns: readonly Column[]
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  /** Prints one line for each field of a row, however wide the terminal is. */
  readonly vertical?: boolean
}

/** What a terminal has that does not report its width: the width of a punch card, which every terminal supports. */
const COLUMNS_DEFAULT = 80
/** A wrapped column keeps at least this many characters a line. */
const WRAP_WIDTH_MIN = 20
/** The same for the values of a record that is printed as lines. */
const VALUE_WIDTH_MIN = 10
/** Border and two spaces of each column; one more border ends the table. */
const FRAME_WIDTH = 3
const WITHOUT_COLORS = { head: [], border: [] }

/** Characters in a line of the terminal: COLUMNS where it is set (POSIX), else the width that the terminal reports. */
export function terminalWidth(stream: { readonly columns?: number } = process.stdout): number {
  const { COLUMNS = '' } = process.env
  // A terminal that does not know its width reports 0.
  return (/^[1-9]\d{0,3}$/.test(COLUMNS) ? Number(COLUMNS) : stream.columns) || COLUMNS_DEFAULT
}

/**
 * A table of at most `widthMax` characters, without colors, so that it can be pasted anywhere. Where it is wider, columns
 * wrap; then a single row is printed as one line for each field, and of more rows the least important columns are hidden,
 * which the last line reports. Only a record whose headings alone exceed `widthMax` is wider.
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

/** The width that a column needs at least, with its frame. */
function widthOf([heading, , fit]: Column, at: number, cells: readonly (readonly string[])[]): number {
  const natural = Math.max(displayWidth(heading), ...cells.map((row) => displayWidth(row[at] ?? '')))
  const least = fit?.wrap ? Math.max(displayWidth(heading), Math.min(natural, WRAP_WIDTH_MIN)) : natural
  return least + FRAME_WIDTH
}

function sum(visible: readonly number[], widths: readonly number[]): number {
  return visible.reduce((total, at) => total + (widths[at] ?? 0), 1)
}

/** The columns that stay: the least important ones go until the others fit. */
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
  // Only where a table is drawn: a pipe gets JSON.
  const Table = require('cli-table3') as typeof import('cli-table3')
  const head = visible.map((at) => columns[at]?.[0] ?? '')
  const table = new Table({ head, style: { ...WITHOUT_COLORS, compact: true } })
  const widths = wrapWidths(columns, visible, cells, widthMax)
  table.push(...cells.map((row) => visible.map((at) => wrapped(row[at] ?? '', widths[at] ?? widthMax).join('\n'))))
  return table.toString()
}

/** The width of each wrapped column: what the others leave, shared evenly between those that want more than their share. */
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

/** Each record as lines of heading and value. An empty line separates records. */
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

/** Breaks a text at spaces. A word that is longer than a line is broken anywhere. */
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

/** Columns that a text takes on a terminal: two for each wide character of East Asia. */
function displayWidth(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII is the fast path
  if (/^[\u0000-\u007f]*$/.test(text)) return text.length
  const stringWidth = require('string-width') as (text: string) => number
  return stringWidth(text)
}

export interface PrintOptions {
  /** Prints JSON on a terminal also. */
  readonly json?: boolean
}

/** Whether the output is for people: a terminal, and no JSON wanted. */
export function printsTable({ json }: PrintOptions): boolean {
  return json !== true && process.stdout.isTTY
}

/** Prints a table on a terminal, and one JSON object for each row elsewhere. */
export function printRows(shown: Shown, options: PrintOptions, write = toStandardOutput): void {
  if (printsTable(options)) write(shown.rows.length === 0 ? 'none\n' : `${tableOf(shown)}\n`)
  else for (const row of shown.rows) write(`${jsonLine(row)}\n`)
}

function toStandardOutput(text: string): void {
  process.stdout.write(text)
}

/** One line of JSON. Records hold '' where they have no value, which JSON can say better. */
export function jsonLine(row: object): string {
  return JSON.stringify(row, (_, value) => (value === '' ? null : value))
}

/** A secret on a line of its own, in one piece on every terminal, so that it can be copied. */
export function secretText(name: string, secret: string): string {
  return `${name}:\n\n${secret}\n\nSave it now; it will not be shown again\n`
}

/**
 * Text from outside may hold control characters, which a terminal would obey, and others that change what is seen:
 * directions of text, and characters without width.
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
