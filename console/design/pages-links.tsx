export interface PagesLinksProps {
  /** The query of the page. The links keep its other parameters. */
  readonly query: URLSearchParams
  /** The value of `page`, or of another parameter, in the links. undefined: no link. */
  readonly name: string
  readonly newer?: string | undefined
  readonly older?: string | undefined
  readonly newerText: string
  readonly olderText: string
}

/** Links to the previous and the next page. */
export function PagesLinks({ query, name, newer, older, newerText, olderText }: PagesLinksProps) {
  if (newer === undefined && older === undefined) return null
  const to = (value: string): string => {
    const kept = new URLSearchParams(query)
    kept.set(name, value)
    return `?${kept}`
  }
  return (
    <nav class="row" aria-label="Pages">
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
