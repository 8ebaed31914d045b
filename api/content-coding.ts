import { constants, gzipSync } from 'node:zlib'

/** Shorter bodies gain less than the time that packing and unpacking takes. */
const PACKED_BYTES_MIN = 1024
/** Bytes of packed bodies that a thread remembers. Beyond it those go that came first, and are packed again when they are asked for. */
const REMEMBERED_BYTES_MAX = 8 * 1024 * 1024

/** Whether a client takes gzip (RFC 9110 §12.5.3): named, or by `*`, and not with a weight of 0. */
export function takesGzip(acceptEncoding: string): boolean {
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

/** Bodies in gzip, remembered by what they are the body of. */
export class GzipBodies {
  readonly #bodies = new Map<string, Buffer>()
  #bytes = 0

  /** The body packed, or undefined where that does not pay. `name` tells one body from all others, for ever: it contains the entity tag. */
  packed(name: string, body: Uint8Array): Buffer | undefined {
    if (body.length < PACKED_BYTES_MIN) return undefined
    const known = this.#bodies.get(name)
    if (known !== undefined) return known
    const packed = gzipSync(body, { level: constants.Z_BEST_SPEED })
    if (packed.length >= body.length) return undefined
    this.#bodies.set(name, packed)
    this.#bytes += packed.length
    for (const [oldest, { length }] of this.#bodies) {
      if (this.#bytes <= REMEMBERED_BYTES_MAX) break
      this.#bodies.delete(oldest)
      this.#bytes -= length
    }
    return packed
  }
}
