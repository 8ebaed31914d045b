import { actionOf } from './action.ts'
import {
  BACKSLASH,
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
  tokenEnd,
} from './bytes.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Mark, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { isPrivateAddress } from './private-address.ts'
import { takeTarget } from './request-target.ts'
import { takeUser, UserForm } from './user-name.ts'

/*
 * The common and combined log formats of web servers, which proxies also write:
 *
 *   [vhost[:port] ]client ident user [20/Nov/2026:09:15:02 +0100] "METHOD target HTTP/1.1" status
 *     bytes ["referer" "agent" [CODE:HIERARCHY]]
 *
 * The host is in the target: absolute form or CONNECT. With a path as the target (origin form), the
 * log is a web server's own, and its virtual host names no destination. The referer is never the
 * host. Skyhigh's log begins with the time, followed by `"user" client status "METHOD target"`.
 * https://httpd.apache.org/docs/2.4/logs.html, https://wiki.squid-cache.org/Features/LogFormat
 */
export const proxyCommon: LogFormat = { id: 'proxy-common', detect, parse, takeUserAndBytes }

/** A user has fewer words, and so do the columns between the time and a request. */
const COLUMNS_BEFORE_REQUEST_MAX = 4

/** A date in brackets, followed by a quote. */
function detect({ view, marks }: LogLine, start: number, end: number): boolean {
  if ((marks & Mark.bracket) === 0) return false
  if (!isFirstWord(view, start, end)) return false
  const bracket = timeBracket(view, start, end)
  if (bracket < 0) return false
  const limit = Math.min(end, bracket + 40)
  const close = indexOfByte(view, bracket, limit, CLOSE_BRACKET)
  return close > 0 && isRequestAhead(view, close + 1, end)
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const bracket = timeBracket(view, start, end)
  const close = indexOfByte(view, bracket, end, CLOSE_BRACKET)
  if (line.takeTime(bracket + 1, close) === TimeFound.impossible) {
    return line.reject('time: expected a valid date and time')
  }
  takeHead(line, start, bracket)
  let at = skipBlanks(view, close + 1, end)
  let quoteEnd = NOT_FOUND
  quotedUserEnd = 0
  for (let column = 0; column < COLUMNS_BEFORE_REQUEST_MAX && at < end; column++) {
    if (view.getUint8(at) === QUOTE) {
      quoteEnd = closingQuote(view, at + 1, end)
      // A quoted user precedes the request only in logs that begin with the time.
      if (bracket > start || methodEnd(view, at + 1, quoteEnd) > 0) break
      if (quotedUserEnd === 0) {
        quotedUser = at + 1
        quotedUserEnd = quoteEnd
      }
      at = quoteEnd + 1
    } else {
      const stop = tokenEnd(view, at, end)
      if (line.clientEnd === line.clientStart) line.takeClient(at, stop)
      at = stop
    }
    at = skipBlanks(view, at, end)
    quoteEnd = NOT_FOUND
  }
  if (quoteEnd < 0) return line.reject('request: expected a request in quotes')
  line.action = actionAtEnd(view, quoteEnd, end)
  timeStart = bracket
  requestEnd = quoteEnd
  messageEnd = end
  return isRejectedScan(line, quoteEnd + 1, end) ? Verdict.noDomain : takeRequest(line, at + 1, quoteEnd)
}

/**
 * Scanners on the Internet ask web servers to be their proxy. Such a server has no file of that
 * name, and rejects CONNECT.
 */
function isRejectedScan({ view, clientStart, clientEnd }: LogLine, start: number, end: number): boolean {
  const status = skipBlanks(view, start, end)
  const statusEnd = tokenEnd(view, status, end)
  for (let index = 0; index < SERVER_REJECTS.length; index++)
    if (isText(view, status, statusEnd, SERVER_REJECTS[index] ?? ''))
      return clientStart < clientEnd && !isPrivateAddress(view, clientStart, clientEnd)
  return false
}
const SERVER_REJECTS = ['400', '404', '405', '501']

/** The offset of the bracket before `20/Nov/2026:` or `05/02/2025 `, or NOT_FOUND. */
function timeBracket(view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + CUE_BYTES) - 12
  for (let at = start; at < limit; at++) {
    if (view.getUint8(at) !== OPEN_BRACKET) continue
    if (at > start && view.getUint8(at - 1) !== SPACE) continue
    const day = digitsEnd(view, at + 1, end)
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
    if (byte === EQUALS || byte === COMMA || byte === QUOTE || byte === PIPE) return false
  }
  return false
}

/** Whether a quote directly follows the time. */
function isRequestAhead(view: DataView, at: number, end: number): boolean {
  at = skipBlanks(view, at, end)
  return at < end && view.getUint8(at) === QUOTE
}

/**
 * Takes the client before the time: the first word, or the second after a virtual host or a hyphen.
 */
function takeHead(line: LogLine, start: number, end: number): void {
  const { view } = line
  const firstEnd = Math.min(tokenEnd(view, start, end), end)
  if (firstEnd === start || line.takeClient(start, firstEnd)) return
  const second = skipBlanks(view, firstEnd, end)
  line.takeClient(second, tokenEnd(view, second, end))
}

/** Offsets in the message that parse read last. quotedUserEnd: 0 if it has no such column. */
let timeStart = 0
let requestEnd = 0
let messageEnd = 0
let quotedUser = 0
let quotedUserEnd = 0

function takeUserAndBytes(line: LogLine): void {
  if (quotedUserEnd > 0) takeUser(line, quotedUser, quotedUserEnd, UserForm.percent)
  else takeUserBefore(line, timeStart)
  takeReplyBytes(line, requestEnd + 1, messageEnd)
}

/** Takes the user between the ident after the client and the time. A name may contain blanks. */
function takeUserBefore(line: LogLine, bracket: number): void {
  const { view, clientStart, clientEnd } = line
  if (clientStart === clientEnd) return
  let at = skipBlanks(view, clientEnd, bracket)
  if (at < bracket && view.getUint8(at) === OPEN_PARENTHESIS)
    at = skipBlanks(view, tokenEnd(view, at, bracket), bracket)
  takeUser(line, tokenEnd(view, at, bracket), bracket, UserForm.percent)
}

/** The bytes of the reply, after the status. */
function takeReplyBytes(line: LogLine, start: number, end: number): void {
  const { view } = line
  const status = skipBlanks(view, start, end)
  const statusEnd = tokenEnd(view, status, end)
  if (statusEnd - status !== STATUS_DIGITS || digitsEnd(view, status, statusEnd) !== statusEnd) return
  const bytes = skipBlanks(view, statusEnd, end)
  line.takeReceived(bytes, tokenEnd(view, bytes, end))
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

/** The offset after a word in capitals that a blank follows, or NOT_FOUND. */
function methodEnd(view: DataView, start: number, end: number): number {
  let at = start
  while (at < end && (isUpper(view.getUint8(at)) || view.getUint8(at) === HYPHEN)) at++
  if (at - start < 2 || at - start > 20 || !isUpper(view.getUint8(start))) return NOT_FOUND
  return at < end && view.getUint8(at) === SPACE ? at : NOT_FOUND
}

/** The offset of the quote that closes the text from `at`, or `end`; `\"` is text. */
function closingQuote(view: DataView, at: number, end: number): number {
  while (at < end) {
    const byte = view.getUint8(at)
    if (byte === QUOTE) return at
    at += byte === BACKSLASH ? 2 : 1
  }
  return end
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
