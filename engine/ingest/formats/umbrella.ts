import { Action, actionOf } from './action.ts'
import {
  CLOSE_PARENTHESIS,
  COLON,
  COMMA,
  digitsEnd,
  HYPHEN,
  indexOfText,
  isDigit,
  isTextIgnoreCase,
  NOT_FOUND,
  QUOTE,
  SPACE,
  textAt,
  textAtIgnoreCase,
} from './bytes.ts'
import { CsvFields } from './csv.ts'
import { takeHostOf } from './found-fields.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { takeUser } from './user-name.ts'

/*
 * Cisco Umbrella's DNS and proxy logs
 * (https://docs.umbrella.com/deployment-umbrella/docs/log-formats-and-versioning): every field
 * quoted, times in UTC. New versions append columns.
 *
 *   DNS    0 time, 1 identity, 2 identities, 3 internal address, 4 external address, 5 action,
 *          6 type `1 (A)`, 7 answer, 8 domain, 10 type of the identity
 *   proxy  0 time, 1 identity, 2 internal address, 3 external address, 4 destination,
 *          5 content type, 6 verdict, 7 URL, 11 request size, 12 response size,
 *          21 type of the identity
 *
 * The identity may be a user, a computer or a network.
 */
export const umbrella: LogFormat = { id: 'umbrella', detect, parse, takeUserAndBytes }

const DNS_INTERNAL = 3
const DNS_EXTERNAL = 4
const DNS_ACTION = 5
const DNS_TYPE = 6
const DNS_DOMAIN = 8
const PROXY_INTERNAL = 2
const PROXY_EXTERNAL = 3
const PROXY_VERDICT = 6
const PROXY_URL = 7
const PROXY_REQUEST_SIZE = 11
const PROXY_RESPONSE_SIZE = 12
const IDENTITY = 1
const DNS_IDENTITY_TYPE = 10
const PROXY_IDENTITY_TYPE = 21
const COLUMNS = 9
/** `"2026-11-20 08:15:02"` */
const TIME_BYTES = 21

const columns = new CsvFields()

function detect({ view }: LogLine, start: number, end: number): boolean {
  return isTimed(view, start, end) || isHeader(view, start, end)
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  if (isHeader(view, start, end)) return Verdict.skip
  const count = columns.split(view, start, end, COMMA, COLUMNS)
  const isProxy = count > PROXY_VERDICT && isVerdict(view, PROXY_VERDICT) && hasClient(view, PROXY_INTERNAL)
  const isDns =
    !isProxy && count > DNS_ACTION && actionAt(view, DNS_ACTION) !== Action.unknown && hasClient(view, DNS_INTERNAL)
  if (!isProxy && !isDns) return Verdict.unknown
  if (isDns && count > DNS_TYPE && !isQueryType(view, DNS_TYPE)) return Verdict.unknown
  const domain = isProxy ? PROXY_URL : DNS_DOMAIN
  if (line.takeTime(columns.start(0), columns.end(0)) !== TimeFound.found) {
    return line.reject('time: expected a valid date and time')
  }
  line.timeIsLocal = false
  if (count <= domain) return line.reject(isProxy ? 'URL: expected column 8' : 'domain: expected column 9')
  const internal = isProxy ? PROXY_INTERNAL : DNS_INTERNAL
  const external = isProxy ? PROXY_EXTERNAL : DNS_EXTERNAL
  if (!line.takeClient(columns.start(internal), columns.end(internal))) {
    line.takeClient(columns.start(external), columns.end(external))
  }
  line.action = actionAt(view, isProxy ? PROXY_VERDICT : DNS_ACTION)
  messageStart = start
  messageEnd = end
  isProxyLog = isProxy
  return takeHostOf(line, columns.start(domain), columns.end(domain))
}

/** The message that parse read last. */
let messageStart = 0
let messageEnd = 0
let isProxyLog = false

function takeUserAndBytes(line: LogLine): void {
  const count = columns.split(line.view, messageStart, messageEnd, COMMA, PROXY_IDENTITY_TYPE + 1)
  takeIdentity(line, isProxyLog ? PROXY_IDENTITY_TYPE : DNS_IDENTITY_TYPE, count)
  if (!isProxyLog || count <= PROXY_RESPONSE_SIZE) return
  line.takeSent(columns.start(PROXY_REQUEST_SIZE), columns.end(PROXY_REQUEST_SIZE))
  line.takeReceived(columns.start(PROXY_RESPONSE_SIZE), columns.end(PROXY_RESPONSE_SIZE))
}

/** Takes the identity if its type is `AD Users`, `G Suite Users` or the like. */
function takeIdentity(line: LogLine, type: number, count: number): void {
  if (type >= count) return
  const end = columns.end(type)
  const isUser =
    isTextIgnoreCase(line.view, Math.max(columns.start(type), end - USERS.length), end, USERS) ||
    isTextIgnoreCase(line.view, Math.max(columns.start(type), end - USER.length), end, USER)
  if (isUser) takeUser(line, columns.start(IDENTITY), columns.end(IDENTITY))
}
const USERS = ' users'
const USER = ' user'

function isTimed(view: DataView, start: number, end: number): boolean {
  return (
    end - start > TIME_BYTES &&
    view.getUint8(start) === QUOTE &&
    isDigit(view.getUint8(start + 1)) &&
    view.getUint8(start + 5) === HYPHEN &&
    view.getUint8(start + 11) === SPACE &&
    view.getUint8(start + 14) === COLON &&
    view.getUint8(start + TIME_BYTES - 1) === QUOTE
  )
}

/** The header row of exports since version 10, for all kinds of logs. */
function isHeader(view: DataView, start: number, end: number): boolean {
  const at = start < end && view.getUint8(start) === QUOTE ? start + 1 : start
  if (!textAtIgnoreCase(view, at, end, 'timestamp')) return false
  const limit = Math.min(end, start + CUE_BYTES)
  return (
    indexOfText(view, at, limit, 'Identity') !== NOT_FOUND &&
    (indexOfText(view, at, limit, 'External') !== NOT_FOUND || indexOfText(view, at, limit, 'Identities') !== NOT_FOUND)
  )
}

/** Whether one of the two columns from `internal` has an address. */
function hasClient(view: DataView, internal: number): boolean {
  return isAddress(view, internal) || isAddress(view, internal + 1)
}

function isAddress(view: DataView, index: number): boolean {
  return addressKind(view, columns.start(index), columns.end(index)) !== AddressKind.none
}

function isVerdict(view: DataView, index: number): boolean {
  const start = columns.start(index)
  const end = columns.end(index)
  return isTextIgnoreCase(view, start, end, 'allowed') || isTextIgnoreCase(view, start, end, 'blocked')
}

function actionAt(view: DataView, index: number): Action {
  return actionOf(view, columns.start(index), columns.end(index))
}

/** `1 (A)`, `65 (HTTPS)`, `Other`, or a truncated prefix. */
function isQueryType(view: DataView, index: number): boolean {
  const start = columns.start(index)
  const end = columns.end(index)
  if (textAtIgnoreCase(view, start, end, 'other') || columns.unclosed) return true
  const digits = digitsEnd(view, start, end)
  if (digits === start) return false
  return digits === end || (textAt(view, digits, end, ' (') && view.getUint8(end - 1) === CLOSE_PARENTHESIS)
}
