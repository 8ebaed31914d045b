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

/** A set of bytes, of ASCII characters. */
export class ByteSet {
  readonly #has = new Uint8Array(256)

  constructor(chars: string) {
    for (const char of chars) this.#has[char.charCodeAt(0)] = 1
  }

  has(byte: number): boolean {
    return this.#has[byte] === 1
  }

  /** Whether [start, end) has no other byte, or is empty. */
  hasAll(view: DataView, start: number, end: number): boolean {
    return this.endOf(view, start, end) >= end
  }

  /** The first offset of one of the bytes in [at, end), or `end`. */
  firstIn(view: DataView, at: number, end: number): number {
    while (at < end && this.#has[view.getUint8(at)] !== 1) at++
    return at
  }

  /** The offset after the run of the bytes at `at`. */
  endOf(view: DataView, at: number, end: number): number {
    while (at < end && this.#has[view.getUint8(at)] === 1) at++
    return at
  }
}

export const CAPITALS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
export const LETTERS = CAPITALS + CAPITALS.toLowerCase()
export const ALPHANUMERIC = `${LETTERS}0123456789`
export const LETTER_SET = new ByteSet(LETTERS)
export const ALPHANUMERIC_SET = new ByteSet(ALPHANUMERIC)
export const HEX_SET = new ByteSet('0123456789abcdefABCDEF')

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

/** Whether both texts have the same bytes. */
export function isSameText(view: DataView, start: number, end: number, otherStart: number, otherEnd: number): boolean {
  if (end - start !== otherEnd - otherStart) return false
  for (let at = start; at < end; at++) {
    if (view.getUint8(at) !== view.getUint8(otherStart + at - start)) return false
  }
  return true
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

/**
 * Finds one ASCII text in the bytes of a message (Horspool 1980): the byte at the text's end
 * determines how far the text moves, so most bytes are never read. For cues that most messages
 * lack.
 */
export class TextSearch {
  readonly #text: string
  readonly #moves = new Uint8Array(256)

  /** 2 to 255 characters: the longer, the faster. */
  constructor(text: string) {
    this.#text = text
    this.#moves.fill(text.length)
    for (let at = 0; at < text.length - 1; at++) this.#moves[text.charCodeAt(at)] = text.length - 1 - at
  }

  /** The first offset of the text in [start, end), or NOT_FOUND. */
  find(view: DataView, start: number, end: number): number {
    const text = this.#text
    const lastIndex = text.length - 1
    const last = text.charCodeAt(lastIndex)
    for (let at = start + lastIndex; at < end; ) {
      const byte = view.getUint8(at)
      if (byte === last && textAt(view, at - lastIndex, end, text)) return at - lastIndex
      at += this.#moves[byte] ?? 1
    }
    return NOT_FOUND
  }
}

/**
 * Whether a message begins with one of a few texts at an offset. The first byte rejects most
 * messages.
 */
export class TextPrefixes {
  readonly #byFirst: readonly (readonly string[] | undefined)[]

  constructor(texts: readonly string[]) {
    const byFirst: string[][] = []
    for (const text of texts) {
      const first = text.charCodeAt(0)
      byFirst[first] = [...(byFirst[first] ?? []), text]
    }
    this.#byFirst = Array.from({ length: 256 }, (_, first) => byFirst[first])
  }

  beginAt(view: DataView, at: number, end: number): boolean {
    if (at >= end) return false
    const texts = this.#byFirst[view.getUint8(at)]
    if (texts === undefined) return false
    for (let index = 0; index < texts.length; index++) if (textAt(view, at, end, texts[index] ?? '')) return true
    return false
  }
}

export const NO_KEY = -1

/**
 * The index of a word: of five bits of its first and last bytes, which ignore the case of a letter,
 * and of its length.
 */
const PLACES = 1 << 10
const FIVE_BITS = 31

/**
 * Finds which of a few known words is in a message, in any case: keys of key=value pairs, words of
 * an action. Two bytes and the length reject most words; the rest is compared byte by byte. Unknown
 * keys create no string.
 */
export class KeyTable {
  readonly #ids: Int32Array
  /** The bytes of all words in sequence, the start of each word, and the end of the last. */
  readonly #bytes: Uint8Array
  readonly #starts: Int32Array
  /** The first word with an index, and for each word the next word with the same index. */
  readonly #first = new Int32Array(PLACES).fill(NO_KEY)
  readonly #next: Int32Array

  /** The words in lower case, each with its id, from 0. Several words may have one id. */
  constructor(idOfWord: Readonly<Record<string, number>>) {
    const words = Object.keys(idOfWord)
    this.#ids = Int32Array.from(Object.values(idOfWord))
    this.#bytes = Uint8Array.from(Buffer.from(words.join(''), 'latin1'))
    this.#starts = new Int32Array(words.length + 1)
    this.#next = new Int32Array(words.length)
    for (const [index, word] of words.entries()) {
      const place = placeOf(word.charCodeAt(0), word.charCodeAt(word.length - 1), word.length)
      this.#starts[index + 1] = (this.#starts[index] ?? 0) + word.length
      this.#next[index] = this.#first[place] ?? NO_KEY
      this.#first[place] = index
    }
  }

  /** The id of the word in [start, end), or NO_KEY. */
  find(view: DataView, start: number, end: number): number {
    if (start >= end) return NO_KEY
    let index = this.#first[placeOf(view.getUint8(start), view.getUint8(end - 1), end - start)] ?? NO_KEY
    while (index !== NO_KEY) {
      if (this.#isWord(view, start, end, index)) return this.#ids[index] ?? NO_KEY
      index = this.#next[index] ?? NO_KEY
    }
    return NO_KEY
  }

  #isWord(view: DataView, start: number, end: number, index: number): boolean {
    const bytes = this.#bytes
    let at = this.#starts[index] ?? 0
    if ((this.#starts[index + 1] ?? 0) - at !== end - start) return false
    for (; start < end; start++) {
      const byte = view.getUint8(start)
      if ((isUpper(byte) ? byte | 0x20 : byte) !== bytes[at++]) return false
    }
    return true
  }
}

function placeOf(first: number, last: number, length: number): number {
  return ((first & FIVE_BITS) << 5) ^ ((last & FIVE_BITS) << 3) ^ (length & FIVE_BITS)
}

/** Words with one id, for a table: a list, or a text with blanks between them. */
export function wordsOf(id: number, words: string | readonly string[]): Record<string, number> {
  const list = typeof words === 'string' ? words.split(' ') : words
  return Object.fromEntries(list.map((word) => [word, id]))
}

/**
 * The offset of a program's tag (`dnsmasq[310]:`, `unbound[310:0]`, `unbound:`), or NOT_FOUND. A host may
 * have the same name, but no process number or colon.
 */
export function tagAt(view: DataView, name: TextSearch, start: number, limit: number): number {
  for (let at = start; ; at++) {
    at = name.find(view, at, limit)
    if (at < 0) return NOT_FOUND
    if (at > start && view.getUint8(at - 1) !== SPACE) continue
    const last = view.getUint8(tokenEnd(view, at, limit) - 1)
    if (last === COLON || last === CLOSE_BRACKET) return at
  }
}
