import { BACKSLASH, PIPE } from './bytes.ts'

/** No header of CEF or LEEF is longer. */
const HEADER_BYTES_MAX = 1024

/** Where the bars stand that end the parts of a header of CEF or LEEF. One for each format, filled anew for each message. */
export class HeaderBars {
  readonly #places: Int32Array
  readonly #isEscaped: boolean

  /** @param isEscaped a bar behind a backslash belongs to its part */
  constructor(parts: number, isEscaped: boolean) {
    this.#places = new Int32Array(parts)
    this.#isEscaped = isEscaped
  }

  /** Whether all parts have their bar. */
  find(view: DataView, start: number, end: number): boolean {
    const places = this.#places
    const limit = Math.min(end, start + HEADER_BYTES_MAX)
    let count = 0
    for (let at = start; at < limit; at++) {
      const byte = view.getUint8(at)
      if (byte === BACKSLASH && this.#isEscaped) at++
      else if (byte === PIPE) {
        places[count++] = at
        if (count === places.length) return true
      }
    }
    return false
  }

  /** Where the part with this index ends. */
  end(part: number): number {
    return this.#places[part] ?? 0
  }
}
