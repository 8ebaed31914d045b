import { countText } from '../../engine/export/report/text.ts'

/** Maximum number of rows of a CSV file. One more row is read, to know whether there are more. */
export const CSV_ROWS_MAX = 20_000

export interface CsvLinkProps {
  /** The path of the page. */
  readonly path: string
  /** The query of the page: the file has the same rows. */
  readonly query?: URLSearchParams
}

/** Downloads the table of the page as a CSV file. */
export function CsvLink({ path, query }: CsvLinkProps) {
  const kept = new URLSearchParams(query)
  for (const name of ['done', 'page', 'before']) kept.delete(name)
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
