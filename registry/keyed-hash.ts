import { randomFillSync } from 'node:crypto'

/**
 * Slots that a search in an open-addressed table passes at most. At random, about one of 100,000
 * tables that are half full has a longer run of slots. Each table says what it does beyond.
 */
export const PROBES_MAX = 128

/**
 * Hashes keys that senders choose (names, addresses, users), so that no sender can choose many with
 * the same hash and make each search of a table as long as the table.
 *
 * Simple tabulation: each pair of a position and a byte has a random number of 32 bits, drawn at
 * the start of the thread, and the hash of a key is the XOR of the numbers of its bytes (Carter and
 * Wegman, "Universal classes of hash functions", 1979; Patrascu and Thorup, "The power of simple
 * tabulation hashing", 2012).
 *
 * Bound: two different keys, of any lengths, have different sets of pairs. The XOR of their hashes
 * is that of at least one random number, so each of its values has probability 2^-32: the hashes
 * are equal with probability 2^-32, and their low b bits with 2^-b. So in a table with n keys in
 * m buckets, a key shares its bucket with n / m others on average, whatever the keys are. In a
 * table with linear probing that is half full, a search passes a constant number of slots on
 * average (the paper of 2012, for keys of a fixed length).
 *
 * The bound is for keys that are chosen without knowing the numbers. They are in no output.
 */
export class KeyedHash {
  readonly #numbers: Int32Array

  /**
   * @param positions bytes of the longest key; further bytes do not count. Each takes 1 KB.
   * @param ignoreCase whether ASCII letters of either case have the same number
   */
  constructor(positions: number, { ignoreCase = false }: { readonly ignoreCase?: boolean } = {}) {
    const numbers = randomFillSync(new Int32Array(positions << 8))
    for (let at = 0; ignoreCase && at < numbers.length; at += 256) {
      numbers.copyWithin(at + UPPER_A, at + LOWER_A, at + LOWER_A + LETTERS)
    }
    this.#numbers = numbers
  }

  /**
   * The hash of bytes [start, end) of `view`, as the bytes of the key from `position` on. `hash` is
   * that of the key's other bytes.
   */
  bytes(view: DataView, start: number, end: number, position = 0, hash = 0): number {
    let at = start
    let place = position
    // One read of four bytes takes less time than four.
    for (; at + 4 <= end; at += 4, place += 4) hash = this.word(view.getUint32(at, true), place, hash)
    for (; at < end; at++, place++) hash = this.byte(view.getUint8(at), place, hash)
    return hash
  }

  /** The same for the bytes of a 32-bit word, the lowest first. */
  word(word: number, position: number, hash: number): number {
    const numbers = this.#numbers
    const at = position << 8
    return (
      hash ^
      (numbers[at | (word & 0xff)] ?? 0) ^
      (numbers[(at + 0x100) | ((word >>> 8) & 0xff)] ?? 0) ^
      (numbers[(at + 0x200) | ((word >>> 16) & 0xff)] ?? 0) ^
      (numbers[(at + 0x300) | (word >>> 24)] ?? 0)
    )
  }

  /** The same for one byte. */
  byte(byte: number, position: number, hash: number): number {
    return hash ^ (this.#numbers[(position << 8) | byte] ?? 0)
  }
}

const LOWER_A = 0x61
const UPPER_A = 0x41
const LETTERS = 26

/** RFC 1035 §2.3.4: a name has at most 255 bytes. RFC 4343: names are compared without case. */
export const keyedNames: KeyedHash = new KeyedHash(255, { ignoreCase: true })
