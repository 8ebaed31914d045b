import { KeyTable, makeKeyTable, monotonicMs, type TableShape } from './key-table.ts'
import { ALLOWANCE_MAX, GRANT_BYTES, GRANT_MS, HASH_BYTES, HOLD_MS, type LeaseAnswer } from './protocol.ts'
import { type RateVerdict, REQUESTS_PER_WINDOW } from './rate-limit.ts'

const SHAPE: TableShape = { ring: ALLOWANCE_MAX, canHold: true }

/* Own words of the table. Times are in units of the monotonic clock. */
const UNTIL_WORD = 0
const FROM_WORD = 1
const ALLOWANCE_WORD = 2
const OTHERS_WORD = 3
const USED_WORD = 4
const FULL_WORD = 5
const ANSWERED_WORD = 6
const UNAVAILABLE_WORD = 7
/** 100 ms: a word lasts for 6 years after a boot. */
const UNIT_MS = 100

export function makeAllowanceTable(buckets?: number): SharedArrayBuffer {
  return makeKeyTable(shapeOf(buckets))
}

function shapeOf(buckets: number | undefined): TableShape {
  return buckets === undefined ? SHAPE : { ...SHAPE, buckets }
}

export interface AllowanceCounters {
  /** Requests within the allowance. */
  readonly used: number
  /** Requests that were not, and keys that were not held, because the table was full. */
  readonly full: number
  /** Requests that the home granted or refused in time, and those that it did not. */
  readonly answered: number
  readonly unavailable: number
}

/** Only tests have others than the default. */
export interface AllowanceOptions {
  readonly buckets?: number
  readonly limit?: number
  readonly holdMs?: number
}

/**
 * The allowance of a node of a cluster (protocol.ts), in memory that its API threads share with
 * the main thread. The lease is checked at each use, so that a node that does not reach the home
 * stops by itself. A key's row is locked for a use, and to hold the key.
 */
export class Allowance {
  readonly #table: KeyTable
  readonly #nowMs: () => number
  readonly #limit: number
  readonly #holdMs: number

  constructor(
    memory: SharedArrayBuffer,
    nowMs: () => number = monotonicMs,
    { buckets, limit = REQUESTS_PER_WINDOW, holdMs = HOLD_MS }: AllowanceOptions = {},
  ) {
    this.#table = new KeyTable(memory, shapeOf(buckets), nowMs, GRANT_MS)
    this.#nowMs = nowMs
    this.#limit = limit
    this.#holdMs = holdMs
  }

  /** Counts a request of a key. undefined: the home has to decide. */
  take(keyHash: Buffer): RateVerdict | undefined {
    const { own } = this.#table
    if (!this.#isFree(this.#nowMs())) return undefined
    const word = this.#table.open(keyHash)
    try {
      if (word >= 0) return this.#takeFrom(word, this.#nowMs())
    } finally {
      this.#table.close()
    }
    Atomics.add(own, FULL_WORD, 1)
    return undefined
  }

  /** Counts requests that are beyond the allowance, for metrics. */
  countPermits(answered: number, unavailable: number): void {
    const { own } = this.#table
    if (answered > 0) Atomics.add(own, ANSWERED_WORD, answered)
    if (unavailable > 0) Atomics.add(own, UNAVAILABLE_WORD, unavailable)
  }

  /**
   * Holds a key for HOLD_MS, and returns the ages of its uses. undefined: it is not held, because
   * the table is full.
   */
  hold(keyHash: Buffer): number[] | undefined {
    const word = this.#table.open(keyHash)
    try {
      if (word >= 0) {
        const nowMs = this.#nowMs()
        this.#table.hold(word, nowMs + this.#holdMs)
        return this.#table.ages(word, nowMs)
      }
    } finally {
      this.#table.close()
    }
    Atomics.add(this.#table.own, FULL_WORD, 1)
    return undefined
  }

  /** All uses that count, for the next process: hash and age of each. While no thread uses it. */
  all(): Buffer {
    const parts: Buffer[] = []
    for (const { bucket, high, low, agesMs } of this.#table.rows()) {
      for (const ageMs of agesMs) {
        const bytes = Buffer.alloc(GRANT_BYTES)
        bytes.writeInt32LE(high, 0)
        bytes.writeInt32LE(low, 4)
        // The table has no more of the hash than the bucket that it selected.
        bytes.writeUInt32LE(bucket, 8)
        bytes.writeUInt32LE(bucket, 12)
        bytes.writeUInt16LE(Math.max(0, Math.floor(ageMs)), HASH_BYTES)
        parts.push(bytes)
      }
    }
    return Buffer.concat(parts)
  }

  /** Adds uses that all() gave, `elapsedMs` ago. Before another thread uses the table. */
  resume(uses: Buffer, elapsedMs: number): void {
    for (let at = 0; at < uses.length; at += GRANT_BYTES) {
      const ageMs = uses.readUInt16LE(at + HASH_BYTES) + elapsedMs
      if (ageMs >= GRANT_MS) continue
      const word = this.#table.open(uses.subarray(at, at + HASH_BYTES))
      if (word >= 0) this.#table.insert(word, this.#nowMs() - ageMs || -1)
      this.#table.close()
    }
  }

  /** @param leftMs how long the lease lasts from now on */
  setLease({ allowance, others, freeInMs }: Omit<LeaseAnswer, 'kind'>, leftMs: number): void {
    const { own } = this.#table
    const nowMs = this.#nowMs()
    Atomics.store(own, ALLOWANCE_WORD, Math.min(allowance, ALLOWANCE_MAX))
    Atomics.store(own, OTHERS_WORD, others)
    // A renewal must not interrupt the use.
    Atomics.store(own, FROM_WORD, freeInMs > 0 ? Math.ceil((nowMs + freeInMs) / UNIT_MS) : 0)
    // Last: with it, the others are valid.
    Atomics.store(own, UNTIL_WORD, Math.floor((nowMs + leftMs) / UNIT_MS))
  }

  /** The allowance of the lease now, and when it may be used. 0: there is no lease. */
  get lease(): Pick<LeaseAnswer, 'allowance' | 'freeInMs'> {
    const { own } = this.#table
    const nowMs = this.#nowMs()
    const isValid = nowMs < Atomics.load(own, UNTIL_WORD) * UNIT_MS
    const freeInMs = Math.max(0, Atomics.load(own, FROM_WORD) * UNIT_MS - nowMs)
    return isValid ? { allowance: Atomics.load(own, ALLOWANCE_WORD), freeInMs } : { allowance: 0, freeInMs: 0 }
  }

  get counters(): AllowanceCounters {
    const { own } = this.#table
    const count = (word: number): number => (own[word] ?? 0) >>> 0
    return {
      used: count(USED_WORD),
      full: count(FULL_WORD),
      answered: count(ANSWERED_WORD),
      unavailable: count(UNAVAILABLE_WORD),
    }
  }

  #isFree(nowMs: number): boolean {
    const { own } = this.#table
    return nowMs < Atomics.load(own, UNTIL_WORD) * UNIT_MS && nowMs >= Atomics.load(own, FROM_WORD) * UNIT_MS
  }

  #takeFrom(word: number, nowMs: number): RateVerdict | undefined {
    const table = this.#table
    if (!this.#isFree(nowMs) || table.heldUntil(word) > nowMs) return undefined
    const free = table.free(word, nowMs)
    const used = table.ring - free
    if (used >= Atomics.load(table.own, ALLOWANCE_WORD)) return undefined
    const firstMs = used === 0 ? nowMs : table.timeAt(word, free)
    table.push(word, nowMs)
    Atomics.add(table.own, USED_WORD, 1)
    // At least: the other nodes may have used all of their allowances.
    const remaining = Math.max(0, this.#limit - Atomics.load(table.own, OTHERS_WORD) - used - 1)
    return { allowed: true, remaining, resetSeconds: Math.ceil((firstMs + GRANT_MS - nowMs) / 1000) }
  }
}
