import { KeyedHash, PROBES_MAX } from '../../registry/keyed-hash.ts'

/*
 * The names of an aggregator, each with a number that indexes the columns of its counts. A name is
 * looked up by its bytes and becomes a string only at the end.
 *
 *   slots    open-addressed hash table: number of the name + 1, or 0
 *   hashes   hash of each name
 *   starts   offset of each name in `text`; a name ends where the next one begins
 */
const SLOTS = 1 << 16
/** Half of the slots, so that lookups are short. */
export const NAMES_MAX = SLOTS / 2
/** 64 bytes per name on average. */
const TEXT_BYTES_MAX = NAMES_MAX * 64

const NAME_BYTES_MAX = 255
const keyed = new KeyedHash(NAME_BYTES_MAX)

/** The name is not in the table, or there is no space for it. */
export const NO_NAME = -1

export class NameTable {
  readonly #slots = new Int32Array(SLOTS)
  readonly #hashes = new Int32Array(NAMES_MAX)
  readonly #starts = new Int32Array(NAMES_MAX + 1)
  #text = new Uint8Array(64 * 1024)
  /** Names are numbered from 0 in order of arrival. */
  #count = 0
  /** Of the last name that was not found. */
  #hashSought = 0
  #slotSought = 0

  clear(): void {
    this.#slots.fill(0)
    this.#count = 0
  }

  /** Returns the number of the name in [start, end), or NO_NAME. */
  find(view: DataView, start: number, end: number): number {
    const hash = keyed.bytes(view, start, end)
    let slot = hash & (SLOTS - 1)
    let probes = 0
    for (let found = this.#slots[slot] ?? 0; found !== 0; found = this.#slots[slot] ?? 0) {
      const number = found - 1
      if (this.#hashes[number] === hash && this.#isName(number, view, start, end)) return number
      if (++probes > PROBES_MAX) break
      slot = (slot + 1) & (SLOTS - 1)
    }
    this.#hashSought = hash
    this.#slotSought = slot
    return NO_NAME
  }

  /**
   * Adds the name that find has just not found, and returns its number. NO_NAME: the table is full,
   * or has no free slot within PROBES_MAX.
   */
  add(view: DataView, start: number, end: number): number {
    const begin = this.#starts[this.#count] ?? 0
    const isFull = this.#count === NAMES_MAX || begin + end - start > TEXT_BYTES_MAX
    if (isFull || this.#slots[this.#slotSought] !== 0) return NO_NAME
    this.#reserve(begin + end - start)
    for (let at = start; at < end; at++) this.#text[begin + at - start] = view.getUint8(at)
    const number = this.#count++
    this.#hashes[number] = this.#hashSought
    this.#starts[this.#count] = begin + end - start
    this.#slots[this.#slotSought] = number + 1
    return number
  }

  nameOf(number: number): string {
    const text = this.#text.subarray(this.#starts[number], this.#starts[number + 1])
    return Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString('latin1')
  }

  #isName(number: number, view: DataView, start: number, end: number): boolean {
    const begin = this.#starts[number] ?? 0
    if ((this.#starts[number + 1] ?? 0) - begin !== end - start) return false
    for (let at = start; at < end; at++) if (this.#text[begin + at - start] !== view.getUint8(at)) return false
    return true
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#text.length) return
    const longer = new Uint8Array(Math.min(TEXT_BYTES_MAX, Math.max(bytes, this.#text.length * 2)))
    longer.set(this.#text)
    this.#text = longer
  }
}
