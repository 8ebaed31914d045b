/** So many tokens are told apart; beyond it, they share. */
const SLOTS = 4096

/**
 * How many messages of each token were taken in the present second, in memory that all lanes share. A second's allowance may come at once.
 *
 *   of each slot, i32: hash of the token (0: free), second, messages in it
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
    const at = this.#slotOf(hash) * SLOT_WORDS
    const second = Math.floor(nowMs / 1000) | 0
    const seen = Atomics.load(words, at + 1)
    // Whoever comes first in a second begins it; the few messages of others that fall between the two stores are not worth a lock.
    if (seen !== second && Atomics.compareExchange(words, at + 1, seen, second) === seen)
      Atomics.store(words, at + 2, 0)
    if (Atomics.add(words, at + 2, 1) < this.#perSecond) return true
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
