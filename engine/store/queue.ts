import type { Table } from './environment.ts'

/*
 * A durable first-in, first-out queue of byte strings in a table that it shares with others, told apart by a prefix.
 *
 *   key                               value
 *   prefix + sequence, u64 big-endian the entry, as its owner sealed it
 *   prefix + ff ff ff ff ff ff ff ff  next sequence, u64 big-endian: never goes back, also when the queue is empty
 *
 * What always holds:
 *   1. Sequences start at 1 and grow by one; none is given twice, through any crash, since entry and next sequence are
 *      written in one transaction.
 *   2. Entries leave only at the front; so first .. next - 1 are all there.
 *   3. All changes happen inside the owner's transaction, so that they commit or vanish with what else it does.
 */
const SEQUENCE_BYTES = 8
const NEXT_MARK = Buffer.alloc(SEQUENCE_BYTES, 0xff)

export interface QueueEntry {
  readonly sequence: number
  readonly bytes: Buffer
}

export class DurableQueue {
  readonly #table: Table
  readonly #prefix: Uint8Array
  readonly #nextKey: Buffer

  constructor(table: Table, prefix: Uint8Array) {
    this.#table = table
    this.#prefix = prefix
    this.#nextKey = Buffer.concat([prefix, NEXT_MARK])
  }

  /** The sequence that the next entry will get. */
  get nextSequence(): number {
    const stored = this.#table.get(this.#nextKey)
    return stored === undefined ? 1 : Number(stored.readBigUInt64BE())
  }

  /** Appends inside a transaction of the caller; answers the sequence of the first. */
  append(entries: readonly Uint8Array[]): number {
    const first = this.nextSequence
    let sequence = first
    for (const entry of entries) this.#table.putSync(this.#keyOf(sequence++), Buffer.from(entry))
    this.#table.putSync(this.#nextKey, bytesOf(sequence))
    return first
  }

  /** Writes an entry anew that waits, inside a transaction of the caller; nothing where it has left. */
  replace(sequence: number, entry: Uint8Array): void {
    const key = this.#keyOf(sequence)
    if (this.#table.doesExist(key)) this.#table.putSync(key, Buffer.from(entry))
  }

  /** The oldest sequence that waits, or nextSequence where none does. */
  get firstSequence(): number {
    for (const key of this.#table.getKeys({ start: this.#keyOf(0), end: this.#nextKey, limit: 1 })) {
      return Number((key as Buffer).readBigUInt64BE(this.#prefix.length))
    }
    return this.nextSequence
  }

  /** How many entries wait. */
  get length(): number {
    return this.nextSequence - this.firstSequence
  }

  /** Entries from `sequence` on and before `before`, oldest first: at most `countMax`, and no more once they reach `bytesMax` together. */
  read(
    sequence: number,
    countMax: number,
    bytesMax = Number.POSITIVE_INFINITY,
    before = Number.POSITIVE_INFINITY,
  ): QueueEntry[] {
    const entries: QueueEntry[] = []
    let bytes = 0
    for (const { key, value } of this.#table.getRange({
      start: this.#keyOf(sequence),
      end: before === Number.POSITIVE_INFINITY ? this.#nextKey : this.#keyOf(before),
      limit: countMax,
    })) {
      entries.push({ sequence: Number(key.readBigUInt64BE(this.#prefix.length)), bytes: value })
      bytes += value.length
      if (bytes >= bytesMax) break
    }
    return entries
  }

  /** Removes every entry up to and including `sequence`, inside a transaction of the caller; answers how many went. */
  removeThrough(sequence: number): number {
    const keys = [...this.#table.getKeys({ start: this.#keyOf(0), end: this.#keyOf(sequence + 1) })]
    for (const key of keys) this.#table.removeSync(key as Buffer)
    return keys.length
  }

  #keyOf(sequence: number): Buffer {
    return Buffer.concat([this.#prefix, bytesOf(sequence)])
  }
}

function bytesOf(sequence: number): Buffer {
  const bytes = Buffer.allocUnsafe(SEQUENCE_BYTES)
  bytes.writeBigUInt64BE(BigInt(sequence))
  return bytes
}
