import { actionOf } from './action.ts'
import {
  ByteSet,
  CAPITALS,
  CLOSE_BRACKET,
  COLON,
  DOT,
  digitsEnd,
  indexOfByte,
  isDigit,
  isText,
  isUpper,
  LETTER_SET,
  NOT_FOUND,
  OPEN_BRACKET,
  PIPE,
  QUOTE,
  SLASH,
  SPACE,
  skipBlanks,
  TextPrefixes,
  textAt,
  tokenEnd,
} from './bytes.ts'
import { hasScheme } from './host.ts'
import { endBeforePort, isPrivateAddress } from './ip-address.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { quoteEnd } from './pair-fields.ts'
import { takeTarget } from './proxy-common.ts'
import { dropUserIf, takeUser, UserForm } from './user-name.ts'

/*
 * The access log of Squid and of proxies with the same format (Cisco WSA):
 *
 *   time elapsed client code/status bytes method URL user hierarchy/peer type [more]
 *
 * Sites insert columns, so `CODE/status` is the anchor: the client is the first address between the
 * time and the anchor, the method is the first word in capitals after the anchor, and the URL
 * follows the method. The peer may be a name and is never the host. The bytes are those of the
 * reply to the client; they are read if they are the only column between the anchor and the method.
 *
 * A site's custom format without that anchor must begin with the epoch, then columns without letters
 * up to the client. Squid escapes what clients write by its context, so no such column has a blank,
 * except in quotes or brackets. https://wiki.squid-cache.org/Features/LogFormat
 */
export const proxyNative: LogFormat = { id: 'proxy-native', read: readNative }

const EPOCH_BYTES = '1795162502.119'.length
const TIME_BYTES_MAX = 40
const CACHE_LOG_TIME_BYTES = '2026/11/20 09:15:02'.length
/** A tag (`(squid-1)[7711]: `) and remnants of relays' headers. */
const TAG_BYTES_MAX = 80
/** Squid writes this for an entry that it could not make. */
const UNMATCHED = 'Unmatched'
/** Without the host in its target, a request is in the log of a web server, too. */
const CODES = new TextPrefixes(['TCP_', 'NONE_', 'UDP_'])

/**
 * Epoch seconds, a dot and three digits, optionally after a tag; or another time, also in brackets
 * or in the syslog header only; or cache.log, which has the same tag.
 */
function readNative(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const epoch = epochAt(line, start, end)
  if (epoch < 0 && isCacheLog(view, start, end)) return Verdict.skip
  const columns = epoch < 0 ? afterTime(line, start, end) : epoch + EPOCH_BYTES
  if (columns === NOT_FOUND) return Verdict.unknown
  if (epoch >= 0 && line.takeTime(epoch, columns) !== TimeFound.found) return line.reject('time: expected a valid time')
  const delimiter = view.getUint8(columns) === PIPE ? PIPE : SPACE
  let at = skipDelimiters(view, columns, end, delimiter)
  // Meraki begins with an epoch, too, but no elapsed milliseconds follow.
  if (hasLetter(view, at, columnEnd(view, at, end, delimiter))) return Verdict.unknown
  let isPlain = true
  while (at < end) {
    const stop = columnEnd(view, at, end, delimiter)
    const slash = codeEnd(view, at, stop)
    if (slash > 0) {
      line.action = actionOf(view, at, slash)
      return readRequest(line, stop, end)
    }
    const isClient = line.clientEnd === line.clientStart && line.takeClient(at, endBeforePort(view, at, stop))
    isPlain &&= isClient || line.clientEnd > line.clientStart || !hasLetter(view, at, stop)
    // Other logs may begin with such a time, and have text that clients write.
    if (epoch < 0 && !isClient && (hasLetter(view, at, stop) || line.clientEnd > line.clientStart))
      return Verdict.unknown
    at = skipDelimiters(view, stop, end, delimiter)
  }
  if (epoch < 0) return Verdict.unknown
  const verdict = isPlain ? readOwn(line, columns, end, delimiter) : Verdict.unknown
  return verdict === Verdict.unknown && delimiter === SPACE
    ? line.reject('result: expected a token CODE/status')
    : verdict
}

/** From the end of the anchor. */
function readRequest(line: LogLine, anchorEnd: number, end: number): Verdict {
  const { view } = line
  const method = methodAt(view, anchorEnd, end)
  if (method < 0) return line.reject('method: expected a word in capitals after the result')
  const methodEnd = tokenEnd(view, method, end)
  const url = skipBlanks(view, methodEnd, end)
  if (url >= end) return line.reject('URL: expected a URL after the method')
  const urlEnd = tokenEnd(view, url, end)
  places.anchorEnd = anchorEnd
  places.method = method
  places.urlEnd = urlEnd
  places.end = end
  line.takeUserAndBytes = takeUserAndBytes
  return takeTarget(line, method, methodEnd, url, urlEnd)
}

/** The ends of the anchor, the URL and the message that was read last, and the start of the method. */
const places = { anchorEnd: 0, method: 0, urlEnd: 0, end: 0 }

/**
 * The columns of a site's custom format: the first method with its target after it, else the first URL
 * with its method after it (e2guardian).
 */
function readOwn(line: LogLine, start: number, end: number, delimiter: number): Verdict {
  const { view, clientStart, clientEnd } = line
  let verdict: Verdict = Verdict.unknown
  let isProxy = isPrivateAddress(view, clientStart, clientEnd)
  let [before, beforeEnd] = [start, start]
  let isForward = false
  for (let at = skipDelimiters(view, start, end, delimiter); at < end; ) {
    const stop = columnEnd(view, at, end, delimiter)
    if (CODES.beginAt(view, at, stop)) {
      isProxy = true
      line.action ||= actionOf(view, at, stop)
    } else if (!isForward && isCapitals(view, before, beforeEnd) && indexOfByte(view, at, stop, COLON) !== NOT_FOUND) {
      const found = takeTarget(line, before, beforeEnd, at, stop)
      isForward = found === Verdict.event
      if (isForward) verdict = found
    } else if (verdict === Verdict.unknown && isCapitals(view, at, stop) && hasScheme(view, before, beforeEnd)) {
      verdict = line.takeHost(before, beforeEnd)
    }
    ;[before, beforeEnd] = [at, stop]
    at = skipDelimiters(view, stop, end, delimiter)
  }
  if (verdict !== Verdict.event) return verdict
  return isProxy ? verdict : Verdict.noDomain
}

/** The offset after a time at the start of the message, or where columns without a time begin. */
function afterTime(line: LogLine, start: number, end: number): number {
  const { view } = line
  const isBracketed = start < end && view.getUint8(start) === OPEN_BRACKET
  const time = isBracketed ? start + 1 : start
  if (time >= end || !isDigit(view.getUint8(time))) return NOT_FOUND
  if (line.takeTimeIfAny(time, Math.min(end, time + TIME_BYTES_MAX)) !== TimeFound.found)
    return isBracketed ? NOT_FOUND : start
  return isBracketed ? line.timeEnd + 1 : line.timeEnd
}

/** The end of the column at `at`: brackets and quotes may have delimiters. */
function columnEnd(view: DataView, at: number, end: number, delimiter: number): number {
  const first = at < end ? view.getUint8(at) : 0
  if (first === QUOTE || first === OPEN_BRACKET) {
    const close = first === QUOTE ? quoteEnd(view, at + 1, end) : indexOfByte(view, at + 1, end, CLOSE_BRACKET)
    return close === NOT_FOUND ? end : close + 1
  }
  if (delimiter === SPACE) return tokenEnd(view, at, end)
  const stop = indexOfByte(view, at, end, delimiter)
  return stop === NOT_FOUND ? end : stop
}

function skipDelimiters(view: DataView, at: number, end: number, delimiter: number): number {
  if (delimiter === SPACE) return skipBlanks(view, at, end)
  while (at < end && view.getUint8(at) === delimiter) at++
  return at
}

function hasLetter(view: DataView, start: number, end: number): boolean {
  return !textAt(view, start, end, '[') && LETTER_SET.firstIn(view, start, end) < end
}

/** The offset of the epoch: at the start, or after the tag of a syslog message. Or NOT_FOUND. */
function epochAt(line: LogLine, start: number, end: number): number {
  const { view } = line
  if (isEpoch(view, start, end)) return start
  if (end - start < EPOCH_BYTES || isDigit(view.getUint8(start))) return NOT_FOUND
  const limit = Math.min(end, start + TAG_BYTES_MAX) - 2
  for (let at = start; at < limit; at++) {
    if (view.getUint8(at) !== COLON || view.getUint8(at + 1) !== SPACE || !isEpoch(view, at + 2, end)) continue
    return line.takeHeader(start, at + 1) === TimeFound.found ? at + 2 : NOT_FOUND
  }
  return NOT_FOUND
}

const DELIMITERS = new ByteSet(' \t|')

function isEpoch(view: DataView, at: number, end: number): boolean {
  return (
    end - at > EPOCH_BYTES &&
    isDigit(view.getUint8(at)) &&
    view.getUint8(at + 10) === DOT &&
    DELIMITERS.has(view.getUint8(at + EPOCH_BYTES)) &&
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

/** The offset of the slash of `TCP_MISS/200`, or `TCP_MISS/0` without an answer; else 0. */
function codeEnd(view: DataView, start: number, end: number): number {
  if (end - start < 4 || !isUpper(view.getUint8(start))) return 0
  const slash = textAt(view, end - 2, end, '/0') ? end - 2 : end - 4
  return slash > start && view.getUint8(slash) === SLASH && digitsEnd(view, slash + 1, end) === end ? slash : 0
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

/** The user is in quotes if a Cisco WSA wrote the message. */
function takeUserAndBytes(line: LogLine): void {
  const { view } = line
  const { anchorEnd, method, urlEnd, end } = places
  const bytes = skipBlanks(view, anchorEnd, end)
  const bytesEnd = tokenEnd(view, bytes, end)
  if (skipBlanks(view, bytesEnd, end) === method) line.takeReceived(bytes, bytesEnd)
  const start = skipBlanks(view, urlEnd, end)
  const isQuoted = start < end && view.getUint8(start) === QUOTE
  const close = isQuoted ? quoteEnd(view, start + 1, end) : tokenEnd(view, start, end)
  if (close === NOT_FOUND) return
  // Without the hierarchy after it, the user may be another column, or incomplete.
  if (!isHierarchyAhead(view, isQuoted ? close + 1 : close, end)) return
  takeUser(line, isQuoted ? start + 1 : start, close, UserForm.percent)
  // e2guardian writes the client's address for an absent user.
  dropUserIf(line, line.clientStart, line.clientEnd)
}

/** `HIER_DIRECT/198.51.100.20`: a word in capitals with a slash. */
function isHierarchyAhead(view: DataView, at: number, end: number): boolean {
  const start = skipBlanks(view, at, end)
  const stop = HIERARCHY.endOf(view, start, end)
  return stop > start && stop < end && view.getUint8(stop) === SLASH
}

const HIERARCHY = new ByteSet(`${CAPITALS}_`)

function isCapitals(view: DataView, start: number, end: number): boolean {
  return isUpper(view.getUint8(start)) && METHOD.hasAll(view, start, end)
}
const METHOD = new ByteSet(`${CAPITALS}_-`)
