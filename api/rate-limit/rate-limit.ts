import assert from 'node:assert/strict'

/**
 * The specification's limit: requests of an API key in any window of this length, over all threads.
 */
export const REQUESTS_PER_WINDOW = 60
export const WINDOW_MS = 60_000

/*
 * A table in shared memory, used by all API threads: never more than 60 requests of a key in any 60
 * s.
 *
 * A key's row is a ring with the times of its last 60 accepted requests. The next request is
 * accepted if the oldest of them is at least a window old. Rows are in buckets of 16. The hash of a
 * key selects two buckets, and the second takes keys when the first is nearly full. Rows are
 * written and reassigned only under the bucket's lock, and a key gets a row only under the locks of
 * both buckets, so a key never has two rows and the count is exact. If other keys use all rows of
 * both buckets, the request is rejected and counted. That happens only when the table is nearly
 * full (110,000 or more of 131,072 rows).
 *
 *   words     per bucket: lock (0 free, 1 held), then for each row: key hash (2 words),
 *             next index in the ring, number of the ring from 1 (0: no ring)
 *   refused   requests rejected because both buckets were full
 *   rings     number of rings assigned to rows
 *   times     per ring and index: milliseconds of the monotonic clock, 0 if unused
 *
 * The kernel allocates a page when it is first used. Rows are at hashed positions and rings are
 * contiguous, so the table takes 0.5 KB per key, counting the maximum number of keys that each
 * bucket ever had.
 */
const BUCKETS = 8192
/** Keys per bucket. */
export const ROWS = 16
/**
 * A bucket with at most this many idle rows leaves new keys to the other one, if that has more.
 * This lets the table become nearly full.
 */
const IDLE_ROWS_KEPT = 8
export const RATE_ROWS_MAX = BUCKETS * ROWS
const ROW_WORDS = 4
const NEXT_WORD = 2
const RING_WORD = 3
const BUCKET_WORDS = 1 + ROWS * ROW_WORDS
const REFUSED_WORD = BUCKETS * BUCKET_WORDS
const RINGS_WORD = REFUSED_WORD + 1
const WORDS_BYTES = (RINGS_WORD + 1) * 4
const TIMES_BYTES = BUCKETS * ROWS * REQUESTS_PER_WINDOW * 8
const FREE = 0
const HELD = 1

assert(WORDS_BYTES % 8 === 0, 'the times after the words must be aligned')

export function makeRateTable(): SharedArrayBuffer {
  return new SharedArrayBuffer(WORDS_BYTES + TIMES_BYTES)
}

/** Number of requests rejected because the table was full. */
export function tableFull(table: SharedArrayBuffer): number {
  return new Uint32Array(table)[REFUSED_WORD] ?? 0
}

export interface RateVerdict {
  readonly allowed: boolean
  /** Number of requests that the key may make now. */
  readonly remaining: number
  /** Seconds, rounded up, until one more request becomes available. */
  readonly resetSeconds: number
}

/**
 * A row in use: its position, the hash of its key, and the ages of its requests in the window,
 * oldest first.
 */
export interface RateRow {
  readonly bucket: number
  readonly row: number
  readonly high: number
  readonly low: number
  readonly agesMs: readonly number[]
}

export class RateLimit {
  readonly #words: Int32Array
  readonly #times: Float64Array
  readonly #nowMs: () => number
  readonly #windowMs: number

  /** @param windowMs how long a request counts */
  constructor(table: SharedArrayBuffer, nowMs: () => number = monotonicMs, windowMs = WINDOW_MS) {
    this.#words = new Int32Array(table, 0, WORDS_BYTES / 4)
    this.#times = new Float64Array(table, WORDS_BYTES)
    this.#nowMs = nowMs
    this.#windowMs = windowMs
  }

  /** Counts a request of the key with this SHA-256, if within the limit. */
  take(keyHash: Buffer): RateVerdict {
    const high = keyHash.readInt32LE(0)
    // A hash of two zero words would look like an unused row.
    const low = keyHash.readInt32LE(4) || 1
    const first = keyHash.readUInt32LE(8) % BUCKETS
    const row = this.#takeIn(first, high, low)
    if (row !== undefined) return row
    const second = keyHash.readUInt32LE(12) % BUCKETS
    return this.#insert(first, second, high, low)
  }

  /**
   * Counts a request that was accepted elsewhere. If the key has more than the limit, the newest
   * count. Returns false if there is no row for the key.
   */
  add(keyHash: Buffer, ageMs: number): boolean {
    const high = keyHash.readInt32LE(0)
    const low = keyHash.readInt32LE(4) || 1
    const [first, second] = [keyHash.readUInt32LE(8) % BUCKETS, keyHash.readUInt32LE(12) % BUCKETS]
    this.#lockBoth(first, second)
    try {
      const nowMs = this.#nowMs()
      const word = this.#placeOf(first, second, high, low, nowMs)
      if (word >= 0) this.#addTo(word, nowMs - ageMs || -1)
      return word >= 0
    } finally {
      this.#unlockBoth(first, second)
    }
  }

  /** Forgets all requests. While no other thread uses the table. */
  clear(): void {
    this.#words.fill(0, 0, REFUSED_WORD)
    this.#words[RINGS_WORD] = 0
  }

  /** All rows that are in use. While no thread takes from the table. */
  *rows(): Generator<RateRow> {
    const nowMs = this.#nowMs()
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      for (let row = 0; row < ROWS; row++) {
        if (this.#isIdle(bucket, row, nowMs)) continue
        const word = wordOf(bucket, row)
        const first = this.#firstTime(word)
        const next = this.#words[word + NEXT_WORD] ?? 0
        const agesMs: number[] = []
        for (let place = 0; place < REQUESTS_PER_WINDOW; place++) {
          const timeMs = this.#times[first + ((next + place) % REQUESTS_PER_WINDOW)] ?? 0
          if (timeMs !== 0 && nowMs - timeMs < this.#windowMs) agesMs.push(nowMs - timeMs)
        }
        yield { bucket, row, high: this.#words[word] ?? 0, low: this.#words[word + 1] ?? 0, agesMs }
      }
    }
  }

  /** Puts a row that rows() gave into a table that is not in use yet. */
  resume({ bucket, row, high, low, agesMs }: RateRow): void {
    assert(bucket < BUCKETS && row < ROWS && agesMs.length <= REQUESTS_PER_WINDOW, 'a row of the rate limit')
    const nowMs = this.#nowMs()
    const word = wordOf(bucket, row)
    this.#giveRing(word)
    this.#words[word] = high
    this.#words[word + 1] = low
    this.#words[word + NEXT_WORD] = agesMs.length % REQUESTS_PER_WINDOW
    const first = this.#firstTime(word)
    // Soon after a boot, a time may be negative. 0 means that there is no time.
    for (const [place, ageMs] of agesMs.entries()) this.#times[first + place] = nowMs - ageMs || -1
  }

  /** Returns the verdict if the key has a row in this bucket. */
  #takeIn(bucket: number, high: number, low: number): RateVerdict | undefined {
    this.#lock(bucket)
    try {
      const row = this.#rowOf(bucket, high, low)
      return row < 0 ? undefined : this.#takeFrom(wordOf(bucket, row), this.#nowMs())
    } finally {
      this.#unlock(bucket)
    }
  }

  /**
   * Returns the verdict for a key without a row in its first bucket. Uses its row in the second
   * one, or adds one in either.
   */
  #insert(first: number, second: number, high: number, low: number): RateVerdict {
    this.#lockBoth(first, second)
    try {
      const nowMs = this.#nowMs()
      const word = this.#placeOf(first, second, high, low, nowMs)
      if (word >= 0) return this.#takeFrom(word, nowMs)
      Atomics.add(this.#words, REFUSED_WORD, 1)
      return { allowed: false, remaining: 0, resetSeconds: this.#windowMs / 1000 }
    } finally {
      this.#unlockBoth(first, second)
    }
  }

  /** Returns the word of the key's row, or of a new one in either bucket. -1: both are full. */
  #placeOf(first: number, second: number, high: number, low: number, nowMs: number): number {
    for (const bucket of [first, second]) {
      const row = this.#rowOf(bucket, high, low)
      if (row >= 0) return wordOf(bucket, row)
    }
    const idle = this.#idleRows(first, nowMs)
    const bucket = idle > IDLE_ROWS_KEPT || idle >= this.#idleRows(second, nowMs) ? first : second
    const row = this.#claimRow(bucket, high, low, nowMs)
    return row < 0 ? -1 : wordOf(bucket, row)
  }

  /** Locks in ascending order, which prevents a deadlock. */
  #lockBoth(first: number, second: number): void {
    this.#lock(Math.min(first, second))
    if (first !== second) this.#lock(Math.max(first, second))
  }

  #unlockBoth(first: number, second: number): void {
    this.#unlock(first)
    if (first !== second) this.#unlock(second)
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

  /**
   * Assigns a row that was idle for a window to the key, preferably one with a ring. Returns -1 if
   * there is none.
   */
  #claimRow(bucket: number, high: number, low: number, nowMs: number): number {
    let claimed = -1
    for (let row = 0; row < ROWS; row++) {
      if (!this.#isIdle(bucket, row, nowMs)) continue
      claimed = row
      if (this.#words[wordOf(bucket, row) + RING_WORD] !== 0) break
    }
    if (claimed < 0) return -1
    const word = wordOf(bucket, claimed)
    this.#words[word] = high
    this.#words[word + 1] = low
    this.#words[word + NEXT_WORD] = 0
    this.#giveRing(word)
    const first = this.#firstTime(word)
    this.#times.fill(0, first, first + REQUESTS_PER_WINDOW)
    return claimed
  }

  /** There are as many rings as rows, so a ring is always available. */
  #giveRing(word: number): void {
    if (this.#words[word + RING_WORD] === 0) this.#words[word + RING_WORD] = Atomics.add(this.#words, RINGS_WORD, 1) + 1
  }

  /** Returns the index of the first time in the ring of the row at this word. */
  #firstTime(word: number): number {
    return ((this.#words[word + RING_WORD] ?? 0) - 1) * REQUESTS_PER_WINDOW
  }

  #idleRows(bucket: number, nowMs: number): number {
    let rows = 0
    for (let row = 0; row < ROWS; row++) if (this.#isIdle(bucket, row, nowMs)) rows++
    return rows
  }

  #isIdle(bucket: number, row: number, nowMs: number): boolean {
    const word = wordOf(bucket, row)
    if (this.#words[word + RING_WORD] === 0) return true
    const next = this.#words[word + NEXT_WORD] ?? 0
    const newest = (next + REQUESTS_PER_WINDOW - 1) % REQUESTS_PER_WINDOW
    const timeMs = this.#times[this.#firstTime(word) + newest] ?? 0
    return timeMs === 0 || nowMs - timeMs >= this.#windowMs
  }

  /** Inserts a time into the ring, in order, instead of the oldest one. */
  #addTo(word: number, timeMs: number): void {
    const first = this.#firstTime(word)
    const next = this.#words[word + NEXT_WORD] ?? 0
    const indexOf = (place: number): number => first + ((next + place) % REQUESTS_PER_WINDOW)
    const isAfter = (place: number): boolean => {
      const otherMs = this.#times[indexOf(place)] ?? 0
      return otherMs === 0 || timeMs >= otherMs
    }
    if (!isAfter(0)) return
    let place = 0
    for (; place + 1 < REQUESTS_PER_WINDOW && isAfter(place + 1); place++) {
      this.#times[indexOf(place)] = this.#times[indexOf(place + 1)] ?? 0
    }
    this.#times[indexOf(place)] = timeMs
  }

  #takeFrom(word: number, nowMs: number): RateVerdict {
    const nextWord = word + NEXT_WORD
    const first = this.#firstTime(word)
    const oldest = this.#words[nextWord] ?? 0
    const oldestMs = this.#times[first + oldest] ?? 0
    const allowed = oldestMs === 0 || nowMs - oldestMs >= this.#windowMs
    let next = oldest
    if (allowed) {
      this.#times[first + oldest] = nowMs
      next = (oldest + 1) % REQUESTS_PER_WINDOW
      this.#words[nextWord] = next
    }
    // From `next` on, the ring is in order of time, and unused entries are 0. A binary search finds
    // the first entry within the window.
    let from = 0
    let to = REQUESTS_PER_WINDOW
    while (from < to) {
      const middle = (from + to) >> 1
      const timeMs = this.#times[first + ((next + middle) % REQUESTS_PER_WINDOW)] ?? 0
      if (timeMs === 0 || nowMs - timeMs >= this.#windowMs) from = middle + 1
      else to = middle
    }
    const inWindowMs =
      from === REQUESTS_PER_WINDOW ? nowMs : (this.#times[first + ((next + from) % REQUESTS_PER_WINDOW)] ?? nowMs)
    return { allowed, remaining: from, resetSeconds: Math.ceil((inWindowMs + this.#windowMs - nowMs) / 1000) }
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
