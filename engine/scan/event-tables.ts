import { KeyedHash, PROBES_MAX } from '../../registry/keyed-hash.ts'
import type { Slices } from '../kernel/lmdb/queue-chunk.ts'
import { EVIDENCE_CELLS_MAX, UNMATCHED_EVENTS_MAX } from '../limits.ts'
import { SOURCES_PER_DAY_MAX } from '../store/event-source.ts'

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
const nameHash = new KeyedHash(NAME_BYTES_MAX)

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
    const hash = nameHash.bytes(view, start, end)
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

/*
 * Pairs of whole numbers, each with a number that indexes the columns of its owner. A Map with a
 * number as key would do, but V8 hashes numbers without a key.
 *
 *   buckets  number of the first pair of a bucket + 1, or 0
 *   next     the same of the next pair in the bucket of each pair
 */
const SECOND_POSITION = 4
const pairHash = new KeyedHash(SECOND_POSITION + 4)

export class PairTable {
  readonly #buckets: Int32Array
  readonly #next: Int32Array
  readonly #firsts: Int32Array
  readonly #seconds: Int32Array
  /** Number of pairs. They are numbered from 0 in order of arrival. */
  count = 0

  /** @param pairsMax a power of two */
  constructor(pairsMax: number) {
    this.#buckets = new Int32Array(pairsMax)
    this.#next = new Int32Array(pairsMax)
    this.#firsts = new Int32Array(pairsMax)
    this.#seconds = new Int32Array(pairsMax)
  }

  clear(): void {
    for (let number = 0; number < this.count; number++) {
      this.#buckets[this.#bucketOf(this.first(number), this.second(number))] = 0
    }
    this.count = 0
  }

  get full(): boolean {
    return this.count === this.#firsts.length
  }

  /** The number of a pair, or -1. */
  find(first: number, second: number): number {
    let number = (this.#buckets[this.#bucketOf(first, second)] ?? 0) - 1
    while (number >= 0 && (this.#firsts[number] !== first || this.#seconds[number] !== second)) {
      number = (this.#next[number] ?? 0) - 1
    }
    return number
  }

  /** Adds a pair that is not in the table, which must not be full. Returns its number. */
  add(first: number, second: number): number {
    const bucket = this.#bucketOf(first, second)
    const number = this.count++
    this.#firsts[number] = first
    this.#seconds[number] = second
    this.#next[number] = this.#buckets[bucket] ?? 0
    this.#buckets[bucket] = number + 1
    return number
  }

  first(number: number): number {
    return this.#firsts[number] ?? 0
  }

  second(number: number): number {
    return this.#seconds[number] ?? 0
  }

  #bucketOf(first: number, second: number): number {
    return pairHash.word(second, SECOND_POSITION, pairHash.word(first, 0, 0)) & (this.#buckets.length - 1)
  }
}

/** The last column has the matches of all other instances. */
const COLUMNS = SOURCES_PER_DAY_MAX + 1

/**
 * Matches by cell and instance, the first 8 bytes of an event's id. The first SOURCES_PER_DAY_MAX
 * instances of a scan have a column.
 */
export class SourceCounts {
  readonly #matches = new Float64Array(EVIDENCE_CELLS_MAX * COLUMNS)
  /** Both words of each instance, in order of arrival. */
  readonly #highs = new Uint32Array(SOURCES_PER_DAY_MAX)
  readonly #lows = new Uint32Array(SOURCES_PER_DAY_MAX)
  /** Each instance as 16 hex digits. */
  readonly #texts: string[] = []
  #count = 0
  /** The column of the last event: its neighbors usually have the same. */
  #last = 0

  clear(): void {
    this.#count = 0
    this.#texts.length = 0
    this.#last = 0
  }

  clearCell(cell: number): void {
    this.#matches.fill(0, cell * COLUMNS, (cell + 1) * COLUMNS)
  }

  /** Adds matches of the event whose id is at `at`. */
  add(cell: number, view: DataView, at: number, matches: number): void {
    const column = cell * COLUMNS + this.#columnOf(view.getUint32(at), view.getUint32(at + 4))
    this.#matches[column] = (this.#matches[column] ?? 0) + matches
  }

  /** Instances as 16 hex digits. */
  ofCell(cell: number): (readonly [instance: string, matches: number])[] {
    const found: (readonly [instance: string, matches: number])[] = []
    for (let source = 0; source < this.#count; source++) {
      const matches = this.#matches[cell * COLUMNS + source] ?? 0
      if (matches > 0) found.push([this.#textOf(source), matches])
    }
    return found
  }

  #textOf(source: number): string {
    const known = this.#texts[source]
    if (known !== undefined) return known
    const hex = (half: number): string => half.toString(16).padStart(8, '0')
    const text = hex(this.#highs[source] ?? 0) + hex(this.#lows[source] ?? 0)
    this.#texts[source] = text
    return text
  }

  #columnOf(high: number, low: number): number {
    const highs = this.#highs
    const lows = this.#lows
    const last = this.#last
    if (last < this.#count && highs[last] === high && lows[last] === low) return last
    let column = 0
    while (column < this.#count && (highs[column] !== high || lows[column] !== low)) column++
    if (column === this.#count && column < SOURCES_PER_DAY_MAX) {
      highs[column] = high
      lows[column] = low
      this.#count++
    }
    this.#last = column
    return column
  }
}

/** More memory than this is freed after a scan. */
const BYTES_KEPT_MAX = 1024 * 1024
const PLACES_MIN = 1024

/** Copies of the events that an aggregator found no rule for: the newest UNMATCHED_EVENTS_MAX. */
export class UnmatchedCopies {
  #bytes = new Uint8Array(0)
  #starts = new Uint32Array(PLACES_MIN)
  #ends = new Uint32Array(PLACES_MIN)
  #end = 0
  #count = 0
  /** Older ones that left for newer ones. */
  dropped = 0

  clear(): void {
    if (this.#bytes.length > BYTES_KEPT_MAX) this.#bytes = new Uint8Array(0)
    this.#end = 0
    this.#count = 0
    this.dropped = 0
  }

  /** Adds the event in bytes [start, end). */
  add(view: DataView, start: number, end: number): void {
    if (this.#count === 2 * UNMATCHED_EVENTS_MAX) this.#dropOldest(UNMATCHED_EVENTS_MAX)
    this.#grow(end - start)
    this.#bytes.set(new Uint8Array(view.buffer, view.byteOffset + start, end - start), this.#end)
    this.#starts[this.#count] = this.#end
    this.#end += end - start
    this.#ends[this.#count] = this.#end
    this.#count++
  }

  /** Returns the events in memory of their own, and forgets them. */
  take(): { readonly events: Slices; readonly dropped: number } {
    if (this.#count > UNMATCHED_EVENTS_MAX) this.#dropOldest(this.#count - UNMATCHED_EVENTS_MAX)
    const count = this.#count
    const events: Slices = {
      bytes: Buffer.from(this.#bytes.slice(0, this.#end)),
      starts: this.#starts.slice(0, count),
      ends: this.#ends.slice(0, count),
      count,
    }
    const { dropped } = this
    this.clear()
    return { events, dropped }
  }

  #dropOldest(count: number): void {
    const from = this.#ends[count - 1] ?? 0
    this.#bytes.copyWithin(0, from, this.#end)
    for (let at = count; at < this.#count; at++) {
      this.#starts[at - count] = (this.#starts[at] ?? 0) - from
      this.#ends[at - count] = (this.#ends[at] ?? 0) - from
    }
    this.#end -= from
    this.#count -= count
    this.dropped += count
  }

  #grow(more: number): void {
    if (this.#end + more > this.#bytes.length) {
      const bytes = new Uint8Array(Math.max(64 * 1024, (this.#end + more) * 2))
      bytes.set(this.#bytes.subarray(0, this.#end))
      this.#bytes = bytes
    }
    if (this.#count < this.#starts.length) return
    const [starts, ends] = [new Uint32Array(this.#count * 2), new Uint32Array(this.#count * 2)]
    starts.set(this.#starts)
    ends.set(this.#ends)
    this.#starts = starts
    this.#ends = ends
  }
}
