import { LABEL_BYTE, NAME_CHARS_MAX } from '../../../registry/domain-name.ts'
import { METHODS } from '../../event/event.ts'
import { Action } from './action.ts'
import { CLOSE_BRACKET, DOT, isDigit, OPEN_BRACKET, PERCENT, SPACE, skipBlanks, trimEnd } from './bytes.ts'
import { SourceDayOrder } from './day-order.ts'
import { HostFinder, HostKind } from './host.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { LogTime, TimeFound } from './log-time.ts'

/**
 * What a message is.
 *
 *   event      somebody asked for a host: its name stands in `host`
 *   noDomain   well-formed traffic that names no host
 *   skip       well-formed, but no client's request: answers, headers, comments, the device's own news
 *   reject     the format was recognised by what only it has, and then something that it must have is missing or cannot be
 *   unknown    not of this format
 *   ambiguous  names a host, but has no positive evidence that a client requested the host
 */
export const Verdict = { unknown: 0, event: 1, noDomain: 2, skip: 3, reject: 4, ambiguous: 5 } as const
export type Verdict = (typeof Verdict)[keyof typeof Verdict]

/** Signs without which some cues cannot be: a format whose sign is missing need not look for its cue. */
export const Mark = { pipe: 1, hash: 2, bracket: 4, quote: 8, equals: 16 } as const
export const ANY_MARKS = -1

/** Behind the messages' bytes there is room for a name in another form. */
export const SCRATCH_BYTES = NAME_CHARS_MAX + 3
/** Longer than this is no date, time of day or zone. */
const TIME_PART_BYTES_MAX = 64

export const NO_EVENT_ID = -1
/** What is read in the logs of other devices. */
const METHOD_LOG = METHODS.indexOf('log')

/**
 * A message in a buffer and what a format has read in it: places in the bytes, no strings. There is one for each thread; it is filled anew for
 * each message. A format sets what it finds and answers a Verdict.
 */
export class LogLine {
  /** The messages' bytes, SCRATCH_BYTES of room behind them. */
  readonly bytes: Uint8Array
  readonly view: DataView
  /** Names that stand in the message in another form (Windows DNS) are written from here on. */
  readonly scratchStart: number
  /** When the message came, or the file was last written; milliseconds since 1970 in UTC. */
  referenceMs = 0
  /** Which of the signs in Mark stand in its first CUE_BYTES; all bits are set where nobody has looked. */
  marks = ANY_MARKS
  /** What the source of the message has shown before. */
  memory: SourceMemory = new SourceMemory()

  hostStart = 0
  hostEnd = 0
  /** Equal where no client is known. */
  clientStart = 0
  clientEnd = 0
  /** NaN where the message has no time. */
  timeMs = Number.NaN
  /** The time is of a zone that the message does not name. */
  timeIsLocal = false
  /** A field with a time was there and could not be read, so that the message has no time. */
  timeIsUnread = false
  action: Action = Action.unknown
  /** What only the collector's own events tell. Where the 32 hex digits of the event's id stand, or -1. */
  eventIdStart = NO_EVENT_ID
  /** Index in METHODS. */
  method = METHOD_LOG
  /** How many matches the message stands for, and how many of them were blocked where the sender counts those. */
  count = 1
  blockedCount = 0
  /** NaN where it is timeMs, which then is when the name was seen last. */
  firstSeenMs = Number.NaN
  /** Where a message with a coverage report begins and ends; equal for other messages. */
  coverageStart = 0
  coverageEnd = 0
  /** Why a message was rejected: which field, and what it should be. Constant texts only, so that counting by reason is bounded. */
  reason = ''

  readonly #host: HostFinder
  readonly #time = new LogTime()

  /** @param bytes with SCRATCH_BYTES of room at the end */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.scratchStart = bytes.byteLength - SCRATCH_BYTES
    this.#host = new HostFinder(bytes, this.scratchStart)
  }

  /** Forgets the message before. */
  reset(): void {
    this.hostStart = 0
    this.hostEnd = 0
    this.clientStart = 0
    this.clientEnd = 0
    this.timeMs = Number.NaN
    this.timeIsLocal = false
    this.timeIsUnread = false
    this.action = Action.unknown
    this.eventIdStart = NO_EVENT_ID
    this.method = METHOD_LOG
    this.count = 1
    this.blockedCount = 0
    this.firstSeenMs = Number.NaN
    this.coverageStart = 0
    this.coverageEnd = 0
    this.reason = ''
  }

  /** Takes the host out of a field with a host, host and port, or URL. Answers the verdict that follows from it, if all else is well. */
  takeHost(start: number, end: number): Verdict {
    const kind = this.#host.find(this.view, start, end)
    this.hostStart = this.#host.start
    this.hostEnd = this.#host.end
    if (kind === HostKind.name) return Verdict.event
    return kind === HostKind.reverse ? Verdict.skip : Verdict.noDomain
  }

  /**
   * Takes a name that was asked for in DNS. It is no URL: a name with a slash or an escape in it is no host, and not the part before them either.
   */
  takeName(start: number, end: number): Verdict {
    for (let at = start; at < end; at++) {
      const byte = this.view.getUint8(at)
      if ((LABEL_BYTE[byte] ?? 0) === 0 && byte !== DOT && byte < 0x80) return Verdict.noDomain
    }
    return this.takeHost(start, end)
  }

  /** Whether the host that was taken goes to `end` of a message that was cut there, so that it may have gone on: `openai.co` for `openai.com`. */
  hostIsOpen(end: number): boolean {
    return this.hostEnd === end || (this.hostEnd + 1 === end && this.view.getUint8(this.hostEnd) === DOT)
  }

  /** Takes the client's address: true if there is one. Brackets and a zone go. A field that is none leaves what was taken before. */
  takeClient(start: number, end: number): boolean {
    start = skipBlanks(this.view, start, end)
    end = trimEnd(this.view, start, end)
    if (start < end && this.view.getUint8(start) === OPEN_BRACKET && this.view.getUint8(end - 1) === CLOSE_BRACKET) {
      start++
      end--
    }
    const kind = addressKind(this.view, start, end)
    if (kind === AddressKind.none) return false
    if (kind === AddressKind.ipv6) {
      for (let at = start; at < end; at++) {
        if (this.view.getUint8(at) === PERCENT) end = at
      }
    }
    if (this.#isUnspecified(start, end)) return false
    this.clientStart = start
    this.clientEnd = end
    return true
  }

  /** `0.0.0.0` and `::` stand where no address is known. */
  #isUnspecified(start: number, end: number): boolean {
    for (let at = start; at < end; at++) {
      const byte = this.view.getUint8(at)
      if (byte !== 0x30 && byte !== 0x2e && byte !== 0x3a) return false
    }
    return true
  }

  /** Takes the time at the beginning of a field. `impossible` is to be rejected; `none` leaves what was taken before. */
  takeTime(start: number, end: number): TimeFound {
    const found = this.takeTimeIfAny(start, end)
    if (found === TimeFound.none && Number.isNaN(this.timeMs)) this.timeIsUnread ||= this.#hasDigit(start, end)
    return found
  }

  /** As takeTime, where a time may stand or something else, which then is no time that could not be read. */
  takeTimeIfAny(start: number, end: number): TimeFound {
    const time = this.#time
    time.dayOrder = this.memory.dayOrder
    const found = time.read(this.view, start, end, this.referenceMs)
    if (found === TimeFound.found) {
      this.timeMs = time.ms
      this.timeIsLocal = time.isLocal
      this.timeIsUnread = false
    }
    return found
  }

  /** What has no digit soon is no time, but a word for its absence. */
  #hasDigit(start: number, end: number): boolean {
    const limit = Math.min(end, start + TIME_PART_BYTES_MAX)
    for (let at = start; at < limit; at++) if (isDigit(this.view.getUint8(at))) return true
    return false
  }

  /**
   * As takeTime, for a day, a time of day and perhaps a zone that stand apart. They are put together where names in another form go, so a host is to be
   * taken behind this.
   */
  takeDateAndTime(
    dateStart: number,
    dateEnd: number,
    timeStart: number,
    timeEnd: number,
    zoneStart = 0,
    zoneEnd = 0,
  ): TimeFound {
    const room = TIME_PART_BYTES_MAX
    if (dateEnd - dateStart > room || timeEnd - timeStart > room || zoneEnd - zoneStart > room) return TimeFound.none
    const { bytes, scratchStart } = this
    let at = scratchStart
    for (let from = dateStart; from < dateEnd; from++) bytes[at++] = bytes[from] ?? 0
    bytes[at++] = SPACE
    for (let from = timeStart; from < timeEnd; from++) bytes[at++] = bytes[from] ?? 0
    bytes[at++] = SPACE
    for (let from = zoneStart; from < zoneEnd; from++) bytes[at++] = bytes[from] ?? 0
    return this.takeTime(scratchStart, at)
  }

  /** Where the time that was read last ends. */
  get timeEnd(): number {
    return this.#time.end
  }

  reject(reason: string): Verdict {
    this.reason = reason
    return Verdict.reject
  }

  /** The bytes [start, end) as text, for what is rare. */
  text(start: number, end: number): string {
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset + start, end - start).toString('utf8')
  }
}

/** What is remembered of a source, so that its next message is read faster and better. Small and of fixed size. */
export class SourceMemory {
  /** The format that its last message had: the first to be tried. -1: none yet. */
  format = -1
  readonly dayOrder = new SourceDayOrder()
  /** The table that a header line announced (any-csv), or that its content has shown. */
  table: unknown = undefined
  /** The columns that a directive announced (W3C): a relay's source may have both. */
  columns: unknown = undefined
  /** When the last plain query line came, whole; while that is not long ago, answers that repeat queries are not counted. Each server has its own. */
  bindQueryMs = Number.NaN
  unboundQueryMs = Number.NaN
}

/** One way in which devices write. */
export interface LogFormat {
  /** As it is shown and counted: `bind-query`. */
  readonly id: string
  /**
   * Whether the message in [start, end) shows what only this format has: prefix tests and searches in its first CUE_BYTES. A format of the
   * `fallback` kind has no such thing, and is asked when no other answers.
   */
  readonly detect: (line: LogLine, start: number, end: number) => boolean
  /** Reads it. May answer unknown, and then the next format is asked. */
  readonly parse: (line: LogLine, start: number, end: number) => Verdict
  readonly fallback?: boolean
}

/** After so long without a plain query line a server logs its answers only. */
const QUERIES_MS = 3_600_000

/** Whether a server whose last plain query line came at `lastMs` still writes such lines. */
export function writesQueries(lastMs: number, nowMs: number): boolean {
  return Math.abs(nowMs - lastMs) <= QUERIES_MS
}

/** How far into a message a cue is searched for. */
export const CUE_BYTES = 256
