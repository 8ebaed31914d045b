/** A set of integers, as ascending ranges that neither touch nor overlap. */
export class SequenceSet {
  /** first, last, first, last, ... */
  readonly #bounds: number[]

  constructor(ranges: readonly number[] = []) {
    this.#bounds = [...ranges]
  }

  get ranges(): readonly number[] {
    return this.#bounds
  }

  get rangeCount(): number {
    return this.#bounds.length / 2
  }

  /** Adds a number. Returns false if the set contains it. */
  add(sequence: number): boolean {
    return this.addRange(sequence, sequence)
  }

  /**
   * Adds first..last if the set contains none of them. Otherwise returns false, and the caller adds
   * them one by one.
   */
  addRange(first: number, last: number): boolean {
    const bounds = this.#bounds
    const end = bounds.length - 1
    // Fast path: the next sequences.
    if (end > 0 && first === (bounds[end] ?? 0) + 1) {
      bounds[end] = last
      return true
    }
    const range = this.#firstRangeEndingAtOrAfter(first)
    const next = bounds[range * 2]
    if (next !== undefined && next <= last) return false
    const joinsLeft = range > 0 && bounds[range * 2 - 1] === first - 1
    const joinsRight = next === last + 1
    if (joinsLeft && joinsRight) bounds.splice(range * 2 - 1, 2)
    else if (joinsLeft) bounds[range * 2 - 1] = last
    else if (joinsRight) bounds[range * 2] = first
    else bounds.splice(range * 2, 0, first, last)
    return true
  }

  /** Removes the lowest ranges from the set, and returns them. */
  takeLowest(rangeCount: number): number[] {
    return this.#bounds.splice(0, rangeCount * 2)
  }

  #firstRangeEndingAtOrAfter(sequence: number): number {
    let low = 0
    let high = this.#bounds.length / 2
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#bounds[middle * 2 + 1] ?? 0) < sequence) low = middle + 1
      else high = middle
    }
    return low
  }
}
