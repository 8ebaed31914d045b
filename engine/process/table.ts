import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** What a command prints: rows as a table for people, or as JSON for programs. */
export interface Shown {
  /** Heading of a column and the property of a row that it shows. */
  readonly columns: readonly (readonly [heading: string, property: string])[]
  readonly rows: readonly Readonly<Record<string, unknown>>[]
}

const WITHOUT_COLOURS = { head: [], border: [] }

/** A table with rounded numbers and lists on one line, without colours, so that it can be pasted anywhere. */
export function tableOf({ columns, rows }: Shown): string {
  // Only where a table is drawn: a pipe gets JSON.
  const Table = require('cli-table3') as typeof import('cli-table3')
  const table = new Table({ head: columns.map(([heading]) => heading), style: { ...WITHOUT_COLOURS, compact: true } })
  for (const row of rows) table.push(columns.map(([, property]) => cell(row[property])))
  return table.toString()
}

/** Prints a table on a terminal and one JSON object a row elsewhere; `json` asks for JSON on a terminal, too. */
export function printRows(shown: Shown, options: { json?: boolean }): void {
  if (!options.json && process.stdout.isTTY) {
    process.stdout.write(shown.rows.length === 0 ? 'none\n' : `${tableOf(shown)}\n`)
    return
  }
  for (const row of shown.rows) process.stdout.write(`${JSON.stringify(row)}\n`)
}

/** Text from outside may hold control characters, which a terminal would obey. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f]/g

function cell(value: unknown): string {
  if (value === undefined || value === null) return ''
  const text = Array.isArray(value) ? value.join(', ') : String(value)
  return text.replace(CONTROL_CHARACTERS, '�')
}
