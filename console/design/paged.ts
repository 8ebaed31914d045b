/** The rows of one page of a list. */
export interface Paged<Row> {
  readonly rows: readonly Row[]
  /** The number of rows of all pages. */
  readonly total: number
  /** From 1. */
  readonly page: number
  readonly pages: number
}

/** Rows per page of a long list, each with forms: 100 of them take 10 KB compressed. */
export const ROWS_PER_PAGE = 100

/** The page that a query names by its parameter `name`. The last page if there are fewer. */
export function paged<Row>(
  all: readonly Row[],
  query: URLSearchParams,
  name = 'page',
  perPage = ROWS_PER_PAGE,
): Paged<Row> {
  const pages = Math.max(1, Math.ceil(all.length / perPage))
  const page = Math.min(pages, Math.max(1, Number.parseInt(query.get(name) ?? '1', 10) || 1))
  return { rows: all.slice((page - 1) * perPage, page * perPage), total: all.length, page, pages }
}
