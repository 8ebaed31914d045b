/** What an organization has published of one list, as far as an answer needs it before its body. */
export interface ListState {
  /** With its quotes, as in ETag; of bodies as they are, and of bodies in gzip, which are other representations (RFC 9110 §8.8.1). */
  readonly etag: string
  readonly gzipEtag: string
  readonly count: number
  readonly headText: Buffer | undefined
  /** Where the body of the usual answer stands, and whether its checksum was found right. */
  readonly firstBodyKey: Buffer
  isChecked: boolean
  /** That body, where it is kept; see body-cache.ts. */
  body: Uint8Array | undefined
}
