import type { ShapeCheck, ShapeLimits } from './shape.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_MAP = 0x7b
const CLOSE_MAP = 0x7d

/**
 * Counts the values and levels of JSON (RFC 8259) that may arrive in pieces, in time linear in its
 * length. Whether it is JSON at all is checked by JSON.parse.
 */
export class JsonCheck implements ShapeCheck {
  readonly #limits: ShapeLimits
  #bytes = 0
  #values = 1
  #depth = 0
  #inText = false
  #isEscaped = false

  constructor(limits: ShapeLimits) {
    this.#limits = limits
  }

  push(chunk: Uint8Array): string | undefined {
    const { bytesMax, valuesMax, depthMax } = this.#limits
    this.#bytes += chunk.length
    if (this.#bytes > bytesMax) return `too many bytes: expected at most ${bytesMax}`
    let values = this.#values
    let depth = this.#depth
    let inText = this.#inText
    let isEscaped = this.#isEscaped
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]
      if (inText) {
        if (isEscaped) isEscaped = false
        else if (byte === BACKSLASH) isEscaped = true
        else if (byte === QUOTE) inText = false
        continue
      }
      // In the order of ASCII, so that one comparison skips most bytes outside of texts.
      if (byte === undefined || byte < QUOTE) continue
      if (byte === QUOTE) inText = true
      else if (byte === COMMA || byte === COLON) values++
      else if (byte === OPEN_LIST || byte === OPEN_MAP) {
        values++
        if (++depth > depthMax) return `nested deeper than ${depthMax}`
      } else if (byte === CLOSE_LIST || byte === CLOSE_MAP) depth--
      if (values > valuesMax) return `too many values: expected at most ${valuesMax}`
    }
    this.#values = values
    this.#depth = depth
    this.#inText = inText
    this.#isEscaped = isEscaped
    return undefined
  }
}

/** Parses JSON from outside. @throws Error if it is not JSON, or exceeds a limit. */
export function parseJson(text: string | Uint8Array, limits: Omit<ShapeLimits, 'bytesMax'>): unknown {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  const error = new JsonCheck({ ...limits, bytesMax: bytes.length }).push(bytes)
  if (error !== undefined) throw new Error(error)
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString())
}
