/** Numbers by a seed (xorshift32, Marsaglia 2003): fast, and the same for the same seed. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed, 0x9e37_79b1) >>> 0 || 1
  }

  /** A whole number from 0 to below `end`. */
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
