import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { Fault } from '../../engine/process/error-codes.ts'
import { FILE_CHUNK_BYTES, SNAPLEN_BYTES_MAX } from '../limits.ts'

/**
 * Classic capture files (draft-ietf-opsawg-pcap), both byte orders, microseconds and nanoseconds.
 *
 *     file header, 24 bytes                            record header, 16 bytes
 *     byte  0  u32  magic number: order and unit       byte  0  u32  time: seconds since 1970
 *           4  u16  major version, 2                         4  u32  time: micro- or nanoseconds of the second
 *           6  u16  minor version, 4                         8  u32  captured length in bytes
 *           8  u32  reserved                                12  u32  original length in bytes
 *          12  u32  reserved                                16       the captured bytes
 *          16  u32  snaplen
 *          20  u32  link type in the low 16 bits
 */
const FILE_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16
const VERSION_MAJOR = 2
const MAGIC_MICROSECONDS = 0xa1b2_c3d4
const MAGIC_NANOSECONDS = 0xa1b2_3c4d

/** Reads up to `bytes` bytes to offset `at` of `into`; 0 at the end of the file. */
export type ReadBytes = (into: Uint8Array, at: number, bytes: number) => number

/**
 * The records of a capture file, one after the other, in place: next() moves to a record and its fields stay until the next call.
 * Memory is one chunk and one record, whatever the file's size.
 */
export class PcapFile {
  readonly linkType: number
  readonly bytes: Uint8Array
  readonly view: DataView
  /** The record: its bytes stand at [offset, offset + captured). */
  offset = 0
  captured = 0
  original = 0
  seconds = 0
  nanoseconds = 0
  /** Set when next() ended at damage. */
  damage: Fault | undefined

  readonly #read: ReadBytes
  readonly #littleEndian: boolean
  readonly #nanosecondUnit: number
  /** Bytes [#at, #end) of the buffer are not yet consumed; the buffer's first byte is byte #base of the file. */
  #at = 0
  #end = 0
  #base = 0
  #ended = false

  constructor(read: ReadBytes, chunkBytes = FILE_CHUNK_BYTES) {
    this.#read = read
    this.bytes = new Uint8Array(Math.max(chunkBytes, SNAPLEN_BYTES_MAX + RECORD_HEADER_BYTES))
    this.view = new DataView(this.bytes.buffer)
    if (!this.#fill(4)) throw new Fault('CAPTURE_FORMAT', whatIsIt(this.bytes.subarray(0, this.#end)))
    const magic = [true, false].map((littleEndian) => this.view.getUint32(0, littleEndian))
    const order = magic.findIndex((number) => number === MAGIC_MICROSECONDS || number === MAGIC_NANOSECONDS)
    if (order < 0) throw new Fault('CAPTURE_FORMAT', whatIsIt(this.bytes.subarray(0, this.#end)))
    if (!this.#fill(FILE_HEADER_BYTES)) {
      throw new Fault(
        'CAPTURE_DAMAGED',
        `byte 0: found ${this.#end} bytes, expected a file header of ${FILE_HEADER_BYTES}`,
      )
    }
    this.#littleEndian = order === 0
    this.#nanosecondUnit = magic[order] === MAGIC_NANOSECONDS ? 1 : 1000
    const major = this.view.getUint16(4, this.#littleEndian)
    if (major !== VERSION_MAJOR) {
      throw new Fault(
        'CAPTURE_FORMAT',
        `byte 4: found version ${major} of the capture file format, expected ${VERSION_MAJOR}`,
      )
    }
    this.linkType = this.view.getUint32(20, this.#littleEndian) & 0xffff
    this.#at = FILE_HEADER_BYTES
  }

  /** Offset in the file of what comes next. */
  get position(): number {
    return this.#base + this.#at
  }

  /** Moves to the next record. False at the end of the file, or at damage. */
  next(): boolean {
    if (this.damage !== undefined) return false
    if (!this.#fill(RECORD_HEADER_BYTES)) {
      const left = this.#end - this.#at
      return left === 0
        ? false
        : this.#damaged(`found ${left} bytes, expected a record header of ${RECORD_HEADER_BYTES}`)
    }
    let header = this.#at
    const littleEndian = this.#littleEndian
    const view = this.view
    const captured = view.getUint32(header + 8, littleEndian)
    // The file's own snaplen is not the measure: many writers exceed it.
    if (captured > SNAPLEN_BYTES_MAX) {
      return this.#damaged(`found a captured length of ${captured}, expected at most ${SNAPLEN_BYTES_MAX}`)
    }
    if (!this.#fill(RECORD_HEADER_BYTES + captured)) {
      const left = this.#end - this.#at - RECORD_HEADER_BYTES
      return this.#damaged(`found ${left} bytes behind the record header, expected a packet of ${captured}`)
    }
    header = this.#at
    this.captured = captured
    this.original = view.getUint32(header + 12, littleEndian)
    this.seconds = view.getUint32(header, littleEndian)
    this.nanoseconds = Math.min(view.getUint32(header + 4, littleEndian) * this.#nanosecondUnit, 999_999_999)
    this.offset = header + RECORD_HEADER_BYTES
    this.#at = this.offset + captured
    return true
  }

  #damaged(what: string): false {
    this.damage = new Fault('CAPTURE_DAMAGED', `byte ${this.position}: ${what}`)
    return false
  }

  /** True when `bytes` bytes stand behind #at. Moves what is left to the buffer's start when they would not fit behind it. */
  #fill(bytes: number): boolean {
    if (this.#end - this.#at >= bytes) return true
    if (this.#at + bytes > this.bytes.length) {
      this.bytes.copyWithin(0, this.#at, this.#end)
      this.#base += this.#at
      this.#end -= this.#at
      this.#at = 0
    }
    while (!this.#ended && this.#end - this.#at < bytes) {
      const got = this.#read(this.bytes, this.#end, this.bytes.length - this.#end)
      if (got === 0) this.#ended = true
      this.#end += got
    }
    return this.#end - this.#at >= bytes
  }
}

/** A capture file on disk. Throws a Fault that names the path. */
export function openPcapFile(path: string): { file: PcapFile; bytesTotal: number; close(): void } {
  let descriptor: number | undefined
  try {
    descriptor = openSync(path, 'r')
    const opened = descriptor
    const stat = fstatSync(opened)
    if (stat.isDirectory()) throw new Fault('CAPTURE_UNREADABLE', 'is a directory, expected a capture file')
    const file = new PcapFile((into, at, bytes) => readSync(opened, into, at, bytes, null))
    return { file, bytesTotal: stat.isFile() ? stat.size : 0, close: () => closeSync(opened) }
  } catch (error) {
    if (descriptor !== undefined) closeSync(descriptor)
    throw withPath(path, error)
  }
}

/**
 * The latest time of any packet in a capture file, in milliseconds since 1970; undefined where it has none. Reads the whole
 * file, as fast as it can be read.
 *
 * @throws Fault CAPTURE_UNREADABLE, CAPTURE_FORMAT.
 */
export function latestTimeMs(path: string): number | undefined {
  const { file, close } = openPcapFile(path)
  try {
    let latestMs = -1
    while (file.next()) latestMs = Math.max(latestMs, file.seconds * 1000 + file.nanoseconds / 1e6)
    return latestMs < 0 ? undefined : latestMs
  } catch (error) {
    throw withPath(path, error)
  } finally {
    close()
  }
}

/** The fault again, with the path before its text; an error of the system becomes CAPTURE_UNREADABLE. */
export function withPath(path: string, error: unknown): Error {
  if (error instanceof Fault) return new Fault(error.code, `${path}: ${error.message}`, { cause: error })
  const code = (error as NodeJS.ErrnoException).code
  if (code === undefined) return error as Error
  const reason: Record<string, string> = {
    ENOENT: 'no such file',
    EACCES: 'no permission to read it',
    EPERM: 'no permission to read it',
    ENOTDIR: 'a part of the path is no directory',
    EISDIR: 'is a directory, expected a capture file',
    EIO: 'the disk reports a read error',
  }
  return new Fault('CAPTURE_UNREADABLE', `${path}: ${reason[code] ?? code}`, { cause: error })
}

/** What files that are no pcap begin with (in hexadecimal), what they are, and the way to one. */
const OTHER_FORMATS: readonly (readonly [magic: string, format: string, way: string])[] = [
  ['0a0d0d0a', 'pcapng', 'convert it with: editcap -F pcap IN OUT'],
  ['34cdb2a1', 'modified pcap', 'convert it with: editcap -F pcap IN OUT'],
  ['a1b2cd34', 'modified pcap', 'convert it with: editcap -F pcap IN OUT'],
  ['736e6f6f', 'snoop', 'convert it with: editcap -F pcap IN OUT'],
  ['1f8b', 'gzip', 'unpack it first'],
  ['28b52ffd', 'zstd', 'unpack it first'],
  ['fd377a58', 'xz', 'unpack it first'],
  ['425a68', 'bzip2', 'unpack it first'],
  ['504b0304', 'zip', 'unpack it first'],
]

function whatIsIt(start: Uint8Array): string {
  if (start.length === 0) return 'the file is empty, expected a pcap capture file'
  const hex = Buffer.from(start.subarray(0, 4)).toString('hex')
  for (const [magic, format, way] of OTHER_FORMATS) {
    if (hex.startsWith(magic)) return `byte 0: found what looks like ${format}, expected a pcap capture file; ${way}`
  }
  return `byte 0: found ${hex}, expected the magic number of a pcap capture file`
}
