import { actionOf } from './action.ts'
import {
  COLON,
  DOT,
  digitsEnd,
  HYPHEN,
  isDigit,
  isText,
  isUpper,
  NOT_FOUND,
  PIPE,
  QUOTE,
  SLASH,
  SPACE,
  skipBlanks,
  textAt,
  tokenEnd,
  wholeNumberAt,
} from './bytes.ts'
import { quoteEnd } from './key-value.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { takeTarget } from './request-target.ts'
import { takeUser, UserForm } from './user-name.ts'

/*
 * The access log of Squid and of proxies with the same format (Cisco WSA):
 *
 *   time elapsed client code/status bytes method URL user hierarchy/peer type [more]
 *
 * Sites insert columns, so `CODE/status` is the anchor: the client is the first address between the
 * time and the anchor, the method is the first word in capitals after the anchor, and the URL
 * follows the method. The peer may be a name and is never the host. The bytes are those of the
 * reply to the client; they are read if they are the only column between the anchor and the method.
 * https://wiki.squid-cache.org/Features/LogFormat
 */
export const proxyNative: LogFormat = { id: 'proxy-native', detect, parse, takeUserAndBytes }

const UNDERSCORE = 0x5f
const EPOCH_BYTES = '1795162502.119'.length
const CACHE_LOG_TIME_BYTES = '2026/11/20 09:15:02'.length
/** A tag (`(squid-1)[7711]: `) and remnants of relays' headers. */
const TAG_BYTES_MAX = 80
/** Squid writes this for an entry that it could not make. */
const UNMATCHED = 'Unmatched'

/**
 * Epoch seconds, a dot, three digits and a blank, optionally after a tag; or cache.log, which has
 * the same tag.
 */
function detect({ view }: LogLine, start: number, end: number): boolean {
  return epochAt(view, start, end) >= 0 || isCacheLog(view, start, end)
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const epoch = epochAt(view, start, end)
  if (epoch < 0) return Verdict.skip
  if (line.takeTime(epoch, epoch + EPOCH_BYTES) !== TimeFound.found) {
    return line.reject('time: expected seconds since 1970')
  }
  let at = skipBlanks(view, epoch + EPOCH_BYTES, end)
  // Meraki begins with such a time, too, but no elapsed milliseconds follow.
  const elapsedEnd = tokenEnd(view, at, end)
  if (!isText(view, at, elapsedEnd, '-') && wholeNumberAt(view, withoutSign(view, at), elapsedEnd) < 0) {
    return Verdict.unknown
  }
  at = elapsedEnd
  for (;;) {
    at = skipBlanks(view, at, end)
    if (at >= end) return line.reject('result: expected a token CODE/status')
    const stop = tokenEnd(view, at, end)
    const slash = codeEnd(view, at, stop)
    if (slash > 0) {
      line.action = actionOf(view, at, slash)
      at = stop
      break
    }
    if (line.clientEnd === line.clientStart) line.takeClient(at, stop)
    at = stop
  }
  const method = methodAt(view, at, end)
  if (method < 0) return line.reject('method: expected a word in capitals after the result')
  anchorEnd = at
  methodStart = method
  const methodEnd = tokenEnd(view, method, end)
  at = skipBlanks(view, methodEnd, end)
  if (at >= end) return line.reject('URL: expected a URL after the method')
  urlEnd = tokenEnd(view, at, end)
  messageEnd = end
  return takeTarget(line, method, methodEnd, at, urlEnd)
}

/** The offset of the epoch: at the start, or after the tag of a syslog message. Or NOT_FOUND. */
function epochAt(view: DataView, start: number, end: number): number {
  if (isEpoch(view, start, end)) return start
  if (end - start < EPOCH_BYTES || isDigit(view.getUint8(start))) return NOT_FOUND
  const limit = Math.min(end, start + TAG_BYTES_MAX) - 2
  for (let at = start; at < limit; at++) {
    if (view.getUint8(at) === COLON && view.getUint8(at + 1) === SPACE && isEpoch(view, at + 2, end)) return at + 2
  }
  return NOT_FOUND
}

function isEpoch(view: DataView, at: number, end: number): boolean {
  return (
    end - at > EPOCH_BYTES &&
    isDigit(view.getUint8(at)) &&
    view.getUint8(at + 10) === DOT &&
    view.getUint8(at + EPOCH_BYTES) === SPACE &&
    digitsEnd(view, at, end) === at + 10 &&
    digitsEnd(view, at + 11, end) === at + EPOCH_BYTES
  )
}

/** `2026/11/20 09:15:02 kid1| ...`, `2026/11/20 09:15:02| ...` of cache.log. */
function isCacheLog(view: DataView, start: number, end: number): boolean {
  if (textAt(view, start, end, UNMATCHED)) return true
  const at = start + CACHE_LOG_TIME_BYTES
  if (at >= end || view.getUint8(start + 4) !== SLASH || view.getUint8(start + 7) !== SLASH) return false
  if (view.getUint8(at) === PIPE) return true
  if (!textAt(view, at, end, ' kid')) return false
  const pipe = digitsEnd(view, at + 4, end)
  return pipe < end && view.getUint8(pipe) === PIPE
}

/** The offset of the slash of `TCP_MISS/200`, or 0 for any other token. */
function codeEnd(view: DataView, start: number, end: number): number {
  if (end - start < 6 || !isUpper(view.getUint8(start)) || view.getUint8(end - 4) !== SLASH) return 0
  return digitsEnd(view, end - 3, end) === end ? end - 4 : 0
}

/**
 * The first word in capitals. `-` replaces an unreadable method, but may also be in a column that a
 * site inserted.
 */
function methodAt(view: DataView, at: number, end: number): number {
  let dash = NOT_FOUND
  for (;;) {
    at = skipBlanks(view, at, end)
    if (at >= end) return dash
    const stop = tokenEnd(view, at, end)
    if (isCapitals(view, at, stop)) return at
    if (dash >= 0) return dash
    if (isText(view, at, stop, '-')) dash = at
    at = stop
  }
}

/** Offsets in the message that parse read last. */
let anchorEnd = 0
let methodStart = 0
let urlEnd = 0
let messageEnd = 0

/** The user is in quotes if a Cisco WSA wrote the message. */
function takeUserAndBytes(line: LogLine): void {
  const { view } = line
  const end = messageEnd
  const bytes = skipBlanks(view, anchorEnd, end)
  const bytesEnd = tokenEnd(view, bytes, end)
  if (skipBlanks(view, bytesEnd, end) === methodStart) line.takeReceived(bytes, bytesEnd)
  const start = skipBlanks(view, urlEnd, end)
  const isQuoted = start < end && view.getUint8(start) === QUOTE
  const close = isQuoted ? quoteEnd(view, start + 1, end) : tokenEnd(view, start, end)
  if (close === NOT_FOUND) return
  // Without the hierarchy after it, the user may be another column, or incomplete.
  if (!isHierarchyAhead(view, isQuoted ? close + 1 : close, end)) return
  takeUser(line, isQuoted ? start + 1 : start, close, UserForm.percent)
}

/** `HIER_DIRECT/198.51.100.20`: a word in capitals with a slash. */
function isHierarchyAhead(view: DataView, at: number, end: number): boolean {
  const start = skipBlanks(view, at, end)
  let stop = start
  while (stop < end && (isUpper(view.getUint8(stop)) || view.getUint8(stop) === UNDERSCORE)) stop++
  return stop > start && stop < end && view.getUint8(stop) === SLASH
}

function isCapitals(view: DataView, start: number, end: number): boolean {
  if (!isUpper(view.getUint8(start))) return false
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (!isUpper(byte) && byte !== UNDERSCORE && byte !== HYPHEN) return false
  }
  return true
}

function withoutSign(view: DataView, at: number): number {
  return view.getUint8(at) === HYPHEN ? at + 1 : at
}
