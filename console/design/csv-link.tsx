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
    <a class="button" href={kept.size > 0 ? `${path}.csv?${kept}` : `${path}.csv`}>
      CSV
    </a>
  )
}
