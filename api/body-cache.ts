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

/**
 * Bodies are stored contiguously in blocks of this size, allocated on demand. No body has an
 * allocation of its own.
 */
const BLOCK_BYTES = 4 * 1024 * 1024
/**
 * Per thread. Reading a body from the store copies it, which takes longer than the rest of a
 * request.
 */
const BLOCKS_MAX = 8
/** Longer bodies are not cached, so the end of a block wastes at most an eighth of it. */
const BODY_BYTES_MAX = BLOCK_BYTES / 8
/**
 * Every body is cached while the total is below seven eighths of all blocks except the one being
 * refilled.
 */
const ALWAYS_CACHED_BYTES = ((BLOCKS_MAX - 1) * BLOCK_BYTES * 7) / 8
/**
 * Above that, only one of this many uncached bodies replaces older ones, so that most of the cache
 * survives if more bodies are requested than fit.
 */
const REPLACE_ONE_OF = 64

class Block {
  readonly bytes = new Uint8Array(BLOCK_BYTES)
  usedBytes = 0
  readonly bodies = new Set<StoredBody>()
}

/** Caches the bodies of common answers until their data changes. */
export class BodyCache {
  readonly #blockOf = new Map<StoredBody, Block>()
  /** In the order of filling, starting after `#at`. */
  readonly #blocks: Block[] = []
  #at = -1
  #keptBytes = 0
  #missed = 0

  /**
   * Stores a copy if there is space. Returns the copy or the bytes themselves, valid until the next
   * call.
   */
  keep(body: StoredBody, bytes: Uint8Array): Uint8Array {
    if (bytes.length > BODY_BYTES_MAX) return bytes
    if (this.#keptBytes + bytes.length > ALWAYS_CACHED_BYTES && ++this.#missed % REPLACE_ONE_OF !== 0) return bytes
    this.drop(body)
    const block = this.#blockFor(bytes.length)
    block.bytes.set(bytes, block.usedBytes)
    const copy = block.bytes.subarray(block.usedBytes, block.usedBytes + bytes.length)
    block.usedBytes += bytes.length
    block.bodies.add(body)
    this.#blockOf.set(body, block)
    this.#keptBytes += bytes.length
    body.bytes = copy
    return copy
  }

  /** Removes a body whose data has changed or which is no longer requested. */
  drop(body: StoredBody): void {
    const block = this.#blockOf.get(body)
    if (block === undefined) return
    this.#blockOf.delete(body)
    block.bodies.delete(body)
    if (block.bodies.size === 0) block.usedBytes = 0
    this.#keptBytes -= body.bytes?.length ?? 0
    body.bytes = undefined
  }

  /**
   * Returns the current block or, if it is full, a new block or the one that was filled least
   * recently.
   */
  #blockFor(bytes: number): Block {
    const filling = this.#blocks[this.#at]
    if (filling !== undefined && filling.usedBytes + bytes <= BLOCK_BYTES) return filling
    this.#at = (this.#at + 1) % BLOCKS_MAX
    const next = this.#blocks[this.#at] ?? new Block()
    this.#blocks[this.#at] = next
    for (const body of next.bodies) this.drop(body)
    return next
  }
}
