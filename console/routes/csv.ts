import { type Column, csvOf } from '../design/table.tsx'
import { csvAnswer } from '../http/answer.ts'
import { type Access, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

/** Maximum number of rows of a CSV file. */
export const CSV_ROWS_MAX = 20_000

export interface CsvFile<Row> {
  /** `/members` for the file `/members.csv`: the path of the page, if the page has one table. */
  readonly path: string
  readonly access: Exclude<Access, 'anyone'>
  readonly columns: (visit: Visit) => readonly Column<Row>[]
  /** The rows that match the query, which is that of the page. */
  readonly rows: (visit: Visit) => readonly Row[]
}

/** The table of a page as a CSV file, with all pages of the table. */
export function csvFile<Row>({ path, access, columns, rows }: CsvFile<Row>): Route {
  return page(`${path}.csv`, access, (visit) =>
    csvAnswer(`${path.slice(1).replaceAll('/', '-')}.csv`, csvOf(columns(visit), rows(visit).slice(0, CSV_ROWS_MAX))),
  )
}
