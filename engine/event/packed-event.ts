/*
 * The common form of an event, as packEvent (event.ts) writes it, and as ingest and scans read it
 * in place:
 *
 *   97, 98, 9b    array of seven, eight or eleven
 *   c4 10         id: 8 bytes of instance, 8 bytes of sequence, big-endian
 *   a0..bf, d9    name, then client: up to 31 or up to 255 bytes
 *   00..03        method
 *   00..7f, cc, cd, ce, cb   first seen, span, count, and in an array of eight or eleven blocked:
 *                            u8, u16, u32, or f64 from 2^32 on
 *
 * and only in an array of eleven, at least one of them not 0 or empty:
 *
 *   a0..bf, d9    user: up to 31 or up to 128 bytes, 0 if unknown
 *   00..7f, cc, cd, ce, cb   bytes sent, bytes received: 0 if unknown
 *
 * Other forms may be valid as well. The event, or its batch, is then unpacked by msgpackr.
 */
export const EVENT_ARRAY = 0x97
export const EVENT_ARRAY_BLOCKED = 0x98
/** With user and byte counts. */
export const EVENT_ARRAY_FULL = 0x9b
export const BIN_8 = 0xc4
export const ID_BYTES = 16
const STRING_8 = 0xd9
const FLOAT_64 = 0xcb
const UINT_8 = 0xcc
const UINT_16 = 0xcd
const UINT_32 = 0xce
/** Offset of the id in an event. */
export const ID_OFFSET = 3

/** By format byte: length of an integer including the format byte; 0: not a common form. */
const NUMBER_BYTES = new Uint8Array(256)
NUMBER_BYTES.fill(1, 0x00, 0x80)
NUMBER_BYTES[UINT_8] = 2
NUMBER_BYTES[UINT_16] = 3
NUMBER_BYTES[UINT_32] = 5
NUMBER_BYTES[FLOAT_64] = 9

/**
 * Returns the start of the text whose header is at `at`, which must be before the end. -1: not a
 * common string.
 */
export function stringStart(view: DataView, at: number): number {
  const format = view.getUint8(at)
  if (format >> 5 === 0x5) return at + 1
  return format === STRING_8 ? at + 2 : -1
}

/** The length of that text. */
export function stringBytes(view: DataView, at: number): number {
  const format = view.getUint8(at)
  return format === STRING_8 ? view.getUint8(at + 1) : format & 0x1f
}

/** Returns the offset after the number at `at`. -1: no common number before `end`. */
export function numberEnd(view: DataView, at: number, end: number): number {
  if (at >= end) return -1
  const bytes = NUMBER_BYTES[view.getUint8(at)] ?? 0
  return bytes === 0 || at + bytes > end ? -1 : at + bytes
}

/**
 * Returns the number at `at`, whose format and end were checked. -1: not an integer, or negative.
 */
export function wholeNumber(view: DataView, at: number): number {
  const format = view.getUint8(at)
  switch (format) {
    case UINT_8:
      return view.getUint8(at + 1)
    case UINT_16:
      return view.getUint16(at + 1)
    case UINT_32:
      return view.getUint32(at + 1)
    case FLOAT_64: {
      const value = view.getFloat64(at + 1)
      return value >= 0 && Math.floor(value) === value ? value : -1
    }
    default:
      return format
  }
}

/**
 * Overwrites the number at `at`, whose format and end were checked, with one from 0 to the number
 * that it is.
 */
export function lowerNumber(view: DataView, at: number, value: number): void {
  switch (view.getUint8(at)) {
    case UINT_8:
      return view.setUint8(at + 1, value)
    case UINT_16:
      return view.setUint16(at + 1, value)
    case UINT_32:
      return view.setUint32(at + 1, value)
    case FLOAT_64:
      return view.setFloat64(at + 1, value)
    default:
      return view.setUint8(at, value)
  }
}

/**
 * The offsets of the optional columns of an event, whose other columns end at `countEnd`. One
 * instance per reader, filled again for each event that has optional columns.
 */
export class OptionalColumns {
  /** The number of blocked matches. */
  blockedAt = 0
  /** The user name in UTF-8. Equal if unknown. */
  userStart = 0
  userEnd = 0
  /** The bytes sent and the bytes received. 0 if the event has no such columns. */
  sentAt = 0
  receivedAt = 0

  /**
   * Finds the columns after `countEnd` of an event that begins with `array`, EVENT_ARRAY_BLOCKED or
   * EVENT_ARRAY_FULL. Returns the offset after the event. -1: not in the common form before `end`.
   */
  find(view: DataView, array: number, countEnd: number, end: number): number {
    this.blockedAt = countEnd
    this.userStart = 0
    this.userEnd = 0
    this.sentAt = 0
    this.receivedAt = 0
    const blockedEnd = numberEnd(view, countEnd, end)
    if (array !== EVENT_ARRAY_FULL || blockedEnd < 0) return blockedEnd
    // A string header has one or two bytes.
    if (blockedEnd + 1 >= end) return -1
    const userStart = stringStart(view, blockedEnd)
    if (userStart < 0) return -1
    const userEnd = userStart + stringBytes(view, blockedEnd)
    const sentEnd = numberEnd(view, userEnd, end)
    if (sentEnd < 0) return -1
    this.userStart = userStart
    this.userEnd = userEnd
    this.sentAt = userEnd
    this.receivedAt = sentEnd
    return numberEnd(view, sentEnd, end)
  }

  /** The bytes sent by the client, of an event whose columns were found. 0 if unknown. */
  bytesSent(view: DataView): number {
    return this.sentAt === 0 ? 0 : wholeNumber(view, this.sentAt)
  }

  /** Same, for the bytes received. */
  bytesReceived(view: DataView): number {
    return this.receivedAt === 0 ? 0 : wholeNumber(view, this.receivedAt)
  }
}
