import { Fault, isFault } from '../process/error-codes.ts'
import { openRecord, RECORD_HEADER_BYTES, sealInPlace } from './record.ts'

/*
 * A chunk: entries of a queue in one record. Numbers are little-endian.
 *
 *   offset  width  content
 *   0       8      time of writing, f64, milliseconds since 1970
 *   8       2      number of entries n, from 1
 *   10      2 x n  length of each entry in bytes
 *   ...            the entries
 */
const RECORD_VERSION = 1
const WRITTEN_OFFSET = 0
const COUNT_OFFSET = 8
const LENGTHS_OFFSET = 10
const LENGTH_BYTES = 2
export const ENTRY_BYTES_MAX = 0xffff

/** Short, because replacing an entry rewrites its whole chunk. */
export const CHUNK_ENTRIES_MAX = 256
export const CHUNK_BYTES_MAX = 128 * 1024

/** Byte strings in one buffer: entry i (below count) is bytes [starts[i], ends[i]). */
export interface Slices {
  readonly bytes: Uint8Array
  readonly starts: Uint32Array
  readonly ends: Uint32Array
  readonly count: number
}

/** Copies entries into one buffer. */
export function slicesOf(entries: readonly Uint8Array[]): Slices {
  const starts = new Uint32Array(entries.length)
  const ends = new Uint32Array(entries.length)
  let at = 0
  for (const [index, { length }] of entries.entries()) {
    starts[index] = at
    at += length
    ends[index] = at
  }
  return { bytes: Buffer.concat(entries), starts, ends, count: entries.length }
}

/** The total length of entries [from, to), in bytes. */
export function bytesBetween({ starts, ends }: Slices, from: number, to: number): number {
  let bytes = 0
  for (let entry = from; entry < to; entry++) bytes += (ends[entry] ?? 0) - (starts[entry] ?? 0)
  return bytes
}

/**
 * Returns the end of a chunk that begins with entry `from`: as many entries as the limits allow, at
 * least one.
 */
export function chunkEnd({ starts, ends, count }: Slices, from: number): number {
  let bytes = 0
  let to = from
  while (to < count && to - from < CHUNK_ENTRIES_MAX) {
    bytes += (ends[to] ?? 0) - (starts[to] ?? 0)
    if (bytes > CHUNK_BYTES_MAX && to > from) break
    to++
  }
  return to
}

/** Entries [from, to). */
export interface EntryRange {
  readonly slices: Slices
  readonly from: number
  readonly to: number
}

/**
 * Returns the record of one chunk with the entries of all ranges. Adjacent entries are copied
 * together.
 *
 * @throws RangeError for an entry longer than ENTRY_BYTES_MAX
 */
export function sealChunk(ranges: readonly EntryRange[], writtenMs: number): Buffer {
  let count = 0
  let entriesBytes = 0
  for (const { slices, from, to } of ranges) {
    count += to - from
    entriesBytes += bytesBetween(slices, from, to)
  }
  let lengthAt = RECORD_HEADER_BYTES + LENGTHS_OFFSET
  let at = lengthAt + count * LENGTH_BYTES
  const record = Buffer.allocUnsafe(at + entriesBytes)
  record.writeDoubleLE(writtenMs, RECORD_HEADER_BYTES + WRITTEN_OFFSET)
  record.writeUInt16LE(count, RECORD_HEADER_BYTES + COUNT_OFFSET)
  for (const { slices, from, to } of ranges) {
    const { bytes, starts, ends } = slices
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
    at += runEnd - runStart
  }
  return sealInPlace(RECORD_VERSION, record)
}

/** The entries of a chunk, read in place. One instance can read many chunks. */
export class ChunkReader implements Slices {
  bytes: Buffer = Buffer.alloc(0)
  readonly starts = new Uint32Array(CHUNK_ENTRIES_MAX)
  readonly ends = new Uint32Array(CHUNK_ENTRIES_MAX)
  count = 0
  /** Milliseconds since 1970. */
  writtenMs = 0

  /**
   * Reads the record of a chunk. After an error there are no entries.
   *
   * @throws Fault STORE_DAMAGED if the checksum fails or the entries do not fill the record
   *   exactly; STORE_VERSION
   */
  open(record: Buffer): void {
    this.count = 0
    const chunk = openRecord(record, RECORD_VERSION, 'queue')
    const count = chunk.length < LENGTHS_OFFSET ? 0 : chunk.readUInt16LE(COUNT_OFFSET)
    let at = LENGTHS_OFFSET + count * LENGTH_BYTES
    if (count === 0 || count > CHUNK_ENTRIES_MAX || at > chunk.length) {
      throw new Fault('STORE_DAMAGED', `queue: a chunk of ${chunk.length} bytes cannot have ${count} entries`)
    }
    let lengthAt = LENGTHS_OFFSET
    for (let entry = 0; entry < count; entry++, lengthAt += LENGTH_BYTES) {
      this.starts[entry] = at
      at += (chunk[lengthAt] ?? 0) | ((chunk[lengthAt + 1] ?? 0) << 8)
      this.ends[entry] = at
    }
    if (at !== chunk.length) {
      throw new Fault('STORE_DAMAGED', `queue: ${count} entries fill ${at} bytes, their chunk has ${chunk.length}`)
    }
    this.bytes = chunk
    this.writtenMs = chunk.readDoubleLE(WRITTEN_OFFSET)
    this.count = count
  }

  /** Reads a record. Returns false if it is damaged. @throws Fault STORE_VERSION. */
  openIfIntact(record: Buffer): boolean {
    try {
      this.open(record)
      return true
    } catch (error) {
      if (isFault(error, 'STORE_DAMAGED')) return false
      throw error
    }
  }

  /** One entry, as a view of the record. */
  entry(index: number): Buffer {
    return this.bytes.subarray(this.starts[index], this.ends[index])
  }
}
