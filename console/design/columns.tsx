import { isoSeconds } from '../../engine/kernel/process/clock.ts'
import { countText, Time } from './parts.tsx'
import type { Column } from './table.tsx'

/** A column of text. */
export function textColumn<Row>(id: string, name: string, text: (row: Row) => string): Column<Row> {
  return { id, name, cell: text, sort: text, csv: text }
}

/** A column of whole numbers. */
export function countColumn<Row>(id: string, name: string, count: (row: Row) => number): Column<Row> {
  return { id, name, cell: (row) => countText(count(row)), sort: count, csv: count, number: true }
}

/** A column of times. 0: never, which is empty in a CSV file. */
export function timeColumn<Row>(id: string, name: string, nowMs: number, time: (row: Row) => number): Column<Row> {
  const csv = (row: Row): string => (time(row) === 0 ? '' : isoSeconds(time(row)))
  return { id, name, cell: (row) => Time({ ms: time(row), nowMs }), sort: time, csv }
}

/** A column that only the CSV file has. */
export function csvOnly<Row>({ id, name, csv }: Column<Row>): Column<Row> {
  return { id, name, ...(csv && { csv }) }
}
