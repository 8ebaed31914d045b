/** The value `*` of a field, which matches any tag. */
export const ANY_TAG = '*'

export interface EntityTags {
  readonly etag: string
  /** The entity tag of the same data in gzip. */
  readonly gzipEtag: string
}

/**
 * A list member and the separator after it (RFC 9110 §5.6.1, §8.8.3). A quoted tag may contain
 * commas and stars.
 */
const MEMBER = /[\t ]*(?:(W\/)?("[!\x23-\x7e\x80-\uffff]*")[\t ]*)?(?:,|$)/y

/**
 * Returns the first of the tags that If-Match or If-None-Match lists (RFC 9110 §13.1), or `*`.
 * Returns undefined if none matches or the list is invalid. If-None-Match compares weakly, If-Match
 * strongly (§8.8.3.2). Takes time linear in the text.
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
