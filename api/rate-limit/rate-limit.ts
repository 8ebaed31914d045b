import assert from 'node:assert/strict'
import { KeyTable, makeKeyTable, monotonicMs, ROWS, TABLE_ROWS_MAX } from './key-table.ts'

/**
 * The specification's limit: requests of an API key in any window of this length, over all threads.
 */
export const REQUESTS_PER_WINDOW = 60
export const WINDOW_MS = 60_000
export const RATE_ROWS_MAX = TABLE_ROWS_MAX
const SHAPE = { ring: REQUESTS_PER_WINDOW }
/** Own word of the table: requests rejected because both buckets were full. */
const REJECTED_WORD = 0

export function makeRateTable(): SharedArrayBuffer {
  return makeKeyTable(SHAPE)
}

/** Number of requests rejected because the table was full. */
export function tableFull(table: SharedArrayBuffer): number {
  return new KeyTable(table, SHAPE, monotonicMs, WINDOW_MS).own[REJECTED_WORD] ?? 0
}

export interface RateVerdict {
  readonly allowed: boolean
  /** Number of requests that the key may make now. On a node of a cluster, at least this many. */
  readonly remaining: number
  /** Seconds, rounded up, until one more request becomes available. */
  readonly resetSeconds: number
  /** The request would have been allowed if nothing was reserved. */
  readonly isReserved?: boolean
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
 * one is at least a window old. Exact over all threads (key-table.ts). A request of a key that gets
 * no row is rejected and counted.
 */
export class RateLimit {
  readonly #table: KeyTable
  readonly #nowMs: () => number
  readonly #windowMs: number

  /** @param windowMs how long a request counts */
  constructor(table: SharedArrayBuffer, nowMs: () => number = monotonicMs, windowMs = WINDOW_MS) {
    this.#table = new KeyTable(table, SHAPE, nowMs, windowMs)
    this.#nowMs = nowMs
    this.#windowMs = windowMs
  }

  /**
   * Counts a request of the key with this SHA-256, if within the limit.
   *
   * @param reserved requests that may have been made elsewhere
   */
  take(keyHash: Buffer, reserved = 0): RateVerdict {
    const word = this.#table.open(keyHash)
    try {
      if (word >= 0) return this.#takeFrom(word, this.#nowMs(), REQUESTS_PER_WINDOW - reserved)
    } finally {
      this.#table.close()
    }
    Atomics.add(this.#table.own, REJECTED_WORD, 1)
    return { allowed: false, remaining: 0, resetSeconds: this.#windowMs / 1000 }
  }

  /**
   * Counts a request that was accepted elsewhere. If the key has more than the limit, the newest
   * count. Returns false if there is no row for the key.
   */
  add(keyHash: Buffer, ageMs: number): boolean {
    const word = this.#table.open(keyHash)
    try {
      // Soon after a boot, a time may be negative. 0 means that there is no time.
      if (word >= 0) this.#table.insert(word, this.#nowMs() - ageMs || -1)
      return word >= 0
    } finally {
      this.#table.close()
    }
  }

  /** Forgets all requests. While no other thread uses the table. */
  clear(): void {
    this.#table.clear()
  }

  /** All rows that are in use. While no thread takes from the table. */
  rows(): Generator<RateRow> {
    return this.#table.rows()
  }

  /** Puts a row that rows() gave into a table that is not in use yet. */
  resume({ bucket, row, high, low, agesMs }: RateRow): void {
    assert(bucket * ROWS + row < RATE_ROWS_MAX && row < ROWS, 'a row of the rate limit')
    assert(agesMs.length <= REQUESTS_PER_WINDOW, 'a row of the rate limit')
    const nowMs = this.#nowMs()
    const word = this.#table.put(bucket, row, high, low)
    for (const ageMs of agesMs) this.#table.push(word, nowMs - ageMs || -1)
  }

  #takeFrom(word: number, nowMs: number, limit: number): RateVerdict {
    const free = this.#table.free(word, nowMs)
    const used = REQUESTS_PER_WINDOW - free
    const allowed = used < limit
    // The request that has to leave the window first, so that one more becomes available.
    const place = allowed ? free : REQUESTS_PER_WINDOW - Math.max(1, limit)
    const firstMs = used === 0 ? nowMs : this.#table.timeAt(word, place)
    if (allowed) this.#table.push(word, nowMs)
    const resetSeconds = Math.ceil((firstMs + this.#windowMs - nowMs) / 1000)
    const verdict = { allowed, remaining: allowed ? limit - used - 1 : 0, resetSeconds }
    return allowed || used >= REQUESTS_PER_WINDOW ? verdict : { ...verdict, isReserved: true }
  }
}
