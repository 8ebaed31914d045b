import { actionOf } from './action.ts'
import {
  ALPHANUMERIC,
  ByteSet,
  CAPITALS,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  digitsEnd,
  EQUALS,
  HYPHEN,
  indexOfByte,
  isLetter,
  isText,
  isUpper,
  lastIndexOfByte,
  NOT_FOUND,
  OPEN_BRACKET,
  OPEN_PARENTHESIS,
  PIPE,
  QUOTE,
  SLASH,
  SPACE,
  skipBlanks,
  textAt,
  tokenEnd,
  trimEnd,
} from './bytes.ts'
import { AddressKind, addressKind, endBeforePort, isPrivateAddress } from './ip-address.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Mark, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { quoteEnd } from './pair-fields.ts'
import { takeUser, UserForm } from './user-name.ts'

const CONNECT = 'CONNECT'
const SCHEME_BYTES_MAX = 24

/**
 * Takes the host from the target of a request (RFC 9112 §3.2): the authority of CONNECT, or the
 * absolute form. The origin form of web servers' logs names no host, and neither do the pseudo-URLs
 * of proxies: `error:invalid-request`, `cache_object://`, `internal://`, `urn:`.
 */
export function takeTarget(line: LogLine, methodStart: number, methodEnd: number, start: number, end: number): Verdict {
  const { view } = line
  // Cisco WSA has the method TCP_CONNECT for intercepted connections.
  if (textAt(view, methodEnd - CONNECT.length, methodEnd, CONNECT) && methodEnd - CONNECT.length >= methodStart) {
    return line.takeHost(start, end)
  }
  const colon = schemeEnd(view, start, end)
  if (colon === start || !textAt(view, colon, end, '://')) return Verdict.noDomain
  if (isText(view, start, colon, 'internal') || isText(view, start, colon, 'cache_object')) return Verdict.noDomain
  return line.takeHost(start, end)
}

/** The offset of the colon after a scheme, or `start` without a scheme. */
function schemeEnd(view: DataView, start: number, end: number): number {
  const at = SCHEME.endOf(view, start, Math.min(end, start + SCHEME_BYTES_MAX))
  return textAt(view, at, end, ':') && at < start + SCHEME_BYTES_MAX ? at : start
}
const SCHEME = new ByteSet(`${ALPHANUMERIC}-+_`)

/*
 * The common and combined log formats of web servers, which proxies also write:
 *
 *   [vhost[:port] ]client[, client...] ident user [20/Nov/2026:09:15:02 +0100] "METHOD target HTTP/1.1" status
 *     bytes ["referer" "agent" [CODE:HIERARCHY]]
 *
 * The host is in the target: absolute form or CONNECT. With a path as the target (origin form), the
 * log is a web server's own, and its virtual host names no destination. The referer is never the
 * host. Skyhigh's log begins with the time, followed by `"user" client status "METHOD target"`.
 * https://httpd.apache.org/docs/2.4/logs.html, https://wiki.squid-cache.org/Features/LogFormat
 */
export const proxyCommon: LogFormat = { id: 'proxy-common', read }

/** A user has fewer words, and so do the columns between the time and a request. */
const COLUMNS_BEFORE_REQUEST_MAX = 4
const TIME_BYTES_MAX = 40

/** A date in brackets, followed by a quote. */
function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  if ((line.marks & Mark.bracket) === 0 || !isFirstWord(view, start, end)) return Verdict.unknown
  const bracket = timeBracket(view, start, end)
  if (bracket < 0) return Verdict.unknown
  const close = indexOfByte(view, bracket, Math.min(end, bracket + TIME_BYTES_MAX), CLOSE_BRACKET)
  if (close < 0 || !isRequestAhead(view, close + 1, end)) return Verdict.unknown
  if (line.takeTime(bracket + 1, close) === TimeFound.impossible) return line.rejectTime()
  const head = takeHead(line, start, bracket)
  if (bracket > start && line.clientEnd === line.clientStart && !hasIdent(view, start, bracket)) return Verdict.unknown
  let at = skipBlanks(view, close + 1, end)
  let requestEnd = NOT_FOUND
  let quotedUser = 0
  let quotedUserEnd = 0
  for (let column = 0; column < COLUMNS_BEFORE_REQUEST_MAX && at < end; column++) {
    if (view.getUint8(at) === QUOTE) {
      const close = quoteEnd(view, at + 1, end)
      requestEnd = close === NOT_FOUND ? end : close
      // A quoted user precedes the request only in logs that begin with the time.
      if (bracket > start || methodEnd(view, at + 1, requestEnd) > 0) break
      if (quotedUserEnd === 0) {
        quotedUser = at + 1
        quotedUserEnd = requestEnd
      }
      at = requestEnd + 1
    } else {
      const stop = tokenEnd(view, at, end)
      if (line.clientEnd === line.clientStart) line.takeClient(at, stop)
      at = stop
    }
    at = skipBlanks(view, at, end)
    requestEnd = NOT_FOUND
  }
  if (requestEnd < 0) return line.reject('request: expected a request in quotes')
  line.action = actionAtEnd(view, requestEnd, end)
  const status = skipBlanks(view, requestEnd + 1, end)
  const statusEnd = tokenEnd(view, status, end)
  if (isRejectedScan(line, status, statusEnd)) return Verdict.noDomain
  const verdict = takeRequest(line, at + 1, requestEnd)
  if (verdict === Verdict.event && head < 0) return line.ambiguous('contradictory')
  places.head = head
  places.bracket = bracket
  places.quotedUser = quotedUser
  places.quotedUserEnd = quotedUserEnd
  places.status = status
  places.end = end
  line.takeUserAndBytes = takeUserAndBytes
  return verdict
}

/** Of the message that was read last. */
const places = { head: 0, bracket: 0, quotedUser: 0, quotedUserEnd: 0, status: 0, end: 0 }

function takeUserAndBytes(line: LogLine): void {
  const { view } = line
  const { head, bracket, quotedUser, quotedUserEnd, status, end } = places
  if (quotedUserEnd > 0) takeUser(line, quotedUser, quotedUserEnd, UserForm.percent)
  else if (head > 0) takeUserBefore(line, head, bracket)
  const statusEnd = tokenEnd(view, status, end)
  // The bytes of the reply.
  if (statusEnd - status === STATUS_DIGITS && digitsEnd(view, status, statusEnd) === statusEnd) {
    const bytes = skipBlanks(view, statusEnd, end)
    line.takeReceived(bytes, tokenEnd(view, bytes, end))
  }
}

/**
 * Scanners on the Internet ask web servers to be their proxy. Such a server has no file of that
 * name, and rejects CONNECT.
 */
function isRejectedScan({ view, clientStart, clientEnd }: LogLine, status: number, statusEnd: number): boolean {
  for (let index = 0; index < SERVER_REJECTS.length; index++)
    if (isText(view, status, statusEnd, SERVER_REJECTS[index] ?? ''))
      return clientStart < clientEnd && !isPrivateAddress(view, clientStart, clientEnd)
  return false
}
const SERVER_REJECTS = ['400', '404', '405', '501']

/** The offset of the bracket before `20/Nov/2026:`, `05/02/2025 ` or, after a client, `2026-11-20T`; else NOT_FOUND. */
function timeBracket(view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + CUE_BYTES) - 12
  for (let at = start; at < limit; at++) {
    if (view.getUint8(at) !== OPEN_BRACKET) continue
    if (at > start && view.getUint8(at - 1) !== SPACE) continue
    const day = digitsEnd(view, at + 1, end)
    if (at > start && day === at + 5 && view.getUint8(day) === HYPHEN && view.getUint8(day + 3) === HYPHEN) return at
    if (day === at + 1 || day > at + 3 || day + 4 >= end || view.getUint8(day) !== SLASH) continue
    const second = isLetter(view.getUint8(day + 1)) ? day + 4 : digitsEnd(view, day + 1, end)
    if (second <= day + 4 && second < end && view.getUint8(second) === SLASH) return at
  }
  return NOT_FOUND
}

/**
 * Whether the message begins with an address, a name or a time in brackets: rejects comma-separated
 * lines and pairs early.
 */
function isFirstWord(view: DataView, start: number, end: number): boolean {
  const limit = Math.min(end, start + CUE_BYTES)
  for (let at = start; at < limit; at++) {
    const byte = view.getUint8(at)
    if (byte === SPACE) return true
    if (byte === COMMA) return isListed(view, start, at)
    if (byte === EQUALS || byte === QUOTE || byte === PIPE) return false
  }
  return false
}

/** Whether a list of forwarded addresses begins with this word. */
function isListed(view: DataView, start: number, end: number): boolean {
  if (isText(view, start, end, 'unknown') || isText(view, start, end, '-')) return true
  return addressKind(view, start, endBeforePort(view, start, end)) !== AddressKind.none
}

/** Whether a quote directly follows the time. */
function isRequestAhead(view: DataView, at: number, end: number): boolean {
  at = skipBlanks(view, at, end)
  return at < end && view.getUint8(at) === QUOTE
}

/**
 * Takes the client before the time: the first word, or the second after a virtual host or a hyphen.
 * Returns the offset after the client, which is negative if a client may have written this address:
 * into the virtual host, where a second address follows, or into a forwarded list, whose rest
 * follows. 0 without a client.
 */
function takeHead(line: LogLine, start: number, end: number): number {
  const { view } = line
  const first = takeListed(line, start, end)
  const second = skipBlanks(view, first === 0 ? tokenEnd(view, start, end) : first, end)
  const after = first === 0 ? takeListed(line, second, end) : first
  return (first !== 0 && isAddressAt(view, second, end)) || hasRestOfList(view, after, end) ? -after : after
}

function hasRestOfList(view: DataView, start: number, end: number): boolean {
  for (let at = indexOfByte(view, start, end, COMMA); at !== NOT_FOUND; at = indexOfByte(view, at + 1, end, COMMA))
    if (isAddressAt(view, skipBlanks(view, at + 1, end), end)) return true
  return false
}

function isAddressAt(view: DataView, at: number, end: number): boolean {
  return addressKind(view, at, endBeforePort(view, at, tokenEnd(view, at, end))) !== AddressKind.none
}

/**
 * Takes the client of a word, an address with or without its port, or of a list with commas: of
 * X-Forwarded-For, in which each proxy appends the address that its client has. So the last one is
 * the only one that a client cannot write. Returns the offset after the list, or 0 without a client.
 */
function takeListed(line: LogLine, start: number, end: number): number {
  const { view } = line
  let isTaken = false
  for (let at = start; at < end; ) {
    const word = tokenEnd(view, at, end)
    const comma = indexOfByte(view, at, word, COMMA)
    const stop = comma === NOT_FOUND ? word : comma
    if (!(isTaken && line.memory.isForwarded)) isTaken = line.takeClient(at, endBeforePort(view, at, stop)) || isTaken
    if (comma === NOT_FOUND) return isTaken ? stop : 0
    at = skipBlanks(view, comma + 1, end)
  }
  return 0
}

/**
 * Whether a client, an ident and a user may precede the time, of which the ident is a hyphen if there
 * are more than three words. A client may have written a time and a request into another text.
 */
function hasIdent(view: DataView, start: number, end: number): boolean {
  const second = skipBlanks(view, tokenEnd(view, start, end), end)
  const secondEnd = tokenEnd(view, second, end)
  const third = skipBlanks(view, secondEnd, end)
  const thirdEnd = tokenEnd(view, third, end)
  if (skipBlanks(view, thirdEnd, end) >= end) return true
  return isText(view, second, secondEnd, '-') || isText(view, third, thirdEnd, '-')
}

/** Takes the user between the ident and the time. A name may contain blanks, or be in quotes. */
function takeUserBefore(line: LogLine, clientEnd: number, bracket: number): void {
  const { view } = line
  let at = skipBlanks(view, clientEnd, bracket)
  if (at < bracket && view.getUint8(at) === OPEN_PARENTHESIS)
    at = skipBlanks(view, tokenEnd(view, at, bracket), bracket)
  at = skipBlanks(view, tokenEnd(view, at, bracket), bracket)
  const end = trimEnd(view, at, bracket)
  const isQuoted = end - at > 1 && view.getUint8(at) === QUOTE && view.getUint8(end - 1) === QUOTE
  takeUser(line, isQuoted ? at + 1 : at, isQuoted ? end - 1 : end, UserForm.percent)
}

const STATUS_DIGITS = 3

function takeRequest(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const method = methodEnd(view, start, end)
  // A request that was never made (`-`), or the first bytes of another protocol (`\x16\x03\x01`).
  if (method < 0) return Verdict.noDomain
  const target = skipBlanks(view, method, end)
  return takeTarget(line, start, method, target, tokenEnd(view, target, end))
}

const METHOD = new ByteSet(`${CAPITALS}-`)

/** The offset after a word in capitals that a blank follows, or NOT_FOUND. */
function methodEnd(view: DataView, start: number, end: number): number {
  const at = METHOD.endOf(view, start, end)
  if (at - start < 2 || at - start > 20 || !isUpper(view.getUint8(start))) return NOT_FOUND
  return at < end && view.getUint8(at) === SPACE ? at : NOT_FOUND
}

/** The action of `TCP_DENIED:HIER_NONE`, the last word after all quoted text. */
function actionAtEnd(view: DataView, requestEnd: number, end: number): ReturnType<typeof actionOf> {
  const quote = lastIndexOfByte(view, requestEnd, end, QUOTE)
  let last = end
  while (last > quote + 1 && view.getUint8(last - 1) === SPACE) last--
  let first = last
  while (first > quote + 1 && view.getUint8(first - 1) !== SPACE) first--
  const colon = first < last ? indexOfByte(view, first, last, COLON) : NOT_FOUND
  return actionOf(view, first, colon < 0 ? first : colon)
}
