import assert from 'node:assert/strict'

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
 *   full      number of requests rejected because both buckets were full
 *   times     per ring and index: milliseconds of the monotonic clock, 0 if unused
 *
 * The kernel allocates a page when it is first used. Rows are at hashed positions and rings are
 * contiguous, so the table takes 0.5 KB per key, counting the maximum number of keys that each
 * bucket ever had.
 */

/** The specification's limit: requests of an API key in any window of this length. */
export const REQUESTS_PER_WINDOW = 60
export const WINDOW_MS = 60_000

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
const RINGS_WORD = BUCKETS * BUCKET_WORDS
const FULL_WORD = RINGS_WORD + 1
/** Even, so that the times after the words are aligned. */
const WORDS = FULL_WORD + 1
const FREE = 0
const HELD = 1
const NONE = -1

export function makeRateTable(): SharedArrayBuffer {
  return new SharedArrayBuffer(WORDS * 4 + RATE_ROWS_MAX * REQUESTS_PER_WINDOW * 8)
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

/**
 * Never more than 60 requests of a key in any 60 s: the next request is accepted if the 60th last
 * one is at least a window old. Exact over all threads. A request of a key that gets no row is
 * rejected and counted.
 */
export class RateLimit {
  readonly #words: Int32Array
  readonly #times: Float64Array
  readonly #nowMs: () => number
  readonly #onAllowed: ((keyHash: Buffer, nowMs: number) => void) | undefined
  #lockedFirst = NONE
  #lockedSecond = NONE

  /** @param onAllowed called for each request that take() allows, under the lock */
  constructor(
    table: SharedArrayBuffer,
    nowMs: () => number = monotonicMs,
    onAllowed?: (keyHash: Buffer, nowMs: number) => void,
  ) {
    this.#words = new Int32Array(table, 0, WORDS)
    this.#times = new Float64Array(table, WORDS * 4)
    this.#nowMs = nowMs
    this.#onAllowed = onAllowed
  }

  /** Number of requests rejected because the table was full. */
  get full(): number {
    return this.#words[FULL_WORD] ?? 0
  }

  /** Counts a request of the key with this SHA-256, if within the limit. */
  take(keyHash: Buffer): RateVerdict {
    const word = this.#open(keyHash, 0)
    try {
      if (word >= 0) return this.#takeFrom(word, keyHash, this.#nowMs())
    } finally {
      this.#close()
    }
    Atomics.add(this.#words, FULL_WORD, 1)
    return { allowed: false, remaining: 0, resetSeconds: WINDOW_MS / 1000 }
  }

  /**
   * Counts a request that another node accepted. If the key has more than the limit, the newest
   * count. Returns false if there is no row for the key.
   *
   * @param at where the hash begins, of which the first 16 bytes are used
   */
  add(keyHash: Buffer, at: number, ageMs: number): boolean {
    const word = this.#open(keyHash, at)
    try {
      // Soon after a boot, a time may be negative. 0 means that there is no time.
      if (word >= 0) this.#insert(word, this.#nowMs() - ageMs || -1)
      return word >= 0
    } finally {
      this.#close()
    }
  }

  /** All rows that are in use. While no thread changes the table. */
  *rows(): Generator<RateRow> {
    const nowMs = this.#nowMs()
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      for (let row = 0; row < ROWS; row++) {
        const word = wordOf(bucket, row)
        if (this.#isIdle(word, nowMs)) continue
        const [high = 0, low = 0] = this.#words.subarray(word)
        const agesMs: number[] = []
        for (let place = this.#past(word, nowMs); place < REQUESTS_PER_WINDOW; place++)
          agesMs.push(nowMs - this.#timeAt(word, place))
        yield { bucket, row, high, low, agesMs }
      }
    }
  }

  /** Puts a row that rows() gave into a table that is not in use yet. */
  put({ bucket, row, high, low, agesMs }: RateRow): void {
    assert(bucket < BUCKETS && row < ROWS && agesMs.length <= REQUESTS_PER_WINDOW, 'a row of the rate limit')
    const nowMs = this.#nowMs()
    const word = wordOf(bucket, row)
    this.#claim(word, high, low)
    for (const ageMs of agesMs) this.#push(word, nowMs - ageMs || -1)
  }

  #takeFrom(word: number, keyHash: Buffer, nowMs: number): RateVerdict {
    const past = this.#past(word, nowMs)
    const used = REQUESTS_PER_WINDOW - past
    const allowed = past > 0
    // The request that has to leave the window first, so that one more becomes available.
    const firstMs = used === 0 ? nowMs : this.#timeAt(word, past)
    if (allowed) {
      this.#push(word, nowMs)
      this.#onAllowed?.(keyHash, nowMs)
    }
    const resetSeconds = Math.ceil((firstMs + WINDOW_MS - nowMs) / 1000)
    return { allowed, remaining: allowed ? past - 1 : 0, resetSeconds }
  }

  /**
   * Returns the word of the key's row, or of a new one, and locks it until #close(). -1: both
   * buckets are full.
   */
  #open(keyHash: Buffer, at: number): number {
    const high = keyHash.readInt32LE(at)
    // A hash of two zero words would look like an unused row.
    const low = keyHash.readInt32LE(at + 4) || 1
    const first = keyHash.readUInt32LE(at + 8) % BUCKETS
    this.#lock(first)
    this.#lockedFirst = first
    const row = this.#rowOf(first, high, low)
    if (row >= 0) return wordOf(first, row)
    this.#unlock(first)
    // In ascending order, which prevents a deadlock.
    const second = keyHash.readUInt32LE(at + 12) % BUCKETS
    this.#lockedFirst = Math.min(first, second)
    this.#lock(this.#lockedFirst)
    if (first !== second) {
      this.#lockedSecond = Math.max(first, second)
      this.#lock(this.#lockedSecond)
    }
    return this.#placeOf(first, second, high, low, this.#nowMs())
  }

  #close(): void {
    if (this.#lockedSecond !== NONE) this.#unlock(this.#lockedSecond)
    this.#lockedSecond = NONE
    this.#unlock(this.#lockedFirst)
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
    if (this.#words[word + RING_WORD] === 0) this.#words[word + RING_WORD] = Atomics.add(this.#words, RINGS_WORD, 1) + 1
    const first = this.#firstTime(word)
    this.#times.fill(0, first, first + REQUESTS_PER_WINDOW)
  }

  #idleRows(bucket: number, nowMs: number): number {
    let rows = 0
    for (let row = 0; row < ROWS; row++) if (this.#isIdle(wordOf(bucket, row), nowMs)) rows++
    return rows
  }

  #isIdle(word: number, nowMs: number): boolean {
    return this.#words[word + RING_WORD] === 0 || isPast(this.#timeAt(word, REQUESTS_PER_WINDOW - 1), nowMs)
  }

  /** The number of entries in the ring that no longer count: the first ones, from the oldest on. */
  #past(word: number, nowMs: number): number {
    // From the next index on, the ring is in order of time, and unused entries are 0.
    let from = 0
    let to = REQUESTS_PER_WINDOW
    while (from < to) {
      const middle = (from + to) >> 1
      if (isPast(this.#timeAt(word, middle), nowMs)) from = middle + 1
      else to = middle
    }
    return from
  }

  /** Returns the index of the first time in the ring of the row at this word. */
  #firstTime(word: number): number {
    return ((this.#words[word + RING_WORD] ?? 0) - 1) * REQUESTS_PER_WINDOW
  }

  /** Returns the index of a time, from the oldest on. */
  #indexOf(word: number, place: number): number {
    return this.#firstTime(word) + (((this.#words[word + NEXT_WORD] ?? 0) + place) % REQUESTS_PER_WINDOW)
  }

  #timeAt(word: number, place: number): number {
    return this.#times[this.#indexOf(word, place)] ?? 0
  }

  /** Adds the newest request, instead of the oldest one. */
  #push(word: number, timeMs: number): void {
    this.#times[this.#indexOf(word, 0)] = timeMs
    this.#words[word + NEXT_WORD] = ((this.#words[word + NEXT_WORD] ?? 0) + 1) % REQUESTS_PER_WINDOW
  }

  /** Adds a request in order of time, instead of the oldest one, unless all are newer. */
  #insert(word: number, timeMs: number): void {
    const oldestMs = this.#timeAt(word, 0)
    if (oldestMs !== 0 && timeMs < oldestMs) return
    this.#push(word, timeMs)
    for (let place = REQUESTS_PER_WINDOW - 1; place > 0; place--) {
      const earlierMs = this.#timeAt(word, place - 1)
      if (earlierMs === 0 || earlierMs <= timeMs) return
      this.#times[this.#indexOf(word, place)] = earlierMs
      this.#times[this.#indexOf(word, place - 1)] = timeMs
    }
  }
}

function isPast(timeMs: number, nowMs: number): boolean {
  return timeMs === 0 || nowMs - timeMs >= WINDOW_MS
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
