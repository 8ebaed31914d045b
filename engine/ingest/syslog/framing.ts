import { isDigit, LESS, LF, NOT_FOUND, SPACE } from '../../formats/bytes.ts'
import { CountedMessages, Follows, isStray, LENGTH_DIGITS_MAX, skipStray } from './counted.ts'
import { mayBecomePri, priEnd } from './pri.ts'

/*
 * How messages are framed in a stream (RFC 6587, RFC 5425 §4.3.1). The first bytes of a connection
 * show the sender's framing:
 *
 *   octet counting   see counted.ts
 *   LF               MSG LF MSG LF ...                 CR and stray NULs may precede each LF
 *   NUL              MSG NUL MSG NUL ...               messages may contain LF
 */
export const FramingKind = { undecided: 0, octetCounting: 1, lf: 2, nul: 3, delimited: 4 } as const
export type FramingKind = (typeof FramingKind)[keyof typeof FramingKind]

const NUL = 0

/** Receives the messages. */
export interface FrameSink {
  /** Returns false if there is no space for the message now. The message is delivered again. */
  frame(start: number, end: number): boolean
}

/** Splits the bytes of one connection into messages. */
export class Framing {
  kind: FramingKind = FramingKind.undecided
  /** The last split ended because the sink had no space. */
  stalled = false
  readonly #bytesMax: number
  readonly #counted: CountedMessages
  /** Lines that were truncated. */
  #truncated = 0
  /** The bytes up to the next delimiter are the rest of a truncated message. */
  #discarding = false
  /** The first message ended with a NUL, and no byte has shown yet whether that is the delimiter. */
  #afterNul = false

  /** @param bytesMax the longest message; longer ones are oversized */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
    this.#counted = new CountedMessages(bytesMax)
  }

  /** Messages longer than allowed: truncated at the limit, or skipped whole with octet counting. */
  get oversized(): number {
    return this.#truncated + this.#counted.oversized
  }

  get isCounted(): boolean {
    return this.kind === FramingKind.octetCounting
  }

  /**
   * Returns and clears the messages with wrong counts, in the order of FRAMING_FAULTS; undefined if
   * there are none.
   */
  takeFaults(): Float64Array | undefined {
    return this.#counted.takeFaults()
  }

  /** The next bytes belong to an oversized message that has no bytes waiting. */
  get isDiscarding(): boolean {
    return this.#counted.isSkipping || this.#discarding
  }

  /** The rest is a whole message unless its count is wrong. Call split with Follows.pause. */
  get isUnconfirmed(): boolean {
    return this.isCounted && this.#counted.isUnconfirmed
  }

  /**
   * Whether the `waiting` bytes from earlier chunks may end a message together with `chunk`. If
   * not, the caller only keeps the bytes, so a sender of single bytes costs no more than any other.
   */
  mayComplete(waiting: number, chunk: Uint8Array): boolean {
    const { needed, awaitsLineEnd } = this.#counted
    if (this.isCounted) return waiting + chunk.length >= needed || (awaitsLineEnd && chunk.includes(LF))
    if (this.kind === FramingKind.lf) return waiting + chunk.length > this.#bytesMax || chunk.includes(LF)
    if (this.kind === FramingKind.nul)
      return waiting + chunk.length > this.#bytesMax || chunk.includes(NUL) || chunk.includes(LF)
    return true
  }

  /**
   * Delivers the messages in [start, end) of `bytes`, where one more byte at `end` may be written.
   * Returns the offset of the rest, which the caller puts before the next chunk. If nothing
   * follows, a message without a delimiter is delivered, too, and only a stalled one is left.
   */
  split(
    bytes: Uint8Array,
    view: DataView,
    start: number,
    end: number,
    sink: FrameSink,
    follows: Follows = Follows.more,
  ): number {
    this.stalled = false
    let at = start
    if (this.kind === FramingKind.undecided) {
      at = skipStray(view, at, end)
      if (at === end) return end
      this.kind = decide(view, at, end)
    }
    if (this.isCounted) {
      at = this.#counted.split(view, at, end, follows, (from, to) => this.#deliver(view, from, to, sink))
      if (this.#counted.endsWithLines) this.kind = FramingKind.lf
    }
    if (!this.isCounted && this.kind !== FramingKind.undecided) at = this.#splitDelimited(bytes, view, at, end, sink)
    if (follows !== Follows.nothing || this.stalled || this.isDiscarding || at === end) return at
    return this.#deliver(view, at, end, sink) ? end : at
  }

  #splitDelimited(bytes: Uint8Array, view: DataView, start: number, end: number, sink: FrameSink): number {
    let at = start
    if (this.#afterNul && at < end) {
      this.#afterNul = false
      this.kind = view.getUint8(at) === LF ? FramingKind.lf : FramingKind.nul
    }
    if (this.kind === FramingKind.delimited) {
      const delimiter = firstDelimiter(view, at, end)
      if (delimiter === end) return this.#tooLong(view, at, end, sink)
      if (view.getUint8(delimiter) === NUL && delimiter + 1 === end) {
        if (!this.#discarding && !this.#deliver(view, at, delimiter, sink)) return at
        this.#discarding = false
        this.#afterNul = true
        return end
      }
      // NUL LF is a stray NUL before the delimiter.
      const isNul = view.getUint8(delimiter) === NUL && view.getUint8(delimiter + 1) !== LF
      this.kind = isNul ? FramingKind.nul : FramingKind.lf
    }
    const delimiter = this.kind === FramingKind.nul ? NUL : LF
    // A delimiter after the last byte ends the search there, because indexOf is native and takes no
    // end.
    const saved = bytes[end] ?? 0
    bytes[end] = delimiter
    try {
      while (at < end) {
        const stop = bytes.indexOf(delimiter, at)
        if (
          delimiter === NUL &&
          !this.#discarding &&
          hasLine(view, at, Math.min(stop, end, at + this.#bytesMax), end)
        ) {
          this.kind = FramingKind.lf
          return this.#splitDelimited(bytes, view, at, end, sink)
        }
        if (stop >= end) return this.#tooLong(view, at, end, sink)
        if (this.#discarding) this.#discarding = false
        else if (stop > at && !this.#deliver(view, at, stop, sink)) return at
        at = stop + 1
      }
      return at
    } finally {
      bytes[end] = saved
    }
  }

  /**
   * [at, end) has no delimiter. If it is longer than a message may be, delivers the beginning and
   * skips the rest.
   */
  #tooLong(view: DataView, at: number, end: number, sink: FrameSink): number {
    if (this.#discarding) return end
    if (end - at <= this.#bytesMax) return at
    if (!this.#deliver(view, at, at + this.#bytesMax, sink)) return at
    this.#truncated++
    this.#discarding = true
    return end
  }

  /** Delivers a message without trailing CR, LF and NUL. Returns false if the sink has no space. */
  #deliver(view: DataView, start: number, end: number, sink: FrameSink): boolean {
    let stop = Math.min(end, start + this.#bytesMax)
    const isTruncated = stop < end
    while (stop > start && isStray(view.getUint8(stop - 1))) stop--
    if (stop === start || sink.frame(start, stop)) {
      // Counted only after delivery, because the message may be delivered again.
      if (isTruncated) this.#truncated++
      return true
    }
    this.stalled = true
    return false
  }
}

/**
 * Digits, one blank and a PRI is octet counting. Everything else has delimiters, including a line
 * that begins with a number: `54 <1 minute elapsed`.
 */
function decide(view: DataView, start: number, end: number): FramingKind {
  let at = start
  while (at < end && at - start <= LENGTH_DIGITS_MAX && isDigit(view.getUint8(at))) at++
  if (at === start || at - start > LENGTH_DIGITS_MAX || view.getUint8(start) === 0x30) return FramingKind.delimited
  if (at === end) return FramingKind.undecided
  if (view.getUint8(at) !== SPACE) return FramingKind.delimited
  const pri = at + 1
  if (priEnd(view, pri, end) !== NOT_FOUND) return FramingKind.octetCounting
  return mayBecomePri(view, pri, end) ? FramingKind.undecided : FramingKind.delimited
}

function firstDelimiter(view: DataView, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === LF || byte === NUL) return at
  }
  return end
}

/**
 * Whether a LF in [start, stop) ends a line: a stray NUL in a line has made the lines look as if NUL
 * ended them. Messages that contain LF have a PRI.
 */
function hasLine(view: DataView, start: number, stop: number, end: number): boolean {
  for (let at = start; at < stop; at++) {
    if (view.getUint8(at) !== LF) continue
    if (view.getUint8(start) !== LESS || (at + 1 < end && view.getUint8(at + 1) === LESS)) return true
  }
  return false
}
