import { EQUALS, HASH, isDigit, isLetter, skipBlanks, TAB, textAt, tokenEnd, trimEnd } from './bytes.ts'

/**
 * How key=value pairs are separated: by one byte; by a TAB in either form in which relays write
 * control bytes (rsyslog's `#011`, or `\t`); by two circumflexes; or by a blank, if values contain
 * blanks and end only before the next ` key=`.
 */
export const Separator = { blank: -1, tab: -2, escapedTab: -3, circumflexes: -4 } as const
const CIRCUMFLEX = 0x5e

/** Bytes that no remnant of a syslog header has: the payload of another format has begun. */
const PAYLOAD_BYTE = new Uint8Array(256)
for (const mark of ',;|\t{\\') PAYLOAD_BYTE[mark.charCodeAt(0)] = 1

export function isPayloadByte(byte: number): boolean {
  return PAYLOAD_BYTE[byte] === 1
}

/** The bytes of a key: letters, digits, `_`, `.`, `-`, and brackets (ArcSight's arrays). */
const KEY_BYTE = new Uint8Array(256)
for (let byte = 0; byte < 256; byte++) {
  if (isLetter(byte) || isDigit(byte) || '_.-[]'.includes(String.fromCharCode(byte))) KEY_BYTE[byte] = 1
}

/**
 * The first bytes of separators with more than one form. The scan of a value checks only these
 * further.
 */
const MARK_BYTE = new Uint8Array(256)
for (const byte of [TAB, HASH, 0x5c, CIRCUMFLEX]) MARK_BYTE[byte] = 1

/**
 * Walks the key=value pairs of a CEF, LEEF or Zscaler message in place. Values are not quoted; with
 * blanks as separators, a value ends before the next ` key=`. (key-value.ts reads firewalls' quoted
 * pairs, a different grammar.)
 */
export class ExtensionScanner {
  keyStart = 0
  keyEnd = 0
  /** The value, without trailing blanks. */
  start = 0
  end = 0
  #view: DataView = new DataView(new ArrayBuffer(0))
  #at = 0
  #stop = 0
  #separator = 0
  /** Of the key at #at, if blanks separate; negative: there is none. */
  #nextKeyEnd = 0
  #isFirst = true

  /** `separator` is one of Separator, or a byte. */
  open(view: DataView, start: number, end: number, separator: number): void {
    this.#view = view
    this.#at = start
    this.#stop = end
    this.#separator = separator
    this.#isFirst = true
  }

  /** Whether there is another pair. */
  next(): boolean {
    return this.#separator === Separator.blank ? this.#nextByKey() : this.#nextBySeparator()
  }

  #nextBySeparator(): boolean {
    const view = this.#view
    const stop = this.#stop
    const separator = this.#separator
    let at = this.#at
    while (at < stop) {
      const start = skipBlanks(view, at, stop)
      let keyEnd = start
      while (keyEnd < stop && KEY_BYTE[view.getUint8(keyEnd)] === 1) keyEnd++
      const isPair = keyEnd > start && keyEnd < stop && view.getUint8(keyEnd) === EQUALS
      at = isPair ? keyEnd + 1 : start
      const valueStart = at
      while (at < stop) {
        const byte = view.getUint8(at)
        const mayBegin = MARK_BYTE[byte] === 1 || byte === separator
        if (mayBegin && separatorLength(view, at, stop, separator) > 0) break
        at++
      }
      const valueEnd = at
      if (at < stop) at += separatorLength(view, at, stop, separator)
      if (!isPair) continue
      this.#at = at
      this.keyStart = start
      this.keyEnd = keyEnd
      this.start = valueStart
      this.end = trimEnd(view, valueStart, valueEnd)
      return true
    }
    this.#at = stop
    return false
  }

  #nextByKey(): boolean {
    if (this.#isFirst) {
      this.#isFirst = false
      this.#findKey(this.#at)
    }
    const keyEnd = this.#nextKeyEnd
    if (keyEnd < 0) return false
    this.keyStart = this.#at
    this.keyEnd = keyEnd
    this.start = keyEnd + 1
    this.#findKey(tokenEnd(this.#view, keyEnd + 1, this.#stop))
    this.end = trimEnd(this.#view, keyEnd + 1, this.#at)
    return true
  }

  /**
   * Finds the next word from `at`, where a blank or a word begins, that is a key followed by an
   * equals sign.
   */
  #findKey(at: number): void {
    const view = this.#view
    const stop = this.#stop
    while (at < stop) {
      at = skipBlanks(view, at, stop)
      const wordStart = at
      while (at < stop && KEY_BYTE[view.getUint8(at)] === 1) at++
      if (at > wordStart && at < stop && view.getUint8(at) === EQUALS) {
        this.#at = wordStart
        this.#nextKeyEnd = at
        return
      }
      at = tokenEnd(view, at, stop)
    }
    this.#at = stop
    this.#nextKeyEnd = -1
  }
}

/** The length of the separator at `at`, or 0. */
function separatorLength(view: DataView, at: number, end: number, separator: number): number {
  const byte = view.getUint8(at)
  if (separator >= 0) return byte === separator ? 1 : 0
  if (separator === Separator.circumflexes) {
    return byte === CIRCUMFLEX && at + 1 < end && view.getUint8(at + 1) === CIRCUMFLEX ? 2 : 0
  }
  if (byte === TAB) return 1
  if (byte === HASH) return textAt(view, at, end, '#011') ? 4 : 0
  return separator === Separator.escapedTab && textAt(view, at, end, '\\t') ? 2 : 0
}

/**
 * Whether a pair of a CEF or LEEF extension begins at `start`: letters and digits, then an equals
 * sign.
 */
export function isKey(view: DataView, start: number, end: number): boolean {
  let at = start
  while (at < end && (isLetter(view.getUint8(at)) || isDigit(view.getUint8(at)))) at++
  return at > start && at < end && view.getUint8(at) === EQUALS
}
