import {
  BACKSLASH,
  COLON,
  COMMA,
  EQUALS,
  indexOfByte,
  isDigit,
  isLetter,
  NOT_FOUND,
  PIPE,
  QUOTE,
  SEMICOLON,
  SPACE,
  skipBlanks,
  TAB,
} from './bytes.ts'
import { closingQuote } from './csv.ts'
import { CUE_BYTES } from './log-line.ts'

const APOSTROPHE = 0x27
const CARET = 0x5e

/** Whether a byte may occur in a key, or also begin a key. */
const CONTINUES = 1
const BEGINS = 2
const KEY_BYTE = new Uint8Array(256)
for (let byte = 0; byte < 128; byte++) {
  if (isLetter(byte)) KEY_BYTE[byte] = BEGINS
  else if (isDigit(byte)) KEY_BYTE[byte] = CONTINUES
}
for (const char of '.-') KEY_BYTE[char.charCodeAt(0)] = CONTINUES
for (const char of '_@') KEY_BYTE[char.charCodeAt(0)] = BEGINS

/**
 * Walks the `key=value` pairs of a message, as firewalls write them:
 *
 *   key=value            up to the separator; words after it that are no pair belong to the value:
 *                        `ether_type=IPv4 (0x0800)`
 *   key="a \"b\" c"      with `\` before a quote or a `\`; the next pair may follow without a blank
 *   key='a b'            if a separator follows the second apostrophe
 *   "key=a, ""b"""       a CSV cell that is a pair (FortiAnalyzer)
 *   key:"value";         Check Point's, with COLON as the byte between key and value
 *
 * Every byte is read at most twice. Bytes between the pairs are skipped, quoted text as a whole, so
 * that no pair in quoted text is read.
 */
export class PairScanner {
  keyStart = 0
  keyEnd = 0
  valueStart = 0
  valueEnd = 0
  /**
   * The last value began with a quote or apostrophe that is never closed, so the message was
   * truncated.
   */
  unclosed = false
  readonly #assign: number
  #view: DataView = new DataView(new ArrayBuffer(0))
  #at = 0
  #end = 0
  #separator = SPACE
  /** The key of the next pair, if the next pair ended the previous value. */
  #nextKey = 0
  #nextAssign = NOT_FOUND
  #nextInCell = false

  constructor(assign = EQUALS) {
    this.#assign = assign
  }

  reset(view: DataView, start: number, end: number, separator = separatorOf(view, start, end, this.#assign)): void {
    this.#view = view
    this.#at = start
    this.#end = end
    this.#separator = separator
    this.#nextAssign = NOT_FOUND
    this.unclosed = false
  }

  /** The byte that separates the pairs of this message. */
  get separator(): number {
    return this.#separator
  }

  /** Advances to the next pair. Returns false at the end. */
  next(): boolean {
    const view = this.#view
    const end = this.#end
    if (this.#nextAssign === NOT_FOUND && !this.#findKey()) return false
    this.keyStart = this.#nextKey
    this.keyEnd = this.#nextAssign
    this.#nextAssign = NOT_FOUND
    const at = this.keyEnd + 1
    if (this.#nextInCell) this.#cellValue(at)
    else if (at < end && view.getUint8(at) === QUOTE) this.#quotedValue(at + 1)
    else if (at < end && view.getUint8(at) === APOSTROPHE) this.#apostropheValue(at + 1)
    else this.#bareValue(at)
    return true
  }

  #findKey(): boolean {
    const view = this.#view
    const end = this.#end
    const separator = this.#separator
    let at = this.#at
    while (at < end) {
      const byte = view.getUint8(at)
      if (byte === SPACE || byte === TAB || byte === separator || byte === SEMICOLON) {
        at++
        continue
      }
      if (this.#keyAt(at, byte)) return true
      // No pair: skip the token, with all quoted text in it.
      at = this.#tokenEnd(at)
    }
    this.#at = end
    return false
  }

  /** Whether a pair, or the quote before a pair, begins at `at`. */
  #keyAt(at: number, byte: number): boolean {
    const isCell = byte === QUOTE && this.#separator === COMMA
    const key = isCell ? at + 1 : at
    const assign = assignAfterKey(this.#view, key, this.#end, this.#assign)
    if (assign === NOT_FOUND) return false
    this.#nextKey = key
    this.#nextAssign = assign
    this.#nextInCell = isCell
    return true
  }

  #tokenEnd(at: number): number {
    const view = this.#view
    const end = this.#end
    const separator = this.#separator
    while (at < end) {
      const byte = view.getUint8(at)
      if (byte === separator || byte === SPACE || byte === TAB) return at
      if (byte === QUOTE) {
        const close = quoteEnd(view, at + 1, end)
        // The quote has no second quote, so the bytes after it are a token of their own.
        if (close === NOT_FOUND) return end
        return close + 1
      }
      // A bracket opens Check Point's list of pairs.
      if (byte === OPENS_LIST && at + 1 < end) return at + 1
      at++
    }
    return end
  }

  #quotedValue(start: number): void {
    const close = quoteEnd(this.#view, start, this.#end)
    this.valueStart = start
    this.unclosed = close === NOT_FOUND
    this.valueEnd = this.unclosed ? this.#end : close
    this.#at = this.unclosed ? this.#end : close + 1
  }

  #apostropheValue(start: number): void {
    const view = this.#view
    const end = this.#end
    const separator = this.#separator
    this.valueStart = start
    let at = start
    for (; at < end; at++) {
      if (view.getUint8(at) !== APOSTROPHE) continue
      const next = at + 1 < end ? view.getUint8(at + 1) : SPACE
      if (next === SPACE || next === TAB || next === separator) break
    }
    this.unclosed = at >= end
    this.valueEnd = at
    this.#at = this.unclosed ? end : at + 1
  }

  #cellValue(start: number): void {
    const view = this.#view
    const close = closingQuote(view, start, this.#end)
    this.unclosed = close === NOT_FOUND
    let end = this.unclosed ? this.#end : close
    this.#at = this.unclosed ? end : close + 1
    if (end - start >= 4 && view.getUint8(start) === QUOTE && view.getUint8(end - 1) === QUOTE) {
      start += 2
      end -= 2
    }
    this.valueStart = start
    this.valueEnd = end
  }

  #bareValue(start: number): void {
    const view = this.#view
    const end = this.#end
    const separator = this.#separator
    this.valueStart = start
    let at = start
    for (;;) {
      while (at < end) {
        const byte = view.getUint8(at)
        if (byte === separator || byte === TAB) break
        at++
      }
      this.valueEnd = at
      let byte = separator
      while (at < end) {
        byte = view.getUint8(at)
        if (byte !== separator && byte !== SPACE && byte !== TAB) break
        at++
      }
      if (at >= end || this.#keyAt(at, byte)) break
    }
    this.#at = at
  }
}

const OPENS_LIST = 0x5b

/** The offset of the byte between key and value if a key begins at `at`, or NOT_FOUND. */
export function assignAfterKey(view: DataView, at: number, end: number, assign: number): number {
  if (at >= end || KEY_BYTE[view.getUint8(at)] !== BEGINS) return NOT_FOUND
  at++
  while (at < end && KEY_BYTE[view.getUint8(at)] !== 0) at++
  if (at >= end || view.getUint8(at) !== assign) return NOT_FOUND
  // Times, addresses and URLs contain colons, too: a colon ends a key only before a quote.
  if (assign === COLON && (at + 1 >= end || view.getUint8(at + 1) !== QUOTE)) return NOT_FOUND
  return at
}

/**
 * The separator of the pairs: the byte between the first value and the next pair. SPACE means
 * blanks of any kind.
 */
export function separatorOf(view: DataView, start: number, end: number, assign: number): number {
  const limit = Math.min(end, start + CUE_BYTES)
  let at = start
  do {
    at = indexOfByte(view, at, limit, assign) + 1
    if (at === 0) return SPACE
  } while (at - 1 === start || KEY_BYTE[view.getUint8(at - 2)] === 0)
  if (at < limit && view.getUint8(at) === QUOTE) {
    at = quoteEnd(view, at + 1, limit) + 1
    // A separator directly follows a quote.
    if (at === 0 || at >= limit || !isSeparator(view.getUint8(at)) || view.getUint8(at) === SPACE) return SPACE
  }
  while (at < limit) {
    const byte = view.getUint8(at++)
    if (!isSeparator(byte)) continue
    while (at < limit && view.getUint8(at) === byte) at++
    at = skipBlanks(view, at, limit)
    const quote = byte === COMMA && at < limit && view.getUint8(at) === QUOTE ? 1 : 0
    if (assignAfterKey(view, at + quote, limit, assign) !== NOT_FOUND) return byte
  }
  return SPACE
}

function isSeparator(byte: number): boolean {
  return byte === SPACE || byte === TAB || byte === COMMA || byte === PIPE || byte === SEMICOLON || byte === CARET
}

/**
 * The offset of the quote that closes the text from `at`: the first quote without an unescaped `\`
 * before it.
 */
export function quoteEnd(view: DataView, start: number, end: number): number {
  let at = indexOfByte(view, start, end, QUOTE)
  while (at !== NOT_FOUND) {
    let escapes = at
    while (escapes > start && view.getUint8(escapes - 1) === BACKSLASH) escapes--
    if (((at - escapes) & 1) === 0) return at
    at = indexOfByte(view, at + 1, end, QUOTE)
  }
  return NOT_FOUND
}
