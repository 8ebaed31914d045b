import { constants, gzipSync } from 'node:zlib'

/** For shorter bodies, compression and decompression take more time than they save. */
const COMPRESSED_BYTES_MIN = 1024
/**
 * Maximum size of the compressed bodies that a thread caches. Beyond it, the oldest are evicted.
 */
const CACHED_BYTES_MAX = 8 * 1024 * 1024

/**
 * Whether a client accepts gzip (RFC 9110 §12.5.3): by name or by `*`, and not with a weight of 0.
 */
export function acceptsGzip(acceptEncoding: string): boolean {
  if (acceptEncoding === '') return false
  let byStar = false
  for (const part of acceptEncoding.split(',')) {
    const [coding = '', ...parameters] = part.split(';')
    const name = coding.trim().toLowerCase()
    if (name !== 'gzip' && name !== 'x-gzip' && name !== '*') continue
    const takes = !parameters.some((parameter) => /^\s*q\s*=\s*0(\.0{0,3})?\s*$/i.test(parameter))
    if (name !== '*') return takes
    byStar = takes
  }
  return byStar
}

/** Caches bodies in gzip by name. */
export class GzipBodies {
  readonly #bodies = new Map<string, Buffer>()
  #bytes = 0

  /**
   * Returns the compressed body, or undefined if compression does not pay. `name` must identify the
   * body permanently, so it contains the entity tag.
   */
  compressed(name: string, body: Uint8Array): Buffer | undefined {
    if (body.length < COMPRESSED_BYTES_MIN) return undefined
    const known = this.#bodies.get(name)
    if (known !== undefined) return known
    const compressed = gzipSync(body, { level: constants.Z_BEST_SPEED })
    if (compressed.length >= body.length) return undefined
    this.#bodies.set(name, compressed)
    this.#bytes += compressed.length
    for (const [oldest, { length }] of this.#bodies) {
      if (this.#bytes <= CACHED_BYTES_MAX) break
      this.#bodies.delete(oldest)
      this.#bytes -= length
    }
    return compressed
  }
}
