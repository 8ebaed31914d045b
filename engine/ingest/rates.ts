import { SECOND_MS } from '../kernel/process/clock.ts'

/** Number of tokens with a slot of their own in a second. Beyond it, tokens share slots. */
const SLOTS_BITS = 13
const SLOTS = 1 << SLOTS_BITS
/** Slots probed for a token, from the slot of its hash on. */
const STEPS = 32
/** 2^32 divided by the golden ratio: Fibonacci hashing spreads similar hashes. */
const SPREAD = 0x9e37_79b1

/**
 * The number of messages of each token in the current second, in memory shared by all lanes. A
 * token may use its whole allowance at the start of a second.
 *
 *   each slot, i32: hash of the token (0: free), second, messages in that second
 *
 * A slot of an earlier second can be reused for another token.
 */
const SLOT_WORDS = 3

export function makeTokenRateTable(): SharedArrayBuffer {
  return new SharedArrayBuffer(SLOTS * SLOT_WORDS * 4)
}

export class TokenRate {
  readonly #words: Int32Array
  readonly #perSecond: number

  constructor(table: SharedArrayBuffer, perSecond: number) {
    this.#words = new Int32Array(table)
    this.#perSecond = perSecond
  }

  /** Counts one message of the token with this hash (tokenRateHash). Returns false at the limit. */
  take(hash: number, nowMs: number): boolean {
    const words = this.#words
    const second = Math.floor(nowMs / 1000) | 0
    const at = this.#slotOf(hash, second) * SLOT_WORDS
    const seen = Atomics.load(words, at + 1)
    // The first message of a second resets the count. A few messages of other threads may be lost
    // between the two stores, which does not justify a lock.
    if (!isCounted(seen, second) && Atomics.compareExchange(words, at + 1, seen, second) === seen)
      Atomics.store(words, at + 2, 0)
    if (Atomics.add(words, at + 2, 1) < this.#perSecond) return true
    Atomics.sub(words, at + 2, 1)
    return false
  }

  /** Uncounts a message that was refused because the queue was full and will be retried. */
  refund(hash: number, nowMs: number): void {
    const words = this.#words
    const second = Math.floor(nowMs / 1000) | 0
    const at = this.#slotOf(hash, second) * SLOT_WORDS
    if (isCounted(Atomics.load(words, at + 1), second) && Atomics.load(words, at + 2) > 0) Atomics.sub(words, at + 2, 1)
  }

  #slotOf(hash: number, second: number): number {
    const words = this.#words
    const first = Math.imul(hash, SPREAD) >>> (32 - SLOTS_BITS)
    if (Atomics.load(words, first * SLOT_WORDS) === hash) return first
    for (let step = 1; step < STEPS; step++) {
      const slot = (first + step) & (SLOTS - 1)
      if (Atomics.load(words, slot * SLOT_WORDS) === hash) return slot
    }
    for (let step = 0; step < STEPS; step++) {
      const slot = (first + step) & (SLOTS - 1)
      const owner = Atomics.load(words, slot * SLOT_WORDS)
      if (owner !== 0 && isCounted(Atomics.load(words, slot * SLOT_WORDS + 1), second)) continue
      const found = Atomics.compareExchange(words, slot * SLOT_WORDS, owner, hash)
      if (found === owner || found === hash) return slot
    }
    return first
  }
}

/**
 * Whether messages of `second` are counted in the slot's second: the same, or the next one, which
 * another thread has begun while this one still had the clock of the second before. If the slot
 * went back, each change between the two threads would reset the count.
 */
function isCounted(slotSecond: number, second: number): boolean {
  return slotSecond === second || slotSecond === second + 1
}

/** Returns a 32-bit number other than 0, from the random digits of a token's id. */
export function tokenRateHash(tokenId: string): number {
  return Number.parseInt(tokenId.slice(0, 8), 16) | 0 || 1
}

/**
 * Limits how often each organization may do something in a second, and how many organizations may
 * do it at all, so that none can keep a thread busy.
 */
export class OrganizationRate {
  readonly #timesMax: number
  readonly #organizationsMax: number
  readonly #times = new Map<string, number>()
  #sinceMs = 0

  constructor(timesMax: number, organizationsMax: number) {
    this.#timesMax = timesMax
    this.#organizationsMax = organizationsMax
  }

  /** Counts one use. Returns false if the limit is reached. */
  take(organizationId: string, nowMs: number): boolean {
    if (nowMs - this.#sinceMs >= SECOND_MS || nowMs < this.#sinceMs) {
      this.#sinceMs = nowMs
      this.#times.clear()
    }
    const before = this.#times.get(organizationId) ?? 0
    if (before >= this.#timesMax) return false
    if (before === 0 && this.#times.size >= this.#organizationsMax) return false
    this.#times.set(organizationId, before + 1)
    return true
  }
}
