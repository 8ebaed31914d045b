import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** What a command prints: rows as a table for people, or as JSON for programs. */
export interface Shown {
  /** Heading of a column and the property of a row that it shows. */
  readonly columns: readonly (readonly [heading: string, property: string])[]
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  /** The last column holds sentences: it is broken into lines where the table would be wider than the terminal. */
  readonly wrapLast?: boolean
}

const WITHOUT_COLOURS = { head: [], border: [] }

/** However narrow the terminal is, so many characters stand on a line of the last column. */
const WRAP_WIDTH_MIN = 24

/** A table with rounded numbers and lists on one line, without colours, so that it can be pasted anywhere. */
export function tableOf({ columns, rows, wrapLast }: Shown, widthMax = Number.POSITIVE_INFINITY): string {
  // Only where a table is drawn: a pipe gets JSON.
  const Table = require('cli-table3') as typeof import('cli-table3')
  const table = new Table({ head: columns.map(([heading]) => heading), style: { ...WITHOUT_COLOURS, compact: true } })
  const cells = rows.map((row) => columns.map(([, property]) => cell(row[property])))
  if (wrapLast) wrapLastColumn(cells, columns, widthMax)
  table.push(...cells)
  return table.toString()
}

/** A column is as wide as its widest cell, and a border and two spaces; one border ends the table. */
function wrapLastColumn(cells: string[][], columns: Shown['columns'], widthMax: number): void {
  const others = columns.slice(0, -1).map(([heading], at) => {
    return Math.max(heading.length, ...cells.map((row) => row[at]?.length ?? 0)) + 3
  })
  const width = Math.max(WRAP_WIDTH_MIN, widthMax - others.reduce((sum, each) => sum + each, 0) - 4)
  for (const row of cells) row.push(wrapped(row.pop() ?? '', width))
}

/** At spaces; a word that is longer than a line is broken anywhere. */
function wrapped(text: string, width: number): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (longer.length <= width) {
      line = longer
      continue
    }
    if (line !== '') lines.push(line)
    line = word
    while (line.length > width) {
      lines.push(line.slice(0, width))
      line = line.slice(width)
    }
  }
  return [...lines, line].join('\n')
}

/** Prints a table on a terminal and one JSON object a row elsewhere; `json` asks for JSON on a terminal, too. */
export function printRows(shown: Shown, options: { json?: boolean }, write = toStandardOutput): void {
  if (!options.json && process.stdout.isTTY) {
    // A terminal that does not know its width says 0.
    write(shown.rows.length === 0 ? 'none\n' : `${tableOf(shown, process.stdout.columns || undefined)}\n`)
    return
  }
  for (const row of shown.rows) write(`${JSON.stringify(row)}\n`)
}

function toStandardOutput(text: string): void {
  process.stdout.write(text)
}

/** Text from outside may hold control characters, which a terminal would obey, and others that change what is seen: directions of text, and nothing. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

export function printable(text: string): string {
  return text.replace(CONTROL_CHARACTERS, '�')
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return printable(value.join(', '))
  if (typeof value !== 'object') return printable(String(value))
  const parts = Object.entries(value).map(([name, part]) => `${name} ${Array.isArray(part) ? part.join(', ') : part}`)
  return printable(parts.join('; '))
}
