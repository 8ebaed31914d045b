import assert from 'node:assert/strict'

/** The specification's limit: requests of one API key in any window of this length, over all threads. */
export const REQUESTS_PER_WINDOW = 60
export const WINDOW_MS = 60_000

/*
 * A table in shared memory that all API threads use: never more than 60 requests of a key in any 60 s.
 *
 * A key's row is a ring of the times of its last 60 accepted requests; the next request is accepted if the oldest of them
 * is at least a window old. Rows stand in buckets of 16, and the hash of a key names two of them: the second one takes what
 * the first has little room for. A bucket's rows change hands and are written only under the bucket's lock, and a key gets a row
 * only under the locks of both, so it never has two and the count is exact. Where all rows of both are in use by other keys
 * the request is refused, and counted: the table is then nearly full (of 131,072 rows, 110,000 and more).
 *
 *   words     per bucket: lock (0 free, 1 held), then for each row: key hash (2 words), next place in the ring, the ring's number from 1 (0: none yet)
 *   refused   requests whose key found no room
 *   rings     how many rings rows have
 *   times     per ring and place: milliseconds of the monotonic clock, 0 where never used
 *
 * The kernel gives pages of it when they are used first. Rows lie where hashes say, rings one behind the other, so that it takes 0.5 KB a key, of the most that each
 * bucket ever had in use at once.
 */
const BUCKETS = 8192
/** Keys of one bucket. */
export const ROWS = 16
/** With no more rows than these a bucket leaves new keys to the other one, where that has more: so the table can become nearly full. */
const ROOM_KEPT = 8
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

assert(WORDS_BYTES % 8 === 0, 'the times behind the words must be aligned')

export function makeRateTable(): SharedArrayBuffer {
  return new SharedArrayBuffer(WORDS_BYTES + TIMES_BYTES)
}

/** Requests that a table has refused since there was no room for their key. */
export function tableFull(table: SharedArrayBuffer): number {
  return new Uint32Array(table)[REFUSED_WORD] ?? 0
}

export interface RateVerdict {
  readonly allowed: boolean
  /** Requests that the key may make at once from now. */
  readonly remaining: number
  /** Seconds, rounded up, until one more request becomes free. */
  readonly resetSeconds: number
}

/** A row that is in use: its place, the hash of its key, and how long ago its requests in the window were, oldest first. */
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

  constructor(table: SharedArrayBuffer, nowMs: () => number = monotonicMs) {
    this.#words = new Int32Array(table, 0, WORDS_BYTES / 4)
    this.#times = new Float64Array(table, WORDS_BYTES)
    this.#nowMs = nowMs
  }

  /** Counts a request of the key whose SHA-256 this is, if it is within the limit. */
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
          if (timeMs !== 0 && nowMs - timeMs < WINDOW_MS) agesMs.push(nowMs - timeMs)
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
    // Soon after a boot the clock is younger than some requests: a time may be negative, but not 0, which is none.
    for (const [place, ageMs] of agesMs.entries()) this.#times[first + place] = nowMs - ageMs || -1
  }

  /** The verdict where the key has a row in this bucket. */
  #takeIn(bucket: number, high: number, low: number): RateVerdict | undefined {
    this.#lock(bucket)
    try {
      const row = this.#rowOf(bucket, high, low)
      return row < 0 ? undefined : this.#takeFrom(bucket, row, this.#nowMs())
    } finally {
      this.#unlock(bucket)
    }
  }

  /** The verdict where the key has none in its first bucket: it has one in the second, or gets one in either. */
  #insert(first: number, second: number, high: number, low: number): RateVerdict {
    // In one order, so that no two threads wait for each other.
    this.#lock(Math.min(first, second))
    if (first !== second) this.#lock(Math.max(first, second))
    try {
      const nowMs = this.#nowMs()
      for (const bucket of [first, second]) {
        const row = this.#rowOf(bucket, high, low)
        if (row >= 0) return this.#takeFrom(bucket, row, nowMs)
      }
      const room = this.#idleRows(first, nowMs)
      const bucket = room > ROOM_KEPT || room >= this.#idleRows(second, nowMs) ? first : second
      const row = this.#claimRow(bucket, high, low, nowMs)
      if (row >= 0) return this.#takeFrom(bucket, row, nowMs)
      Atomics.add(this.#words, REFUSED_WORD, 1)
      return { allowed: false, remaining: 0, resetSeconds: WINDOW_MS / 1000 }
    } finally {
      this.#unlock(first)
      if (first !== second) this.#unlock(second)
    }
  }

  #lock(bucket: number): void {
    while (Atomics.compareExchange(this.#words, bucket * BUCKET_WORDS, FREE, HELD) !== FREE) {
      // Held for well under a microsecond; a thread that ends while holding it ends the process.
    }
  }

  #unlock(bucket: number): void {
    Atomics.store(this.#words, bucket * BUCKET_WORDS, FREE)
  }

  /** The key's row, or -1. */
  #rowOf(bucket: number, high: number, low: number): number {
    for (let row = 0; row < ROWS; row++) {
      const word = wordOf(bucket, row)
      if (this.#words[word] === high && this.#words[word + 1] === low) return row
    }
    return -1
  }

  /** One that no key has used for a window and is the key's now, or -1. Of those one that has a ring, where there is one. */
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

  /** As many rings as rows: there is always another one. */
  #giveRing(word: number): void {
    if (this.#words[word + RING_WORD] === 0) this.#words[word + RING_WORD] = Atomics.add(this.#words, RINGS_WORD, 1) + 1
  }

  /** Where the ring of the row that begins at this word begins. */
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
    return timeMs === 0 || nowMs - timeMs >= WINDOW_MS
  }

  #takeFrom(bucket: number, row: number, nowMs: number): RateVerdict {
    const word = wordOf(bucket, row)
    const nextWord = word + NEXT_WORD
    const first = this.#firstTime(word)
    const oldest = this.#words[nextWord] ?? 0
    const oldestMs = this.#times[first + oldest] ?? 0
    const allowed = oldestMs === 0 || nowMs - oldestMs >= WINDOW_MS
    let next = oldest
    if (allowed) {
      this.#times[first + oldest] = nowMs
      next = (oldest + 1) % REQUESTS_PER_WINDOW
      this.#words[nextWord] = next
    }
    // From `next` on the ring is in the order of time, and what was never used is 0: the first place within the window is found by halving.
    let from = 0
    let to = REQUESTS_PER_WINDOW
    while (from < to) {
      const middle = (from + to) >> 1
      const timeMs = this.#times[first + ((next + middle) % REQUESTS_PER_WINDOW)] ?? 0
      if (timeMs === 0 || nowMs - timeMs >= WINDOW_MS) from = middle + 1
      else to = middle
    }
    const inWindowMs =
      from === REQUESTS_PER_WINDOW ? nowMs : (this.#times[first + ((next + from) % REQUESTS_PER_WINDOW)] ?? nowMs)
    return { allowed, remaining: from, resetSeconds: Math.ceil((inWindowMs + WINDOW_MS - nowMs) / 1000) }
  }
}

function wordOf(bucket: number, row: number): number {
  return bucket * BUCKET_WORDS + 1 + row * ROW_WORDS
}

/** The system's own clock, so the same in every thread of the process; never set back, and never 0. performance.now() begins anew in each. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}
