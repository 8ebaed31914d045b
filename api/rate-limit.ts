import assert from 'node:assert/strict'

/** The specification's limit: requests of one API key in any window of this length, over all threads. */
export const REQUESTS_PER_WINDOW = 60
export const WINDOW_MS = 60_000

/*
 * A table in shared memory that all API threads use: never more than 60 requests of a key in any 60 s.
 *
 * A key's row is a ring of the times of its last 60 accepted requests; the next request is accepted if the oldest of them
 * is at least a window old. Rows stand in buckets of 16, found by the hash of the key; a bucket's rows change hands and are
 * written only under the bucket's lock, so the count is exact. Where all rows of a bucket are in use by other keys the
 * request is refused: with 30,000 keys in use that happens to one of a million.
 *
 *   words     per bucket: lock (0 free, 1 held), then for each row: key hash (2 words), next place in the ring
 *   times     per bucket, row and place: milliseconds of the monotonic clock, 0 where never used
 *
 * The kernel gives pages of it when they are used first: 0.5 KB a key.
 */
const BUCKETS = 8192
/** Keys of one bucket. */
export const ROWS = 16
const ROW_WORDS = 3
const BUCKET_WORDS = 1 + ROWS * ROW_WORDS
const WORDS_BYTES = BUCKETS * BUCKET_WORDS * 4
const TIMES_BYTES = BUCKETS * ROWS * REQUESTS_PER_WINDOW * 8
const FREE = 0
const HELD = 1

assert(WORDS_BYTES % 8 === 0, 'the times behind the words must be aligned')

export function makeRateTable(): SharedArrayBuffer {
  return new SharedArrayBuffer(WORDS_BYTES + TIMES_BYTES)
}

export interface RateVerdict {
  readonly allowed: boolean
  /** Requests that the key may make at once from now. */
  readonly remaining: number
  /** Seconds, rounded up, until one more request becomes free. */
  readonly resetSeconds: number
}

export class RateLimit {
  readonly #words: Int32Array
  readonly #times: Float64Array
  readonly #nowMs: () => number

  constructor(table: SharedArrayBuffer, nowMs: () => number = monotonicClock()) {
    this.#words = new Int32Array(table, 0, WORDS_BYTES / 4)
    this.#times = new Float64Array(table, WORDS_BYTES)
    this.#nowMs = nowMs
  }

  /** Counts a request of the key whose SHA-256 this is, if it is within the limit. */
  take(keyHash: Buffer): RateVerdict {
    const high = keyHash.readInt32LE(0)
    // A hash of two zero words would look like an unused row.
    const low = keyHash.readInt32LE(4) || 1
    const bucket = keyHash.readUInt32LE(8) % BUCKETS
    const lock = bucket * BUCKET_WORDS
    while (Atomics.compareExchange(this.#words, lock, FREE, HELD) !== FREE) {
      // Held for well under a microsecond; a thread that ends while holding it ends the process.
    }
    try {
      const nowMs = this.#nowMs()
      const row = this.#rowOf(bucket, high, low, nowMs)
      return row < 0
        ? { allowed: false, remaining: 0, resetSeconds: WINDOW_MS / 1000 }
        : this.#takeFrom(bucket, row, nowMs)
    } finally {
      Atomics.store(this.#words, lock, FREE)
    }
  }

  /** The key's row, or one that no key has used for a window, or -1. */
  #rowOf(bucket: number, high: number, low: number, nowMs: number): number {
    for (let row = 0; row < ROWS; row++) {
      const word = bucket * BUCKET_WORDS + 1 + row * ROW_WORDS
      if (this.#words[word] === high && this.#words[word + 1] === low) return row
    }
    for (let row = 0; row < ROWS; row++) {
      if (!this.#isIdle(bucket, row, nowMs)) continue
      const word = bucket * BUCKET_WORDS + 1 + row * ROW_WORDS
      this.#words[word] = high
      this.#words[word + 1] = low
      this.#words[word + 2] = 0
      const first = (bucket * ROWS + row) * REQUESTS_PER_WINDOW
      this.#times.fill(0, first, first + REQUESTS_PER_WINDOW)
      return row
    }
    return -1
  }

  #isIdle(bucket: number, row: number, nowMs: number): boolean {
    const next = this.#words[bucket * BUCKET_WORDS + 1 + row * ROW_WORDS + 2] ?? 0
    const newest = (next + REQUESTS_PER_WINDOW - 1) % REQUESTS_PER_WINDOW
    const timeMs = this.#times[(bucket * ROWS + row) * REQUESTS_PER_WINDOW + newest] ?? 0
    return timeMs === 0 || nowMs - timeMs >= WINDOW_MS
  }

  #takeFrom(bucket: number, row: number, nowMs: number): RateVerdict {
    const nextWord = bucket * BUCKET_WORDS + 1 + row * ROW_WORDS + 2
    const first = (bucket * ROWS + row) * REQUESTS_PER_WINDOW
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

/** The same clock in every thread of the process, never set back, and never 0. Each thread's performance.now() begins at another time. */
function monotonicClock(): () => number {
  const [seconds, nanoseconds] = process.hrtime()
  const aheadMs = seconds * 1000 + nanoseconds / 1e6 + 1 - performance.now()
  return () => performance.now() + aheadMs
}
