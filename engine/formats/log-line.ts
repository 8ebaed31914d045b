import { LABEL_BYTE, NAME_CHARS_MAX } from '../../registry/domain-name.ts'
import { KeyedHash, keyedNames } from '../../registry/keyed-hash.ts'
import { METHODS, USER_BYTES_MAX } from '../kernel/event/event.ts'
import { BoundedMap } from '../kernel/process/bounded-map.ts'
import { MESSAGE_BYTES_MAX } from '../limits.ts'
import { Action } from './action.ts'
import {
  ALPHANUMERIC,
  ALPHANUMERIC_SET,
  AT,
  BACKSLASH,
  ByteSet,
  CLOSE_BRACKET,
  COLON,
  DOT,
  digitsEnd,
  HASH,
  indexOfByte,
  isLetter,
  KeyTable,
  NOT_FOUND,
  OPEN_BRACKET,
  PERCENT,
  QUOTE,
  SLASH,
  SPACE,
  skipBlanks,
  textAt,
  tokenEnd,
  trimEnd,
  wholeNumberAt,
} from './bytes.ts'
import { HostFinder, HostKind } from './host.ts'
import { AddressKind, addressKind, endBeforePort } from './ip-address.ts'
import { LogTime, SourceDayOrder, TimeFound } from './log-time.ts'

/**
 * The verdict on a message.
 *
 *   event      a client requested a host, whose name is in `host`
 *   noDomain   well-formed traffic that names no host
 *   skip       well-formed, but not a client request: answers, headers, comments, device events
 *   reject     the format was recognized by its cue, but a mandatory field is missing or impossible
 *   unknown    not of this format
 *   ambiguous  names a host, but has no positive evidence that a client requested the host
 */
export const Verdict = { unknown: 0, event: 1, noDomain: 2, skip: 3, reject: 4, ambiguous: 5 } as const
export type Verdict = (typeof Verdict)[keyof typeof Verdict]

export const TRUNCATED = 'host: expected a complete host, but the message was truncated'
const AMBIGUOUS = {
  client: 'client: expected a field that names the client',
  host: 'host: expected a field that names the requested host',
  // Of two values of one field, a client may have written one, in a text that was not escaped.
  contradictory: 'client, host or user: expected one value of each field',
  text: 'pairs: expected no text before the first',
} as const

/** Bytes that some cues require: a format whose mark is missing need not search for its cue. */
export const Mark = { pipe: 1, hash: 2, bracket: 4, quote: 8, equals: 16 } as const
export const ANY_MARKS = -1

/** For a name in another encoding, or the parts of a time. */
const HOST_SCRATCH_BYTES = NAME_CHARS_MAX + 3
const FIELD_SCRATCH_BYTES = HOST_SCRATCH_BYTES + USER_BYTES_MAX + 4
/**
 * Scratch space after the messages' bytes: for a message without the escapes of its envelope, a
 * name, a user's name and one character.
 */
export const SCRATCH_BYTES = MESSAGE_BYTES_MAX + FIELD_SCRATCH_BYTES
/** The maximum length of a host with scheme and userinfo. */
const AUTHORITY_BYTES_MAX = 512
const QUESTION = 0x3f
/** No date, time of day or zone is longer. */
const TIME_PART_BYTES_MAX = 64

const NO_EVENT_ID = -1
/** A server blocks a name soon after the query for it. */
const ASKED_NAMES_MAX = 64
/** The method of events that are read from other devices' logs. */
const METHOD_LOG = METHODS.indexOf('log')

/**
 * A message in a buffer and the fields that a format has read: offsets, no strings. One instance
 * per thread, filled again for each message. A format sets the fields and returns a Verdict.
 */
export class LogLine {
  /** The messages' bytes and SCRATCH_BYTES of scratch space after them. */
  readonly bytes: Uint8Array
  readonly view: DataView
  /** A message without the escapes of its envelope is written from this offset. */
  readonly unwrappedStart: number
  /** Names with another encoding in the message (Windows DNS) are written from this offset. */
  readonly scratchStart: number
  /** User names without their escapes (user-name.ts) are written from this offset. */
  readonly userScratchStart: number
  /**
   * When the message was received, or its file was last written: milliseconds since 1970 in UTC.
   */
  referenceMs = 0
  /** The bits of Mark found in the first CUE_BYTES. All bits are set if there was no search. */
  marks = ANY_MARKS
  /** State from previous messages of the same source. */
  memory: SourceMemory = new SourceMemory()

  hostStart = 0
  hostEnd = 0
  /** Equal if no client is known. */
  clientStart = 0
  clientEnd = 0
  /** NaN if the message has no time. */
  timeMs = Number.NaN
  /** The time is in a zone that the message does not name. */
  timeIsLocal = false
  /** A field with a time was present but unreadable, so the message has no time. */
  timeIsUnread = false
  action: Action = Action.unknown
  /** The message is a DNS query, and a later one may say that the server blocked it. */
  isQuestion = false
  /**
   * The message, a skipped one, says that the query of an earlier one for `host` was blocked. It
   * may name the client.
   */
  isRefusal = false
  /**
   * Takes the user and the byte counts from the fields that the event's format has found, before it
   * reads another message. readUserAndBytes calls it for the few events of a platform.
   */
  takeUserAndBytes: ((line: LogLine) => void) | undefined
  /** Equal if no user is known. userForm: one of UserForm (user-name.ts). */
  userStart = 0
  userEnd = 0
  userForm = 0
  /** Bytes that the client sent and received. 0 if unknown. */
  bytesSent = 0
  bytesReceived = 0
  /** Only in a collector's own events: the offset of the 32 hex digits of the event id, or -1. */
  eventIdStart = NO_EVENT_ID
  /** Index in METHODS. */
  method = METHOD_LOG
  /**
   * The number of matches of the message, and the number of blocked ones if the sender counts them.
   */
  count = 1
  blockedCount = 0
  /** NaN if equal to timeMs. Otherwise timeMs is when the name was last seen. */
  firstSeenMs = Number.NaN
  /** Where a message with a coverage report begins and ends; equal for other messages. */
  coverageStart = 0
  coverageEnd = 0
  /**
   * Text in the message that may be the message of another sender, as a JSON string with its
   * escapes; equal without any.
   */
  wrappedStart = 0
  wrappedEnd = 0
  /**
   * Why a message was rejected or is ambiguous: the field and its expected value. Constant texts
   * only, so that counting by reason is bounded.
   */
  reason = ''

  readonly #host: HostFinder
  readonly #time = new LogTime()

  /** @param bytes with SCRATCH_BYTES of scratch space at the end */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.unwrappedStart = bytes.byteLength - SCRATCH_BYTES
    this.scratchStart = bytes.byteLength - FIELD_SCRATCH_BYTES
    this.userScratchStart = this.scratchStart + HOST_SCRATCH_BYTES
    this.#host = new HostFinder(bytes, this.scratchStart)
  }

  /** Clears the fields of the previous message. */
  reset(): void {
    this.hostStart = 0
    this.hostEnd = 0
    this.clientStart = 0
    this.clientEnd = 0
    this.timeMs = Number.NaN
    this.timeIsLocal = false
    this.timeIsUnread = false
    this.action = Action.unknown
    this.isQuestion = false
    this.isRefusal = false
    this.takeUserAndBytes = undefined
    this.userStart = 0
    this.userEnd = 0
    this.bytesSent = 0
    this.bytesReceived = 0
    this.eventIdStart = NO_EVENT_ID
    this.method = METHOD_LOG
    this.count = 1
    this.blockedCount = 0
    this.firstSeenMs = Number.NaN
    this.coverageStart = 0
    this.coverageEnd = 0
    this.wrappedStart = 0
    this.wrappedEnd = 0
    this.reason = ''
  }

  /**
   * Takes the host from a field with a host, host and port, or URL. Returns the resulting verdict.
   */
  takeHost(start: number, end: number): Verdict {
    const kind = this.#host.find(this.view, start, end)
    this.hostStart = this.#host.start
    this.hostEnd = this.#host.end
    if (kind === HostKind.name) return Verdict.event
    return kind === HostKind.reverse ? Verdict.skip : Verdict.noDomain
  }

  /** Takes the name of an earlier query that was blocked. */
  refuseName(start: number, end: number): Verdict {
    this.isRefusal = this.takeName(start, end) === Verdict.event
    return Verdict.skip
  }

  /**
   * Takes a name from a DNS query. A name with a slash or an escape is neither a URL nor a host.
   */
  takeName(start: number, end: number): Verdict {
    for (let at = start; at < end; at++) {
      const byte = this.view.getUint8(at)
      if ((LABEL_BYTE[byte] ?? 0) === 0 && byte !== DOT && byte < 0x80) return Verdict.noDomain
    }
    return this.takeHost(start, end)
  }

  /**
   * As takeHost, but rejects mail addresses, accounts (`corp\jdoe`) and file names, and reads
   * JSON's `https:\/\/`.
   */
  takeHostOf(start: number, end: number): Verdict {
    const { view } = this
    start = skipBlanks(view, start, end)
    if (start < end && view.getUint8(start) === QUOTE) start++
    const limit = Math.min(end, start + AUTHORITY_BYTES_MAX)
    let at = start
    while (at < limit && isLetter(view.getUint8(at))) at++
    let hasScheme = false
    if (at < limit && view.getUint8(at) === COLON) {
      if (textAt(view, at, limit, ':\\/\\/')) {
        start = at + 5
        hasScheme = true
      } else if (textAt(view, at, limit, '://')) {
        hasScheme = true
        start = at + 3
      }
      at = start
    }
    for (; at < limit; at++) {
      const byte = view.getUint8(at)
      if (byte === SLASH || byte === QUESTION || byte === HASH || byte === SPACE) break
      if (byte === AT && !hasScheme) return Verdict.noDomain
      // JSON may escape a slash. No other escape is part of a name.
      if (byte === BACKSLASH) {
        if (at + 1 < limit && view.getUint8(at + 1) === SLASH) break
        return Verdict.noDomain
      }
    }
    return this.takeHost(start, end)
  }

  /**
   * Applies the zone that the message names in a field of its own. Names other than UTC and GMT are
   * ambiguous.
   */
  applyZone(start: number, end: number): void {
    if (!this.timeIsLocal || start === end) return
    const offsetMs = this.#time.offsetOf(this.view, start, end)
    if (Number.isNaN(offsetMs)) return
    this.timeMs -= offsetMs
    this.timeIsLocal = false
  }

  /**
   * Whether the host that was taken ends at `end` of a truncated message, so that it may be
   * incomplete: `openai.co` of `openai.com`.
   */
  hostIsOpen(end: number): boolean {
    return this.hostEnd === end || (this.hostEnd + 1 === end && this.view.getUint8(this.hostEnd) === DOT)
  }

  /**
   * Takes the client's address without brackets and zone. Returns false and keeps the previous
   * client if the field has no address.
   */
  takeClient(start: number, end: number): boolean {
    start = skipBlanks(this.view, start, end)
    end = trimEnd(this.view, start, end)
    const isBracketed =
      start < end && this.view.getUint8(start) === OPEN_BRACKET && this.view.getUint8(end - 1) === CLOSE_BRACKET
    if (isBracketed) {
      start++
      end--
    }
    // A zone in brackets may be in any form: `%!l(MISSING)an0` of old CoreDNS.
    if (isBracketed) end = beforeZone(this.view, start, end)
    const kind = addressKind(this.view, start, end)
    if (kind === AddressKind.none) return false
    if (kind === AddressKind.ipv6) end = beforeZone(this.view, start, end)
    if (UNSPECIFIED.hasAll(this.view, start, end)) return false
    this.clientStart = start
    this.clientEnd = end
    return true
  }

  /**
   * Takes the original client, the first address of a list such as that of X-Forwarded-For, if the
   * source's proxies overwrite the field. Returns whether there is one.
   */
  takeForwarded(start: number, end: number): boolean {
    if (!this.memory.isForwarded) return false
    for (let at = start; at < end; ) {
      const stop = LIST_DELIMITERS.firstIn(this.view, at, end)
      if (this.takeClient(at, endBeforePort(this.view, at, stop))) return true
      at = stop + 1
    }
    return false
  }

  /**
   * Takes the time at the beginning of a field. A message with an `impossible` time must be
   * rejected; `none` keeps the previous time.
   */
  takeTime(start: number, end: number): TimeFound {
    const found = this.takeTimeIfAny(start, end)
    if (found === TimeFound.none && Number.isNaN(this.timeMs)) this.timeIsUnread ||= !isAbsent(this.view, start, end)
    return found
  }

  /**
   * As takeTime, for a field that may have a time. A field without a time does not count as
   * unreadable.
   */
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

  /**
   * Whether [start, at) is only what relays and files put before a program's words: times, each with
   * at most one host after it, then tags that end with a colon (`named[901]: queries: info: `).
   * Clients can write a program's words into their names and agents, but only after other text. The
   * last time is the program's. A header with an impossible time is `impossible`.
   */
  takeHeader(start: number, at: number): TimeFound {
    const { view } = this
    let isTagged = false
    let mayHaveHost = false
    for (let next = afterPrefix(view, start, at); next < at; next = skipBlanks(view, next, at)) {
      const isBracketed = view.getUint8(next) === OPEN_BRACKET
      const found = this.takeTimeIfAny(isBracketed ? next + 1 : next, at)
      if (found === TimeFound.impossible) return found
      if (found === TimeFound.found) {
        next = this.timeEnd
        if (isBracketed && next < at && view.getUint8(next) === CLOSE_BRACKET) next++
        if (next < at && view.getUint8(next) === COLON) next++
        mayHaveHost = !isTagged
        continue
      }
      // Solaris: `[ID 873579 daemon.info] `.
      const close = textAt(view, next, at, '[ID ') ? indexOfByte(view, next, at, CLOSE_BRACKET) : NOT_FOUND
      if (close >= 0) {
        next = close + 1
        continue
      }
      const stop = tokenEnd(view, next, at)
      const isTag = view.getUint8(stop - 1) === COLON
      if (!(isTag || mayHaveHost) || !(isTag ? TAG_SET : HOST_SET).hasAll(view, next, stop)) return TimeFound.none
      isTagged ||= isTag
      mayHaveHost = false
      next = stop
    }
    return TimeFound.found
  }

  /**
   * As takeTime, for a date, a time of day and an optional zone in separate fields. Joins them in
   * the scratch area, so take the host after the time.
   */
  takeDateAndTime(
    dateStart: number,
    dateEnd: number,
    timeStart: number,
    timeEnd: number,
    zoneStart = 0,
    zoneEnd = 0,
  ): TimeFound {
    const bytesMax = TIME_PART_BYTES_MAX
    if (dateEnd - dateStart > bytesMax || timeEnd - timeStart > bytesMax || zoneEnd - zoneStart > bytesMax)
      return TimeFound.none
    const { bytes, scratchStart } = this
    let at = scratchStart
    for (let from = dateStart; from < dateEnd; from++) bytes[at++] = bytes[from] ?? 0
    bytes[at++] = SPACE
    for (let from = timeStart; from < timeEnd; from++) bytes[at++] = bytes[from] ?? 0
    bytes[at++] = SPACE
    for (let from = zoneStart; from < zoneEnd; from++) bytes[at++] = bytes[from] ?? 0
    return this.takeTime(scratchStart, at)
  }

  /**
   * Takes the number of bytes that the client sent. Returns false and keeps the previous number if
   * the field has no whole number. The maximum of 15 digits is that of an event.
   */
  takeSent(start: number, end: number): boolean {
    const count = wholeNumberAt(this.view, start, end)
    if (count >= 0) this.bytesSent = count
    return count >= 0
  }

  /** Same, for the bytes that the client received. */
  takeReceived(start: number, end: number): boolean {
    const count = wholeNumberAt(this.view, start, end)
    if (count >= 0) this.bytesReceived = count
    return count >= 0
  }

  /** Whether a format that did not recognize the message has set any field. */
  get isTouched(): boolean {
    return (
      this.clientEnd > 0 ||
      this.hostEnd > 0 ||
      !Number.isNaN(this.timeMs) ||
      this.timeIsUnread ||
      this.action !== Action.unknown ||
      this.takeUserAndBytes !== undefined ||
      this.reason !== ''
    )
  }

  /** The offset after the last time. */
  get timeEnd(): number {
    return this.#time.end
  }

  reject(reason: string): Verdict {
    this.reason = reason
    return Verdict.reject
  }

  /** Rejects a message whose day or hour does not exist. */
  rejectTime(): Verdict {
    return this.reject('time: expected a valid date and time')
  }

  /** Rejects an event whose host ends at `end` of a truncated message, so that it may be incomplete. */
  whole(verdict: Verdict, end: number): Verdict {
    return verdict === Verdict.event && this.hostIsOpen(end) ? this.reject(TRUNCATED) : verdict
  }

  /** A record that names a host, without evidence of a request. */
  ambiguous(reason: keyof typeof AMBIGUOUS): Verdict {
    this.reason = AMBIGUOUS[reason]
    return Verdict.ambiguous
  }

  /** The bytes [start, end) as text, for slow paths. */
  text(start: number, end: number): string {
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset + start, end - start).toString('utf8')
  }
}

/** Senders write `0.0.0.0` and `::` for an unknown address. */
const UNSPECIFIED = new ByteSet('0.:')
/** W3C logs encode a blank as `+`. */
const LIST_DELIMITERS = new ByteSet(', +')

function beforeZone(view: DataView, start: number, end: number): number {
  const zone = indexOfByte(view, start, end, PERCENT)
  return zone === NOT_FOUND ? end : zone
}

/** Words for an absent value. */
const ABSENT = new KeyTable({ 'n/a': 0, na: 0, none: 0, null: 0, nil: 0, unknown: 0, undefined: 0 })

/** Whether a value is only punctuation, or a word for an absent one. */
function isAbsent(view: DataView, start: number, end: number): boolean {
  start = skipBlanks(view, start, end)
  end = trimEnd(view, start, end)
  return ABSENT.find(view, start, end) >= 0 || ALPHANUMERIC_SET.firstIn(view, start, end) >= end
}

/**
 * State kept for each source, so that its next message is read faster and better. Small and of
 * fixed size.
 */
export class SourceMemory {
  /** The format of the source's last message, which is tried first. -1: none yet. */
  format = -1
  /**
   * Whether the client of a proxied request is the original client that the proxies name. Their
   * devices overwrite or check the field, which clients can write otherwise.
   */
  isForwarded = false
  readonly dayOrder = new SourceDayOrder()
  /** The table of a header line (any-csv), or a table learned from content. */
  table: unknown = undefined
  /** The keys of the last message of pairs (any-kv). 0: none, or there was text before them. */
  pairKeys = 0
  /** The columns of a directive (W3C). The source of a relay may have both. */
  columns: unknown = undefined
  /** The latest queries of BIND and Infoblox, whose answers are not counted again. */
  readonly bindQueries = new RecentQueries()
  /** The clients that asked last, by name of a platform, where the server may refuse later. */
  readonly askedBy = new BoundedMap<string, string>(ASKED_NAMES_MAX)
  /**
   * When the last complete query line of Unbound arrived. For a while after it, answers that repeat
   * queries are not counted.
   */
  unboundQueryMs = Number.NaN
}

/** A log format. */
export interface LogFormat {
  /** The id in metrics and listings: `bind-query`. */
  readonly id: string
  /** The messages are JSON objects. */
  readonly isJson?: true
  /**
   * Reads the message in [start, end) into `line`. Unknown if it does not have the cue of this
   * format: a prefix, or a text in its first CUE_BYTES. The next format is tried then.
   */
  readonly read: (line: LogLine, start: number, end: number) => Verdict
  /**
   * Reads a message with the same fields as the last one of its source, so that no other format is
   * tried. Returns unknown if the fields differ, or the message is no event.
   */
  readonly continues?: (line: LogLine, start: number, end: number) => Verdict
}

/** After this time without a query line, a server is assumed to log only answers. */
const QUERIES_MS = 3_600_000

/** Whether a server whose last query line arrived at `lastMs` still writes query lines. */
export function writesQueries(lastMs: number, nowMs: number): boolean {
  return Math.abs(nowMs - lastMs) <= QUERIES_MS
}

/** The number of bytes that are searched for a cue. */
export const CUE_BYTES = 256

/** As many queries as a busy server has open at a time. A power of two. */
const QUERIES = 4096

/**
 * The latest queries of a source: a hash of client and name, in a slot of its own. A server's
 * answer repeats its query, but another server of the same source may log only answers.
 */
class RecentQueries {
  /** Allocated with the first query. 0: free. */
  #hashes: Int32Array | undefined
  #lastMs = Number.NaN

  /** Notes the query for the name in [start, end) that `line` has. */
  add(line: LogLine, start: number, end: number): void {
    this.#hashes ??= new Int32Array(QUERIES)
    const hash = hashOf(line, start, end)
    this.#hashes[hash & (QUERIES - 1)] = hash
    this.#lastMs = line.referenceMs
  }

  has(line: LogLine, start: number, end: number): boolean {
    if (this.#hashes === undefined || !writesQueries(this.#lastMs, line.referenceMs)) return false
    const hash = hashOf(line, start, end)
    return this.#hashes[hash & (QUERIES - 1)] === hash
  }
}

const keyedClients = new KeyedHash(64)

/** The hash of both texts, names in any case, because clients mix the case of letters; never 0. */
function hashOf({ view, clientStart, clientEnd }: LogLine, nameStart: number, nameEnd: number): number {
  return keyedNames.bytes(view, nameStart, nameEnd, 0, keyedClients.bytes(view, clientStart, clientEnd)) || 1
}

/** The offset after `<30>`, or `unbound-1  | ` of docker compose, and blanks. */
function afterPrefix(view: DataView, start: number, end: number): number {
  const at = skipBlanks(view, start, end)
  const digits = textAt(view, at, end, '<') ? digitsEnd(view, at + 1, end) : end
  if (textAt(view, digits, end, '>')) return skipBlanks(view, digits + 1, end)
  const bar = skipBlanks(view, tokenEnd(view, at, end), end)
  return textAt(view, bar, end, '| ') ? skipBlanks(view, bar + 1, end) : at
}

/** `relay-1`, `2001:db8::1` */
const HOST_SET = new ByteSet(`${ALPHANUMERIC}-_.:`)
/** `named[901]:`, `(squid-1):` */
const TAG_SET = new ByteSet(`${ALPHANUMERIC}-_.:/[]()`)
