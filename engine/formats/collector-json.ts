import { canonicalName, isCanonicalName } from '../../registry/domain-name.ts'
import { EVENT_COUNT_MAX, EVENT_ID_HEX_DIGITS, isUserName, METHODS } from '../kernel/event/event.ts'
import { COVERAGE_BYTES_MAX } from '../limits.ts'
import { Action } from './action.ts'
import {
  DOT,
  digitsEnd,
  HYPHEN,
  hexDigit,
  indexOfText,
  isDigit,
  isText,
  isUpper,
  KeyTable,
  OPEN_BRACE,
  QUOTE,
  skipBlanks,
  wholeNumberAt,
} from './bytes.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { JsonKind, JsonScanner } from './json.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'

/*
 * A message of the project's own collector (collector/forward/syslog.ts): an event
 * (engine/kernel/event/event.ts), or a coverage report (engine/kernel/event/coverage-report.ts).
 *
 *   {"id":"<32 hex digits>","name":"claude.ai","client":"192.0.2.45","method":"tls",
 *    "first_seen":"2026-11-20T09:15:02.123Z",
 *    "last_seen":"2026-11-20T09:15:09.001Z","count":3,"blocked":1}
 *
 *   {"coverage":{"instance":"5c28dc30ef9d3ca8","since":"2026-11-20T09:00:00.000Z",…,
 *    "counters":{"packets":120000,…}}}
 *
 * Events are checked as in checkedEvent; last_seen, count, blocked, user, bytes_sent and
 * bytes_received are optional. A relay may have reordered the members. A coverage report is not a
 * client request, so it is skipped; the line stores its offsets for the pipeline.
 */
export const collectorJson: LogFormat = { id: 'collector-json', isJson: true, read }

const Member = {
  id: 0,
  name: 1,
  client: 2,
  method: 3,
  first_seen: 4,
  last_seen: 5,
  count: 6,
  blocked: 7,
  coverage: 8,
  user: 9,
  bytes_sent: 10,
  bytes_received: 11,
} as const
const KEYS = new KeyTable(Member)
const NONE = 0
const NAME_EXPECTED = 'name: expected a host name of 1 to 253 characters'
const TIME_MS_MAX = 253_402_300_799_999
/**
 * The maximum length of an event up to its last key, and of a coverage report up to its counters.
 */
const CUE_BYTES = 640
/**
 * 2^53 - 1 has 14 hex digits, so the sequence begins with two zeros and a third digit of 0 or 1.
 */
const SEQUENCE_ZEROS = 2

const scanner = new JsonScanner()
const kinds = new Uint8Array(Object.keys(Member).length)
const starts = new Int32Array(Object.keys(Member).length)
const ends = new Int32Array(Object.keys(Member).length)

/**
 * Whether the first key is one of the collector's, and the message has members that only its events
 * (`id` and a time) or its reports (`instance` and `counters`) have.
 */
export function isCollectorMessage({ view }: LogLine, start: number, end: number): boolean {
  if (start >= end || view.getUint8(start) !== OPEN_BRACE) return false
  const quote = skipBlanks(view, start + 1, end)
  if (quote >= end || view.getUint8(quote) !== QUOTE) return false
  let keyEnd = quote + 1
  while (keyEnd < end && keyEnd < quote + 12 && view.getUint8(keyEnd) !== QUOTE) keyEnd++
  const first = KEYS.find(view, quote + 1, keyEnd)
  if (first < 0) return false
  const limit = Math.min(end, start + CUE_BYTES)
  if (first === Member.coverage) {
    return indexOfText(view, keyEnd, limit, '"instance"') >= 0 && indexOfText(view, keyEnd, limit, '"counters"') >= 0
  }
  return indexOfText(view, keyEnd, limit, '_seen"') >= 0 && indexOfText(view, start, limit, '"id"') >= 0
}

function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  if (!isCollectorMessage(line, start, end)) return Verdict.unknown
  kinds.fill(NONE)
  scanner.open(view, start, end)
  for (;;) {
    const kind = scanner.next()
    if (kind === JsonKind.end) break
    if (kind === JsonKind.broken) return line.reject('JSON: expected one complete object')
    // For an object, the depth is already that of its members.
    if (scanner.depth !== (kind === JsonKind.object ? 2 : 1)) continue
    const member = KEYS.find(view, scanner.keyStart, scanner.keyEnd)
    // The first of two members with one key counts. A null member counts as missing.
    if (member < 0 || kinds[member] !== NONE || isNull(view, kind)) continue
    // Only the two names may contain an escape.
    kinds[member] = scanner.escaped && member !== Member.name && member !== Member.user ? JsonKind.broken : kind
    starts[member] = scanner.start
    ends[member] = scanner.end
  }
  if (kinds[Member.coverage] !== NONE && kinds[Member.id] === NONE) return takeCoverage(line, start, end)
  return takeId(line) &&
    takeName(line) &&
    takeClient(line) &&
    takeMethod(line) &&
    takeTimes(line) &&
    takeCounts(line) &&
    takeUser(line) &&
    takeBytes(line)
    ? Verdict.event
    : Verdict.reject
}

function isNull(view: DataView, kind: JsonKind): boolean {
  return kind === JsonKind.word && isText(view, scanner.start, scanner.end, 'null')
}

/** Sets the reason. Returns false, which ends the chain in parse. */
function wrong(line: LogLine, reason: string): false {
  line.reason = reason
  return false
}

function takeCoverage(line: LogLine, start: number, end: number): Verdict {
  if (kinds[Member.coverage] !== JsonKind.object) return line.reject('coverage: expected an object')
  if (end - start > COVERAGE_BYTES_MAX) return line.reject('coverage: expected a report of at most 16384 bytes')
  line.coverageStart = start
  line.coverageEnd = end
  return Verdict.skip
}

function takeId(line: LogLine): boolean {
  const at = starts[Member.id] ?? 0
  const isString = kinds[Member.id] === JsonKind.string
  if (!isString || (ends[Member.id] ?? 0) - at !== EVENT_ID_HEX_DIGITS)
    return wrong(line, 'id: expected 32 lower-case hex digits')
  let sequenceIsZero = true
  for (let index = 0; index < EVENT_ID_HEX_DIGITS; index++) {
    const byte = line.view.getUint8(at + index)
    const digit = isUpper(byte) ? -1 : hexDigit(byte)
    if (digit < 0) return wrong(line, 'id: expected 32 lower-case hex digits')
    const place = index - EVENT_ID_HEX_DIGITS / 2
    if (place >= 0 && digit !== 0) {
      if (place < SEQUENCE_ZEROS || (place === SEQUENCE_ZEROS && digit > 1)) {
        return wrong(line, 'id: expected a sequence from 1 to 2^53-1')
      }
      sequenceIsZero = false
    }
  }
  if (sequenceIsZero) return wrong(line, 'id: expected a sequence from 1 to 2^53-1')
  line.eventIdStart = at
  return true
}

function takeName(line: LogLine): boolean {
  const start = starts[Member.name] ?? 0
  const end = ends[Member.name] ?? 0
  if (kinds[Member.name] !== JsonKind.string) return wrong(line, NAME_EXPECTED)
  line.hostStart = start
  line.hostEnd = end
  if (isCanonicalName(line.view, start, end)) return true
  const name = canonicalName(textOf(line.text(start - 1, end + 1)))
  if (name === undefined) return wrong(line, NAME_EXPECTED)
  line.bytes.set(Buffer.from(name), line.scratchStart)
  line.hostStart = line.scratchStart
  line.hostEnd = line.scratchStart + name.length
  return true
}

/** The text of a string in JSON; '' where its escapes are wrong. */
function textOf(json: string): string {
  try {
    return JSON.parse(json) as string
  } catch {
    return ''
  }
}

function takeClient(line: LogLine): boolean {
  const start = starts[Member.client] ?? 0
  const end = ends[Member.client] ?? 0
  if (kinds[Member.client] !== JsonKind.string || addressKind(line.view, start, end) === AddressKind.none) {
    return wrong(line, 'client: expected an IP address')
  }
  line.clientStart = start
  line.clientEnd = end
  return true
}

function takeMethod(line: LogLine): boolean {
  const start = starts[Member.method] ?? 0
  const end = ends[Member.method] ?? 0
  for (let index = 0; index < METHODS.length && kinds[Member.method] === JsonKind.string; index++) {
    if (!isText(line.view, start, end, METHODS[index] ?? '')) continue
    line.method = index
    return true
  }
  return wrong(line, `method: expected one of ${METHODS.join(', ')}`)
}

function takeTimes(line: LogLine): boolean {
  if (!takeIsoTime(line, Member.first_seen))
    return wrong(line, 'first_seen: expected a time from 1970 to 9999 with its zone')
  const firstSeenMs = line.timeMs
  if (kinds[Member.last_seen] !== NONE) {
    if (!takeIsoTime(line, Member.last_seen))
      return wrong(line, 'last_seen: expected a time from 1970 to 9999 with its zone')
    if (line.timeMs < firstSeenMs) return wrong(line, 'last_seen: expected a time not before first_seen')
    line.firstSeenMs = firstSeenMs
  }
  return true
}

/** `2026-11-20T09:15:02.123Z`, or with an offset. */
function takeIsoTime(line: LogLine, member: number): boolean {
  const start = starts[member] ?? 0
  const end = ends[member] ?? 0
  const { view } = line
  return (
    kinds[member] === JsonKind.string &&
    end - start >= 17 &&
    digitsEnd(view, start, end) === start + 4 &&
    view.getUint8(start + 4) === HYPHEN &&
    view.getUint8(start + 7) === HYPHEN &&
    view.getUint8(start + 10) === 0x54 &&
    line.takeTime(start, end) === TimeFound.found &&
    !line.timeIsLocal &&
    line.timeEnd === end &&
    line.timeMs >= 0 &&
    line.timeMs <= TIME_MS_MAX
  )
}

function takeCounts(line: LogLine): boolean {
  line.count = numberOf(line.view, Member.count, 1)
  if (line.count < 1 || line.count > EVENT_COUNT_MAX)
    return wrong(line, 'count: expected a whole number from 1 to 4294967295')
  line.blockedCount = numberOf(line.view, Member.blocked, 0)
  if (line.blockedCount < 0 || line.blockedCount > line.count)
    return wrong(line, 'blocked: expected a whole number from 0 to count')
  if (line.blockedCount === line.count) line.action = Action.blocked
  return true
}

/** Takes the user, who is written to the scratch area without JSON's escapes. */
function takeUser(line: LogLine): boolean {
  if (kinds[Member.user] === NONE) return true
  const json =
    kinds[Member.user] === JsonKind.string
      ? line.text((starts[Member.user] ?? 0) - 1, (ends[Member.user] ?? 0) + 1)
      : ''
  const user = textOf(json)
  // The empty text means no user.
  if (json !== '""' && !isUserName(user)) {
    return wrong(line, 'user: expected text of at most 128 bytes of UTF-8 without control characters')
  }
  line.userStart = line.userScratchStart
  line.userEnd = line.userStart + Buffer.from(user).copy(line.bytes, line.userStart)
  return true
}

function takeBytes(line: LogLine): boolean {
  line.bytesSent = numberOf(line.view, Member.bytes_sent, 0)
  if (line.bytesSent < 0) return wrong(line, 'bytes_sent: expected a whole number from 0 to 999999999999999')
  line.bytesReceived = numberOf(line.view, Member.bytes_received, 0)
  if (line.bytesReceived < 0) return wrong(line, 'bytes_received: expected a whole number from 0 to 999999999999999')
  return true
}

/**
 * A whole number in JSON's notation, `3` or `3.0`; negative if the value is no whole number, and
 * `absent` without the member.
 */
function numberOf(view: DataView, member: number, absent: number): number {
  if (kinds[member] === NONE) return absent
  const start = starts[member] ?? 0
  let end = ends[member] ?? 0
  if (kinds[member] !== JsonKind.number || !isDigit(view.getUint8(start))) return -1
  if (end - start > 2 && view.getUint8(end - 1) === 0x30 && view.getUint8(end - 2) === DOT) end -= 2
  return wholeNumberAt(view, start, end)
}
