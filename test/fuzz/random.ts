/** Random numbers from a seed (xorshift32, Marsaglia 2003). Fast and reproducible. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed, 0x9e37_79b1) >>> 0 || 1
  }

  /** An integer in 0..end-1. */
  below(end: number): number {
    let state = this.#state
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    this.#state = state >>> 0
    return this.#state % end
  }

  of<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item
  }
}
