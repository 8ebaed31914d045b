import { NOT_FOUND, textAt } from './bytes.ts'

/**
 * Finds one ASCII text in the bytes of a message (Horspool 1980): the byte at the text's end
 * determines how far the text moves, so most bytes are never read. For cues that most messages
 * lack.
 */
export class TextSearch {
  readonly #text: string
  readonly #moves = new Uint8Array(256)

  /** 2 to 255 characters: the longer, the faster. */
  constructor(text: string) {
    this.#text = text
    this.#moves.fill(text.length)
    for (let at = 0; at < text.length - 1; at++) this.#moves[text.charCodeAt(at)] = text.length - 1 - at
  }

  /** The first offset of the text in [start, end), or NOT_FOUND. */
  find(view: DataView, start: number, end: number): number {
    const text = this.#text
    const lastIndex = text.length - 1
    const last = text.charCodeAt(lastIndex)
    for (let at = start + lastIndex; at < end; ) {
      const byte = view.getUint8(at)
      if (byte === last && textAt(view, at - lastIndex, end, text)) return at - lastIndex
      at += this.#moves[byte] ?? 1
    }
    return NOT_FOUND
  }
}

/**
 * Whether a message begins with one of a few texts at an offset. The first byte rejects most
 * messages.
 */
export class TextPrefixes {
  readonly #byFirst: readonly (readonly string[] | undefined)[]

  constructor(texts: readonly string[]) {
    const byFirst: string[][] = []
    for (const text of texts) {
      const first = text.charCodeAt(0)
      byFirst[first] = [...(byFirst[first] ?? []), text]
    }
    this.#byFirst = Array.from({ length: 256 }, (_, first) => byFirst[first])
  }

  beginAt(view: DataView, at: number, end: number): boolean {
    if (at >= end) return false
    const texts = this.#byFirst[view.getUint8(at)]
    if (texts === undefined) return false
    for (let index = 0; index < texts.length; index++) if (textAt(view, at, end, texts[index] ?? '')) return true
    return false
  }
}
