import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { SNAPLEN_BYTES_MAX } from '../limits.ts'

/**
 * Reads the records of a capture format in place, in a buffer that its owner fills. next() moves
 * past the record at `at`, and its fields stay valid until the next call. A reader keeps no bytes:
 * the owner calls next() again for an incomplete record when more bytes have arrived.
 */
export interface RecordReader {
  /** Offset of the next record in the buffer. The owner sets it after moving the bytes. */
  at: number
  /**
   * Bytes to skip unread before `at` continues: the rest of a block that may be longer than the
   * buffer.
   */
  skipBytes: number
  /** The record's captured bytes are at [offset, offset + captured). */
  readonly offset: number
  readonly captured: number
  readonly seconds: number
  readonly nanoseconds: number
  readonly linkType: number
  /**
   * What is wrong with the record at `at`: `found ..., expected ...`. Set when next() stopped at
   * damage.
   */
  readonly damage: string | undefined
  /**
   * Moves past the next record in bytes [at, end). Returns false if there are too few bytes, or at
   * damage.
   */
  next(view: DataView, end: number): boolean
  /** Describes the damage if a file ends with `left` bytes of a record. */
  endDamage(left: number): string
}

/**
 * Limit of the fraction of a second in nanoseconds. Keeps it below a second, whatever the file
 * says.
 */
export const NANOSECONDS_MAX = 999_999_999

/**
 * Classic capture files (draft-ietf-opsawg-pcap) in both byte orders, with microseconds or
 * nanoseconds, and the variants of old writers.
 *
 *     file header, 24 bytes                            record header, 16 bytes
 *     byte  0  u32  magic number: order and unit       byte  0  u32  time: seconds since 1970
 *           4  u16  major version, 2                         4  u32  micro- or nanoseconds
 *           6  u16  minor version, 4                         8  u32  captured length in bytes
 *           8  u32  reserved                                12  u32  original length in bytes
 *          12  u32  reserved                                16       the captured bytes
 *          16  u32  snaplen
 *          20  u32  link type in the low 16 bits
 */
export const PCAP_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16
const VERSION_MAJOR = 2
const MAGIC_MICROSECONDS = 0xa1b2_c3d4
const MAGIC_NANOSECONDS = 0xa1b2_3c4d
/** Alexey Kuznetzov's libpcap: interface index, protocol and packet type follow the lengths. */
const MAGIC_MODIFIED = 0xa1b2_cd34

/**
 * Lengths of record headers, the most likely first (wiretap's libpcap.c lists the writers). Some
 * patched libpcaps wrote the modified header under the plain magic number, and some devices add
 * four bytes.
 */
const RECORD_HEADERS = [RECORD_HEADER_BYTES, 24, 20] as const
const MODIFIED_RECORD_HEADERS = [24, 28, RECORD_HEADER_BYTES] as const
/** Number of records that must be plausible to accept a header length. */
const RECORDS_TRIED = 4

/**
 * Draft §4: minor versions below 3 have the two lengths in reverse order. Version 3 has either
 * order.
 */
const LengthOrder = { capturedFirst: 0, originalFirst: 1, smallerIsCaptured: 2 } as const

/**
 * Returns the byte order if bytes [at, at + 4) are the magic number of a pcap file: true for
 * little-endian. Undefined if they are not.
 */
export function pcapByteOrder(view: DataView, at: number): boolean | undefined {
  for (const littleEndian of [true, false]) {
    const magic = view.getUint32(at, littleEndian)
    if (magic === MAGIC_MICROSECONDS || magic === MAGIC_NANOSECONDS || magic === MAGIC_MODIFIED) return littleEndian
  }
  return undefined
}

export class PcapReader implements RecordReader {
  at: number
  skipBytes = 0
  offset = 0
  captured = 0
  seconds = 0
  nanoseconds = 0
  readonly linkType: number
  damage: string | undefined = undefined
  readonly #littleEndian: boolean
  readonly #nanosecondUnit: number
  readonly #recordHeaderBytes: number
  readonly #lengthOrder: number
  /** Captured length of the incomplete record. */
  #wanted = 0

  /**
   * Reads the file header in bytes [at, end), at least PCAP_HEADER_BYTES, and examines the first
   * records after it.
   *
   * @throws Fault CAPTURE_FORMAT for an unsupported version.
   */
  constructor(view: DataView, at: number, end: number, littleEndian: boolean) {
    const magic = view.getUint32(at, littleEndian)
    const major = view.getUint16(at + 4, littleEndian)
    const minor = view.getUint16(at + 6, littleEndian)
    if (major !== VERSION_MAJOR) {
      const found = `found version ${major} of the capture file format, expected ${VERSION_MAJOR}`
      throw new Fault('CAPTURE_FORMAT', `byte 4: ${found}`)
    }
    this.#littleEndian = littleEndian
    this.#nanosecondUnit = magic === MAGIC_NANOSECONDS ? 1 : 1000
    this.#lengthOrder =
      minor < 3 ? LengthOrder.originalFirst : minor === 3 ? LengthOrder.smallerIsCaptured : LengthOrder.capturedFirst
    this.linkType = view.getUint32(at + 20, littleEndian) & 0xffff
    this.at = at + PCAP_HEADER_BYTES
    const lengths = magic === MAGIC_MODIFIED ? MODIFIED_RECORD_HEADERS : RECORD_HEADERS
    this.#recordHeaderBytes = lengths.find((bytes) => this.#isPlausible(view, this.at, end, bytes)) ?? lengths[0]
  }

  next(view: DataView, end: number): boolean {
    const header = this.at
    const headerBytes = this.#recordHeaderBytes
    if (header + headerBytes > end || this.damage !== undefined) return false
    const captured = this.#capturedAt(view, header)
    // The limit is not the file's own snaplen: many writers exceed it.
    if (captured > SNAPLEN_BYTES_MAX) {
      this.damage = `found a captured length of ${captured}, expected at most ${SNAPLEN_BYTES_MAX}`
      return false
    }
    const offset = header + headerBytes
    if (offset + captured > end) {
      this.#wanted = captured
      return false
    }
    this.seconds = view.getUint32(header, this.#littleEndian)
    this.nanoseconds = Math.min(view.getUint32(header + 4, this.#littleEndian) * this.#nanosecondUnit, NANOSECONDS_MAX)
    this.offset = offset
    this.captured = captured
    this.at = offset + captured
    return true
  }

  endDamage(left: number): string {
    const headerBytes = this.#recordHeaderBytes
    if (left < headerBytes) return `found ${left} bytes, expected a record header of ${headerBytes}`
    return `found ${left - headerBytes} bytes after the record header, expected a packet of ${this.#wanted}`
  }

  #capturedAt(view: DataView, header: number): number {
    const first = view.getUint32(header + 8, this.#littleEndian)
    if (this.#lengthOrder === LengthOrder.capturedFirst) return first
    const second = view.getUint32(header + 12, this.#littleEndian)
    return this.#lengthOrder === LengthOrder.originalFirst ? second : Math.min(first, second)
  }

  /** Whether the first records have consistent lengths if their headers are `headerBytes` long. */
  #isPlausible(view: DataView, first: number, end: number, headerBytes: number): boolean {
    let at = first
    for (let record = 0; record < RECORDS_TRIED && at + headerBytes <= end; record++) {
      const captured = this.#capturedAt(view, at)
      const other = view.getUint32(at + 8, this.#littleEndian) + view.getUint32(at + 12, this.#littleEndian) - captured
      if (captured > SNAPLEN_BYTES_MAX || other < captured) return false
      at += headerBytes + captured
    }
    return true
  }
}
