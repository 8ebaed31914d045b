/*
 * Walks over msgpack without unpacking it (msgpack specification, "Formats"), so that untrusted
 * bytes are checked before msgpackr allocates for them.
 */

/** Deeper than any batch: batch, list of events, event, and some levels for later versions. */
const MSGPACK_DEPTH_MAX = 8
/** Recorded offsets of a batch's elements: one more than a batch may have. */
const STARTS_MAX = 4

/**
 * msgpackr allocates the announced length of an array before it reads the first element, so a few
 * bytes of nested headers could allocate gigabytes. This function walks over the headers, in linear
 * time and without recursion, and refuses values that announce more elements than there are bytes
 * left, or that nest too deeply. Returns the error with its offset, or undefined. `outerDepth`: the
 * number of arrays around the value. `starts` receives the offsets of the first elements of the
 * outermost array. Formats: msgpack specification, "Formats".
 */
export function msgpackError(bytes: Uint8Array, outerDepth: number, starts: number[] = []): string | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const end = bytes.byteLength
  // Number of values still expected at each depth.
  const due = new Array<number>(MSGPACK_DEPTH_MAX + 1).fill(0)
  let depth = 0
  due[0] = 1
  let at = 0
  while (true) {
    while (depth > 0 && due[depth] === 0) depth--
    if (depth === 0 && due[0] === 0) return at === end ? undefined : `byte ${at}: expected the end of the batch`
    due[depth] = (due[depth] ?? 0) - 1
    if (at >= end) return `byte ${at}: expected a value, found the end`
    if (depth === 1 && starts.length < STARTS_MAX) starts.push(at)
    const format = view.getUint8(at)
    const lengthBytes = LENGTH_BYTES[format] ?? 0
    if (at + 1 + lengthBytes > end) return `byte ${at}: expected a length of ${lengthBytes} bytes, found the end`
    let length = FIXED_LENGTH[format] ?? 0
    if (lengthBytes === 1) length += view.getUint8(at + 1)
    else if (lengthBytes === 2) length += view.getUint16(at + 1)
    else if (lengthBytes === 4) length += view.getUint32(at + 1)
    at += 1 + lengthBytes
    const values = VALUES_EACH[format] ?? 0
    const needed = values === 0 ? length : length * values
    if (needed > end - at) return `byte ${at}: ${needed} more bytes announced than the ${end - at} that follow`
    if (values === 0) at += length
    else if (length > 0) {
      if (depth + outerDepth === MSGPACK_DEPTH_MAX) return `byte ${at}: nested deeper than ${MSGPACK_DEPTH_MAX}`
      due[++depth] = needed
    }
  }
}

/**
 * Returns the offset after the event at `at` if the event is an array of up to fifteen numbers,
 * strings, byte strings, booleans and nil that ends before `end`; else -1. Such an event can be
 * unpacked without the rest of its batch: it contains none of msgpackr's extensions.
 */
export function endOfPlainEvent(view: DataView, at: number, end: number): number {
  if (at >= end || view.getUint8(at) >> 4 !== 0x9) return -1
  let next = at + 1
  for (let columns = view.getUint8(at) & 0xf; columns > 0; columns--) {
    if (next >= end) return -1
    const format = view.getUint8(next)
    if (VALUES_EACH[format] !== 0 || IS_EXTENSION[format] !== 0) return -1
    const lengthBytes = LENGTH_BYTES[format] ?? 0
    if (next + 1 + lengthBytes > end) return -1
    let length = FIXED_LENGTH[format] ?? 0
    if (lengthBytes === 1) length += view.getUint8(next + 1)
    else if (lengthBytes === 2) length += view.getUint16(next + 1)
    else if (lengthBytes === 4) length += view.getUint32(next + 1)
    next += 1 + lengthBytes + length
    if (next > end) return -1
  }
  return next
}

/** Returns the offset after the value at `at`, with all that it contains. -1: not before `end`. */
export function endOfValue(view: DataView, at: number, end: number): number {
  let next = at
  for (let due = 1; due > 0; due--) {
    if (next >= end) return -1
    const format = view.getUint8(next)
    const lengthBytes = LENGTH_BYTES[format] ?? 0
    if (next + 1 + lengthBytes > end) return -1
    let length = FIXED_LENGTH[format] ?? 0
    if (lengthBytes === 1) length += view.getUint8(next + 1)
    else if (lengthBytes === 2) length += view.getUint16(next + 1)
    else if (lengthBytes === 4) length += view.getUint32(next + 1)
    next += 1 + lengthBytes
    const values = VALUES_EACH[format] ?? 0
    if (values === 0) next += length
    else due += length * values
    // Each value has at least one byte.
    if (next + due - 1 > end) return -1
  }
  return next
}

/**
 * By format byte: number of length bytes that follow, additional fixed length, and values per unit
 * of length.
 */
const LENGTH_BYTES = new Uint8Array(256)
const FIXED_LENGTH = new Uint8Array(256)
const VALUES_EACH = new Uint8Array(256)
/** ext, fixext, and the byte that the specification never uses. */
const IS_EXTENSION = new Uint8Array(256)
for (const format of [0xc1, 0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8]) IS_EXTENSION[format] = 1
for (let low = 0; low < 16; low++) {
  FIXED_LENGTH[0x80 + low] = low // fixmap
  VALUES_EACH[0x80 + low] = 2
  FIXED_LENGTH[0x90 + low] = low // fixarray
  VALUES_EACH[0x90 + low] = 1
  FIXED_LENGTH[0xa0 + low] = low // fixstr, two ranges
  FIXED_LENGTH[0xb0 + low] = low + 16
}
for (const [bin, lengthBytes] of [
  [0xc4, 1],
  [0xc5, 2],
  [0xc6, 4],
  [0xd9, 1],
  [0xda, 2],
  [0xdb, 4],
] as const) {
  LENGTH_BYTES[bin] = lengthBytes
}
for (const [ext, lengthBytes] of [
  [0xc7, 1],
  [0xc8, 2],
  [0xc9, 4],
] as const) {
  LENGTH_BYTES[ext] = lengthBytes
  FIXED_LENGTH[ext] = 1 // the type
}
for (const [number, width] of [
  [0xca, 4],
  [0xcb, 8],
  [0xcc, 1],
  [0xcd, 2],
  [0xce, 4],
  [0xcf, 8],
  [0xd0, 1],
  [0xd1, 2],
  [0xd2, 4],
  [0xd3, 8],
  [0xd4, 2],
  [0xd5, 3],
  [0xd6, 5],
  [0xd7, 9],
  [0xd8, 17], // fixext: type and data
] as const) {
  FIXED_LENGTH[number] = width
}
for (const [array, lengthBytes, values] of [
  [0xdc, 2, 1],
  [0xdd, 4, 1],
  [0xde, 2, 2],
  [0xdf, 4, 2],
] as const) {
  LENGTH_BYTES[array] = lengthBytes
  VALUES_EACH[array] = values
}

/** Whether this is the first byte of an array. */
export function isArrayFormat(format: number): boolean {
  return VALUES_EACH[format] === 1
}
