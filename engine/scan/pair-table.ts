import { KeyedHash } from '../../registry/keyed-hash.ts'

/*
 * Pairs of whole numbers, each with a number that indexes the columns of its owner. A Map with a
 * number as key would do, but V8 hashes numbers without a key.
 *
 *   buckets  number of the first pair of a bucket + 1, or 0
 *   next     the same of the next pair in the bucket of each pair
 */
const SECOND_POSITION = 4
const keyed = new KeyedHash(SECOND_POSITION + 4)

export class PairTable {
  readonly #buckets: Int32Array
  readonly #next: Int32Array
  readonly #firsts: Int32Array
  readonly #seconds: Int32Array
  /** Number of pairs. They are numbered from 0 in order of arrival. */
  count = 0

  /** @param pairsMax a power of two */
  constructor(pairsMax: number) {
    this.#buckets = new Int32Array(pairsMax)
    this.#next = new Int32Array(pairsMax)
    this.#firsts = new Int32Array(pairsMax)
    this.#seconds = new Int32Array(pairsMax)
  }

  clear(): void {
    for (let number = 0; number < this.count; number++) {
      this.#buckets[this.#bucketOf(this.first(number), this.second(number))] = 0
    }
    this.count = 0
  }

  get full(): boolean {
    return this.count === this.#firsts.length
  }

  /** The number of a pair, or -1. */
  find(first: number, second: number): number {
    let number = (this.#buckets[this.#bucketOf(first, second)] ?? 0) - 1
    while (number >= 0 && (this.#firsts[number] !== first || this.#seconds[number] !== second)) {
      number = (this.#next[number] ?? 0) - 1
    }
    return number
  }

  /** Adds a pair that is not in the table, which must not be full. Returns its number. */
  add(first: number, second: number): number {
    const bucket = this.#bucketOf(first, second)
    const number = this.count++
    this.#firsts[number] = first
    this.#seconds[number] = second
    this.#next[number] = this.#buckets[bucket] ?? 0
    this.#buckets[bucket] = number + 1
    return number
  }

  first(number: number): number {
    return this.#firsts[number] ?? 0
  }

  second(number: number): number {
    return this.#seconds[number] ?? 0
  }

  #bucketOf(first: number, second: number): number {
    return keyed.word(second, SECOND_POSITION, keyed.word(first, 0, 0)) & (this.#buckets.length - 1)
  }
}
