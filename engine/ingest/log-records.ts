import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  CR,
  isDigit,
  isLetter,
  LF,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SEMICOLON,
  SPACE,
  TAB,
} from '../formats/bytes.ts'

/** Maximum lines of one record: a quoted CSV field can contain line feeds. */
const CSV_LINES_MAX = 8
/** The members of a subscription record of CloudWatch Logs, of which any may be the first. */
const RECORD_KEYS = ['messageType', 'owner', 'logGroup', 'logStream', 'subscriptionFilters', 'logEvents'].map((key) =>
  Buffer.from(`"${key}"`),
)
const EVENTS_KEY = Buffer.from('"logEvents"')
/** Names of the log group and stream (at most 512 bytes each), and of the subscription filters. */
const RECORD_HEAD_BYTES_MAX = 4096
const OBJECTS_BORDER = Buffer.from('}{')
/** Leading bytes that are compared to decide whether two lines have the same form. */
const SHAPE_BYTES = 10
const NUL = 0

/**
 * Finds the messages of a log file in a buffer that is filled step by step: lines, quoted CSV
 * fields and JSON objects over several lines, the objects of an array. An incomplete message waits
 * for more bytes.
 */
export class LogRecords {
  /** The current message without trailing line ends and blanks. start = end: an empty line. */
  start = 0
  end = 0
  /** Number of the message's first line, from 1. */
  line = 1
  /** Lines that end before `place`. */
  lines = 0
  /** Offset of the next message. */
  place = 0
  /** The message lacks its line feed, so its writer may not have finished it. */
  isOpen = false
  readonly #bytes: Buffer
  readonly #bytesMax: number
  /**
   * The bytes up to the next line feed belong to a truncated line. The caller need not put them
   * into the buffer, and may drop the bytes after `place`.
   */
  isDiscarding = false
  /** Messages that were longer than allowed. Only their beginning was read. */
  truncated = 0
  /** `place` is inside an array of objects: of the file, or of a subscription record. */
  #inArray = false
  /** `place` is inside a subscription record. */
  #inRecord = false
  #atFileStart = true

  /** @param bytesMax maximum length of a message; longer lines are truncated */
  constructor(bytes: Uint8Array, bytesMax: number) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#bytesMax = bytesMax
  }

  /**
   * Finds the next message in the bytes before `filled`. Returns false if it is incomplete and more
   * bytes may follow.
   */
  next(filled: number, isLast: boolean): boolean {
    if (this.isDiscarding && !this.#discard(filled)) return false
    for (;;) {
      if (this.#inArray || this.#inRecord || this.#atFileStart) this.#skipArraySigns(filled)
      if (this.place >= filled) return false
      const eventsStart = this.#eventsStart(filled, isLast)
      if (eventsStart < 0) return false
      if (eventsStart === this.place) break
      this.lines += countOf(this.#bytes, LF, this.place, eventsStart)
      this.place = eventsStart
      this.#inRecord = true
      this.#inArray = true
    }
    const lineEnd = this.#lineEnd(this.place, filled)
    if (lineEnd === filled && !isLast && filled - this.place <= this.#bytesMax) return false
    const end = this.#recordEnd(lineEnd, filled, isLast)
    if (end < 0) return false
    this.#take(end, filled, isLast)
    return true
  }

  /** The caller moved the bytes from `place` on to the start of the buffer. */
  moved(): void {
    this.place = 0
  }

  /** Returns the end of the message that begins at `place`, or -1 if more bytes are needed. */
  #recordEnd(lineEnd: number, filled: number, isLast: boolean): number {
    const first = this.#bytes[this.place]
    if (first === OPEN_BRACE && (this.#inArray || this.#isLoneBrace(lineEnd))) {
      const end = this.#objectEnd(filled, isLast)
      if (end !== NOT_CLOSED) return end
      this.#inArray = false
    } else if (first === OPEN_BRACE && this.#mayBeTwoObjects(lineEnd)) {
      const end = this.#objectEnd(filled, isLast)
      if (end < 0 ? end !== NOT_CLOSED : this.#bytes[end] === OPEN_BRACE) return end
    }
    if (this.#hasOpenQuote(lineEnd)) {
      const end = this.#quotedEnd(lineEnd, filled, isLast)
      if (end !== NOT_CLOSED) return end
    }
    return lineEnd
  }

  #take(end: number, filled: number, isLast: boolean): void {
    this.start = this.place
    this.line = this.lines + 1
    this.isOpen = isLast && end === filled
    let stop = Math.min(end, this.start + this.#bytesMax)
    if (end > stop) this.truncated++
    if (end - this.start > this.#bytesMax && end === filled && !isLast) {
      // An overlong line: its beginning is the message, the rest is discarded.
      this.isDiscarding = true
      this.place = stop
    } else {
      this.lines += countOf(this.#bytes, LF, this.start, end)
      const isLine = end < filled && this.#bytes[end] === LF
      this.place = isLine ? end + 1 : end
      if (isLine) this.lines++
    }
    while (stop > this.start && isTrailer(this.#bytes[stop - 1] ?? 0)) stop--
    if (this.#bytes[this.start] === OPEN_BRACE && this.#bytes[stop - 1] === COMMA) stop--
    this.end = stop
  }

  /**
   * The offset of the log events in the subscription record of CloudWatch Logs at `place`, `place`
   * if there is no such record, or -1 if more bytes are needed. Each event has a `message`.
   *
   * https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html
   */
  #eventsStart(filled: number, isLast: boolean): number {
    const { place } = this
    const bytes = this.#bytes
    if (this.#inArray || bytes[place] !== OPEN_BRACE) return place
    const key = afterBlanks(bytes, place + 1, filled)
    // Without a line feed after it, the first member may be incomplete.
    if (filled - key < RECORD_KEY_BYTES_MAX && !isLast && bytes.indexOf(LF, key) < 0) return -1
    const initial = bytes[key + 1]
    const isRecord = RECORD_KEYS.some(
      (name) => name[1] === initial && bytes.compare(name, 0, name.length, key, key + name.length) === 0,
    )
    if (!isRecord) return place
    const lineEnd = this.#lineEnd(place, filled)
    // Of an object over several lines, the first line is only its brace.
    const recordEnd = this.#isLoneBrace(lineEnd) ? filled : lineEnd
    const limit = Math.min(recordEnd, place + RECORD_HEAD_BYTES_MAX)
    const at = bytes.subarray(place, limit).indexOf(EVENTS_KEY)
    if (at < 0) return limit === filled && !isLast ? -1 : place
    const colon = afterBlanks(bytes, place + at + EVENTS_KEY.length, limit)
    const bracket = afterBlanks(bytes, colon + 1, limit)
    if (bracket >= limit) return limit === filled && !isLast ? -1 : place
    return bytes[colon] === COLON && bytes[bracket] === OPEN_BRACKET ? bracket + 1 : place
  }

  /** Firehose writes the objects of a file without line feeds between them. */
  #mayBeTwoObjects(lineEnd: number): boolean {
    return this.#bytes.subarray(this.place, lineEnd).indexOf(OBJECTS_BORDER) >= 0
  }

  #discard(filled: number): boolean {
    const end = this.#lineEnd(this.place, filled)
    this.place = Math.min(end + 1, filled)
    if (end === filled) return false
    this.isDiscarding = false
    this.lines++
    return true
  }

  /** Skips the blanks, commas and line feeds between the objects of an array. */
  #skipArraySigns(filled: number): void {
    for (; this.place < filled; this.place++) {
      const byte = this.#bytes[this.place]
      if (byte === LF) this.lines++
      else if (byte === OPEN_BRACKET && this.#atFileStart && !this.#inArray) this.#inArray = true
      else if (byte === CLOSE_BRACKET && this.#inArray) this.#inArray = false
      else if (this.#inRecord && !this.#inArray && byte !== OPEN_BRACE) this.#inRecord = byte !== CLOSE_BRACE
      else if (byte !== SPACE && byte !== TAB && byte !== CR && !(byte === COMMA && this.#inArray)) {
        // `[4711]` begins a log line. In an array of objects, a brace follows the bracket.
        if (this.#atFileStart && this.#inArray && byte !== OPEN_BRACE) this.#exitArray()
        this.#atFileStart = false
        return
      }
    }
  }

  #exitArray(): void {
    this.#inArray = false
    while (this.place > 0 && this.#bytes[this.place] !== OPEN_BRACKET) this.place--
  }

  /**
   * Whether the line is only a brace: the first line of a pretty-printed object. A truncated JSON
   * line has more text.
   */
  #isLoneBrace(lineEnd: number): boolean {
    for (let at = this.place + 1; at < lineEnd; at++) if (!isTrailer(this.#bytes[at] ?? 0)) return false
    return true
  }

  /**
   * Returns the offset after the closing brace, NOT_CLOSED if there is none within the maximum
   * length, or -1 if more bytes are needed.
   */
  #objectEnd(filled: number, isLast: boolean): number {
    let depth = 0
    let inString = false
    const limit = Math.min(filled, this.place + this.#bytesMax)
    for (let at = this.place; at < limit; at++) {
      const byte = this.#bytes[at]
      if (inString) {
        if (byte === BACKSLASH) at++
        else if (byte === QUOTE) inString = false
      } else if (byte === QUOTE) inString = true
      else if (byte === OPEN_BRACE) depth++
      else if (byte === CLOSE_BRACE && --depth === 0) return at + 1
    }
    return limit === filled && !isLast ? -1 : NOT_CLOSED
  }

  #lineEnd(at: number, filled: number): number {
    const lineFeed = this.#bytes.indexOf(LF, at)
    return lineFeed < 0 || lineFeed > filled ? filled : lineFeed
  }

  /** Whether the line has an odd number of quotes, one of which begins a field. */
  #hasOpenQuote(lineEnd: number): boolean {
    let quotes = 0
    let beginsField = false
    for (let at = this.place; at < lineEnd; at++) {
      if (this.#bytes[at] !== QUOTE) continue
      quotes++
      const before = at === this.place ? COMMA : this.#bytes[at - 1]
      if (before === COMMA || before === SEMICOLON || before === TAB) beginsField = true
    }
    return beginsField && quotes % 2 === 1
  }

  /**
   * Returns the end of the line with the closing quote, if one of the next lines has it and none of
   * them has the form of the first line.
   */
  #quotedEnd(firstEnd: number, filled: number, isLast: boolean): number {
    let end = firstEnd
    for (let lines = 2; lines <= CSV_LINES_MAX; lines++) {
      if (end >= filled) return isLast ? NOT_CLOSED : -1
      const lineStart = end + 1
      end = this.#lineEnd(lineStart, filled)
      if (end === filled && !isLast && filled - this.place <= this.#bytesMax) return -1
      if (end - this.place > this.#bytesMax || this.#beginsAlike(lineStart, end)) return NOT_CLOSED
      if (countOf(this.#bytes, QUOTE, lineStart, end) % 2 === 1) return end
    }
    return NOT_CLOSED
  }

  #beginsAlike(lineStart: number, lineEnd: number): boolean {
    if (lineEnd - lineStart < SHAPE_BYTES) return false
    for (let at = 0; at < SHAPE_BYTES; at++) {
      if (shapeOf(this.#bytes[lineStart + at] ?? 0) !== shapeOf(this.#bytes[this.place + at] ?? 0)) return false
    }
    return true
  }
}

const NOT_CLOSED = -2
const RECORD_KEY_BYTES_MAX = Math.max(...RECORD_KEYS.map(({ length }) => length))

function afterBlanks(bytes: Uint8Array, at: number, end: number): number {
  while (at < end && isTrailer(bytes[at] ?? 0)) at++
  return at
}

function shapeOf(byte: number): number {
  if (isDigit(byte)) return 0x30
  return isLetter(byte) ? 0x61 : byte
}

function isTrailer(byte: number): boolean {
  return byte === CR || byte === LF || byte === NUL || byte === SPACE || byte === TAB
}

function countOf(bytes: Uint8Array, byte: number, start: number, end: number): number {
  let count = 0
  for (let at = start; at < end; at++) if (bytes[at] === byte) count++
  return count
}
