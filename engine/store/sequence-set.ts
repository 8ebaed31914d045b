/**
 * A collector sends sequences almost in order, so a set consists of few ranges. Each gap adds one.
 * Beyond this number, the oldest gap is closed: a late event in that gap counts as a duplicate.
 */
export const RANGES_MAX = 1024

/** A set of integers, as ascending ranges that neither touch nor overlap. */
export class SequenceSet {
  /** first, last, first, last, ... */
  readonly #bounds: number[]
  /** Number of gaps closed because of the limit. */
  gapsForgotten = 0

  constructor(ranges: readonly number[] = []) {
    this.#bounds = [...ranges]
  }

  get ranges(): readonly number[] {
    return this.#bounds
  }

  /** Adds a number. Returns false if the set contains it. */
  add(sequence: number): boolean {
    const bounds = this.#bounds
    const last = bounds.length - 1
    // Fast path: the next sequence.
    if (last > 0 && sequence === (bounds[last] ?? 0) + 1) {
      bounds[last] = sequence
      return true
    }
    const range = this.#firstRangeEndingAtOrAfter(sequence)
    const first = bounds[range * 2]
    if (first !== undefined && first <= sequence) return false

    const joinsLeft = range > 0 && bounds[range * 2 - 1] === sequence - 1
    const joinsRight = first === sequence + 1
    if (joinsLeft && joinsRight) bounds.splice(range * 2 - 1, 2)
    else if (joinsLeft) bounds[range * 2 - 1] = sequence
    else if (joinsRight) bounds[range * 2] = sequence
    else bounds.splice(range * 2, 0, sequence, sequence)
    if (bounds.length > RANGES_MAX * 2) {
      bounds.splice(1, 2)
      this.gapsForgotten++
    }
    return true
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
    // At the limit, add one by one: each addition may close a gap.
    if (bounds.length >= RANGES_MAX * 2) return false
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
