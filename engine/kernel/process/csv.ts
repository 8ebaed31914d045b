import { stringify } from 'csv-stringify/sync'

/**
 * Spreadsheets run a cell that begins with one of these characters as a formula. The last four are
 * the full-width forms of = + - @.
 */
const FORMULA = /^\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/u

export type CsvValue = string | number

/**
 * One record as CSV (RFC 4180) with its line end. An apostrophe turns a text that a spreadsheet
 * would run as a formula into text. Numbers stay numbers, negative ones, too.
 */
export function csvRecord(cells: readonly CsvValue[]): string {
  return stringify([cells.map(csvCell)], { record_delimiter: 'windows' })
}

function csvCell(value: CsvValue): string {
  if (typeof value === 'number') return String(value)
  return FORMULA.test(value) ? `'${value}` : value
}
