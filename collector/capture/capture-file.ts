import { closeSync, fstatSync, statSync } from 'node:fs'
import {
  type ByteSource,
  type FileKind,
  openBytes,
  STANDARD_INPUT,
  WithHead,
  withPathOf,
} from '../../engine/kernel/process/byte-source.ts'
import { compressionOf, DecompressedBytes, otherFormat } from '../../engine/kernel/process/decompressed-bytes.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { openInput } from '../../engine/kernel/process/input-file.ts'
import { userText } from '../../engine/kernel/process/ownership.ts'
import { controlOf } from '../../engine/kernel/process/path-owner.ts'
import type { BatchPool } from '../batch/batch-pool.ts'
import type { FrameBatch } from '../batch/frame-batch.ts'
import { CAPTURE_HEAD_BYTES, FILE_CHUNK_BYTES, STOP_CHECK_MS } from '../limits.ts'
import { PCAP_HEADER_BYTES, PcapReader, pcapByteOrder, type RecordReader } from './pcap-file.ts'
import { BLOCK_SECTION_HEADER, PcapngReader } from './pcapng-file.ts'
import type { RoundFiller } from './round.ts'

const CAPTURE_FILE: FileKind = {
  what: 'capture file',
  unreadable: 'CAPTURE_UNREADABLE',
  damaged: 'CAPTURE_DAMAGED',
}

/**
 * Opens a capture file that a thread will read, with the rights of the user who controls its path:
 * a thread cannot change its user. undefined: it is no regular file, and the thread opens it. Only
 * a thread can wait for the other end of a pipe, and a pipe that is opened must be read.
 *
 * @throws Fault CAPTURE_UNREADABLE, with the path
 */
export function openCapture(path: string): number | undefined {
  if (path === STANDARD_INPUT) return undefined
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) {
    const { owner } = controlOf('', path, { isRead: true })
    if (owner === undefined) return undefined
    const why = `${userText(owner.uid)} controls this path; run this as that user, or give the capture by standard input`
    throw new Fault(CAPTURE_FILE.unreadable, `${path}: ${why}`)
  }
  try {
    const descriptor = openInput(path, { what: '', code: CAPTURE_FILE.unreadable, isRegular: true })
    if (fstatSync(descriptor).isFile()) return descriptor
    closeSync(descriptor)
    return undefined
  } catch (error) {
    throw withPath(path, error)
  }
}

/**
 * A capture file of any supported format, compressed or not, from a file or a pipe. The caller
 * provides the buffers. fill() writes bytes into a buffer and the reader walks the complete records
 * in it. The caller copies the incomplete rest to the start of the next buffer.
 */
export class CaptureFile {
  readonly reader: RecordReader
  readonly source: ByteSource
  /** Why the file ended early: one line with the offset. Undefined if the file is intact. */
  damage: string | undefined
  ended = false
  /** Bytes read to detect the format, until fill() has returned them. */
  #head: Uint8Array
  /** Offset of the buffer's first byte in the (uncompressed) file. */
  #base: number

  /** The error that followed directly after the head. */
  readonly #headFault: Error | undefined
  #stopped = false

  private constructor(source: ByteSource, head: Uint8Array, reader: RecordReader, headFault?: Error) {
    this.#headFault = headFault
    this.source = source
    this.reader = reader
    // The file header is already read. The records begin after it.
    this.#head = head.subarray(reader.at)
    this.#base = reader.at
    reader.at = 0
  }

  /**
   * Opens a file, a named pipe or, for "-", standard input, and detects the format.
   *
   * @param descriptor of the path, if it was opened before
   * @throws Fault CAPTURE_UNREADABLE, CAPTURE_FORMAT, CAPTURE_DAMAGED, with the path.
   */
  static async open(path: string, descriptor?: number): Promise<CaptureFile> {
    let source: ByteSource | undefined
    try {
      source = openBytes(path, CAPTURE_FILE, descriptor)
      return await CaptureFile.of(source)
    } catch (error) {
      source?.close()
      throw withPath(path, error)
    }
  }

  get format(): 'pcap' | 'pcapng' {
    return this.reader instanceof PcapngReader ? 'pcapng' : 'pcap'
  }

  /** Detects the format of a source. @throws Fault CAPTURE_FORMAT, CAPTURE_DAMAGED. */
  static async of(source: ByteSource): Promise<CaptureFile> {
    const { head } = await readHead(source)
    const compression = compressionOf(head)
    if (compression === undefined) return new CaptureFile(source, head, readerOf(head))
    const unpacked = new DecompressedBytes(new WithHead(source, head), compression, CAPTURE_FILE)
    const start = await readHead(unpacked)
    return new CaptureFile(unpacked, start.head, readerOf(start.head), start.fault)
  }

  /**
   * Reads bytes into [at, end) of the buffer, after the bytes kept from reader.at on. Returns the
   * end of the bytes now in the buffer. That is less than `end` at the end of the file, or when a
   * pipe has no more bytes for now.
   */
  async fill(bytes: Uint8Array, at: number, end: number): Promise<number> {
    let filled = at
    if (this.#head.length > 0) {
      const copied = Math.min(this.#head.length, end - filled)
      bytes.set(this.#head.subarray(0, copied), filled)
      this.#head = this.#head.subarray(copied)
      filled += copied
      if (this.source.live && this.#head.length === 0) return filled
    }
    while (filled < end && !this.ended) {
      const got = await this.#read(bytes, filled, end - filled)
      filled += got
      if (this.source.live) break
    }
    return filled
  }

  async #read(bytes: Uint8Array, at: number, count: number): Promise<number> {
    try {
      // A skipped block may be longer than any buffer.
      while (this.reader.skipBytes > 0) {
        const skipped = await this.source.read(bytes, at, Math.min(count, this.reader.skipBytes))
        this.reader.skipBytes -= skipped
        this.#base += skipped
        if (skipped === 0) {
          this.ended = true
          return 0
        }
      }
      if (this.#headFault !== undefined) throw this.#headFault
      const got = await this.source.read(bytes, at, count)
      if (got === 0) this.ended = true
      return got
    } catch (error) {
      if (this.#stopped) return 0
      const found = error instanceof Fault ? error.message : (error as NodeJS.ErrnoException).code
      if (found === undefined) throw error
      // The records before the error are used, for example of a truncated compressed file.
      this.ended = true
      this.damage = `byte ${this.position + at - this.reader.at}: ${found}`
      return 0
    }
  }

  /** Records that the caller moved the bytes from reader.at on to `at`. */
  moved(at: number): void {
    this.#base += this.reader.at - at
    this.reader.at = at
  }

  /** Offset of the next record in the (uncompressed) file. */
  get position(): number {
    return this.#base + this.reader.at
  }

  /**
   * Called after the file has ended and no complete record is left. `end` is the end of the bytes.
   * Sets `damage` if the remaining bytes are not a clean end.
   */
  finish(end: number): void {
    if (this.reader.damage !== undefined) this.damage = `byte ${this.position}: ${this.reader.damage}`
    else if (this.reader.skipBytes > 0)
      this.damage ??= `byte ${this.position}: found the end of the file, expected ${this.reader.skipBytes} bytes more of a block`
    else if (this.reader.at < end)
      this.damage ??= `byte ${this.position}: ${this.reader.endDamage(end - this.reader.at)}`
  }

  /** Stops waiting for more bytes. */
  stop(): void {
    this.#stopped = true
    this.ended = true
    this.source.close()
  }

  close(): void {
    this.source.close()
  }
}

/**
 * Reads the first bytes: enough to detect the format and, for a regular file, to examine the first
 * records.
 */
async function readHead(source: ByteSource): Promise<{ head: Uint8Array; fault?: Error }> {
  const head = new Uint8Array(CAPTURE_HEAD_BYTES)
  let filled = 0
  try {
    while (filled < head.length) {
      const got = await source.read(head, filled, head.length - filled)
      filled += got
      if (got === 0 || (source.live && filled >= PCAP_HEADER_BYTES)) break
    }
  } catch (error) {
    // A small compressed file is truncated: the bytes before the error are used.
    if (filled < PCAP_HEADER_BYTES) throw error
    return { head: head.subarray(0, filled), fault: error as Error }
  }
  return { head: head.subarray(0, filled) }
}

/** Whether a file that begins with these bytes is a capture file. At least four bytes decide. */
export function isCapture(head: Uint8Array): boolean {
  const view = new DataView(head.buffer, head.byteOffset, head.length)
  return head.length >= 4 && (view.getUint32(0) === BLOCK_SECTION_HEADER || pcapByteOrder(view, 0) !== undefined)
}

function readerOf(head: Uint8Array): RecordReader {
  const view = new DataView(head.buffer, head.byteOffset, head.length)
  if (head.length >= 4) {
    if (view.getUint32(0) === BLOCK_SECTION_HEADER) return new PcapngReader(0)
    const littleEndian = pcapByteOrder(view, 0)
    if (littleEndian !== undefined) {
      if (head.length < PCAP_HEADER_BYTES) {
        const found = `found ${head.length} bytes, expected a file header of ${PCAP_HEADER_BYTES}`
        throw new Fault('CAPTURE_DAMAGED', `byte 0: ${found}`)
      }
      return new PcapReader(view, 0, head.length, littleEndian)
    }
  }
  throw new Fault('CAPTURE_FORMAT', describeFormat(head))
}

function describeFormat(start: Uint8Array): string {
  if (start.length === 0) return 'the file is empty, expected a pcap or pcapng capture file'
  const other = otherFormat(start)
  if (other !== undefined) {
    return `byte 0: found what looks like ${other.format}, expected a capture file; ${other.remedy}`
  }
  return 'not a pcap or pcapng capture file'
}

/**
 * Returns the latest time of any packet in a capture file, in milliseconds since 1970, or undefined
 * if there is none. Reads the whole file.
 *
 * @throws Fault CAPTURE_UNREADABLE, CAPTURE_FORMAT, CAPTURE_DAMAGED.
 */
export async function latestTimeMs(path: string): Promise<number | undefined> {
  const file = await CaptureFile.open(path)
  try {
    const bytes = new Uint8Array(FILE_CHUNK_BYTES)
    const view = new DataView(bytes.buffer)
    const { reader } = file
    let latestMs = -1
    for (let end = 0; ; ) {
      end = await file.fill(bytes, end, bytes.length)
      while (reader.next(view, end)) latestMs = Math.max(latestMs, reader.seconds * 1000 + reader.nanoseconds / 1e6)
      if (file.ended || reader.damage !== undefined) return latestMs < 0 ? undefined : latestMs
      bytes.copyWithin(0, reader.at, end)
      end -= reader.at
      file.moved(0)
    }
  } finally {
    file.close()
  }
}

/**
 * Returns the error with the path before its message. A system error becomes CAPTURE_UNREADABLE.
 */
function withPath(path: string, error: unknown): Error {
  return withPathOf(CAPTURE_FILE, path, error)
}

/**
 * Reads a capture file into batches. Each chunk is read directly into a batch's frames area, and
 * its records are listed in place. An incomplete record at the end of one batch is copied to the
 * start of the next.
 */
export async function feedFile(file: CaptureFile, pool: BatchPool, filler: RoundFiller): Promise<void> {
  const { reader, source } = file
  const watch = source.live ? setInterval(() => pool.stopped && file.stop(), STOP_CHECK_MS) : undefined
  let before: FrameBatch | undefined
  let end = 0
  for (let over = false; !over; ) {
    const batch = filler.begin()
    if (batch === undefined) break
    const start = batch.framesStart
    const left = before === undefined ? 0 : end - reader.at
    // Lanes may still read the previous batch. Reading it here is safe: only this thread writes
    // frames areas.
    if (before !== undefined) batch.bytes.set(before.bytes.subarray(reader.at, end), start)
    file.moved(start)
    end = await file.fill(batch.bytes, start + left, batch.framesEnd)
    before = batch
    over = !listRecords(file, batch, end, filler) && (file.ended || reader.damage !== undefined)
    // Bytes from a pipe are flushed at once.
    if (over ? pool.stopped : true) filler.flush(source.bytesRead)
  }
  clearInterval(watch)
  if (pool.stopped) return filler.abandon()
  file.finish(end)
  filler.finish(source.bytesRead)
}

/**
 * Lists the complete records before `end`. Returns true if the batch is full and there may be more
 * records.
 */
function listRecords({ reader }: CaptureFile, batch: FrameBatch, end: number, filler: RoundFiller): boolean {
  for (let freeEntries = batch.freeEntries; freeEntries > 0; freeEntries--) {
    if (!reader.next(batch.view, end)) return false
    filler.list(batch, reader.offset, reader.captured, reader.seconds, reader.nanoseconds, reader.linkType)
  }
  return true
}
