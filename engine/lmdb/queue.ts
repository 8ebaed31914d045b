import { strict as assert } from 'node:assert'
import { Fault, isFault } from '../process/error-codes.ts'
import { openRecord, RECORD_HEADER_BYTES, sealInPlace, sealRecord } from './record.ts'

/*
 * A durable first-in, first-out queue of byte strings in a table that it shares with others, told apart by a prefix. Entries stand in chunks,
 * many to a record, because LMDB's work is by the record: one of 256 small entries costs about as much as one of a single entry.
 *
 *   key                                 value
 *   prefix + sequence of a chunk's      record: when it was written, in ms since 1970, f64; number of entries, u16; their lengths,
 *   first entry, u64 big-endian         u16 each; the entries; all little-endian
 *   prefix + ff ff ff ff ff ff ff ff    record: next sequence, first sequence, footprint, f64 each, little-endian
 *
 * What always holds:
 *   1. Sequences start at 1 and grow by one; none is given twice, through any crash and also when the queue is empty, since entries and next
 *      sequence are written in one transaction.
 *   2. Entries leave only at the front; so first .. next - 1 are all there. The first chunk may begin with some that have left.
 *   3. All changes happen inside the owner's transaction, so that they commit or vanish with what else it does.
 */
const SEQUENCE_BYTES = 8
const MARK = Buffer.alloc(SEQUENCE_BYTES, 0xff)
const RECORD_VERSION = 1
const STATE_BYTES = 3 * 8

const WRITTEN_OFFSET = 0
const COUNT_OFFSET = 8
const LENGTHS_OFFSET = 10
const LENGTH_BYTES = 2
export const ENTRY_BYTES_MAX = 0xffff

/** A chunk is rewritten whole when one of its entries is replaced, so it is short. */
export const CHUNK_ENTRIES_MAX = 256
const CHUNK_BYTES_MAX = 128 * 1024

/** So many entries at most join a chunk that is there, while it is no longer than this, in bytes, and so young, in milliseconds. */
const JOIN_ENTRIES_MAX = 64
const JOIN_BYTES_MAX = 16 * 1024
const JOIN_MS = 60_000

/** Chunks that are removed at once: what is held in memory meanwhile. */
const CHUNKS_PER_STEP = 64

/** LMDB's pages (mdb.c): a value that does not fit twice into one has pages of its own, each chain with a header. */
const PAGE_BYTES = 4096
const PAGE_HEADER_BYTES = 16
const NODE_BYTES_MAX = (PAGE_BYTES - PAGE_HEADER_BYTES) / 2
const NODE_HEADER_BYTES = 10

/** What the queue asks of its table; LMDB's tables have it. */
export interface QueueTable {
  get(key: Buffer): Buffer | undefined
  putSync(key: Buffer, value: Buffer): unknown
  removeSync(key: Buffer): unknown
  /** What a record takes, in bytes, where that is not LMDB's pages. */
  footprintOf?(key: Buffer, value: Buffer): number
  /** Ascending from `start` on and before `end`, or with `reverse` descending from `start` on. */
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

/** Entries that stand in bytes of someone else's: entry i, below count, is [starts[i], ends[i]). */
export interface Slices {
  readonly bytes: Uint8Array
  readonly starts: Uint32Array
  readonly ends: Uint32Array
  readonly count: number
}

/** A chunk's entries where they lie, of which those from `from` on wait. One object is lent for all chunks of a reading. */
export interface LentChunk {
  /** Of the entry at `from`. */
  sequence: number
  from: number
  /** Behind the last entry. Of a damaged chunk nothing but `sequence` and `end` is known, and its slices are empty. */
  end: number
  damaged: boolean
  readonly slices: { bytes: Uint8Array; readonly starts: Uint32Array; readonly ends: Uint32Array; count: number }
}

export interface QueueState {
  readonly next: number
  readonly first: number
  readonly footprint: number
}

interface Chunk {
  readonly writtenMs: number
  readonly entries: Buffer[]
}

/** What waits cannot be read; the rest can. */
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
    this.#stateKey = Buffer.concat([prefix, MARK])
  }

  /** The sequence that the next entry will get. */
  get nextSequence(): number {
    return this.#state().next
  }

  /** The oldest sequence that waits, or nextSequence where none does. */
  get firstSequence(): number {
    return this.#state().first
  }

  /** How many entries wait. */
  get length(): number {
    const { next, first } = this.#state()
    return next - first
  }

  /** What the queue takes of LMDB's pages, in bytes, as far as can be told from the sizes of its records. */
  get footprintBytes(): number {
    return this.#state().footprint
  }

  /** When the oldest chunk was written, in milliseconds since 1970 (0: not known), and its last entry; undefined when none waits. */
  get oldestChunk(): { readonly writtenMs: number; readonly lastSequence: number } | undefined {
    const { next, first } = this.#state()
    if (first === next) return undefined
    const key = this.#chunkKey(first)
    const writtenMs = openChunkIfWhole(this.#get(key))?.writtenMs ?? 0
    return { writtenMs, lastSequence: this.#endOf(key, next) - 1 }
  }

  /**
   * Appends inside a transaction of the caller; answers the sequence of the first.
   *
   * @throws RangeError for an entry longer than ENTRY_BYTES_MAX.
   */
  append(entries: readonly Uint8Array[], nowMs = Date.now()): number {
    const { next, first, footprint } = this.#state()
    if (entries.length === 0) return next
    const joined = this.#joinLast(entries, next, first, nowMs)
    let sequence = joined === undefined ? next : next + entries.length
    let added = joined ?? 0
    for (let from = joined === undefined ? 0 : entries.length; from < entries.length; ) {
      const to = chunkEnd(entries, from)
      const key = this.#keyOf(sequence)
      const record = sealedChunk(entries, from, to, nowMs)
      this.#table.putSync(key, record)
      added += this.#footprintOf(key, record)
      sequence += to - from
      from = to
    }
    this.#putState({ next: sequence, first, footprint: footprint + added })
    return next
  }

  /** The same of entries that were never made into objects of their own: ten thousand of those cost more than all their chunks. */
  appendSlices({ bytes, starts, ends, count }: Slices, nowMs = Date.now()): number {
    if (count <= JOIN_ENTRIES_MAX) {
      const entries = Array.from({ length: count }, (_, entry) => bytes.subarray(starts[entry], ends[entry]))
      return this.append(entries, nowMs)
    }
    const { next, first, footprint } = this.#state()
    let added = 0
    for (let from = 0; from < count; ) {
      const to = chunkEndOfSlices(starts, ends, from, count)
      const key = this.#keyOf(next + from)
      const record = sealedSlices(bytes, starts, ends, from, to, nowMs)
      this.#table.putSync(key, record)
      added += this.#footprintOf(key, record)
      from = to
    }
    this.#putState({ next: next + count, first, footprint: footprint + added })
    return next
  }

  /** A few entries join the last chunk where they fit and it is young: else a quiet link makes a record of each. Answers by how much it grew. */
  #joinLast(entries: readonly Uint8Array[], next: number, first: number, nowMs: number): number | undefined {
    const chunk = entries.length > JOIN_ENTRIES_MAX ? undefined : this.#wholeChunk(next - 1, { next, first })
    if (chunk === undefined) return undefined
    const { key, before } = chunk
    const count = chunk.entries.length + entries.length
    const young = nowMs >= chunk.writtenMs && nowMs - chunk.writtenMs < JOIN_MS
    if (!young || count > CHUNK_ENTRIES_MAX || before.length > JOIN_BYTES_MAX) return undefined
    const record = sealedChunk([...chunk.entries, ...entries], 0, count, chunk.writtenMs)
    this.#table.putSync(key, record)
    return this.#footprintOf(key, record) - this.#footprintOf(key, before)
  }

  /** Writes entries anew that wait, inside a transaction of the caller; by ascending sequence. Those that have left are passed over. */
  replace(changes: readonly { readonly sequence: number; readonly entry: Buffer }[]): void {
    const state = this.#state()
    let grown = 0
    let at = 0
    while (at < changes.length) {
      const { sequence } = changes[at] as { sequence: number }
      const chunk = this.#wholeChunk(sequence, state)
      if (chunk === undefined) {
        at++
        continue
      }
      const { key, before, writtenMs, entries } = chunk
      const first = this.#sequenceOf(key)
      for (; at < changes.length; at++) {
        const change = changes[at] as { sequence: number; entry: Buffer }
        if (change.sequence >= first + entries.length) break
        entries[change.sequence - first] = change.entry
      }
      const record = sealedChunk(entries, 0, entries.length, writtenMs)
      grown += this.#footprintOf(key, record) - this.#footprintOf(key, before)
      this.#table.putSync(key, record)
    }
    if (grown !== 0) this.#putState({ ...state, footprint: state.footprint + grown })
  }

  /**
   * Entries from `sequence` on and before `before`, oldest first: at most `countMax`, and no more once they reach
   * `bytesMax` together. They end before a damaged chunk.
   *
   * @throws DamagedChunk where the first of them stands in one; removeDamaged() lets it go.
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
    let bytes = 0
    for (const { key, value } of this.#table.getRange({ start: this.#chunkKey(from), end: this.#keyOf(end) })) {
      let at = this.#sequenceOf(key)
      const chunk = openChunkIfWhole(value)
      if (chunk === undefined) {
        if (read.length > 0) return read
        throw new DamagedChunk(`queue: entries from ${at} on: the checksum does not match`)
      }
      for (const entry of chunk.entries) {
        if (at >= end) return read
        if (at >= from) {
          read.push({ sequence: at, bytes: entry })
          bytes += entry.length
          if (read.length === countMax || bytes >= bytesMax) return read
        }
        at++
      }
    }
    return read
  }

  /**
   * All chunks that hold entries which wait now, oldest first: for reading many without an object for each entry. What is lent is valid until the
   * next is asked for, and not over an await.
   */
  *chunks(): Generator<LentChunk> {
    const { next, first } = this.#state()
    if (first === next) return
    const lent: LentChunk = { sequence: 0, from: 0, end: 0, damaged: false, slices: emptySlices() }
    let before: { readonly key: Buffer; readonly value: Buffer } | undefined
    // A damaged chunk does not know where it ends, but what follows does.
    for (const chunk of this.#table.getRange({ start: this.#chunkKey(first), end: this.#keyOf(next) })) {
      if (before !== undefined) yield this.#lend(lent, before, first, this.#sequenceOf(chunk.key))
      before = chunk
    }
    if (before !== undefined) yield this.#lend(lent, before, first, next)
  }

  #lend(
    lent: LentChunk,
    { key, value }: { readonly key: Buffer; readonly value: Buffer },
    first: number,
    end: number,
  ): LentChunk {
    const begin = this.#sequenceOf(key)
    lent.sequence = Math.max(begin, first)
    lent.from = lent.sequence - begin
    lent.end = end
    lent.damaged = !lendSlices(value, end - begin, lent.slices)
    return lent
  }

  /** Removes every entry up to and including `sequence`, inside a transaction of the caller; answers how many went. */
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
        // Told by what follows, since a damaged chunk does not know. The last may hold entries that stay.
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

  /** Removes the oldest chunk if it is damaged, inside a transaction of the caller; answers how many entries went with it. */
  removeDamaged(): number {
    const { next, first } = this.#state()
    if (first === next) return 0
    const key = this.#chunkKey(first)
    if (openChunkIfWhole(this.#get(key)) !== undefined) return 0
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
    this.#table.putSync(this.#stateKey, sealRecord(RECORD_VERSION, state))
  }

  #get(key: Buffer): Buffer {
    const value = this.#table.get(key)
    assert(value !== undefined, `queue: chunk ${this.#sequenceOf(key)} is missing`)
    return value
  }

  /** The chunk that holds this entry, if that waits and the chunk is whole; `before` is its record. */
  #wholeChunk(
    sequence: number,
    { first, next }: Pick<QueueState, 'first' | 'next'>,
  ): (Chunk & { readonly key: Buffer; readonly before: Buffer }) | undefined {
    if (sequence < first || sequence >= next) return undefined
    const key = this.#chunkKey(sequence)
    const before = this.#get(key)
    const chunk = openChunkIfWhole(before)
    return chunk && { ...chunk, key, before }
  }

  /** The sequence of the first entry of the chunk behind this one, or nextSequence. */
  #endOf(key: Buffer, next: number): number {
    const behind = this.#keyOf(this.#sequenceOf(key) + 1)
    for (const { key: following } of this.#table.getRange({ start: behind, end: this.#stateKey, limit: 1 })) {
      return this.#sequenceOf(following)
    }
    return next
  }

  /** Key of the chunk that holds this entry, which waits. */
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

/** Where the chunk that begins with entry `from` ends. */
function chunkEnd(entries: readonly Uint8Array[], from: number): number {
  let bytes = 0
  let to = from
  while (to < entries.length && to - from < CHUNK_ENTRIES_MAX) {
    bytes += (entries[to] as Uint8Array).length
    if (bytes > CHUNK_BYTES_MAX && to > from) break
    to++
  }
  return to
}

function sealedChunk(entries: readonly Uint8Array[], from: number, to: number, writtenMs: number): Buffer {
  const payload = RECORD_HEADER_BYTES
  const entriesAt = payload + LENGTHS_OFFSET + (to - from) * LENGTH_BYTES
  let bytes = entriesAt
  for (let entry = from; entry < to; entry++) bytes += (entries[entry] as Uint8Array).length
  const record = Buffer.allocUnsafe(bytes)
  record.writeDoubleLE(writtenMs, payload + WRITTEN_OFFSET)
  record.writeUInt16LE(to - from, payload + COUNT_OFFSET)
  let at = entriesAt
  for (let entry = from; entry < to; entry++) {
    const found = entries[entry] as Uint8Array
    if (found.length > ENTRY_BYTES_MAX)
      throw new RangeError(`an entry has ${found.length} bytes, ${ENTRY_BYTES_MAX} fit`)
    record.writeUInt16LE(found.length, payload + LENGTHS_OFFSET + (entry - from) * LENGTH_BYTES)
    record.set(found, at)
    at += found.length
  }
  return sealInPlace(RECORD_VERSION, record)
}

/** As chunkEnd. */
function chunkEndOfSlices(starts: Uint32Array, ends: Uint32Array, from: number, count: number): number {
  let bytes = 0
  let to = from
  while (to < count && to - from < CHUNK_ENTRIES_MAX) {
    bytes += (ends[to] ?? 0) - (starts[to] ?? 0)
    if (bytes > CHUNK_BYTES_MAX && to > from) break
    to++
  }
  return to
}

/** As sealedChunk. Entries that stand one behind the other are copied at once. */
function sealedSlices(
  bytes: Uint8Array,
  starts: Uint32Array,
  ends: Uint32Array,
  from: number,
  to: number,
  writtenMs: number,
): Buffer {
  const payload = RECORD_HEADER_BYTES
  const entriesAt = payload + LENGTHS_OFFSET + (to - from) * LENGTH_BYTES
  let recordBytes = entriesAt
  for (let entry = from; entry < to; entry++) recordBytes += (ends[entry] ?? 0) - (starts[entry] ?? 0)
  const record = Buffer.allocUnsafe(recordBytes)
  record.writeDoubleLE(writtenMs, payload + WRITTEN_OFFSET)
  record.writeUInt16LE(to - from, payload + COUNT_OFFSET)
  let lengthAt = payload + LENGTHS_OFFSET
  let at = entriesAt
  let runStart = starts[from] ?? 0
  let runEnd = runStart
  for (let entry = from; entry < to; entry++) {
    const start = starts[entry] ?? 0
    const end = ends[entry] ?? 0
    const length = end - start
    if (length > ENTRY_BYTES_MAX) throw new RangeError(`an entry has ${length} bytes, ${ENTRY_BYTES_MAX} fit`)
    record[lengthAt++] = length & 0xff
    record[lengthAt++] = length >>> 8
    if (start !== runEnd) {
      record.set(bytes.subarray(runStart, runEnd), at)
      at += runEnd - runStart
      runStart = start
    }
    runEnd = end
  }
  record.set(bytes.subarray(runStart, runEnd), at)
  return sealInPlace(RECORD_VERSION, record)
}

function openChunk(record: Buffer): Chunk {
  const payload = openRecord(record, RECORD_VERSION, 'queue')
  const count = payload.readUInt16LE(COUNT_OFFSET)
  const entries = new Array<Buffer>(count)
  let at = LENGTHS_OFFSET + count * LENGTH_BYTES
  for (let entry = 0; entry < count; entry++) {
    const end = at + payload.readUInt16LE(LENGTHS_OFFSET + entry * LENGTH_BYTES)
    entries[entry] = payload.subarray(at, end)
    at = end
  }
  return { writtenMs: payload.readDoubleLE(WRITTEN_OFFSET), entries }
}

/** Whether a key of `prefixBytes` and a sequence is that of a queue's state. */
export function isStateKey(key: Buffer, prefixBytes: number): boolean {
  return key.subarray(prefixBytes).equals(MARK)
}

/** The state of a queue. @throws Fault STORE_DAMAGED, STORE_VERSION. */
export function openState(stored: Buffer): QueueState {
  const state = openRecord(stored, RECORD_VERSION, 'queue')
  if (state.length !== STATE_BYTES) {
    throw new Fault('STORE_DAMAGED', `queue: found a state of ${state.length} bytes, expected ${STATE_BYTES}`)
  }
  return { next: state.readDoubleLE(0), first: state.readDoubleLE(8), footprint: state.readDoubleLE(16) }
}

/**
 * The entries of a chunk whose lengths fill its record exactly.
 *
 * @throws Fault STORE_DAMAGED, STORE_VERSION
 */
export function wholeChunk(record: Buffer): readonly Buffer[] {
  const payload = openRecord(record, RECORD_VERSION, 'queue')
  const count = payload.length < LENGTHS_OFFSET ? 0 : payload.readUInt16LE(COUNT_OFFSET)
  const entriesAt = LENGTHS_OFFSET + count * LENGTH_BYTES
  if (count === 0 || entriesAt > payload.length) {
    throw new Fault('STORE_DAMAGED', `queue: a chunk of ${payload.length} bytes has no room for ${count} entries`)
  }
  let bytes = entriesAt
  for (let at = LENGTHS_OFFSET; at < entriesAt; at += LENGTH_BYTES) bytes += payload.readUInt16LE(at)
  if (bytes === payload.length) return openChunk(record).entries
  throw new Fault('STORE_DAMAGED', `queue: ${count} entries fill ${bytes} bytes, their chunk has ${payload.length}`)
}

function emptySlices(): LentChunk['slices'] {
  return {
    bytes: new Uint8Array(0),
    starts: new Uint32Array(CHUNK_ENTRIES_MAX),
    ends: new Uint32Array(CHUNK_ENTRIES_MAX),
    count: 0,
  }
}

/** As openChunk. Answers whether the record is whole and holds as many entries as its place in the queue says. */
function lendSlices(record: Buffer, expected: number, slices: LentChunk['slices']): boolean {
  slices.count = 0
  let payload: Buffer
  try {
    payload = openRecord(record, RECORD_VERSION, 'queue')
  } catch (error) {
    if (isFault(error, 'STORE_DAMAGED')) return false
    throw error
  }
  slices.bytes = payload
  const count = payload.readUInt16LE(COUNT_OFFSET)
  if (count !== expected || count > CHUNK_ENTRIES_MAX) return false
  let at = LENGTHS_OFFSET + count * LENGTH_BYTES
  let lengthAt = LENGTHS_OFFSET
  for (let entry = 0; entry < count; entry++, lengthAt += LENGTH_BYTES) {
    slices.starts[entry] = at
    at += (payload[lengthAt] ?? 0) | ((payload[lengthAt + 1] ?? 0) << 8)
    slices.ends[entry] = at
  }
  slices.count = count
  return true
}

/** undefined where the checksum fails: a disk or its driver wrote something else. */
function openChunkIfWhole(record: Buffer): Chunk | undefined {
  try {
    return openChunk(record)
  } catch (error) {
    if (isFault(error, 'STORE_DAMAGED')) return undefined
    throw error
  }
}

/** What a record takes of LMDB's pages. */
export function footprintInPages(key: Buffer, record: Buffer): number {
  const node = NODE_HEADER_BYTES + key.length + record.length
  if (node <= NODE_BYTES_MAX) return node
  return NODE_HEADER_BYTES + key.length + Math.ceil((PAGE_HEADER_BYTES + record.length) / PAGE_BYTES) * PAGE_BYTES
}
