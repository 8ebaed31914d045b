import {
  ALPHANUMERIC,
  BACKSLASH,
  ByteSet,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  hexDigit,
  isLetter,
  NOT_FOUND,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
} from './bytes.ts'

/** The kind of a member, or `end` of the text, or `broken` for text that is no JSON (RFC 8259). */
export const JsonKind = { end: 0, broken: 1, string: 2, number: 3, word: 4, object: 5, array: 6 } as const
export type JsonKind = (typeof JsonKind)[keyof typeof JsonKind]

/** Deeper than any log's nesting. Bounded by the bits of JsonScanner's stack of brackets. */
export const JSON_DEPTH_MAX = 24

/**
 * Walks the members of one JSON object in place and in order, including members of nested objects.
 * Arrays are skipped, but their brackets are checked. enterArray() walks the first element of the
 * array that next() returned. One instance per format.
 *
 *   scanner.open(view, start, end)
 *   while ((kind = scanner.next()) > JsonKind.broken) ...
 */
export class JsonScanner {
  /** The member's key, without quotes, with its escapes. */
  keyStart = 0
  keyEnd = 0
  /**
   * The value: a string without quotes, with its escapes. For an object only the start, because its
   * members come next.
   */
  start = 0
  end = 0
  /** The string has escapes. */
  escaped = false
  /** The number of objects around the member, from 1. */
  depth = 0

  #view: DataView = new DataView(new ArrayBuffer(0))
  #at = 0
  #stop = 0
  /** The current object has had no member yet. */
  #isFirst = true
  /** For each depth, the end of the array whose first element the object is, or 0. */
  readonly #arrayEnds = new Int32Array(JSON_DEPTH_MAX + 1)

  open(view: DataView, start: number, end: number): void {
    this.#view = view
    this.#at = skipWhite(view, start, end)
    this.#stop = end
    this.#isFirst = true
    this.depth = this.#at < end && view.getUint8(this.#at) === OPEN_BRACE ? 1 : 0
    this.#at++
    this.#arrayEnds.fill(0)
  }

  /**
   * Enters the array that next() returned. An object in its first element is walked next; a string
   * in it becomes the value. Returns the kind of the element, or `end` for any other.
   */
  enterArray(): JsonKind {
    const view = this.#view
    const end = this.end
    const at = skipWhite(view, this.start + 1, end)
    const first = view.getUint8(at)
    if (first === QUOTE) {
      this.start = at + 1
      this.end = this.#stringEnd(view, at + 1, end)
      return JsonKind.string
    }
    if (first !== OPEN_BRACE || this.depth === JSON_DEPTH_MAX) return JsonKind.end
    this.depth++
    this.#arrayEnds[this.depth] = end
    this.#isFirst = true
    this.#at = at + 1
    return JsonKind.object
  }

  next(): JsonKind {
    const view = this.#view
    const stop = this.#stop
    if (this.depth === 0) return JsonKind.broken
    let at = skipWhite(view, this.#at, stop)
    while (at < stop && view.getUint8(at) === CLOSE_BRACE) {
      const arrayEnd = this.#arrayEnds[this.depth] ?? 0
      at = skipWhite(view, arrayEnd === 0 ? at + 1 : arrayEnd, stop)
      this.#arrayEnds[this.depth] = 0
      this.#isFirst = false
      if (--this.depth === 0) return onlyTrailer(view, at, stop) ? JsonKind.end : JsonKind.broken
    }
    if (!this.#isFirst) {
      if (at >= stop || view.getUint8(at) !== COMMA) return JsonKind.broken
      at = skipWhite(view, at + 1, stop)
    }
    this.#isFirst = false
    if (at >= stop || view.getUint8(at) !== QUOTE) return JsonKind.broken
    const keyEnd = this.#stringEnd(view, at + 1, stop)
    if (keyEnd === NOT_FOUND) return JsonKind.broken
    this.keyStart = at + 1
    this.keyEnd = keyEnd
    at = skipWhite(view, keyEnd + 1, stop)
    if (at >= stop || view.getUint8(at) !== COLON) return JsonKind.broken
    return this.#value(view, skipWhite(view, at + 1, stop), stop)
  }

  #value(view: DataView, at: number, stop: number): JsonKind {
    this.escaped = false
    if (at >= stop) return JsonKind.broken
    const first = view.getUint8(at)
    this.start = at
    if (first === QUOTE) {
      const end = this.#stringEnd(view, at + 1, stop)
      if (end === NOT_FOUND) return JsonKind.broken
      this.start = at + 1
      this.end = end
      this.#at = end + 1
      return JsonKind.string
    }
    if (first === OPEN_BRACE) {
      if (this.depth === JSON_DEPTH_MAX) return JsonKind.broken
      this.depth++
      this.#isFirst = true
      this.#at = at + 1
      return JsonKind.object
    }
    if (first === OPEN_BRACKET) {
      const end = this.#arrayEnd(view, at, stop)
      if (end === NOT_FOUND) return JsonKind.broken
      this.end = end
      this.#at = end
      return JsonKind.array
    }
    const end = SCALAR.endOf(view, at, stop)
    // A number or word at the end of the text was truncated, because the object must be closed.
    if (end === at || end === stop) return JsonKind.broken
    this.end = end
    this.#at = end
    return isLetter(first) ? JsonKind.word : JsonKind.number
  }

  /** The offset of the quote that closes the string whose text begins at `at`. */
  #stringEnd(view: DataView, at: number, stop: number): number {
    // Four bytes at a time. Of the bytes that are a quote or a backslash, the first has the lowest
    // bit (Hacker's Delight §6-1: a borrow changes only bytes after it).
    while (at + 4 <= stop) {
      const four = view.getInt32(at, true)
      const quotes = four ^ 0x22222222
      const slashes = four ^ 0x5c5c5c5c
      const found = (((quotes - 0x01010101) & ~quotes) | ((slashes - 0x01010101) & ~slashes)) & 0x80808080
      if (found === 0) {
        at += 4
        continue
      }
      at += (31 - Math.clz32(found & -found)) >> 3
      if (view.getUint8(at) === QUOTE) return at
      this.escaped = true
      at += 2
    }
    for (; at < stop; at++) {
      const byte = view.getUint8(at)
      if (byte === QUOTE) return at
      if (byte !== BACKSLASH) continue
      this.escaped = true
      at++
    }
    return NOT_FOUND
  }

  /** The offset after the bracket that closes the array at `at`. */
  #arrayEnd(view: DataView, at: number, stop: number): number {
    // One bit per level: 1 for a brace, 0 for a bracket.
    let stack = 0
    let depth = 0
    while (at < stop) {
      const byte = view.getUint8(at)
      if (byte === QUOTE) {
        at = this.#stringEnd(view, at + 1, stop)
        if (at === NOT_FOUND) return NOT_FOUND
      } else if (byte === OPEN_BRACKET || byte === OPEN_BRACE) {
        if (depth === JSON_DEPTH_MAX) return NOT_FOUND
        stack = (stack << 1) | (byte === OPEN_BRACE ? 1 : 0)
        depth++
      } else if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) {
        if ((stack & 1) !== (byte === CLOSE_BRACE ? 1 : 0)) return NOT_FOUND
        stack >>= 1
        if (--depth === 0) return at + 1
      }
      at++
    }
    return NOT_FOUND
  }
}

function skipWhite(view: DataView, at: number, end: number): number {
  while (at < end) {
    const byte = view.getUint8(at)
    if (byte > SPACE || byte === 0) break
    at++
  }
  return at
}

/** Of words and numbers. */
const SCALAR = new ByteSet(`${ALPHANUMERIC}-+.`)

/** Line ends, a NUL, and the bytes after an element of a file that is one array. */
function onlyTrailer(view: DataView, at: number, end: number): boolean {
  for (; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte > SPACE && byte !== COMMA && byte !== CLOSE_BRACKET) return false
  }
  return true
}

const LETTER_U = 0x75
const REPLACEMENT = '\ufffd'

/** The characters of the escapes with a letter (RFC 8259 §7). Others stand for themselves. */
const CHARACTERS = new Uint8Array(256)
for (let byte = 0; byte < 256; byte++) CHARACTERS[byte] = byte
CHARACTERS[0x62] = 0x08
CHARACTERS[0x66] = 0x0c
CHARACTERS[0x6e] = 0x0a
CHARACTERS[0x72] = 0x0d
CHARACTERS[0x74] = 0x09

/**
 * Writes the text of the JSON string in [start, end), without its quotes, from `out` on. `out` may
 * be `start`, because the text is never longer. Returns its end.
 */
export function writeJsonText(bytes: Uint8Array, start: number, end: number, out: number): number {
  let at = start
  while (at < end) {
    const byte = bytes[at++] ?? 0
    if (byte !== BACKSLASH || at === end) {
      bytes[out++] = byte
      continue
    }
    const escaped = bytes[at++] ?? 0
    if (escaped !== LETTER_U) {
      bytes[out++] = CHARACTERS[escaped] ?? escaped
      continue
    }
    let point = hexAt(bytes, at, end)
    at = Math.min(at + 4, end)
    if (point >= 0xd800 && point < 0xdc00 && bytes[at] === BACKSLASH && bytes[at + 1] === LETTER_U) {
      const low = hexAt(bytes, at + 2, end)
      if (low >= 0xdc00 && low < 0xe000) {
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00)
        at += 6
      }
    }
    const isCharacter = point >= 0 && (point < 0xd800 || point >= 0xe000)
    const text = isCharacter ? String.fromCodePoint(point) : REPLACEMENT
    out += Buffer.from(text).copy(bytes, out)
  }
  return out
}

/** The value of four hexadecimal digits, or NOT_FOUND. */
function hexAt(bytes: Uint8Array, at: number, end: number): number {
  if (at + 4 > end) return NOT_FOUND
  let value = 0
  for (let digit = at; digit < at + 4; digit++) {
    const number = hexDigit(bytes[digit] ?? 0)
    if (number < 0) return NOT_FOUND
    value = value * 16 + number
  }
  return value
}
