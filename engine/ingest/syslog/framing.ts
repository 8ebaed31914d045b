import { CR, isDigit, LESS, LF, SPACE } from '../formats/bytes.ts'

/*
 * How messages are framed in a stream (RFC 6587, RFC 5425 §4.3.1). The first bytes of a connection
 * show the sender's framing:
 *
 *   octet counting   MSGLEN SP MSG MSGLEN SP MSG ...   MSGLEN counts the bytes of MSG, without
 *                                                      leading zero; MSG begins with `<`
 *   LF               MSG LF MSG LF ...                 CR and stray NULs may precede each LF
 *   NUL              MSG NUL MSG NUL ...               messages may contain LF
 */
export const FramingKind = { undecided: 0, octetCounting: 1, lf: 2, nul: 3, delimited: 4 } as const
export type FramingKind = (typeof FramingKind)[keyof typeof FramingKind]

/**
 * Octet counting is out of sync: the bytes where a length must be are no length. Only a new
 * connection can fix this.
 */
export const BROKEN = -1

const NUL = 0
/** A longer number is no length: the longest message that is skipped has 999,999 bytes. */
const LENGTH_DIGITS_MAX = 6

/** Receives the messages. */
export interface FrameSink {
  /** Returns false if there is no space for the message now. The message is delivered again. */
  frame(start: number, end: number): boolean
}

/** Splits the bytes of one connection into messages. */
export class Framing {
  kind: FramingKind = FramingKind.undecided
  /** Messages longer than allowed: truncated at the limit, or skipped whole with octet counting. */
  oversized = 0
  /** The last split ended because the sink had no space. */
  stalled = false
  readonly #bytesMax: number
  /** The number of bytes to skip, of a message with a known length. */
  #skip = 0
  /** The bytes up to the next delimiter are the rest of a truncated message. */
  #discarding = false
  /**
   * The first message ended with a NUL, and no byte has shown yet whether a LF belongs to the
   * delimiter.
   */
  #afterNul = false
  /**
   * This many bytes from the start of the rest have no delimiter, or are fewer than their message's
   * length.
   */
  #incomplete = 0

  /** @param bytesMax the longest message; longer ones are oversized */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** The next bytes belong to an oversized message that has no bytes waiting. */
  get isDiscarding(): boolean {
    return this.#skip > 0 || this.#discarding
  }

  /**
   * Whether the `waiting` bytes from earlier chunks may end a message together with `chunk`. If
   * not, the caller only keeps the bytes, so a sender of single bytes costs no more than any other.
   */
  mayComplete(waiting: number, chunk: Uint8Array): boolean {
    if (this.kind === FramingKind.octetCounting) return waiting + chunk.length >= this.#incomplete
    if (this.kind === FramingKind.lf) return waiting + chunk.length > this.#bytesMax || chunk.includes(LF)
    if (this.kind === FramingKind.nul) return waiting + chunk.length > this.#bytesMax || chunk.includes(NUL)
    return true
  }

  /**
   * Delivers the messages in [start, end) of `bytes`, where one more byte at `end` may be written.
   * Returns the offset of the rest, which the caller puts before the next chunk, or BROKEN.
   */
  split(bytes: Uint8Array, view: DataView, start: number, end: number, sink: FrameSink): number {
    this.stalled = false
    this.#incomplete = 0
    let at = start
    if (this.kind === FramingKind.undecided) {
      at = this.#skipStray(view, at, end)
      if (at === end) return end
      this.kind = decide(view, at, end)
      if (this.kind === FramingKind.undecided) return at
    }
    if (this.kind === FramingKind.octetCounting) return this.#splitCounted(view, at, end, sink)
    return this.#splitDelimited(bytes, view, at, end, sink)
  }

  /** At the end of the stream, the rest is the last message, without a delimiter. */
  end(view: DataView, start: number, end: number, sink: FrameSink): boolean {
    if (this.kind === FramingKind.octetCounting || this.#discarding || start === end) return true
    return this.#deliver(view, start, end, sink)
  }

  #splitCounted(view: DataView, start: number, end: number, sink: FrameSink): number {
    let at = start
    for (;;) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, end - at)
        this.#skip -= skipped
        at += skipped
        if (this.#skip > 0) return at
      }
      at = this.#skipStray(view, at, end)
      let message = at
      let length = 0
      while (message < end && message - at <= LENGTH_DIGITS_MAX) {
        const byte = view.getUint8(message)
        if (!isDigit(byte)) break
        length = length * 10 + byte - 0x30
        message++
      }
      if (message === end && message - at <= LENGTH_DIGITS_MAX && (message === at || view.getUint8(at) !== 0x30)) {
        this.#incomplete = message - at + 1
        return at
      }
      const digits = message - at
      if (digits === 0 || digits > LENGTH_DIGITS_MAX || view.getUint8(at) === 0x30) return BROKEN
      if (view.getUint8(message) !== SPACE) return BROKEN
      message++
      if (message === end) {
        // The first byte shows whether the bytes are a message.
        this.#incomplete = message + 1 - at
        return at
      }
      if (view.getUint8(message) !== LESS) return BROKEN
      if (length > this.#bytesMax) {
        this.oversized++
        this.#skip = length
        at = message
        continue
      }
      if (message + length > end) {
        this.#incomplete = message + length - at
        return at
      }
      if (!this.#deliver(view, message, message + length, sink)) return at
      at = message + length
    }
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
    this.oversized++
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
      if (isTruncated) this.oversized++
      return true
    }
    this.stalled = true
    return false
  }

  #skipStray(view: DataView, at: number, end: number): number {
    while (at < end && isStray(view.getUint8(at))) at++
    return at
  }
}

function isStray(byte: number): boolean {
  return byte === LF || byte === CR || byte === NUL
}

/**
 * Digits, one blank and `<` is octet counting. Everything else has delimiters, including a line
 * that begins with a number.
 */
function decide(view: DataView, start: number, end: number): FramingKind {
  let at = start
  while (at < end && at - start <= LENGTH_DIGITS_MAX && isDigit(view.getUint8(at))) at++
  if (at === start || at - start > LENGTH_DIGITS_MAX || view.getUint8(start) === 0x30) return FramingKind.delimited
  if (at === end) return FramingKind.undecided
  if (view.getUint8(at) !== SPACE) return FramingKind.delimited
  if (at + 1 === end) return FramingKind.undecided
  return view.getUint8(at + 1) === LESS ? FramingKind.octetCounting : FramingKind.delimited
}

function firstDelimiter(view: DataView, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === LF || byte === NUL) return at
  }
  return end
}
