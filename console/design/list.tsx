import type { ComponentChildren } from 'preact'
import { countText } from '../../engine/export/report/text.ts'
import { FieldFrame, Options } from './form.tsx'
import { Card } from './parts.tsx'
import { filtersOf, Table, type TableProps, type Viewer } from './table.tsx'

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

interface PagesLinksProps {
  /** The query of the page. The links keep its other parameters. */
  readonly query: URLSearchParams
  /** The value of `page`, or of another parameter, in the links. undefined: no link. */
  readonly name: string
  readonly newer?: string | undefined
  readonly older?: string | undefined
  readonly newerText: string
  readonly olderText: string
  /** For screen readers, if the page has several lists. */
  readonly label?: string | undefined
}

/** Links to the previous and the next page, which do not repeat the result of a change. */
export function PagesLinks({ query, name, newer, older, newerText, olderText, label = 'Pages' }: PagesLinksProps) {
  if (newer === undefined && older === undefined) return null
  const to = (value: string): string => {
    const kept = filtersOf(query)
    kept.set(name, value)
    return `?${kept}`
  }
  return (
    <nav class="row" aria-label={label}>
      {newer !== undefined && (
        <a class="button" href={to(newer)}>
          {newerText}
        </a>
      )}
      {older !== undefined && (
        <a class="button" href={to(older)}>
          {olderText}
        </a>
      )}
    </nav>
  )
}

interface NumberedPagesProps {
  readonly visit: Viewer
  readonly of: Paged<unknown>
  /** The parameter of the query with the number of the page. */
  readonly name?: string | undefined
  readonly label?: string | undefined
}

/** Links to the pages before and after a page of a list. */
export function NumberedPages({ visit, of: { page, pages }, name = 'page', label }: NumberedPagesProps) {
  return (
    <PagesLinks
      query={visit.request.query}
      name={name}
      newer={page > 1 ? String(page - 1) : undefined}
      older={page < pages ? String(page + 1) : undefined}
      newerText="Previous page"
      olderText="Next page"
      label={label}
    />
  )
}

interface PagedTableProps<Row> extends Omit<TableProps<Row>, 'rows'> {
  readonly rows: Paged<Row>
  /** The parameter of the query with the number of the page. */
  readonly name?: string
  /** The heading of the table, if the page has more than the table. */
  readonly title?: string
  readonly note?: ComponentChildren
  /** Replaces a table without rows. */
  readonly empty: ComponentChildren
  /** For screen readers, if the page has several lists. */
  readonly pagesLabel?: string
}

/** One page of a table, with links to the others. */
export function PagedTable<Row>(props: PagedTableProps<Row>) {
  const { rows, name, title, note, empty, pagesLabel, ...table } = props
  const content = <Table {...table} rows={rows.rows} />
  return (
    <>
      {rows.total === 0 ? (
        empty
      ) : title === undefined ? (
        <div class="card">{content}</div>
      ) : (
        <Card title={title} note={note ?? countText(rows.total)} bare>
          {content}
        </Card>
      )}
      <NumberedPages visit={props.visit} of={rows} name={name} label={pagesLabel} />
    </>
  )
}

/** Maximum number of rows of a CSV file. One more row is read, to know whether there are more. */
export const CSV_ROWS_MAX = 20_000

interface CsvLinkProps {
  /** The path of the page. */
  readonly path: string
  /** The query of the page: the file has the same rows. */
  readonly query?: URLSearchParams
  /** The parameters of the query that choose a page of the list. */
  readonly paging?: readonly string[]
}

/** Downloads the table of the page as a CSV file. */
export function CsvLink({ path, query, paging = ['page', 'before'] }: CsvLinkProps) {
  const kept = filtersOf(query, ...paging)
  return (
    <a
      class="button"
      href={kept.size > 0 ? `${path}.csv?${kept}` : `${path}.csv`}
      title={`At most ${countText(CSV_ROWS_MAX)} rows`}
    >
      CSV
    </a>
  )
}

interface FiltersProps {
  /** The path of the page. */
  readonly action: string
  readonly children: ComponentChildren
  /** The number of rows that match, in words. */
  readonly found?: ComponentChildren
  /** The id of the output, for the browser script that filters the table `id` without `-count`. */
  readonly foundId?: string
}

/** The form above a table that selects its rows. Its fields become the query of the page. */
export function Filters({ action, children, found, foundId }: FiltersProps) {
  return (
    <form class="filters" method="get" action={action}>
      {children}
      <button type="submit">Filter</button>
      {found !== undefined && (
        <output id={foundId} class="muted small">
          {found}
        </output>
      )}
    </form>
  )
}

interface FilterSearchProps {
  readonly value: string
  readonly label?: string
  /** The browser script filters the table with this id at each key. */
  readonly table?: string
}

/** Searches the rows for text: the parameter `q`. */
export function FilterSearch({ value, table, label = 'Search' }: FilterSearchProps) {
  return (
    <FieldFrame name="q" label={label}>
      <input id="q" name="q" type="search" value={value} maxLength={100} data-filters={table} />
    </FieldFrame>
  )
}

interface FilterSelectProps {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly options: readonly (readonly [value: string, name: string])[]
}

/** Selects the rows by one of a few values. */
export function FilterSelect({ name, label, value, options }: FilterSelectProps) {
  return (
    <FieldFrame name={name} label={label}>
      <Options name={name} options={options} chosen={value} />
    </FieldFrame>
  )
}
