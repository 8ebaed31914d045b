import { CR, HYPHEN, isDigit, isLetter, LF, NOT_FOUND, SPACE } from '../../formats/bytes.ts'
import { mayBecomePri, priEnd } from './pri.ts'

/*
 * Octet counting: MSGLEN SP MSG MSGLEN SP MSG ... (RFC 6587 §3.4.1, RFC 5425 §4.3.1). MSGLEN counts
 * the bytes of MSG, without leading zero. Many senders count wrongly, so a message is complete only if
 * another header (`MSGLEN SP <PRI>`) follows, or if nothing follows yet. Otherwise:
 *
 *   1. A header a few bytes away, or where another manner of counting ends the message, is the next
 *      one if its own count, made in the same manner, leads to a third. The message is read.
 *   2. Or the next line end ends the message, if a header follows.
 *   3. Or the message is lost, and bytes are skipped up to a header.
 *
 * Clients put text into messages, such as ` 57 <134>Nov 20 ...` as a user agent, but no line end: no
 * log could have lines then. So 3 looks for a header after a line end. In a stream without line ends,
 * 3 also accepts a header with a time whose count leads to another, but not its message, which may be
 * the text of a client.
 */

/** What is wrong with counts, in the order of the counters. */
export const FRAMING_FAULTS = [
  'oneTooLarge',
  'tooLarge',
  'oneTooSmall',
  'tooSmall',
  'countsItself',
  'characters',
  /** The line end was used in place of the count. */
  'lineEnd',
  /** Lines without a count follow. */
  'noCount',
  'lost',
] as const
export type FramingFault = (typeof FRAMING_FAULTS)[number]

/** Messages by fault, without those of which there are none. */
export function namedFaults(counts: Float64Array): Partial<Record<FramingFault, number>> {
  const named = FRAMING_FAULTS.map((fault, index) => [fault, counts[index] ?? 0] as const)
  return Object.fromEntries(named.filter(([, messages]) => messages > 0))
}

/** What is known to follow the bytes that have arrived. `pause`: nothing for a second or longer. */
export const Follows = { more: 0, pause: 1, nothing: 2 } as const
export type Follows = (typeof Follows)[keyof typeof Follows]

/** A longer number is no length: the longest message that is skipped has 999,999 bytes. */
export const LENGTH_DIGITS_MAX = 6
/** Bytes after a message that show whether a header follows, and the header before the message. */
export const HEADERS_BYTES_MAX = 64

/** Results in place of an offset. */
const NONE = -1
/** More bytes are needed. */
const OPEN = -2
/** There are no more bytes, except for line ends. */
const END = -3

const AMBIGUOUS = -4

/** Manners of counting, the likely ones first: by the bytes that a message is longer than its count. */
const DIFFERENCES = [0, -1, 1, -2, 2, Number.NaN, -3, 3, -4, 4, -5, 5, -6, 6, -7, 7, -8, 8]
const COUNTS_ITSELF = 5
const CODE_POINTS = DIFFERENCES.length
const UTF16 = CODE_POINTS + 1
const MANNERS = UTF16 + 1
/** The last digit of a message before a count makes another count, which leads nowhere soon. */
const HEADERS_CHECKED = 3
/** One line feed may be damage. */
const LINES_SHOWN = 2
const LINE_END = FRAMING_FAULTS.indexOf('lineEnd')
const LOST = FRAMING_FAULTS.indexOf('lost')

/** Splits the bytes of a stream with octet counting into messages. */
export class CountedMessages {
  /** Skipped messages over the limit. */
  oversized = 0
  /** Without this many bytes from the start of the rest, no message can be complete. */
  needed = 0
  /** A line end completes the message, however many bytes it has. */
  awaitsLineEnd = false
  /** The rest has a whole message by its count, which the bytes after it can confirm. */
  isUnconfirmed = false
  /** Lines without a count follow from the returned offset on. */
  endsWithLines = false
  readonly #bytesMax: number
  /** Messages by fault, in the order of FRAMING_FAULTS. undefined: all counts were right. */
  #faults: Float64Array | undefined
  /** The number of bytes to skip, of a message over the limit. */
  #skip = 0
  /** Bytes are skipped up to the next header. */
  #isLost = false
  /** The next message may be the text of a client, and is skipped. */
  #isSuspect = false
  /** The skipped bytes end with a line end. */
  #isAfterLineEnd = false
  /** The manner of counting, and whether a message has shown it. */
  #manner = 0
  #isSteady = false
  /** Messages in a row that were followed by a line end. */
  #lineEnds = 0
  /** Of the header that was read last: the length that it has, and the number of its digits. */
  #length = 0
  #digits = 0
  /** Results of #endOf: the manner of the message, and its fault or NONE. */
  #mannerFound = 0
  #fault = NONE
  /** The offset before which the bytes that are missing cannot have arrived. */
  #until = 0
  #follows: Follows = Follows.more

  /** @param bytesMax the longest message; longer ones are skipped */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get #hasLineEnds(): boolean {
    return this.#lineEnds >= LINES_SHOWN
  }

  get isSkipping(): boolean {
    return this.#skip > 0
  }

  /** Returns and clears the messages by fault. */
  takeFaults(): Float64Array | undefined {
    const faults = this.#faults
    this.#faults = undefined
    return faults
  }

  /**
   * Delivers the messages in [start, end). Returns the offset of the rest, which the caller puts
   * before the next bytes. `deliver` returns false if the message must be delivered again.
   */
  split(
    view: DataView,
    start: number,
    end: number,
    follows: Follows,
    deliver: (start: number, end: number) => boolean,
  ): number {
    this.awaitsLineEnd = false
    this.isUnconfirmed = false
    this.#follows = follows
    this.#until = Number.POSITIVE_INFINITY
    const rest = this.#split(view, start, end, follows, deliver)
    this.needed = this.#until === Number.POSITIVE_INFINITY ? 0 : this.#until - rest
    return rest
  }

  #split(
    view: DataView,
    start: number,
    end: number,
    follows: Follows,
    deliver: (start: number, end: number) => boolean,
  ): number {
    for (let at = start; ; ) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, end - at)
        this.#skip -= skipped
        at += skipped
      }
      if (this.#isLost) at = this.#search(view, at, end, follows)
      else at = skipStray(view, at, end)
      if (at === end || this.#isLost || this.endsWithLines) return at
      const message = this.#header(view, at, end)
      if (message < 0) {
        const isLine = message === NONE ? lineHeader(view, at, end) : OPEN
        if (isLine === OPEN && follows !== Follows.nothing) return this.#wait(end + 1, at)
        const stop = isLine === NONE ? this.#damagedEnd(view, at, end) : NONE
        if (stop === OPEN && follows !== Follows.nothing) return at
        if (isLine >= 0 && this.#isLine(view, at, end)) this.#useLines()
        else if (stop >= 0) {
          this.#count(LOST)
          at = stop
        } else this.#lose()
        continue
      }
      if (this.#length > this.#bytesMax) {
        this.oversized++
        this.#skip = this.#length
        at = message
        continue
      }
      const stop = this.#endOf(view, at, message, end, follows)
      if (stop === OPEN) {
        this.isUnconfirmed = message + this.#length <= end
        return at
      }
      if (stop === NONE) {
        at = message
        this.#lose()
        continue
      }
      if (this.#isSuspect) this.#fault = LOST
      this.#isSuspect = this.#fault === LOST && !this.#isSuspect
      if (this.#fault !== LOST) {
        if (!deliver(message, stop)) return at
        this.#manner = this.#mannerFound
      }
      if (this.#fault !== NONE) this.#count(this.#fault)
      const endsWithLine = isStray(view.getUint8(stop - 1))
      if (endsWithLine || (stop < end && isStray(view.getUint8(stop)))) this.#lineEnds++
      else if (stop < end) this.#lineEnds = 0
      at = stop
    }
  }

  /**
   * The offset after the message at `message`, whose header is at `at` and was read last. OPEN: more
   * bytes are needed. NONE: the message is lost.
   */
  #endOf(view: DataView, at: number, message: number, end: number, follows: Follows): number {
    const length = this.#length
    const digits = this.#digits
    const isWaiting = follows !== Follows.nothing && end - at < this.#bytesMax + HEADERS_BYTES_MAX
    const byManner = endBy(this.#manner, view, message, length, digits, end)
    const counted = byManner === OPEN || byManner > message ? byManner : message + length
    this.#mannerFound = this.#manner
    this.#fault = counted === message + length ? NONE : faultOf(this.#manner)
    const isComplete = counted >= 0 && counted <= end
    if (!isComplete && follows !== Follows.nothing) return this.#wait(Math.max(counted, end + 1))
    const next = isComplete ? this.#after(view, counted, end) : NONE
    if (next === OPEN && isWaiting) return OPEN
    if (next === OPEN || next === END) {
      if (follows === Follows.pause) this.#isSteady = true
      const hasEnd = !this.#hasLineEnds || counted < end || isStray(view.getUint8(counted - 1))
      if (follows !== Follows.more || !isWaiting || (this.#isSteady && hasEnd)) return counted
      return this.#wait(end + 1)
    }
    if (next >= 0) {
      // The last digits of the message may be the first of the count, and the first of the count the
      // last of the message.
      const isCertain = next > counted || !(isDigit(view.getUint8(counted - 1)) || hasShorterCount(view, next))
      const own = isCertain ? END : this.#ownEnd(view, next, this.#manner, end)
      if (own === OPEN && follows !== Follows.nothing) return isWaiting ? OPEN : counted
      if (own === END) {
        this.#isSteady = true
        return counted
      }
    }
    const line = next < 0 ? this.#lineEnd(view, message, end, follows, isWaiting) : NONE
    if (this.#hasLineEnds && line !== NONE) return line
    const manner = this.#findManner(view, message, length, digits, counted, end)
    if (manner === OPEN && isWaiting) return OPEN
    if (manner >= 0) return endBy(manner, view, message, length, digits, end)
    if (manner === AMBIGUOUS) return NONE
    this.#mannerFound = this.#manner
    this.#fault = LINE_END
    if (line >= 0) return line
    // Damage of the next header, such as `1x6 <30>` or `106 x30>`.
    const damaged = next < 0 && isComplete ? this.#damagedHeader(view, counted, end) : next
    if (damaged === OPEN && isWaiting) return OPEN
    if (damaged < 0) return line
    this.#fault = counted === message + length ? NONE : faultOf(this.#manner)
    return counted
  }

  /** The offset after a message with a count and a damaged PRI, if a header follows there. */
  #damagedEnd(view: DataView, start: number, end: number): number {
    const at = skipStray(view, start, end)
    if (this.#header(view, at, end) !== NONE) return NONE
    const length = this.#length
    const digits = this.#digits
    const isCount = digits > 0 && digits <= LENGTH_DIGITS_MAX && length <= this.#bytesMax
    if (!isCount || at + digits >= end || view.getUint8(at + digits) !== SPACE) return NONE
    const counted = endBy(this.#manner, view, at + digits + 1, length, digits, end)
    if (counted === NONE) return NONE
    let isOpen = false
    // A byte of the PRI may be missing, or be one too many.
    for (const stop of [counted, counted - 1, counted + 1]) {
      const next = counted === OPEN || stop > end ? this.#wait(Math.max(stop, end + 1)) : this.#after(view, stop, end)
      const own = next >= 0 ? this.#ownEnd(view, next, this.#manner, end, HEADERS_CHECKED) : next
      if (own === END && next >= 0) return stop
      isOpen ||= own === OPEN || (own === END && this.#follows === Follows.more)
    }
    return isOpen ? this.#wait(end + 1) : NONE
  }

  /** The offset of a PRI that a count should precede, or after a message without a PRI. */
  #damagedHeader(view: DataView, start: number, end: number): number {
    const stop = this.#damagedEnd(view, start, end)
    if (stop !== NONE) return stop
    for (let at = start; at <= start + LENGTH_DIGITS_MAX + 2; at++) {
      if (priEnd(view, at, end) !== NOT_FOUND) return at
      if (mayBecomePri(view, at, end)) return this.#wait(end + 1)
    }
    return NONE
  }

  /** Rule 1. Sets the manner and the fault. NONE: no header is nearby. END: none is confirmed. */
  #findManner(view: DataView, message: number, length: number, digits: number, counted: number, end: number): number {
    let found = NONE
    let header = NONE
    let hasHeader = false
    let isOpen = false
    for (let manner = 0; manner < MANNERS; manner++) {
      const stop = endBy(manner, view, message, length, digits, end)
      if (stop === counted || (stop <= message && stop !== OPEN)) continue
      const next = stop === OPEN || stop > end ? OPEN : this.#after(view, stop, end)
      if (next < 0) {
        isOpen ||= next !== NONE
        continue
      }
      hasHeader = true
      if (next === header) continue
      const own = this.#ownEnd(view, next, manner, end, HEADERS_CHECKED)
      const alone = own === END ? NONE : this.#ownEnd(view, next, this.#manner, end, HEADERS_CHECKED)
      isOpen ||= own === OPEN || alone === OPEN
      if (own !== END && alone !== END) continue
      if (found !== NONE) return AMBIGUOUS
      found = manner
      header = next
      this.#mannerFound = manner
      // Damage of one message does not show how the sender counts. Characters do: they are exact.
      this.#fault = own !== END && manner < CODE_POINTS ? LOST : faultOf(manner)
    }
    if (found !== NONE) return found
    return isOpen ? OPEN : hasHeader ? END : NONE
  }

  /** Rule 2: the offset of the line end after `message`. */
  #lineEnd(view: DataView, message: number, end: number, follows: Follows, isWaiting: boolean): number {
    this.#mannerFound = this.#manner
    this.#fault = LINE_END
    let stop = message
    while (stop < end && !isStray(view.getUint8(stop))) stop++
    const next = stop === end ? OPEN : this.#after(view, stop, end)
    if ((next === OPEN || next === END) && isWaiting && (this.#hasLineEnds || stop < end)) {
      this.awaitsLineEnd = stop === end
      return this.#wait(stop === end ? message + this.#bytesMax : end + 1)
    }
    const isLast = next === END && follows !== Follows.more
    if (next < 0 && !isLast) return NONE
    // A header in the line is of a message that has no line end, or the text of a client.
    for (let at = message; at < stop; at++) if (this.#timedHeader(view, at, stop) >= 0) return NONE
    return stop
  }

  /** Rule 3: the offset of the next header, or `end`, or of the first byte that is still needed. */
  #search(view: DataView, start: number, end: number, follows: Follows): number {
    const isWaiting = follows !== Follows.nothing
    let lineStart = OPEN
    for (let at = start; at < end; at++) {
      if (isStray(view.getUint8(at))) {
        this.#isAfterLineEnd = true
        continue
      }
      if (this.#isAfterLineEnd) {
        const isCounted = this.#header(view, at, end)
        const isLine = priEnd(view, at, end)
        if (isCounted >= 0 || (isLine >= 0 && this.#isLine(view, at, end))) {
          this.#isLost = false
          this.#isSuspect = false
          if (isCounted < 0) this.#useLines()
          else this.#lineEnds = LINES_SHOWN
          return at
        }
        if ((isCounted === OPEN || mayBecomePri(view, at, end)) && isWaiting) return this.#wait(end + 1, at)
        this.#isAfterLineEnd = false
      }
      const next = this.#hasLineEnds ? NONE : this.#timedHeader(view, at, end)
      if (next === NONE) continue
      const own = next === OPEN ? OPEN : this.#ownEnd(view, at, this.#manner, end, HEADERS_CHECKED)
      if (own === OPEN && isWaiting) return at
      if (own !== END) continue
      if (lineStart === OPEN || lineStart < at) lineStart = this.#nextLine(view, at, end)
      this.#header(view, at, end)
      const stop = endBy(this.#manner, view, next, this.#length, this.#digits, end)
      if (lineStart < stop) continue
      this.#isLost = false
      this.#isSuspect = true
      return at
    }
    return end
  }

  /** Whether the message without a count at `start` is a line: another line follows, or nothing. */
  #isLine(view: DataView, start: number, end: number): boolean {
    let at = start
    while (at < end && !isStray(view.getUint8(at))) at++
    const next = skipStray(view, at, end)
    return next > at && (priEnd(view, next, end) !== NOT_FOUND || (next === end && this.#follows !== Follows.more))
  }

  /** The offset of the first header at a line start after `start`, or `end`. */
  #nextLine(view: DataView, start: number, end: number): number {
    for (let at = start + 1; at < end; at++) {
      if (isStray(view.getUint8(at - 1)) && this.#header(view, at, end) >= 0) return at
    }
    return end
  }

  /**
   * END: the count of the header at `at` leads to another header, that one's to a third, for
   * `headers` headers or up to the end of the bytes.
   */
  #ownEnd(view: DataView, at: number, manner: number, end: number, headers = 1): number {
    const message = this.#header(view, at, end)
    if (message < 0) return message
    if (this.#length > this.#bytesMax) return NONE
    const stop = endBy(manner, view, message, this.#length, this.#digits, end)
    if (stop === OPEN || stop > end) return this.#wait(Math.max(stop, end + 1))
    if (stop <= message) return NONE
    const next = this.#after(view, stop, end)
    if (next === END && this.#follows === Follows.more) return this.#wait(end + 1)
    if (next < 0) return next
    return headers > 1 ? this.#ownEnd(view, next, manner, end, headers - 1) : END
  }

  /** The offset of the header after `at` and line ends, or NONE, OPEN, END. */
  #after(view: DataView, at: number, end: number): number {
    const next = skipStray(view, at, end)
    if (next === end) return END
    const message = this.#header(view, next, end)
    return message >= 0 ? next : message
  }

  /** The offset after `MSGLEN SP` at `at` if a PRI follows. Sets the length. */
  #header(view: DataView, at: number, end: number): number {
    let length = 0
    let next = at
    while (next < end && next - at <= LENGTH_DIGITS_MAX) {
      const byte = view.getUint8(next)
      if (!isDigit(byte)) break
      length = length * 10 + byte - 0x30
      next++
    }
    this.#length = length
    this.#digits = next - at
    if (next - at > LENGTH_DIGITS_MAX || (next > at && view.getUint8(at) === 0x30)) return NONE
    if (next === end) return this.#wait(end + 1)
    if (next === at || view.getUint8(next) !== SPACE) return NONE
    next++
    if (priEnd(view, next, end) !== NOT_FOUND) return next
    return mayBecomePri(view, next, end) ? this.#wait(end + 1) : NONE
  }

  /** As #header, but a version or a time must follow the PRI. */
  #timedHeader(view: DataView, at: number, end: number): number {
    if (!isDigit(view.getUint8(at))) return NONE
    const message = this.#header(view, at, end)
    return message < 0 ? message : Math.min(lineHeader(view, message, end), message)
  }

  #useLines(): void {
    this.endsWithLines = true
    this.#count(FRAMING_FAULTS.indexOf('noCount'))
  }

  #lose(): void {
    this.#isLost = true
    this.#isAfterLineEnd = false
    this.#count(LOST)
  }

  #count(fault: number): void {
    this.#faults ??= new Float64Array(FRAMING_FAULTS.length)
    this.#faults[fault] = (this.#faults[fault] ?? 0) + 1
  }

  #wait(until: number, result = OPEN): number {
    this.#until = Math.min(this.#until, until)
    return result
  }
}

/**
 * The offset after a message that is counted in this manner. OPEN if it is after `end`, NONE if
 * characters were counted and these are none.
 */
function endBy(manner: number, view: DataView, message: number, length: number, digits: number, end: number): number {
  if (manner === COUNTS_ITSELF) return message + length - digits - 1
  if (manner < CODE_POINTS) return message + length + (DIFFERENCES[manner] ?? 0)
  let at = message
  for (let left = length; left > 0; left--) {
    if (at >= end) return OPEN
    const byte = view.getUint8(at++)
    if (byte < 0x80) continue
    if (byte < 0xc0) return NONE
    // A pair of surrogates.
    if (byte >= 0xf0 && manner === UTF16) left--
    for (let more = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3; more > 0; more--, at++) {
      if (at >= end) return OPEN
      if ((view.getUint8(at) & 0xc0) !== 0x80) return NONE
    }
  }
  return at
}

function faultOf(manner: number): number {
  if (manner >= CODE_POINTS) return FRAMING_FAULTS.indexOf('characters')
  if (manner === COUNTS_ITSELF) return FRAMING_FAULTS.indexOf('countsItself')
  const difference = DIFFERENCES[manner] ?? 0
  if (difference === 0) return NONE
  const isOne = Math.abs(difference) === 1
  return FRAMING_FAULTS.indexOf(
    difference < 0 ? (isOne ? 'oneTooLarge' : 'tooLarge') : isOne ? 'oneTooSmall' : 'tooSmall',
  )
}

/** Whether the count at `start` is also a count without its first digits. */
function hasShorterCount(view: DataView, start: number): boolean {
  let at = start + 1
  while (view.getUint8(at) === 0x30) at++
  return isDigit(view.getUint8(at))
}

/** The offset after a PRI at `at`, if a version or a time follows as in RFC 5424 or RFC 3164. */
function lineHeader(view: DataView, start: number, end: number): number {
  const at = priEnd(view, start, end)
  if (at === NOT_FOUND) return mayBecomePri(view, start, end) ? OPEN : NONE
  if (at + 5 > end) return OPEN
  const byte = (place: number): number => view.getUint8(at + place)
  if (isDigit(byte(0))) {
    const version = byte(1) === SPACE ? 2 : isDigit(byte(1)) && byte(2) === SPACE ? 3 : 0
    const isVersion = version > 0 && (byte(version) === HYPHEN || isDigit(byte(version)))
    return isVersion || byte(4) === HYPHEN ? at : NONE
  }
  const isMonth = isLetter(byte(0)) && isLetter(byte(1)) && isLetter(byte(2)) && byte(3) === SPACE
  return isMonth && (byte(4) === SPACE || isDigit(byte(4))) ? at : NONE
}

export function skipStray(view: DataView, start: number, end: number): number {
  let at = start
  while (at < end && isStray(view.getUint8(at))) at++
  return at
}

/** CR, LF and NUL: senders write them between and after messages. */
export function isStray(byte: number): boolean {
  return byte === LF || byte === CR || byte === 0
}
