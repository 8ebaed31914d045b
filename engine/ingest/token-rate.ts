/** So many tokens are told apart; beyond it, they share. */
const SLOTS = 4096
const TICKS_PER_SECOND = 10

/**
 * How many messages of each token were taken in the present tenth of a second, in memory that all lanes share. A tenth's allowance may come at
 * once, so that no second has much more than its own.
 *
 *   of each slot, i32: hash of the token (0: free), tick, messages in it
 */
const SLOT_WORDS = 3

export function makeTokenRateTable(): SharedArrayBuffer {
  return new SharedArrayBuffer(SLOTS * SLOT_WORDS * 4)
}

export class TokenRate {
  readonly #words: Int32Array
  readonly #perTick: number

  constructor(table: SharedArrayBuffer, perSecond: number) {
    this.#words = new Int32Array(table)
    this.#perTick = Math.max(1, Math.round(perSecond / TICKS_PER_SECOND))
  }

  /** Takes one message of the token with this hash (tokenRateHash). */
  take(hash: number, nowMs: number): boolean {
    const words = this.#words
    const at = this.#slotOf(hash) * SLOT_WORDS
    const tick = Math.floor((nowMs * TICKS_PER_SECOND) / 1000) | 0
    const seen = Atomics.load(words, at + 1)
    // Whoever comes first in a tick begins it; the few messages of others that fall between the two stores are not worth a lock.
    if (seen !== tick && Atomics.compareExchange(words, at + 1, seen, tick) === seen) Atomics.store(words, at + 2, 0)
    if (Atomics.add(words, at + 2, 1) < this.#perTick) return true
    Atomics.sub(words, at + 2, 1)
    return false
  }

  #slotOf(hash: number): number {
    const words = this.#words
    for (let step = 0; step < 16; step++) {
      const slot = (hash + step) & (SLOTS - 1)
      const owner = Atomics.compareExchange(words, slot * SLOT_WORDS, 0, hash)
      if (owner === 0 || owner === hash) return slot
    }
    return hash & (SLOTS - 1)
  }
}

/** A number that is not 0, of the random digits of a token's id. */
export function tokenRateHash(tokenId: string): number {
  return Number.parseInt(tokenId.slice(0, 8), 16) | 1
}
