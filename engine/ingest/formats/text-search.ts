import { NOT_FOUND, textAt } from './bytes.ts'

/**
 * Finds one ASCII text in the bytes of a message (Horspool 1980): the byte under the text's end tells how far it may be moved on, so that most
 * bytes are never looked at. For cues that nearly every message does not have.
 */
export class TextSearch {
  readonly #text: string
  readonly #moves = new Uint8Array(256)

  /** Of 2 to 255 characters: the longer, the faster. */
  constructor(text: string) {
    this.#text = text
    this.#moves.fill(text.length)
    for (let at = 0; at < text.length - 1; at++) this.#moves[text.charCodeAt(at)] = text.length - 1 - at
  }

  /** Where the text first stands in [start, end), or NOT_FOUND. */
  find(view: DataView, start: number, end: number): number {
    const text = this.#text
    const behind = text.length - 1
    const last = text.charCodeAt(behind)
    for (let at = start + behind; at < end; ) {
      const byte = view.getUint8(at)
      if (byte === last && textAt(view, at - behind, end, text)) return at - behind
      at += this.#moves[byte] ?? 1
    }
    return NOT_FOUND
  }
}

/** Whether one of a few texts stands at a place. Most messages are told by their first byte to begin with none. */
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

  standAt(view: DataView, at: number, end: number): boolean {
    if (at >= end) return false
    const texts = this.#byFirst[view.getUint8(at)]
    if (texts === undefined) return false
    for (let index = 0; index < texts.length; index++) if (textAt(view, at, end, texts[index] ?? '')) return true
    return false
  }
}
