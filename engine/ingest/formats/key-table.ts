import { isUpper } from './bytes.ts'

export const NO_KEY = -1

/**
 * Finds which of a few known words stands in a message, whatever its case: keys of key=value pairs, words of an action. A table of hashes
 * over the bytes, so that no string is made for the many keys that nobody asked for.
 */
export class KeyTable {
  readonly #words: readonly string[]
  readonly #ids: Int32Array
  readonly #slots: Int32Array
  readonly #mask: number

  /** The words in lower case, each with its id, from 0. Several words may have one id. */
  constructor(idOfWord: Readonly<Record<string, number>>) {
    this.#words = Object.keys(idOfWord)
    this.#ids = Int32Array.from(Object.values(idOfWord))
    let size = 16
    while (size < this.#words.length * 4) size *= 2
    this.#mask = size - 1
    this.#slots = new Int32Array(size).fill(NO_KEY)
    for (const [index, word] of this.#words.entries()) {
      let hash = SEED
      for (let at = 0; at < word.length; at++) hash = step(hash, word.charCodeAt(at))
      let slot = mixed(hash) & this.#mask
      while (this.#slots[slot] !== NO_KEY) slot = (slot + 1) & this.#mask
      this.#slots[slot] = index
    }
  }

  /** The id of the word in [start, end), or NO_KEY. */
  find(view: DataView, start: number, end: number): number {
    let hash = SEED
    for (let at = start; at < end; at++) hash = step(hash, view.getUint8(at))
    const slots = this.#slots
    let slot = mixed(hash) & this.#mask
    for (;;) {
      const index = slots[slot] ?? NO_KEY
      if (index === NO_KEY) return NO_KEY
      if (this.#isWord(view, start, end, this.#words[index] ?? '')) return this.#ids[index] ?? NO_KEY
      slot = (slot + 1) & this.#mask
    }
  }

  #isWord(view: DataView, start: number, end: number, word: string): boolean {
    if (word.length !== end - start) return false
    for (let at = 0; at < word.length; at++) {
      const byte = view.getUint8(start + at)
      if ((isUpper(byte) ? byte | 0x20 : byte) !== word.charCodeAt(at)) return false
    }
    return true
  }
}

/** FNV-1a, 32 bit, with bit 5 set: that folds the case of letters, and what else it makes alike is told apart by the bytes. */
const SEED = 0x811c9dc5

function step(hash: number, byte: number): number {
  return Math.imul(hash ^ (byte | 0x20), 0x01000193)
}

function mixed(hash: number): number {
  return hash ^ (hash >>> 15)
}
