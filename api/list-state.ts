/** The part of a published list that a response needs before its body. */
export interface ListState {
  /**
   * Quoted, as in ETag. `etag` is for uncompressed bodies, `gzipEtag` for gzip, which is another
   * representation (RFC 9110 §8.8.1).
   */
  readonly etag: string
  readonly gzipEtag: string
  readonly count: number
  readonly headText: Buffer | undefined
  /** Key of the common response's body, and whether its checksum was verified. */
  readonly firstBodyKey: Buffer
  isChecked: boolean
  /** That body, if cached; see body-cache.ts. */
  body: Uint8Array | undefined
}
