/*
 * A table in shared memory, used by all threads of a process: times of requests by API key.
 *
 * A key's row is a ring with the times of its last requests. Rows are in buckets of 16. The hash of
 * a key selects two buckets, and the second takes keys when the first is nearly full. Rows are
 * written and reassigned only under the bucket's lock, and a key gets a row only under the locks of
 * both buckets, so a key never has two rows. If other keys use all rows of both buckets, the key
 * gets none. That happens only when the table is nearly full (110,000 or more of 131,072 rows).
 *
 *   words     per bucket: lock (0 free, 1 held), then for each row: key hash (2 words),
 *             next index in the ring, number of the ring from 1 (0: no ring)
 *   rings     number of rings assigned to rows
 *   own       of who uses the table
 *   times     per ring and index: milliseconds of the monotonic clock, 0 if unused; then, if rows
 *             can be held, until when
 *
 * The kernel allocates a page when it is first used. Rows are at hashed positions and rings are
 * contiguous, so a table with rings of 60 takes 0.5 KB per key, counting the maximum number of keys
 * that each bucket ever had.
 */
const BUCKETS = 8192
/** Keys per bucket. */
export const ROWS = 16
/**
 * A bucket with at most this many idle rows leaves new keys to the other one, if that has more.
 * This lets the table become nearly full.
 */
const IDLE_ROWS_KEPT = 8
export const TABLE_ROWS_MAX = BUCKETS * ROWS
const ROW_WORDS = 4
const NEXT_WORD = 2
const RING_WORD = 3
const BUCKET_WORDS = 1 + ROWS * ROW_WORDS
/** Words of the user of the table. Odd, so that the times after the words are aligned. */
const OWN_WORDS = 9
const FREE = 0
const HELD = 1
const NONE = -1

export interface TableShape {
  /** Requests of a key. */
  readonly ring: number
  /** Whether a row can be held: it is kept although its requests no longer count. */
  readonly canHold?: boolean
  /** Even. */
  readonly buckets?: number
}

export function makeKeyTable({ ring, canHold = false, buckets = BUCKETS }: TableShape): SharedArrayBuffer {
  return new SharedArrayBuffer(wordsBytes(buckets) + buckets * ROWS * (ring + Number(canHold)) * 8)
}

/** Number of words before the user's own ones. */
const ownWordOf = (buckets: number): number => buckets * BUCKET_WORDS + 1

function wordsBytes(buckets: number): number {
  return (ownWordOf(buckets) + OWN_WORDS) * 4
}

export class KeyTable {
  /** Words of the user of the table, initially 0. */
  readonly own: Int32Array
  readonly ring: number
  readonly #words: Int32Array
  readonly #times: Float64Array
  readonly #nowMs: () => number
  readonly #windowMs: number
  readonly #buckets: number
  readonly #canHold: boolean
  readonly #stride: number
  #lockedFirst = NONE
  #lockedSecond = NONE

  /** @param windowMs how long a request counts */
  constructor(memory: SharedArrayBuffer, shape: TableShape, nowMs: () => number, windowMs: number) {
    const { ring, canHold = false, buckets = BUCKETS } = shape
    this.own = new Int32Array(memory, ownWordOf(buckets) * 4, OWN_WORDS)
    this.ring = ring
    this.#words = new Int32Array(memory, 0, ownWordOf(buckets))
    this.#times = new Float64Array(memory, wordsBytes(buckets))
    this.#nowMs = nowMs
    this.#windowMs = windowMs
    this.#buckets = buckets
    this.#canHold = canHold
    this.#stride = ring + Number(canHold)
  }

  /**
   * Returns the word of the key's row, or of a new one, and locks it until close(). -1: both
   * buckets are full.
   */
  open(keyHash: Buffer): number {
    const high = keyHash.readInt32LE(0)
    // A hash of two zero words would look like an unused row.
    const low = keyHash.readInt32LE(4) || 1
    const first = keyHash.readUInt32LE(8) % this.#buckets
    this.#lock(first)
    this.#lockedFirst = first
    const row = this.#rowOf(first, high, low)
    if (row >= 0) return wordOf(first, row)
    this.#unlock(first)
    // In ascending order, which prevents a deadlock.
    const second = keyHash.readUInt32LE(12) % this.#buckets
    this.#lockedFirst = Math.min(first, second)
    this.#lock(this.#lockedFirst)
    if (first !== second) {
      this.#lockedSecond = Math.max(first, second)
      this.#lock(this.#lockedSecond)
    }
    return this.#placeOf(first, second, high, low, this.#nowMs())
  }

  close(): void {
    if (this.#lockedSecond !== NONE) this.#unlock(this.#lockedSecond)
    this.#lockedSecond = NONE
    this.#unlock(this.#lockedFirst)
  }

  /** The number of entries in the ring that no longer count: the first ones, from the oldest on. */
  free(word: number, nowMs: number): number {
    // From the next index on, the ring is in order of time, and unused entries are 0.
    let from = 0
    let to = this.ring
    while (from < to) {
      const middle = (from + to) >> 1
      if (this.#isPast(this.timeAt(word, middle), nowMs)) from = middle + 1
      else to = middle
    }
    return from
  }

  /** The time of a request, from the oldest on. 0: unused. */
  timeAt(word: number, place: number): number {
    const next = this.#words[word + NEXT_WORD] ?? 0
    return this.#times[this.#firstTime(word) + ((next + place) % this.ring)] ?? 0
  }

  /** Adds the newest request, instead of the oldest one. */
  push(word: number, timeMs: number): void {
    const next = this.#words[word + NEXT_WORD] ?? 0
    this.#times[this.#firstTime(word) + next] = timeMs
    this.#words[word + NEXT_WORD] = (next + 1) % this.ring
  }

  /** Inserts a request in order of time, instead of the oldest one, unless all are newer. */
  insert(word: number, timeMs: number): void {
    const first = this.#firstTime(word)
    const next = this.#words[word + NEXT_WORD] ?? 0
    const indexOf = (place: number): number => first + ((next + place) % this.ring)
    const isAfter = (place: number): boolean => {
      const otherMs = this.#times[indexOf(place)] ?? 0
      return otherMs === 0 || timeMs >= otherMs
    }
    if (!isAfter(0)) return
    let place = 0
    for (; place + 1 < this.ring && isAfter(place + 1); place++) {
      this.#times[indexOf(place)] = this.#times[indexOf(place + 1)] ?? 0
    }
    this.#times[indexOf(place)] = timeMs
  }

  /** Ages of the requests that count, oldest first. */
  ages(word: number, nowMs: number): number[] {
    const ages: number[] = []
    for (let place = this.free(word, nowMs); place < this.ring; place++) ages.push(nowMs - this.timeAt(word, place))
    return ages
  }

  /** Until when the row is held. */
  heldUntil(word: number): number {
    return this.#times[this.#firstTime(word) + this.ring] ?? 0
  }

  hold(word: number, untilMs: number): void {
    this.#times[this.#firstTime(word) + this.ring] = untilMs
  }

  /** Forgets all rows. While no other thread uses the table. */
  clear(): void {
    this.#words.fill(0)
  }

  /** The rows in use. While no thread changes the table. */
  *rows(): Generator<{ bucket: number; row: number; high: number; low: number; agesMs: number[] }> {
    const nowMs = this.#nowMs()
    for (let bucket = 0; bucket < this.#buckets; bucket++) {
      for (let row = 0; row < ROWS; row++) {
        const word = wordOf(bucket, row)
        if (this.#isIdle(word, nowMs)) continue
        const [high = 0, low = 0] = this.#words.subarray(word)
        yield { bucket, row, high, low, agesMs: this.ages(word, nowMs) }
      }
    }
  }

  /** Puts a row into a table that is not in use yet. */
  put(bucket: number, row: number, high: number, low: number): number {
    const word = wordOf(bucket, row)
    this.#claim(word, high, low)
    return word
  }

  #isPast(timeMs: number, nowMs: number): boolean {
    return timeMs === 0 || nowMs - timeMs >= this.#windowMs
  }

  /** Returns the word of the key's row, or of a new one in either bucket. -1: both are full. */
  #placeOf(first: number, second: number, high: number, low: number, nowMs: number): number {
    for (const bucket of [first, second]) {
      const row = this.#rowOf(bucket, high, low)
      if (row >= 0) return wordOf(bucket, row)
    }
    const idle = this.#idleRows(first, nowMs)
    const bucket = idle > IDLE_ROWS_KEPT || idle >= this.#idleRows(second, nowMs) ? first : second
    return this.#claimIdle(bucket, high, low, nowMs)
  }

  #lock(bucket: number): void {
    while (Atomics.compareExchange(this.#words, bucket * BUCKET_WORDS, FREE, HELD) !== FREE) {
      // Held for well under a microsecond. A thread that ends while holding the lock ends the
      // process.
    }
  }

  #unlock(bucket: number): void {
    Atomics.store(this.#words, bucket * BUCKET_WORDS, FREE)
  }

  /** Returns the key's row, or -1. */
  #rowOf(bucket: number, high: number, low: number): number {
    for (let row = 0; row < ROWS; row++) {
      const word = wordOf(bucket, row)
      if (this.#words[word] === high && this.#words[word + 1] === low) return row
    }
    return -1
  }

  /** Assigns an idle row to the key, preferably one with a ring. Returns -1 if there is none. */
  #claimIdle(bucket: number, high: number, low: number, nowMs: number): number {
    let claimed = -1
    for (let row = 0; row < ROWS; row++) {
      const word = wordOf(bucket, row)
      if (!this.#isIdle(word, nowMs)) continue
      claimed = word
      if (this.#words[word + RING_WORD] !== 0) break
    }
    if (claimed >= 0) this.#claim(claimed, high, low)
    return claimed
  }

  /** There are as many rings as rows, so a ring is always available. */
  #claim(word: number, high: number, low: number): void {
    this.#words[word] = high
    this.#words[word + 1] = low
    this.#words[word + NEXT_WORD] = 0
    const ringsWord = this.#words.length - 1
    if (this.#words[word + RING_WORD] === 0) this.#words[word + RING_WORD] = Atomics.add(this.#words, ringsWord, 1) + 1
    const first = this.#firstTime(word)
    this.#times.fill(0, first, first + this.#stride)
  }

  /** Returns the index of the first time in the ring of the row at this word. */
  #firstTime(word: number): number {
    return ((this.#words[word + RING_WORD] ?? 0) - 1) * this.#stride
  }

  #idleRows(bucket: number, nowMs: number): number {
    let rows = 0
    for (let row = 0; row < ROWS; row++) if (this.#isIdle(wordOf(bucket, row), nowMs)) rows++
    return rows
  }

  #isIdle(word: number, nowMs: number): boolean {
    if (this.#words[word + RING_WORD] === 0) return true
    if (this.#canHold && this.heldUntil(word) > nowMs) return false
    return this.#isPast(this.timeAt(word, this.ring - 1), nowMs)
  }
}

function wordOf(bucket: number, row: number): number {
  return bucket * BUCKET_WORDS + 1 + row * ROW_WORDS
}

/**
 * The system's monotonic clock, equal in all threads, never set back and never 0. performance.now()
 * starts at 0 in each thread.
 */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}
