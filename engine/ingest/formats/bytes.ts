/*
 * Functions that read ASCII in place, in one DataView, for every format. Offsets in, offsets out,
 * no allocation. NOT_FOUND is -1.
 */
export const NOT_FOUND = -1

export const SPACE = 0x20
export const TAB = 0x09
export const LF = 0x0a
export const CR = 0x0d
export const QUOTE = 0x22
export const HASH = 0x23
export const COMMA = 0x2c
export const HYPHEN = 0x2d
export const DOT = 0x2e
export const SLASH = 0x2f
export const COLON = 0x3a
export const SEMICOLON = 0x3b
export const LESS = 0x3c
export const EQUALS = 0x3d
export const GREATER = 0x3e
export const AT = 0x40
export const OPEN_BRACKET = 0x5b
export const BACKSLASH = 0x5c
export const CLOSE_BRACKET = 0x5d
export const OPEN_BRACE = 0x7b
export const PIPE = 0x7c
export const CLOSE_BRACE = 0x7d
export const PERCENT = 0x25
export const OPEN_PARENTHESIS = 0x28
export const CLOSE_PARENTHESIS = 0x29

export function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39
}

export function isLetter(byte: number): boolean {
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x7a
}

export function isUpper(byte: number): boolean {
  return byte >= 0x41 && byte <= 0x5a
}

/** The value of a hex digit, or -1. */
export function hexDigit(byte: number): number {
  if (isDigit(byte)) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : NOT_FOUND
}

/** Whether the ASCII `text` is at `at` and ends at or before `end`. */
export function textAt(view: DataView, at: number, end: number, text: string): boolean {
  if (at < 0 || at + text.length > end) return false
  for (let index = 0; index < text.length; index++) {
    if (view.getUint8(at + index) !== text.charCodeAt(index)) return false
  }
  return true
}

/** As textAt, for letters in any case; `text` is lower case. */
export function textAtIgnoreCase(view: DataView, at: number, end: number, text: string): boolean {
  if (at < 0 || at + text.length > end) return false
  for (let index = 0; index < text.length; index++) {
    const byte = view.getUint8(at + index)
    if ((isUpper(byte) ? byte | 0x20 : byte) !== text.charCodeAt(index)) return false
  }
  return true
}

/** Whether [start, end) is exactly `text`. */
export function isText(view: DataView, start: number, end: number, text: string): boolean {
  return end - start === text.length && textAt(view, start, end, text)
}

/** Whether [start, end) is `text` (lower case) in any case. */
export function isTextIgnoreCase(view: DataView, start: number, end: number, text: string): boolean {
  return end - start === text.length && textAtIgnoreCase(view, start, end, text)
}

/** The first offset of `byte` in [start, end), or NOT_FOUND. */
export function indexOfByte(view: DataView, start: number, end: number, byte: number): number {
  let at = start
  // Four bytes at a time: a zero byte in the difference borrows from its highest bit, and from no
  // byte before it.
  const four = Math.imul(byte, 0x01010101)
  for (; at + 4 <= end; at += 4) {
    const difference = view.getInt32(at, true) ^ four
    const found = (difference - 0x01010101) & ~difference & 0x80808080
    if (found !== 0) return at + ((31 - Math.clz32(found & -found)) >> 3)
  }
  for (; at < end; at++) if (view.getUint8(at) === byte) return at
  return NOT_FOUND
}

/** The last offset of `byte` in [start, end), or NOT_FOUND. */
export function lastIndexOfByte(view: DataView, start: number, end: number, byte: number): number {
  for (let at = end - 1; at >= start; at--) if (view.getUint8(at) === byte) return at
  return NOT_FOUND
}

/**
 * The first offset of the ASCII `text` in [start, end), or NOT_FOUND. To search a whole message,
 * bound `end`.
 */
export function indexOfText(view: DataView, start: number, end: number, text: string): number {
  const first = text.charCodeAt(0)
  const last = end - text.length
  for (let at = start; at <= last; at++) {
    if (view.getUint8(at) === first && textAt(view, at, end, text)) return at
  }
  return NOT_FOUND
}

/** The first offset from `at` that is not a blank (space or TAB), or `end`. */
export function skipBlanks(view: DataView, at: number, end: number): number {
  while (at < end) {
    const byte = view.getUint8(at)
    if (byte !== SPACE && byte !== TAB) break
    at++
  }
  return at
}

/** The offset after the run of non-blank bytes at `at`. */
export function tokenEnd(view: DataView, at: number, end: number): number {
  for (; at + 4 <= end; at += 4) {
    const four = view.getInt32(at, true)
    const spaces = four ^ 0x20202020
    const tabs = four ^ 0x09090909
    const found = (((spaces - 0x01010101) & ~spaces) | ((tabs - 0x01010101) & ~tabs)) & 0x80808080
    if (found !== 0) return at + ((31 - Math.clz32(found & -found)) >> 3)
  }
  for (; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === SPACE || byte === TAB) break
  }
  return at
}

/** `end` without blanks before it. */
export function trimEnd(view: DataView, start: number, end: number): number {
  while (end > start) {
    const byte = view.getUint8(end - 1)
    if (byte !== SPACE && byte !== TAB) break
    end--
  }
  return end
}

/** The offset after the run of digits at `at`. */
export function digitsEnd(view: DataView, at: number, end: number): number {
  while (at < end && isDigit(view.getUint8(at))) at++
  return at
}

/** The number of the 1 to 15 digits [start, end), or NOT_FOUND if there is any other byte. */
export function wholeNumberAt(view: DataView, start: number, end: number): number {
  if (end <= start || end - start > 15) return NOT_FOUND
  let value = 0
  for (let at = start; at < end; at++) {
    const digit = view.getUint8(at) - 0x30
    if (digit < 0 || digit > 9) return NOT_FOUND
    value = value * 10 + digit
  }
  return value
}
