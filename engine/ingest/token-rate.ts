/** So many tokens are told apart in a second; beyond it, they share. */
const SLOTS_BITS = 13
const SLOTS = 1 << SLOTS_BITS
/** Slots that are looked at for a token, from where its hash points on. */
const STEPS = 32
/** 2^32 divided by the golden ratio: near hashes point to places that are far apart. */
const SPREAD = 0x9e37_79b1

/**
 * How many messages of each token were taken in the present second, in memory that all lanes share. A second's allowance may come at once.
 *
 *   of each slot, i32: hash of the token (0: free), second, messages in it
 *
 * A slot of a second that is over is free for another token.
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

  /** Takes one message of the token with this hash (tokenRateHash). */
  take(hash: number, nowMs: number): boolean {
    const words = this.#words
    const second = Math.floor(nowMs / 1000) | 0
    const at = this.#slotOf(hash, second) * SLOT_WORDS
    const seen = Atomics.load(words, at + 1)
    // Whoever comes first in a second begins it; the few messages of others that fall between the two stores are not worth a lock.
    if (seen !== second && Atomics.compareExchange(words, at + 1, seen, second) === seen)
      Atomics.store(words, at + 2, 0)
    if (Atomics.add(words, at + 2, 1) < this.#perSecond) return true
    Atomics.sub(words, at + 2, 1)
    return false
  }

  /** Gives back what was taken for a message that then found no room: it is taken again. */
  give(hash: number, nowMs: number): void {
    const words = this.#words
    const second = Math.floor(nowMs / 1000) | 0
    const at = this.#slotOf(hash, second) * SLOT_WORDS
    if (Atomics.load(words, at + 1) === second && Atomics.load(words, at + 2) > 0) Atomics.sub(words, at + 2, 1)
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
      if (owner !== 0 && Atomics.load(words, slot * SLOT_WORDS + 1) === second) continue
      const found = Atomics.compareExchange(words, slot * SLOT_WORDS, owner, hash)
      if (found === owner || found === hash) return slot
    }
    return first
  }
}

/** A number of 32 bits that is not 0, of the random digits of a token's id. */
export function tokenRateHash(tokenId: string): number {
  return Number.parseInt(tokenId.slice(0, 8), 16) | 0 || 1
}
