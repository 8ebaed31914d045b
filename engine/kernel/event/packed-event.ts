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
const EVENT_ARRAY = 0x97
const EVENT_ARRAY_BLOCKED = 0x98
/** With user and byte counts. */
const EVENT_ARRAY_FULL = 0x9b
const BIN_8 = 0xc4
const ID_BYTES = 16
const STRING_8 = 0xd9
const FLOAT_64 = 0xcb
const UINT_8 = 0xcc
const UINT_16 = 0xcd
const UINT_32 = 0xce
/** Offset of the id in an event. */
const ID_OFFSET = 3

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
 * The columns of one event after the other, read in place: an event costs no object and no string.
 * Offsets are those of the view that was read.
 */
export class PackedEvent {
  idAt = 0
  nameAt = 0
  nameEnd = 0
  clientAt = 0
  clientEnd = 0
  /** Index in METHODS, unchecked. */
  method = 0
  firstAt = 0
  spanAt = 0
  /** Numbers are -1 if they are negative or no integers. */
  firstSeenMs = 0
  spanMs = 0
  count = 0
  /** The columns from here on are 0 if the event does not have them. */
  blocked = 0
  userHeaderAt = 0
  /** The user name in UTF-8. Equal if unknown. */
  userAt = 0
  userEnd = 0
  bytesSent = 0
  bytesReceived = 0

  /** Returns the offset after the event at `start`. -1: not in the common form before `end`. */
  read(view: DataView, start: number, end: number): number {
    const nameHeader = start + ID_OFFSET + ID_BYTES
    // A string header has one or two bytes.
    if (nameHeader + 1 >= end) return -1
    const array = view.getUint8(start)
    if (array !== EVENT_ARRAY && array !== EVENT_ARRAY_BLOCKED && array !== EVENT_ARRAY_FULL) return -1
    if (view.getUint8(start + 1) !== BIN_8 || view.getUint8(start + 2) !== ID_BYTES) return -1
    const nameAt = stringStart(view, nameHeader)
    const nameEnd = nameAt + stringBytes(view, nameHeader)
    if (nameAt < 0 || nameEnd + 1 >= end) return -1
    const clientAt = stringStart(view, nameEnd)
    const clientEnd = clientAt + stringBytes(view, nameEnd)
    if (clientAt < 0 || clientEnd >= end) return -1
    const firstAt = clientEnd + 1
    const spanAt = numberEnd(view, firstAt, end)
    if (spanAt < 0) return -1
    const countAt = numberEnd(view, spanAt, end)
    if (countAt < 0) return -1
    const countEnd = numberEnd(view, countAt, end)
    if (countEnd < 0) return -1
    this.idAt = start + ID_OFFSET
    this.nameAt = nameAt
    this.nameEnd = nameEnd
    this.clientAt = clientAt
    this.clientEnd = clientEnd
    this.method = view.getUint8(clientEnd)
    this.firstAt = firstAt
    this.spanAt = spanAt
    this.firstSeenMs = wholeNumber(view, firstAt)
    this.spanMs = wholeNumber(view, spanAt)
    this.count = wholeNumber(view, countAt)
    this.blocked = 0
    this.userAt = 0
    this.userEnd = 0
    this.bytesSent = 0
    this.bytesReceived = 0
    return array === EVENT_ARRAY ? countEnd : this.#readOptional(view, array, countEnd, end)
  }

  #readOptional(view: DataView, array: number, blockedAt: number, end: number): number {
    const userHeaderAt = numberEnd(view, blockedAt, end)
    if (userHeaderAt < 0) return -1
    this.blocked = wholeNumber(view, blockedAt)
    if (array === EVENT_ARRAY_BLOCKED) return userHeaderAt
    if (userHeaderAt + 1 >= end) return -1
    const userAt = stringStart(view, userHeaderAt)
    if (userAt < 0) return -1
    const userEnd = userAt + stringBytes(view, userHeaderAt)
    const receivedAt = numberEnd(view, userEnd, end)
    const next = receivedAt < 0 ? -1 : numberEnd(view, receivedAt, end)
    if (next < 0) return -1
    this.userHeaderAt = userHeaderAt
    this.userAt = userAt
    this.userEnd = userEnd
    this.bytesSent = wholeNumber(view, userEnd)
    this.bytesReceived = wholeNumber(view, receivedAt)
    return next
  }
}
