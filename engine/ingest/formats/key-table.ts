import { isUpper } from './bytes.ts'

export const NO_KEY = -1

/**
 * The index of a word: of five bits of its first and last bytes, which ignore the case of a letter,
 * and of its length.
 */
const PLACES = 1 << 10
const FIVE_BITS = 31

/**
 * Finds which of a few known words is in a message, in any case: keys of key=value pairs, words of
 * an action. Two bytes and the length reject most words; the rest is compared byte by byte. Unknown
 * keys create no string.
 */
export class KeyTable {
  readonly #ids: Int32Array
  /** The bytes of all words in sequence, the start of each word, and the end of the last. */
  readonly #bytes: Uint8Array
  readonly #starts: Int32Array
  /** The first word with an index, and for each word the next word with the same index. */
  readonly #first = new Int32Array(PLACES).fill(NO_KEY)
  readonly #next: Int32Array

  /** The words in lower case, each with its id, from 0. Several words may have one id. */
  constructor(idOfWord: Readonly<Record<string, number>>) {
    const words = Object.keys(idOfWord)
    this.#ids = Int32Array.from(Object.values(idOfWord))
    this.#bytes = Uint8Array.from(Buffer.from(words.join(''), 'latin1'))
    this.#starts = new Int32Array(words.length + 1)
    this.#next = new Int32Array(words.length)
    for (const [index, word] of words.entries()) {
      const place = placeOf(word.charCodeAt(0), word.charCodeAt(word.length - 1), word.length)
      this.#starts[index + 1] = (this.#starts[index] ?? 0) + word.length
      this.#next[index] = this.#first[place] ?? NO_KEY
      this.#first[place] = index
    }
  }

  /** The id of the word in [start, end), or NO_KEY. */
  find(view: DataView, start: number, end: number): number {
    if (start >= end) return NO_KEY
    let index = this.#first[placeOf(view.getUint8(start), view.getUint8(end - 1), end - start)] ?? NO_KEY
    while (index !== NO_KEY) {
      if (this.#isWord(view, start, end, index)) return this.#ids[index] ?? NO_KEY
      index = this.#next[index] ?? NO_KEY
    }
    return NO_KEY
  }

  #isWord(view: DataView, start: number, end: number, index: number): boolean {
    const bytes = this.#bytes
    let at = this.#starts[index] ?? 0
    if ((this.#starts[index + 1] ?? 0) - at !== end - start) return false
    for (; start < end; start++) {
      const byte = view.getUint8(start)
      if ((isUpper(byte) ? byte | 0x20 : byte) !== bytes[at++]) return false
    }
    return true
  }
}

function placeOf(first: number, last: number, length: number): number {
  return ((first & FIVE_BITS) << 5) ^ ((last & FIVE_BITS) << 3) ^ (length & FIVE_BITS)
}
