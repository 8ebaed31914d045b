/** Bytes of block lists in memory: a hundred of the built-in registry. */
export const KEPT_BYTES_MAX = 16 * 1024 * 1024
/**
 * Lists whose tags are in memory, 300 bytes each: eleven organizations with as many links and
 * formats as possible.
 */
const TAGS_MAX = 10_000

/** The tag of a list, and a digest of everything that the list was made from. */
export interface ListTag {
  readonly inputs: string
  readonly etag: string
}

/**
 * Block lists in memory. Those used longest ago are dropped first, and are made again when a device
 * requests them. Tags are small and stay longer than texts: most devices have the list already.
 */
export class BlockListCache {
  readonly #tags = new Map<string, ListTag>()
  readonly #texts = new Map<string, string>()
  readonly #noteDropped: () => void
  #bytes = 0

  /** @param noteDropped called for each list that others displace */
  constructor(noteDropped: () => void) {
    this.#noteDropped = noteDropped
  }

  /** The tag of a list made from the same inputs, and its text if that is in memory as well. */
  find(key: string, inputs: string): { readonly etag: string; readonly text: string | undefined } | undefined {
    const tag = this.#tags.get(key)
    if (tag === undefined || tag.inputs !== inputs) return undefined
    moveLast(this.#tags, key, tag)
    const text = this.#texts.get(key)
    if (text !== undefined) moveLast(this.#texts, key, text)
    return { etag: tag.etag, text }
  }

  /** @param text of ASCII, so that it has as many bytes as characters */
  keep(key: string, tag: ListTag, text: string): void {
    moveLast(this.#tags, key, tag)
    this.#forgetText(key)
    moveLast(this.#texts, key, text)
    this.#bytes += text.length
    for (const oldest of this.#texts.keys()) {
      if (this.#bytes <= KEPT_BYTES_MAX) break
      this.#forgetText(oldest)
      this.#noteDropped()
    }
    for (const oldest of this.#tags.keys()) {
      if (this.#tags.size <= TAGS_MAX) break
      this.#tags.delete(oldest)
      this.#forgetText(oldest)
    }
  }

  #forgetText(key: string): void {
    this.#bytes -= this.#texts.get(key)?.length ?? 0
    this.#texts.delete(key)
  }
}

/** Sets an entry as the one that was used last. */
function moveLast<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key)
  map.set(key, value)
}
