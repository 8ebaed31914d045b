import { createHash } from 'node:crypto'
import { BLOCK_KEY_BYTES, type LineHashes, type ReadLines } from '../store/read-lines.ts'
import type { Store } from '../store/store.ts'

/** The key before the first block of a file. */
export const NO_KEY: Buffer = Buffer.alloc(BLOCK_KEY_BYTES)

/** Which messages of log files earlier runs have read. */
export type KnownLines = Pick<ReadLines, 'knowsFirst' | 'versions'>

/**
 * The messages of a block, each identified by the hash of all messages up to it, and the hashes
 * stored by earlier runs.
 */
export class BlockOfLines {
  count = 0
  readonly #before: Buffer
  #hashes = new Uint32Array(1024)
  #high = 0x811c9dc5
  #low = 0x2545f491
  #first: Buffer = NO_KEY
  #second: Buffer = NO_KEY
  #versions: LineHashes[] = []

  /** @param before key of the previous block, or NO_KEY */
  constructor(before: Buffer) {
    this.#before = before
  }

  /** Adds a message. Returns whether an earlier run has read it. */
  add(bytes: Uint8Array, start: number, end: number, known: KnownLines, organizationId: string): boolean {
    for (let at = start; at < end; at++) {
      const byte = bytes[at] ?? 0
      this.#high = Math.imul(this.#high ^ byte, 0x01000193)
      this.#low = Math.imul(this.#low + byte, 0x9e3779b1) ^ (this.#low >>> 15)
    }
    // Hash the message boundary, too.
    this.#high = Math.imul(this.#high ^ 0x100, 0x01000193)
    if (this.count === this.#hashes.length) {
      const more = new Uint32Array(this.#hashes.length * 2)
      more.set(this.#hashes)
      this.#hashes = more
    }
    const hash = (this.#high ^ this.#low) >>> 0
    const index = this.count++
    this.#hashes[index] = hash
    if (index === 0) {
      this.#first = keyOf(this.#before, bytes.subarray(start, end))
      return known.knowsFirst(organizationId, this.#first)
    }
    if (index === 1) {
      this.#second = keyOf(this.#first, bytes.subarray(start, end))
      this.#versions = known.versions(organizationId, this.#first, this.#second)
    }
    return this.#versions.some((version) => version[index] === hash)
  }

  /** Stores the hashes of the first `count` messages. Runs in the caller's transaction. */
  remember(store: Store, organizationId: string, count: number): void {
    if (count === 0) return
    const second = count === 1 ? NO_KEY : this.#second
    store.readLines.put(organizationId, this.#first, second, this.#hashes.slice(0, count), Date.now())
  }

  /** Returns the key of the next block, which covers all bytes of this block. */
  key(content: Uint8Array): Buffer {
    return keyOf(this.#before, content)
  }
}

function keyOf(before: Buffer, message: Uint8Array): Buffer {
  return createHash('sha256').update(before).update(message).digest().subarray(0, BLOCK_KEY_BYTES)
}
