import { BACKSLASH, isDigit, isLetter, NOT_FOUND } from './bytes.ts'

const LETTER_U = 0x75
const REPLACEMENT = 0xfffd

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
    out = writeUtf8(bytes, out, point < 0 || (point >= 0xd800 && point < 0xe000) ? REPLACEMENT : point)
  }
  return out
}

/** The value of four hexadecimal digits, or NOT_FOUND. */
function hexAt(bytes: Uint8Array, at: number, end: number): number {
  if (at + 4 > end) return NOT_FOUND
  let value = 0
  for (let digit = at; digit < at + 4; digit++) {
    const byte = bytes[digit] ?? 0
    const number = isDigit(byte) ? byte - 0x30 : isLetter(byte) ? (byte | 0x20) - 0x61 + 10 : 16
    if (number > 15) return NOT_FOUND
    value = value * 16 + number
  }
  return value
}

function writeUtf8(bytes: Uint8Array, out: number, point: number): number {
  if (point < 0x80) bytes[out++] = point
  else {
    if (point < 0x800) bytes[out++] = 0xc0 | (point >> 6)
    else {
      if (point < 0x10000) bytes[out++] = 0xe0 | (point >> 12)
      else {
        bytes[out++] = 0xf0 | (point >> 18)
        bytes[out++] = 0x80 | ((point >> 12) & 0x3f)
      }
      bytes[out++] = 0x80 | ((point >> 6) & 0x3f)
    }
    bytes[out++] = 0x80 | (point & 0x3f)
  }
  return out
}
