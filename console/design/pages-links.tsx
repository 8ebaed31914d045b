import type { Paged } from './paged.ts'

export interface PagesLinksProps {
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
    const kept = new URLSearchParams(query)
    kept.delete('done')
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

export interface NumberedPagesProps {
  readonly of: Paged<unknown>
  readonly query: URLSearchParams
  /** The parameter of the query with the number of the page. */
  readonly name?: string
  readonly label?: string
}

/** Links to the pages before and after a page of a list. */
export function NumberedPages({ of: { page, pages }, query, name = 'page', label }: NumberedPagesProps) {
  return (
    <PagesLinks
      query={query}
      name={name}
      newer={page > 1 ? String(page - 1) : undefined}
      older={page < pages ? String(page + 1) : undefined}
      newerText="Previous page"
      olderText="Next page"
      label={label}
    />
  )
}
