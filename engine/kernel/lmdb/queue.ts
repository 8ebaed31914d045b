import { strict as assert } from 'node:assert'
import { Fault } from '../process/error-codes.ts'
import {
  bytesBetween,
  CHUNK_BYTES_MAX,
  CHUNK_ENTRIES_MAX,
  ChunkReader,
  chunkEnd,
  type EntryRange,
  type Slices,
  sealChunk,
} from './queue-chunk.ts'
import { openRecord, sealRecord } from './record.ts'

/*
 * A durable FIFO queue of byte strings. Several queues share a table, each with its own prefix.
 * Entries are stored in chunks, because LMDB's cost is per record: a record with 256 small entries
 * costs about as much as a record with one.
 *
 *   key                                    value
 *   prefix + sequence of the first entry   a chunk, see queue-chunk.ts
 *   (u64 big-endian)
 *   prefix + ff ff ff ff ff ff ff ff       the state: next sequence, first sequence, footprint;
 *                                          f64 little-endian each
 *
 * Invariants:
 * 1. Sequences begin at 1 and have no gaps. No sequence is assigned twice, even after a crash or
 *    while the queue is empty, because entries and next sequence are written in one transaction.
 * 2. Entries are removed only at the front, so first .. next - 1 are all in the queue. The first
 *    chunk may begin with removed entries.
 * 3. All changes are made in the caller's transaction, so they commit or abort with its other
 *    changes.
 */
const SEQUENCE_BYTES = 8
const STATE_KEY = Buffer.alloc(SEQUENCE_BYTES, 0xff)
const STATE_VERSION = 1
const STATE_BYTES = 3 * 8

/**
 * At most JOIN_ENTRIES_MAX entries are added to the last chunk, if the chunk has at most
 * JOIN_BYTES_MAX bytes and was written within JOIN_MS.
 */
const JOIN_ENTRIES_MAX = 64
const JOIN_BYTES_MAX = 16 * 1024
const JOIN_MS = 60_000

/** Chunks removed per step. Bounds memory. */
const CHUNKS_PER_STEP = 64

/**
 * LMDB (mdb.c): a page holds at least two values. A longer value has its own chain of pages with
 * one header.
 */
const PAGE_BYTES = 4096
const PAGE_HEADER_BYTES = 16
const NODE_BYTES_MAX = (PAGE_BYTES - PAGE_HEADER_BYTES) / 2
const NODE_HEADER_BYTES = 10

/** The methods of an LMDB table that the queue uses. */
export interface QueueTable {
  get(key: Buffer): Buffer | undefined
  putSync(key: Buffer, value: Buffer): unknown
  removeSync(key: Buffer): unknown
  /** The bytes that a record occupies, for tables that are not in LMDB's pages. */
  footprintOf?(key: Buffer, value: Buffer): number
  /** Ascending from `start` and before `end`, or with `reverse` descending from `start`. */
  getRange(options: {
    start: Buffer
    end?: Buffer
    limit?: number
    reverse?: boolean
  }): Iterable<{ key: Buffer; value: Buffer }>
}

export interface QueueEntry {
  readonly sequence: number
  readonly bytes: Buffer
}

/** A chunk, read in place. One object is reused for all chunks. */
export interface ChunkView {
  /** The first entry in the chunk that is still in the queue, and its index in the slices. */
  sequence: number
  from: number
  /** The sequence after the last entry. */
  end: number
  /** The chunk is unreadable: only `sequence` and `end` are valid. */
  damaged: boolean
  readonly slices: Slices
}

export interface QueueState {
  readonly next: number
  readonly first: number
  readonly footprint: number
}

/** The requested entry is in a damaged chunk. Other chunks can be read. */
export class DamagedChunk extends Fault {
  constructor(message: string) {
    super('STORE_DAMAGED', message)
  }
}

export class DurableQueue {
  readonly #table: QueueTable
  readonly #prefix: Uint8Array
  readonly #stateKey: Buffer

  constructor(table: QueueTable, prefix: Uint8Array) {
    this.#table = table
    this.#prefix = prefix
    this.#stateKey = Buffer.concat([prefix, STATE_KEY])
  }

  /** The sequence of the next entry. */
  get nextSequence(): number {
    return this.#state().next
  }

  /** The oldest sequence in the queue, or nextSequence if the queue is empty. */
  get firstSequence(): number {
    return this.#state().first
  }

  /** Number of entries. */
  get length(): number {
    const { next, first } = this.#state()
    return next - first
  }

  /** The bytes that the queue occupies in LMDB's pages, computed from the sizes of its records. */
  get footprintBytes(): number {
    return this.#state().footprint
  }

  /**
   * When the oldest chunk was written, in milliseconds since 1970 (0: it is damaged), and its last
   * sequence. undefined: the queue is empty.
   */
  get oldestChunk(): { readonly writtenMs: number; readonly lastSequence: number } | undefined {
    const { next, first } = this.#state()
    if (first === next) return undefined
    const key = this.#chunkKey(first)
    const chunk = new ChunkReader()
    const writtenMs = chunk.openIfIntact(this.#get(key)) ? chunk.writtenMs : 0
    return { writtenMs, lastSequence: this.#endOf(key, next) - 1 }
  }

  /**
   * Appends entries without allocating an object per entry. Returns the sequence of the first.
   * Requires a write transaction.
   *
   * @throws RangeError for an entry longer than ENTRY_BYTES_MAX
   */
  append(entries: Slices, nowMs = Date.now()): number {
    const { next, first, footprint } = this.#state()
    if (entries.count === 0) return next
    let added = this.#joinLast(entries, next, first, nowMs)
    let from = added === undefined ? 0 : entries.count
    added ??= 0
    while (from < entries.count) {
      const to = chunkEnd(entries, from)
      const key = this.#keyOf(next + from)
      const record = sealChunk([{ slices: entries, from, to }], nowMs)
      this.#table.putSync(key, record)
      added += this.#footprintOf(key, record)
      from = to
    }
    this.#putState({ next: next + entries.count, first, footprint: footprint + added })
    return next
  }

  /**
   * Adds a few entries to the last chunk if they fit and the chunk is recent. Otherwise a quiet
   * link would write one record per entry. Returns the growth of the footprint in bytes, or
   * undefined if nothing was added.
   */
  #joinLast(entries: Slices, next: number, first: number, nowMs: number): number | undefined {
    if (entries.count > JOIN_ENTRIES_MAX || first === next) return undefined
    const key = this.#chunkKey(next - 1)
    const before = this.#get(key)
    const chunk = new ChunkReader()
    if (before.length > JOIN_BYTES_MAX || !chunk.openIfIntact(before)) return undefined
    const isRecent = nowMs >= chunk.writtenMs && nowMs - chunk.writtenMs < JOIN_MS
    const fits =
      chunk.count + entries.count <= CHUNK_ENTRIES_MAX &&
      before.length + bytesBetween(entries, 0, entries.count) <= CHUNK_BYTES_MAX
    if (!isRecent || !fits) return undefined
    const ranges = [chunk, entries].map((slices) => ({ slices, from: 0, to: slices.count }))
    const record = sealChunk(ranges, chunk.writtenMs)
    this.#table.putSync(key, record)
    return this.#footprintOf(key, record) - this.#footprintOf(key, before)
  }

  /**
   * Replaces the entry with sequence `sequences[i]` (ascending) by entry i. Ignores removed entries
   * and entries of damaged chunks. Requires a write transaction.
   */
  replace(sequences: readonly number[], entries: Slices): void {
    const state = this.#state()
    const chunk = new ChunkReader()
    let grown = 0
    let at = 0
    while (at < sequences.length) {
      const sequence = sequences[at] as number
      if (sequence < state.first || sequence >= state.next) {
        at++
        continue
      }
      const key = this.#chunkKey(sequence)
      const before = this.#get(key)
      if (!chunk.openIfIntact(before)) {
        at++
        continue
      }
      const begin = this.#sequenceOf(key)
      const end = begin + chunk.count
      let to = at
      while (to < sequences.length && (sequences[to] as number) < end) to++
      const record = sealChunk(replaced(chunk, begin, sequences, entries, at, to), chunk.writtenMs)
      this.#table.putSync(key, record)
      grown += this.#footprintOf(key, record) - this.#footprintOf(key, before)
      at = to
    }
    if (grown !== 0) this.#putState({ ...state, footprint: state.footprint + grown })
  }

  /**
   * Reads entries from `sequence` on and before `before`, oldest first, until `countMax` entries or
   * `bytesMax` bytes are reached. Stops before a damaged chunk.
   *
   * @throws DamagedChunk if the first entry is in a damaged chunk, which removeDamaged() removes
   */
  read(
    sequence: number,
    countMax: number,
    bytesMax = Number.POSITIVE_INFINITY,
    before = Number.POSITIVE_INFINITY,
  ): QueueEntry[] {
    const { next, first } = this.#state()
    const from = Math.max(sequence, first)
    const end = Math.min(before, next)
    const read: QueueEntry[] = []
    if (from >= end || countMax < 1) return read
    const chunk = new ChunkReader()
    let bytes = 0
    for (const { key, value } of this.#table.getRange({ start: this.#chunkKey(from), end: this.#keyOf(end) })) {
      const begin = this.#sequenceOf(key)
      if (!chunk.openIfIntact(value)) {
        if (read.length > 0) return read
        throw new DamagedChunk(`queue: the chunk at sequence ${begin} is damaged`)
      }
      const stop = Math.min(chunk.count, end - begin)
      for (let index = Math.max(0, from - begin); index < stop; index++) {
        const entry = chunk.entry(index)
        read.push({ sequence: begin + index, bytes: entry })
        bytes += entry.length
        if (read.length === countMax || bytes >= bytesMax) return read
      }
    }
    return read
  }

  /**
   * Returns all chunks, oldest first, without allocating an object per entry. A view is valid until
   * the next one is requested, and not across an await.
   */
  *chunks(): Generator<ChunkView> {
    const { next, first } = this.#state()
    if (first === next) return
    const reader = new ChunkReader()
    const view: ChunkView = { sequence: 0, from: 0, end: 0, damaged: false, slices: reader }
    const viewOf = ({ key, value }: { key: Buffer; value: Buffer }, end: number): ChunkView => {
      const begin = this.#sequenceOf(key)
      view.sequence = Math.max(begin, first)
      view.from = view.sequence - begin
      view.end = end
      view.damaged = !reader.openIfIntact(value) || reader.count !== end - begin
      return view
    }
    // The end of a damaged chunk is known only from the next chunk.
    let before: { key: Buffer; value: Buffer } | undefined
    for (const chunk of this.#table.getRange({ start: this.#chunkKey(first), end: this.#keyOf(next) })) {
      if (before !== undefined) yield viewOf(before, this.#sequenceOf(chunk.key))
      before = chunk
    }
    if (before !== undefined) yield viewOf(before, next)
  }

  /**
   * Removes the entries up to and including `sequence` and returns their number. Requires a write
   * transaction.
   */
  removeThrough(sequence: number): number {
    const { next, first, footprint } = this.#state()
    const through = Math.min(sequence, next - 1)
    if (through < first) return 0
    let freed = 0
    let start = this.#chunkKey(first)
    const end = this.#keyOf(through + 1)
    for (let step = CHUNKS_PER_STEP; step === CHUNKS_PER_STEP; ) {
      step = 0
      const chunks = [...this.#table.getRange({ start, end, limit: CHUNKS_PER_STEP + 1 })]
      for (const [index, { key, value }] of chunks.slice(0, CHUNKS_PER_STEP).entries()) {
        // The end of a damaged chunk is known only from the next chunk. The last chunk may have
        // entries that are kept.
        const following = chunks[index + 1]
        if (following === undefined && this.#endOf(key, next) > through + 1) break
        this.#table.removeSync(key)
        freed += this.#footprintOf(key, value)
        step++
      }
      start = chunks[step]?.key ?? start
    }
    this.#putState({ next, first: through + 1, footprint: footprint - freed })
    return through + 1 - first
  }

  /**
   * Removes the oldest chunk if it is damaged and returns the number of its entries. Requires a
   * write transaction.
   */
  removeDamaged(): number {
    const { next, first } = this.#state()
    if (first === next) return 0
    const key = this.#chunkKey(first)
    if (new ChunkReader().openIfIntact(this.#get(key))) return 0
    return this.removeThrough(this.#endOf(key, next) - 1)
  }

  #state(): QueueState {
    const stored = this.#table.get(this.#stateKey)
    return stored === undefined ? { next: 1, first: 1, footprint: 0 } : openState(stored)
  }

  #putState({ next, first, footprint }: QueueState): void {
    const state = Buffer.alloc(STATE_BYTES)
    state.writeDoubleLE(next, 0)
    state.writeDoubleLE(first, 8)
    state.writeDoubleLE(footprint, 16)
    this.#table.putSync(this.#stateKey, sealRecord(STATE_VERSION, state))
  }

  #get(key: Buffer): Buffer {
    const value = this.#table.get(key)
    assert(value !== undefined, `queue: chunk ${this.#sequenceOf(key)} is missing`)
    return value
  }

  /** The sequence of the first entry of the next chunk, or nextSequence. */
  #endOf(key: Buffer, next: number): number {
    const start = this.#keyOf(this.#sequenceOf(key) + 1)
    for (const { key: following } of this.#table.getRange({ start, end: this.#stateKey, limit: 1 })) {
      return this.#sequenceOf(following)
    }
    return next
  }

  /** The key of the chunk that contains this entry. */
  #chunkKey(sequence: number): Buffer {
    for (const { key } of this.#table.getRange({ start: this.#keyOf(sequence), limit: 1, reverse: true })) return key
    throw new Error(`queue: entry ${sequence} is missing`)
  }

  #footprintOf(key: Buffer, record: Buffer): number {
    return this.#table.footprintOf?.(key, record) ?? footprintInPages(key, record)
  }

  #sequenceOf(key: Buffer): number {
    return Number(key.readBigUInt64BE(this.#prefix.length))
  }

  #keyOf(sequence: number): Buffer {
    const key = Buffer.allocUnsafe(this.#prefix.length + SEQUENCE_BYTES)
    key.set(this.#prefix)
    key.writeBigUInt64BE(BigInt(sequence), this.#prefix.length)
    return key
  }
}

/** Like DurableQueue.read, but skips damaged chunks. */
export function readIntact(queue: DurableQueue, sequence: number, countMax: number): QueueEntry[] {
  for (let from = sequence; from < queue.nextSequence; from++) {
    try {
      return queue.read(from, countMax)
    } catch (error) {
      if (!(error instanceof DamagedChunk)) throw error
    }
  }
  return []
}

/** The entries of the chunk that begins at `begin`, with replacements [from, to) applied. */
function replaced(
  chunk: Slices,
  begin: number,
  sequences: readonly number[],
  entries: Slices,
  from: number,
  to: number,
): EntryRange[] {
  const ranges: EntryRange[] = []
  let kept = 0
  for (let at = from; at < to; at++) {
    const index = (sequences[at] as number) - begin
    assert(index >= kept, 'queue: sequences to replace must ascend')
    ranges.push({ slices: chunk, from: kept, to: index }, { slices: entries, from: at, to: at + 1 })
    kept = index + 1
  }
  ranges.push({ slices: chunk, from: kept, to: chunk.count })
  return ranges
}

/** Whether this is the key of a queue's state. The prefix has `prefixBytes` bytes. */
export function isStateKey(key: Buffer, prefixBytes: number): boolean {
  return key.subarray(prefixBytes).equals(STATE_KEY)
}

/** @throws Fault STORE_DAMAGED, STORE_VERSION. */
export function openState(stored: Buffer): QueueState {
  const state = openRecord(stored, STATE_VERSION, 'queue')
  if (state.length !== STATE_BYTES) {
    throw new Fault('STORE_DAMAGED', `queue: found a state of ${state.length} bytes, expected ${STATE_BYTES}`)
  }
  return { next: state.readDoubleLE(0), first: state.readDoubleLE(8), footprint: state.readDoubleLE(16) }
}

/** The bytes that a record occupies in LMDB's pages. */
export function footprintInPages(key: Buffer, record: Buffer): number {
  const node = NODE_HEADER_BYTES + key.length + record.length
  if (node <= NODE_BYTES_MAX) return node
  return NODE_HEADER_BYTES + key.length + Math.ceil((PAGE_HEADER_BYTES + record.length) / PAGE_BYTES) * PAGE_BYTES
}
