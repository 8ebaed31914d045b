import { CSV_ROWS_MAX } from '../design/list.tsx'
import { type Column, csvOf } from '../design/table.tsx'
import { type FileAnswer, fileAnswer } from './answer.ts'
import { type Access, page, type Route } from './router.ts'
import type { Visit } from './visit.ts'

/**
 * The table of a page as a CSV file, with all pages of the table. `path` is that of the page:
 * `/members` for the file `/members.csv`. `rowsOf` returns the rows that match the query.
 */
export function csvFile<Row>(
  path: string,
  access: Exclude<Access, 'anyone'>,
  columns: readonly Column<Row>[] | ((visit: Visit) => readonly Column<Row>[]),
  rowsOf: (visit: Visit) => readonly Row[],
): Route {
  const name = path.slice(1).replaceAll('/', '-')
  return page(`${path}.csv`, access, (visit) =>
    csvTable(name, typeof columns === 'function' ? columns(visit) : columns, rowsOf(visit)),
  )
}

/** The name of a truncated file says so, because a remark among the rows would be data. */
export function csvTable<Row>(name: string, columns: readonly Column<Row>[], rows: readonly Row[]): FileAnswer {
  const part = rows.length > CSV_ROWS_MAX ? `-first-${CSV_ROWS_MAX}` : ''
  const body = csvOf(columns, rows.slice(0, CSV_ROWS_MAX))
  return fileAnswer('text/csv; charset=utf-8; header=present', `${name}${part}.csv`, body)
}
