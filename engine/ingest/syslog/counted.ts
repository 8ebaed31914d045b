import { CR, HYPHEN, isDigit, isLetter, LF, NOT_FOUND, SPACE } from '../../formats/bytes.ts'
import { mayBecomePri, priEnd } from './pri.ts'

/*
 * Octet counting: MSGLEN SP MSG MSGLEN SP MSG ... (RFC 6587 §3.4.1, RFC 5425 §4.3.1). MSGLEN counts
 * the bytes of MSG, without leading zero. Many senders count wrongly, so a message is complete only if
 * another header (`MSGLEN SP <PRI>`) follows, or if nothing follows yet. Otherwise:
 *
 *   1. A header where another manner of counting ends the message is the next one if its own count,
 *      made in the same manner, leads to a third.
 *   2. Or the next line end ends the message, if a header follows.
 *   3. Or the next message cannot be found, and the connection is closed.
 *
 * Clients put text into messages, such as ` 57 <134>Nov 20 ...` as a user agent, but no line end: no
 * log could have lines then. So no other header is believed.
 */

/** What is wrong with a sender's octet counts, in the order of the counters, and what to change. */
export const FRAMING_REMARKS = {
  oneTooLarge: 'octet counts are one too large (corrected): count only bytes that are sent, such as a line end',
  tooLarge: 'octet counts are a few bytes too large (corrected): count only bytes that are sent, such as a line end',
  oneTooSmall: 'octet counts are one too small (corrected): count every byte after the blank',
  tooSmall: 'octet counts are a few bytes too small (corrected): count every byte after the blank',
  countsItself: 'octet counts include the count itself (corrected): count only the bytes after the blank',
  characters: 'octet counts are numbers of characters (corrected): count the bytes of the encoded message',
  lineEnd:
    'octet counts are wrong (line ends were used): count the bytes after the blank, or send lines without counts',
  noCount: 'some messages of a connection have no octet count: use one framing for all of them',
  lost: 'connections are closed because octet counts are wrong: count the bytes after the blank, or send lines without counts',
}

export type FramingFault = keyof typeof FRAMING_REMARKS
export const FRAMING_FAULTS = Object.keys(FRAMING_REMARKS) as readonly FramingFault[]

/** @param framing messages by fault, as sources count them */
export function framingRemark(framing: Readonly<Record<string, number>> | undefined): string {
  return FRAMING_FAULTS.filter((fault) => (framing?.[fault] ?? 0) > 0)
    .map((fault) => `${framing?.[fault]} times: ${FRAMING_REMARKS[fault]}`)
    .join('; ')
}

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

/** Manners of counting, the likely ones first: by the bytes that a message is longer than its count. */
const DIFFERENCES = [0, -1, 1, -2, 2, Number.NaN]
const COUNTS_ITSELF = 5
const CODE_POINTS = DIFFERENCES.length
const UTF16 = CODE_POINTS + 1
const MANNERS = UTF16 + 1
/** The last digit of a message before a count makes another count, which leads nowhere soon. */
const HEADERS_CHECKED = 3
/** One line feed may be damage. */
const LINES_SHOWN = 2
const LINE_END = FRAMING_FAULTS.indexOf('lineEnd')

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
  /** The next message cannot be found. Further bytes are discarded. */
  isLost = false
  readonly #bytesMax: number
  /** Messages by fault, in the order of FRAMING_FAULTS. undefined: all counts were right. */
  #faults: Float64Array | undefined
  /** The number of bytes to skip, of a message over the limit. */
  #skip = 0
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
    if (this.isLost) return end
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
      at = skipStray(view, at, end)
      if (at === end || this.endsWithLines) return at
      const message = this.#header(view, at, end)
      if (message < 0) {
        const line = message === NONE ? this.#linesAt(view, at, end) : OPEN
        if (line === OPEN && follows !== Follows.nothing) return this.#wait(end + 1, at)
        if (line < 0) return this.#lose(end)
        this.endsWithLines = true
        this.#count(FRAMING_FAULTS.indexOf('noCount'))
        return at
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
      if (stop === NONE) return this.#lose(end)
      if (!deliver(message, stop)) return at
      this.#manner = this.#mannerFound
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
    this.#mannerFound = this.#manner
    this.#fault = LINE_END
    if (line >= 0) return line
    const lines = next < 0 && isComplete ? this.#linesAt(view, skipStray(view, counted, end), end) : next
    if (lines === OPEN && isWaiting) return OPEN
    if (lines < 0) return line
    this.#fault = counted === message + length ? NONE : faultOf(this.#manner)
    return counted
  }

  /** Rule 1. Sets the manner and the fault. NONE: no header is confirmed, or two are. */
  #findManner(view: DataView, message: number, length: number, digits: number, counted: number, end: number): number {
    let found = NONE
    let header = NONE
    let isOpen = false
    for (let manner = 0; manner < MANNERS; manner++) {
      const stop = endBy(manner, view, message, length, digits, end)
      if (stop === counted || (stop <= message && stop !== OPEN)) continue
      const next = stop === OPEN || stop > end ? OPEN : this.#after(view, stop, end)
      if (next === header) continue
      const own = next < 0 ? next : this.#ownEnd(view, next, manner, end, HEADERS_CHECKED)
      if (next < 0 || own !== END) {
        isOpen ||= own === OPEN || next === END
        continue
      }
      if (found !== NONE) return NONE
      found = manner
      header = next
    }
    if (found === NONE) return isOpen ? OPEN : NONE
    this.#mannerFound = found
    this.#fault = faultOf(found)
    return found
  }

  /** Rule 2: the offset of the line end after `message`. */
  #lineEnd(view: DataView, message: number, end: number, follows: Follows, isWaiting: boolean): number {
    this.#mannerFound = this.#manner
    this.#fault = LINE_END
    let stop = message
    while (stop < end && !isStray(view.getUint8(stop))) stop++
    // A header in the line is of a message that has no line end, or the text of a client.
    for (let at = message; at < stop; at++) if (this.#timedHeader(view, at, stop) >= 0) return NONE
    const next = stop === end ? OPEN : this.#after(view, stop, end)
    if ((next === OPEN || next === END) && isWaiting) {
      this.awaitsLineEnd = stop === end
      // Single bytes are not read again and again.
      return this.#wait(stop === end ? Math.min(message + this.#bytesMax, 2 * end - message) : end + 1)
    }
    const isLast = next === END && follows !== Follows.more
    if (next < 0 && !isLast) return NONE
    return stop
  }

  /**
   * `start` if lines without a count follow from there: a message, its line end, and another line or
   * nothing. NONE: they do not.
   */
  #linesAt(view: DataView, start: number, end: number): number {
    const header = lineHeader(view, start, end)
    if (header < 0) return header
    let at = start
    while (at < end && !isStray(view.getUint8(at))) at++
    const next = skipStray(view, at, end)
    if (next < end) return priEnd(view, next, end) !== NOT_FOUND ? start : mayBecomePri(view, next, end) ? OPEN : NONE
    const isLast = this.#follows === Follows.nothing || (next > at && this.#follows === Follows.pause)
    if (isLast || end - start >= this.#bytesMax) return start
    this.awaitsLineEnd = at === end
    return this.#wait(at === end ? start + this.#bytesMax : end + 1)
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

  #lose(end: number): number {
    this.isLost = true
    this.#count(FRAMING_FAULTS.indexOf('lost'))
    return end
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
