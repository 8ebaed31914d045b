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
  /** The common response, to a request for the first page, as it is and in gzip. */
  readonly first: StoredBody
  readonly firstGzip: StoredBody
}

/** A body that the store has ready. */
export interface StoredBody {
  /** Key of the body, and whether its checksum was verified. */
  readonly key: Buffer
  isChecked: boolean
  /** The body, if cached; see body-cache.ts. */
  bytes: Uint8Array | undefined
}
