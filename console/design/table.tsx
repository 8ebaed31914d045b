import type { ComponentChildren } from 'preact'
import type { Action } from '../../engine/admin/actions.ts'
import { isoSeconds } from '../../engine/kernel/process/clock.ts'
import { csvRecord } from '../../engine/kernel/process/csv.ts'
import { html } from './html.ts'
import { countText, Time } from './parts.tsx'

/** What tables must know of a request: http/visit.ts. */
export interface Viewer {
  readonly nowMs: number
  readonly request: { readonly query: URLSearchParams }
  may(action: Action): boolean
}

/** A column of a table: its cells, its sort order, and its values in a CSV file. */
export interface Column<Row> {
  readonly id: string
  readonly name: string
  /** Absent: the column is only in the CSV file. */
  readonly cell?: (row: Row, viewer: Viewer) => ComponentChildren
  /** The page shows the column only to members whose role allows this. */
  readonly action?: Action
  /** The sort key. Absent: the table cannot be sorted by the column. */
  readonly sort?: (row: Row) => string | number
  /** The value in a CSV file. Absent: the column is not in the file. */
  readonly csv?: (row: Row) => string | number
  readonly number?: boolean
  /** The column is hidden on narrow screens. */
  readonly wide?: boolean
  /** Only screen readers read the heading, such as the heading above buttons. */
  readonly quiet?: boolean
  /** Replaces the name in the heading. */
  readonly heading?: ComponentChildren
}

type Direction = 'ascending' | 'descending'

export interface Sorting {
  readonly by: string
  readonly direction: Direction
}

/** Without the result of a change, and without these parameters, for links and files. */
export function filtersOf(query: URLSearchParams | undefined, ...others: readonly string[]): URLSearchParams {
  const filters = new URLSearchParams(query)
  for (const name of ['done', 'count', 'shown', ...others]) filters.delete(name)
  return filters
}

/** The sort order of a query: `sort=risk`, or `sort=-risk` for descending. */
export function sortingOf<Row>(columns: readonly Column<Row>[], query: URLSearchParams, initial: Sorting): Sorting {
  const word = query.get('sort') ?? ''
  const by = word.replace(/^-/, '')
  const column = columns.find(({ id, sort }) => id === by && sort !== undefined)
  if (column === undefined) return initial
  return { by, direction: word.startsWith('-') ? 'descending' : 'ascending' }
}

const COLLATOR = new Intl.Collator('en', { numeric: true })

export function sorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[], { by, direction }: Sorting): Row[] {
  const key = columns.find(({ id }) => id === by)?.sort
  if (key === undefined) return [...rows]
  const sign = direction === 'ascending' ? 1 : -1
  return rows
    .map((row) => ({ row, key: key(row) }))
    .sort((a, b) => sign * compare(a.key, b.key))
    .map(({ row }) => row)
}

function compare(a: string | number, b: string | number): number {
  return typeof a === 'number' && typeof b === 'number' ? a - b : COLLATOR.compare(String(a), String(b))
}

export interface TableProps<Row> {
  readonly visit: Viewer
  readonly id: string
  /** A description of the table for screen readers. */
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  /** If present, the headings are links that sort the table. */
  readonly sorting?: Sorting | undefined
  /** On a phone, the first cell of a row is above the others, so that long names have space. */
  readonly stacked?: boolean | undefined
}

export function Table<Row>({ visit, id, label, columns: all, rows, sorting, stacked }: TableProps<Row>) {
  const columns = all.filter(({ cell, action }) => cell !== undefined && (action === undefined || visit.may(action)))
  const template = rowTemplate(columns)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area needs keyboard focus
    <section class="scroll" tabIndex={0} aria-label={label}>
      <table id={id} class={stacked ? 'stacked' : undefined}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.id} column={column} sorting={sorting} query={visit.request.query} />
            ))}
          </tr>
        </thead>
        <tbody>{rows.map((row) => html(template, ...columns.map(({ cell }) => cell?.(row, visit))))}</tbody>
      </table>
    </section>
  )
}

/** The markup of a row between its cells, made once per table, which may have 8,000 cells. */
function rowTemplate<Row>(columns: readonly Column<Row>[]): string[] {
  const opening = columns.map((column) => {
    const name = classOf(column)
    return name === undefined ? '<td>' : `<td class="${name}">`
  })
  return [...opening.map((tag, at) => (at === 0 ? `<tr>${tag}` : `</td>${tag}`)), '</td></tr>']
}

interface HeadingProps<Row> {
  readonly column: Column<Row>
  readonly sorting: Sorting | undefined
  readonly query: URLSearchParams
}

function Heading<Row>({ column, sorting, query }: HeadingProps<Row>) {
  const { id, name, sort, number, quiet, heading } = column
  if (heading !== undefined || quiet || sorting === undefined || sort === undefined) {
    return (
      <th scope="col" class={classOf(column)}>
        {heading ?? (quiet ? <span class="visually-hidden">{name}</span> : name)}
      </th>
    )
  }
  const current = sorting.by === id ? sorting.direction : undefined
  // The first click on a number sorts the largest first.
  const first: Direction = number ? 'descending' : 'ascending'
  const next = current === undefined ? first : current === 'ascending' ? 'descending' : 'ascending'
  const kept = filtersOf(query)
  kept.set('sort', next === 'descending' ? `-${id}` : id)
  return (
    <th scope="col" class={classOf(column)} aria-sort={current}>
      <a href={`?${kept}`}>{name}</a>
    </th>
  )
}

function classOf<Row>({ number, wide }: Column<Row>): string | undefined {
  const names = [number ? 'n' : '', wide ? 'wide-only' : ''].filter((name) => name !== '')
  return names.length > 0 ? names.join(' ') : undefined
}

/** The rows as CSV, with a heading. */
export function csvOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const shown = columns.filter((column) => column.csv !== undefined)
  const records = rows.map((row) => csvRecord(shown.map(({ csv }) => csv?.(row) ?? '')))
  return [csvRecord(shown.map(({ name }) => name)), ...records].join('')
}

/** A column of text. */
export function textColumn<Row>(id: string, name: string, text: (row: Row) => string): Column<Row> {
  return { id, name, cell: text, sort: text, csv: text }
}

/** A column of whole numbers. */
export function countColumn<Row>(id: string, name: string, count: (row: Row) => number): Column<Row> {
  return { id, name, cell: (row) => countText(count(row)), sort: count, csv: count, number: true }
}

/** A column of times. 0: never, which is empty in a CSV file. */
export function timeColumn<Row>(id: string, name: string, time: (row: Row) => number): Column<Row> {
  const csv = (row: Row): string => (time(row) === 0 ? '' : isoSeconds(time(row)))
  return { id, name, cell: (row, { nowMs }) => Time({ ms: time(row), nowMs }), sort: time, csv }
}

/** The column without its cells: only the CSV file has it. */
export function csvOnly<Row>({ id, name, csv }: Column<Row>): Column<Row> {
  return { id, name, ...(csv && { csv }) }
}
