import { CSV_ROWS_MAX } from '../design/list.tsx'
import { type Column, csvOf } from '../design/table.tsx'
import { csvAnswer, type FileAnswer } from './answer.ts'
import { type Access, page, type Route } from './router.ts'
import type { Visit } from './visit.ts'

interface CsvFile<Row> {
  /** `/members` for the file `/members.csv`: the path of the page, if the page has one table. */
  readonly path: string
  readonly access: Exclude<Access, 'anyone'>
  readonly columns: (visit: Visit) => readonly Column<Row>[]
  /** The rows that match the query, which is that of the page. */
  readonly rows: (visit: Visit) => readonly Row[]
}

/** The table of a page as a CSV file, with all pages of the table. */
export function csvFile<Row>({ path, access, columns, rows }: CsvFile<Row>): Route {
  const name = path.slice(1).replaceAll('/', '-')
  return page(`${path}.csv`, access, (visit) => csvTable(name, columns(visit), rows(visit)))
}

/** The name of a truncated file says so, because a remark among the rows would be data. */
export function csvTable<Row>(name: string, columns: readonly Column<Row>[], rows: readonly Row[]): FileAnswer {
  const part = rows.length > CSV_ROWS_MAX ? `-first-${CSV_ROWS_MAX}` : ''
  return csvAnswer(`${name}${part}.csv`, csvOf(columns, rows.slice(0, CSV_ROWS_MAX)))
}
