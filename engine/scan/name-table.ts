/*
 * Names that were seen in a fold, each with a number, so that what is counted for them stands in columns: a name is looked up in the bytes where it
 * lies, and no string is made of it before the end.
 *
 *   slots    open-addressed, a power of two of places: number of the name + 1, or 0
 *   hashes   of each name
 *   starts   where the text of each name begins in `text`; it ends where the next begins
 */
const SLOTS = 1 << 16
/** Half of the slots, so that a look-up ends soon. */
export const NAMES_MAX = SLOTS / 2
/** 64 bytes a name on average. */
const TEXT_BYTES_MAX = NAMES_MAX * 64

/** The number of a name that found no room. */
export const TABLE_FULL = -1

export class NameTable {
  readonly #slots = new Int32Array(SLOTS)
  readonly #hashes = new Int32Array(NAMES_MAX)
  readonly #starts = new Int32Array(NAMES_MAX + 1)
  #text = new Uint8Array(64 * 1024)
  #count = 0

  /** How many names there are: their numbers are 0 to count - 1, in the order in which they came. */
  get count(): number {
    return this.#count
  }

  clear(): void {
    this.#slots.fill(0)
    this.#count = 0
  }

  /** The number of the name in bytes [start, end); it is taken in where it is new. TABLE_FULL where it is new and the table is full. */
  numberOf(view: DataView, start: number, end: number): number {
    const hash = hashBytes(view, start, end)
    let slot = hash & (SLOTS - 1)
    for (let found = this.#slots[slot] ?? 0; found !== 0; found = this.#slots[slot] ?? 0) {
      const number = found - 1
      if (this.#hashes[number] === hash && this.#isName(number, view, start, end)) return number
      slot = (slot + 1) & (SLOTS - 1)
    }
    const begin = this.#starts[this.#count] ?? 0
    if (this.#count === NAMES_MAX || begin + end - start > TEXT_BYTES_MAX) return TABLE_FULL
    this.#makeRoom(begin + end - start)
    for (let at = start; at < end; at++) this.#text[begin + at - start] = view.getUint8(at)
    const number = this.#count++
    this.#hashes[number] = hash
    this.#starts[this.#count] = begin + end - start
    this.#slots[slot] = number + 1
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

  #makeRoom(bytes: number): void {
    if (bytes <= this.#text.length) return
    const longer = new Uint8Array(Math.min(TEXT_BYTES_MAX, Math.max(bytes, this.#text.length * 2)))
    longer.set(this.#text)
    this.#text = longer
  }
}

/** FNV-1a and a last mix, over bytes [start, end). */
function hashBytes(view: DataView, start: number, end: number): number {
  let hash = 0x811c9dc5 | 0
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ view.getUint8(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b)
  return hash ^ (hash >>> 13)
}
