import { Packr, Unpackr } from 'msgpackr'
import type { ShapeLimits } from './shape.ts'

/*
 * msgpack (its specification, "Formats"). Bytes from outside are read in place by MsgpackReader, or
 * checked before msgpackr builds anything: msgpackr allocates the announced length of an array
 * before it reads the first element.
 */

// useRecords false: other programs read the bytes. moreTypes false: no structured clone.
const packr = new Packr({ useRecords: false, moreTypes: false, variableMapSize: true })
const unpackr = new Unpackr({ useRecords: false, moreTypes: false, mapsAsObjects: true, int64AsType: 'number' })

export function pack(value: unknown): Buffer {
  return packr.pack(value)
}

/** Unpacks a value from outside. @throws Error if it is not msgpack, or exceeds a limit. */
export function unpack(bytes: Uint8Array, limits: Omit<ShapeLimits, 'bytesMax'>): unknown {
  const fault = faultOf(bytes, limits)
  if (fault !== undefined) throw new Error(fault)
  return unpackr.unpack(bytes)
}

/**
 * Returns why `unpack` refuses these bytes, or undefined. Takes time linear in their length, and
 * builds nothing.
 */
function faultOf(bytes: Uint8Array, { valuesMax, depthMax }: Omit<ShapeLimits, 'bytesMax'>): string | undefined {
  const { length: end } = bytes
  const view = new DataView(bytes.buffer, bytes.byteOffset, end)
  /** Number of values that are still expected at each depth. */
  const due = new Float64Array(depthMax + 1)
  due[0] = 1
  let [depth, values, at] = [0, 0, 0]
  for (;;) {
    while (depth > 0 && due[depth] === 0) depth--
    if (due[depth] === 0) return at === end ? undefined : `byte ${at}: expected the end`
    due[depth] = (due[depth] ?? 0) - 1
    const start = at + 1 + (at < end ? (LENGTH_BYTES[view.getUint8(at)] ?? 0) : 0)
    if (start > end) return `byte ${at}: expected a value, found the end`
    const format = view.getUint8(at)
    // msgpackr executes what other types mean to it: it defines records, and creates RegExps.
    const isUndefined = format === UNDEFINED && start < end && view.getUint8(start) === 0
    if (IS_EXTENSION[format] === 1 && !isUndefined) return `byte ${at}: extension types are not accepted`
    const length = lengthAt(view, at)
    const each = VALUES_EACH[format] ?? 0
    const needed = each === 0 ? length : length * each
    if (needed > end - start) return `byte ${at}: ${needed} more bytes announced than the ${end - start} that follow`
    at = each === 0 ? start + needed : start
    if (each === 0 || needed === 0) continue
    values += needed
    if (values > valuesMax) return `too many values: expected at most ${valuesMax}`
    if (depth === depthMax) return `byte ${at}: nested deeper than ${depthMax}`
    due[++depth] = needed
  }
}

/** A list or map that a MsgpackReader skipped. */
const SKIPPED_LIST: readonly unknown[] = Object.freeze([])
const SKIPPED_MAP = Object.freeze({})

/** Reads the values of untrusted msgpack one after the other. @throws Error with the offset. */
export class MsgpackReader {
  readonly #bytes: Buffer
  readonly #view: DataView
  /** Offset of the next value. */
  at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** Enters a list and returns its number of elements. -1, and stays: it is no list. */
  list(): number {
    if (this.at >= this.#bytes.length) throw this.#error('expected a value, found the end')
    const format = this.#view.getUint8(this.at)
    if (VALUES_EACH[format] !== 1) return -1
    const start = this.at + 1 + (LENGTH_BYTES[format] ?? 0)
    if (start > this.#bytes.length) throw this.#error('expected a length, found the end')
    const length = lengthAt(this.#view, this.at)
    if (length > this.#bytes.length - start) {
      throw this.#error(`${length} more bytes announced than the ${this.#bytes.length - start} that follow`)
    }
    this.at = start
    return length
  }

  /**
   * Returns the next value: a number, string, boolean, null or Buffer. A list, map or extension is
   * skipped, and an empty list or map returned for it.
   */
  value(): unknown {
    const { at } = this
    const end = this.#end()
    const format = this.#view.getUint8(at)
    this.at = end
    if (VALUES_EACH[format] === 1) return SKIPPED_LIST
    if (VALUES_EACH[format] === 2 || IS_EXTENSION[format] === 1) return SKIPPED_MAP
    return unpackr.unpack(this.#bytes.subarray(at, end))
  }

  #end(): number {
    const end = endOfValue(this.#view, this.at, this.#bytes.length)
    if (end < 0) throw this.#error('the value is longer than the bytes that follow')
    return end
  }

  #error(problem: string): Error {
    return new Error(`byte ${this.at}: ${problem}`)
  }
}

/** Returns the offset after the value at `at`, with all that it contains. -1: not before `end`. */
export function endOfValue(view: DataView, at: number, end: number): number {
  let next = at
  for (let due = 1; due > 0; due--) {
    if (next >= end) return -1
    const format = view.getUint8(next)
    const start = next + 1 + (LENGTH_BYTES[format] ?? 0)
    if (start > end) return -1
    const length = lengthAt(view, next)
    next = start
    const values = VALUES_EACH[format] ?? 0
    if (values === 0) next += length
    else due += length * values
    // Each value has at least one byte.
    if (next + due - 1 > end) return -1
  }
  return next
}

/** The length of the value at `at`, in bytes, elements or pairs; its length bytes are there. */
function lengthAt(view: DataView, at: number): number {
  const format = view.getUint8(at)
  const fixed = FIXED_LENGTH[format] ?? 0
  switch (LENGTH_BYTES[format]) {
    case 1:
      return fixed + view.getUint8(at + 1)
    case 2:
      return fixed + view.getUint16(at + 1)
    case 4:
      return fixed + view.getUint32(at + 1)
    default:
      return fixed
  }
}

/**
 * By format byte: number of length bytes that follow, additional fixed length, and values per unit
 * of length.
 */
const LENGTH_BYTES = new Uint8Array(256)
const FIXED_LENGTH = new Uint8Array(256)
const VALUES_EACH = new Uint8Array(256)
/** fixext 1, in which msgpackr writes undefined, with type 0. */
const UNDEFINED = 0xd4
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
