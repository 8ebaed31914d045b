/** What a field that is `*` names: whatever there is. */
export const ANY_TAG = '*'

export interface EntityTags {
  readonly etag: string
  /** Of the same data in gzip. */
  readonly gzipEtag: string
}

/** One member of a list and what parts it from the next (RFC 9110 §5.6.1, §8.8.3). What stands in quotation marks may hold commas and stars. */
const MEMBER = /[\t ]*(?:(W\/)?("[!\x23-\x7e\x80-\uffff]*")[\t ]*)?(?:,|$)/y

/**
 * Which of the tags If-Match or If-None-Match names (RFC 9110 §13.1): the first of them, `*`, or undefined for none and for what is no such list.
 * If-None-Match compares weakly, If-Match strongly (§8.8.3.2). Linear in the text.
 */
export function namedTag(text: string, { etag, gzipEtag }: EntityTags, weakly: boolean): string | undefined {
  if (text === etag) return etag
  if (text === ANY_TAG) return ANY_TAG
  let named: string | undefined
  MEMBER.lastIndex = 0
  while (MEMBER.lastIndex < text.length) {
    const [member, weak, tag] = MEMBER.exec(text) ?? []
    if (member === undefined) return undefined
    const counts = weakly || weak === undefined
    if (counts && (tag === etag || tag === gzipEtag)) named ??= tag
  }
  return named
}
