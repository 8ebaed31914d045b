import { Action, actionOf } from './action.ts'
import {
  ALPHANUMERIC,
  ByteSet,
  CLOSE_PARENTHESIS,
  COLON,
  COMMA,
  digitsEnd,
  EQUALS,
  HASH,
  HYPHEN,
  indexOfByte,
  indexOfText,
  isDigit,
  isLetter,
  isText,
  KeyTable,
  NO_KEY,
  NOT_FOUND,
  QUOTE,
  SPACE,
  skipBlanks,
  TAB,
  textAt,
  textAtIgnoreCase,
  tokenEnd,
} from './bytes.ts'
import { ExtensionScanner, keyEndAt, Separator } from './cef-leef.ts'
import { FIELD_RANKS, FieldKind, idsOf, NameTable, NO_FIELD, SYNONYMS } from './field-names.ts'
import { Fields } from './fields.ts'
import { FoundFields } from './found-fields.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { dropUserIf } from './user-name.ts'

/*
 * Cloud web gateways whose rows have fixed columns: Zscaler, Umbrella and Netskope; and Zscaler's
 * templates with pairs.
 */

/**
 * Zscaler's Nanolog Streaming Service, web and DNS feeds, in the two templates other than JSON and
 * CEF (https://help.zscaler.com/zia/nss-feed-output-format-web-logs):
 *
 *   "Fri Nov 20 08:15:02 2026","jdoe@example.com","HTTPS","chatgpt.com/","Allowed",...   34 columns
 *   2026-11-20 09:15:02<TAB>reason=Allowed<TAB>ClientIP=192.0.2.45<TAB>url=chatgpt.com:443...
 *   ZSCALERNSS: time=Fri Nov 20 09:15:02 2026^^timezone=GMT^^action=Allowed^^...
 *
 * Times are in the feed's zone, which few feeds name. URLs have no scheme. Feeds that hide users
 * have numbers for logins and addresses.
 */
export const zscaler: LogFormat = { id: 'zscaler', read: readZscaler }

/**
 * Cisco Umbrella's DNS and proxy logs
 * (https://docs.umbrella.com/deployment-umbrella/docs/log-formats-and-versioning): every field
 * quoted, times in UTC. New versions append columns. The identity may be a user, a computer or a
 * network.
 */
export const umbrella: LogFormat = { id: 'umbrella', read: readUmbrella }

/**
 * Netskope's web transactions (https://docs.netskope.com/en/transaction-event-fields) that lost
 * their `#Fields:` line in transit, in the default order. Separated by commas, blanks or TABs,
 * strings quoted. Times are in UTC.
 */
export const netskope: LogFormat = { id: 'netskope', read: readNetskope }

const columns = new Fields()

const ZSCALER = {
  time: 0,
  login: 1,
  url: 3,
  action: 4,
  requestSize: 7,
  responseSize: 8,
  location: 19,
  client: 21,
} as const
/** `Fri Nov 20 08:15:02 2026` */
const ASCTIME_BYTES = 24
/** `2026-11-20 09:15:02` */
const ISO_BYTES = 19
const TAG = 'zscalernss'
/** The maximum length of the first pair, and of a first pair that is the time. */
const FIRST_PAIR_BYTES_MAX = 256
const FIRST_TIME_BYTES_MAX = 64
/** Values for a hidden or unknown client, other than numbers. */
const HIDDEN = new KeyTable({ '-': 0, none: 0, na: 0, 'n/a': 0, '0.0.0.0': 0 })

const CONTROL = FieldKind.control * FIELD_RANKS
const ZONE = CONTROL
const EVENT_ID = CONTROL + 1
const LOCATION = CONTROL + 2
const REASON = SYNONYMS['reason'] ?? NO_FIELD
const EXTERNAL_CLIENT = FieldKind.client * FIELD_RANKS + FIELD_RANKS - 1
const { name: _mayBeAFile, ...NAMES } = SYNONYMS
const NAME_TABLE = new NameTable({
  ...NAMES,
  ...idsOf(FieldKind.control, 'tz/timezone eventid location'),
  srcpostnat: EXTERNAL_CLIENT,
  cdfqdn: FieldKind.host * FIELD_RANKS + FIELD_RANKS - 1,
})
const pairs = new ExtensionScanner()
const fields = new FoundFields()

function readZscaler(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  if (isZscalerRow(view, start, end)) return readZscalerRow(line, start, end)
  if (isUntagged(view, start, end)) return readPairs(line, start, end, Separator.circumflexes)
  if (!textAtIgnoreCase(view, start, end, TAG)) return readTimedPairs(line, start, end, false)
  // `ZscalerNSS: The NSS free memory is low` is about the service, `ZSCALERNSS[pid]: time=` about
  // clients.
  const at = skipBlanks(view, tokenEnd(view, start + TAG.length, end), end)
  if (isPair(view, at, end)) return readPairs(line, at, end, separatorOf(view, at, end))
  return pairsAfterTime(view, at, end) === NOT_FOUND ? Verdict.skip : readTimedPairs(line, at, end, true)
}

/** A weekday, a month and the full time, quoted or not, followed by a comma. */
function isZscalerRow(view: DataView, start: number, end: number): boolean {
  if (end - start < ASCTIME_BYTES + 2) return false
  const at = view.getUint8(start) === QUOTE ? start + 1 : start
  const close = at + ASCTIME_BYTES
  if (!isLetter(view.getUint8(at)) || view.getUint8(at + 3) !== SPACE || view.getUint8(at + 7) !== SPACE) return false
  if (digitsEnd(view, at + 20, close) !== close || !isLetter(view.getUint8(at + 4))) return false
  if (at === start) return view.getUint8(close) === COMMA
  return textAt(view, close, end, '",') || textAt(view, close, end, '" ,')
}

function readZscalerRow(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const count = columns.split(view, start, end, COMMA, ZSCALER.client + 1)
  if (columns.takeTime(line, ZSCALER.time) !== TimeFound.found) return line.rejectTime()
  const hasColumn = count > ZSCALER.client && !columns.unclosed
  if (!hasColumn || (!columns.takeClient(line, ZSCALER.client) && !isHidden(view))) {
    return line.reject('client: expected an address in column 22')
  }
  columns.takeAction(line, ZSCALER.action)
  line.takeUserAndBytes = takeZscalerUser
  return columns.takeHostOf(line, ZSCALER.url)
}

function takeZscalerUser(line: LogLine): void {
  columns.takeUser(line, ZSCALER.login)
  dropLogin(line, columns.start(ZSCALER.location), columns.end(ZSCALER.location))
  columns.takeSent(line, ZSCALER.requestSize)
  columns.takeReceived(line, ZSCALER.responseSize)
}

function isHidden(view: DataView): boolean {
  const end = columns.end(ZSCALER.client)
  return digitsEnd(view, columns.start(ZSCALER.client), end) === end || columns.find(view, ZSCALER.client, HIDDEN) >= 0
}

/**
 * Without a user, the login is the name of the client's location in [start, end). A feed that hides
 * users has numbers for logins.
 */
function dropLogin(line: LogLine, start: number, end: number): void {
  dropUserIf(line, start, end)
  if (digitsEnd(line.view, line.userStart, line.userEnd) === line.userEnd) line.userEnd = line.userStart
}

/** The template with circumflexes, without the tag that was read as the syslog header's. */
function isUntagged(view: DataView, start: number, end: number): boolean {
  const value = start + 'time='.length
  if (!textAt(view, start, end, 'time=')) return false
  const mark = indexOfText(view, value, Math.min(end, start + FIRST_TIME_BYTES_MAX), '^^')
  return mark >= 0 && indexOfByte(view, value, mark, EQUALS) < 0 && isPair(view, mark + 2, end)
}

/** The offset after the time and the TAB of the template with pairs, or NOT_FOUND. */
function pairsAfterTime(view: DataView, start: number, end: number): number {
  const at = start + ISO_BYTES
  if (end - start < ISO_BYTES + 3 || !isDigit(view.getUint8(start))) return NOT_FOUND
  if (view.getUint8(start + 4) !== HYPHEN || view.getUint8(start + 7) !== HYPHEN) return NOT_FOUND
  const byte = view.getUint8(at)
  if (byte === TAB) return isPair(view, at + 1, end) ? at + 1 : NOT_FOUND
  return byte === HASH && textAt(view, at, end, '#011') && isPair(view, at + 4, end) ? at + 4 : NOT_FOUND
}

/**
 * Without the tag, pairs after a time may be any vendor's. The template has the reason and the
 * event id.
 */
function readTimedPairs(line: LogLine, start: number, end: number, isTagged: boolean): Verdict {
  const first = pairsAfterTime(line.view, start, end)
  if (first === NOT_FOUND) return Verdict.unknown
  notePairs(line.view, first, end, line.view.getUint8(first - 1) === TAB ? TAB : Separator.rsyslogTab)
  if (!isTagged && !fields.has(REASON) && !fields.has(EVENT_ID)) return Verdict.unknown
  if (line.takeTime(start, start + ISO_BYTES) !== TimeFound.found) return line.rejectTime()
  return judgePairs(line)
}

function readPairs(line: LogLine, at: number, end: number, separator: number): Verdict {
  notePairs(line.view, at, end, separator)
  return judgePairs(line)
}

function notePairs(view: DataView, at: number, end: number, separator: number): void {
  fields.clear()
  pairs.open(view, at, end, separator)
  while (pairs.next()) {
    const id = NAME_TABLE.find(view, pairs.keyStart, pairs.keyEnd)
    if (id !== NO_FIELD) fields.noteUnescaped(view, id, pairs.keyStart, pairs.keyEnd, pairs.start, pairs.end)
  }
}

function judgePairs(line: LogLine): Verdict {
  if (fields.takeTime(line) === TimeFound.impossible) return line.rejectTime()
  line.applyZone(fields.start(ZONE), fields.end(ZONE))
  const hasClient = fields.takeClient(line)
  fields.takeAction(line)
  if (!fields.hasKind(FieldKind.action)) line.action = actionOf(line.view, fields.start(REASON), fields.end(REASON))
  const found = fields.takeHost(line)
  if (found === Verdict.event && fields.isContradictory(line.memory.isForwarded)) return line.ambiguous('contradictory')
  line.takeUserAndBytes = takePairsUser
  return found === Verdict.noDomain && !hasClient ? Verdict.skip : found
}

function takePairsUser(line: LogLine): void {
  fields.takeUserAndBytes(line)
  dropLogin(line, fields.start(LOCATION), fields.end(LOCATION))
}

function separatorOf(view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + FIRST_PAIR_BYTES_MAX)
  if (indexOfText(view, start, limit, '^^') !== NOT_FOUND) return Separator.circumflexes
  if (indexOfByte(view, start, limit, TAB) !== NOT_FOUND) return TAB
  return indexOfText(view, start, limit, '#011') !== NOT_FOUND ? Separator.rsyslogTab : Separator.blank
}

const KEY = new ByteSet(`${ALPHANUMERIC}_`)

function isPair(view: DataView, at: number, end: number): boolean {
  return keyEndAt(view, at, end, KEY) !== NOT_FOUND
}

/** The columns of one of Umbrella's logs; NO_KEY where it has none. */
interface UmbrellaLog {
  readonly internal: number
  readonly external: number
  readonly action: number
  readonly host: number
  readonly sent: number
  readonly received: number
  readonly identityType: number
}
const UMBRELLA_DNS: UmbrellaLog = {
  ...{ internal: 3, external: 4, action: 5, host: 8 },
  ...{ sent: NO_KEY, received: NO_KEY, identityType: 10 },
}
const UMBRELLA_PROXY: UmbrellaLog = {
  ...{ internal: 2, external: 3, action: 6, host: 7 },
  ...{ sent: 11, received: 12, identityType: 21 },
}
const IDENTITY = 1
const DNS_TYPE = 6
/** `"2026-11-20 08:15:02"` */
const QUOTED_TIME_BYTES = 21

function readUmbrella(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  if (isUmbrellaHeader(view, start, end)) return Verdict.skip
  if (!isQuotedTime(view, start, end)) return Verdict.unknown
  let count = columns.split(view, start, end, COMMA, UMBRELLA_DNS.identityType + 1)
  const isProxy = isVerdict(view) && hasUmbrellaClient(view, UMBRELLA_PROXY)
  if (isProxy) count = columns.split(view, start, end, COMMA, UMBRELLA_PROXY.identityType + 1)
  const log = isProxy ? UMBRELLA_PROXY : UMBRELLA_DNS
  columns.takeAction(line, log.action)
  if (!isProxy) {
    if (line.action === Action.unknown || !hasUmbrellaClient(view, log)) return Verdict.unknown
    if (count > DNS_TYPE && !isQueryType(view)) return Verdict.unknown
  }
  if (columns.takeTime(line, 0) !== TimeFound.found) return line.rejectTime()
  line.timeIsLocal = false
  if (count <= log.host) return line.reject(isProxy ? 'URL: expected column 8' : 'domain: expected column 9')
  if (!columns.takeClient(line, log.internal)) columns.takeClient(line, log.external)
  line.takeUserAndBytes = isProxy ? takeProxyUser : takeDnsUser
  return isProxy ? columns.takeHostOf(line, log.host) : columns.takeName(line, log.host)
}

function takeDnsUser(line: LogLine): void {
  if (isUsers(line.view, UMBRELLA_DNS.identityType)) columns.takeUser(line, IDENTITY)
}

function takeProxyUser(line: LogLine): void {
  if (isUsers(line.view, UMBRELLA_PROXY.identityType)) columns.takeUser(line, IDENTITY)
  if (columns.count <= UMBRELLA_PROXY.received) return
  columns.takeSent(line, UMBRELLA_PROXY.sent)
  columns.takeReceived(line, UMBRELLA_PROXY.received)
}

/** Whether the type of the identity is `AD Users`, `G Suite Users`, `SAML User` or the like. */
function isUsers(view: DataView, type: number): boolean {
  if (!columns.has(type)) return false
  const end = columns.end(type)
  const last = view.getUint8(end - 1) | 0x20
  const stop = last === 0x73 ? end - 1 : end
  return stop - ' user'.length >= columns.start(type) && textAtIgnoreCase(view, stop - ' user'.length, stop, ' user')
}

function isQuotedTime(view: DataView, start: number, end: number): boolean {
  return (
    end - start > QUOTED_TIME_BYTES &&
    view.getUint8(start) === QUOTE &&
    isDigit(view.getUint8(start + 1)) &&
    view.getUint8(start + 5) === HYPHEN &&
    view.getUint8(start + 11) === SPACE &&
    view.getUint8(start + 14) === COLON &&
    view.getUint8(start + QUOTED_TIME_BYTES - 1) === QUOTE
  )
}

/** The header row of exports since version 10, for all kinds of logs. */
function isUmbrellaHeader(view: DataView, start: number, end: number): boolean {
  const at = start < end && view.getUint8(start) === QUOTE ? start + 1 : start
  if (!textAtIgnoreCase(view, at, end, 'timestamp')) return false
  const limit = Math.min(end, start + CUE_BYTES)
  return (
    indexOfText(view, at, limit, 'Identity') !== NOT_FOUND &&
    (indexOfText(view, at, limit, 'External') !== NOT_FOUND || indexOfText(view, at, limit, 'Identities') !== NOT_FOUND)
  )
}

function hasUmbrellaClient(view: DataView, { internal, external }: UmbrellaLog): boolean {
  return isAddress(view, internal) || isAddress(view, external)
}

function isAddress(view: DataView, column: number): boolean {
  return addressKind(view, columns.start(column), columns.end(column)) !== AddressKind.none
}

function isVerdict(view: DataView): boolean {
  return columns.is(view, UMBRELLA_PROXY.action, 'allowed') || columns.is(view, UMBRELLA_PROXY.action, 'blocked')
}

/** `1 (A)`, `65 (HTTPS)`, `Other`, or a truncated prefix. */
function isQueryType(view: DataView): boolean {
  const start = columns.start(DNS_TYPE)
  const end = columns.end(DNS_TYPE)
  if (textAtIgnoreCase(view, start, end, 'other') || (columns.unclosed && columns.count === DNS_TYPE + 1)) return true
  const digits = digitsEnd(view, start, end)
  if (digits === start) return false
  return digits === end || (textAt(view, digits, end, ' (') && view.getUint8(end - 1) === CLOSE_PARENTHESIS)
}

const NETSKOPE = {
  date: 0,
  time: 1,
  timeTaken: 2,
  sent: 3,
  received: 4,
  client: 6,
  user: 8,
  dns: 16,
  host: 17,
  uri: 18,
  timestamp: 41,
  userAddress: 43,
} as const

function readNetskope(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  if (!isNetskopeRow(view, start, end)) return Verdict.unknown
  const count = columns.split(view, start, end, view.getUint8(start + 10), NETSKOPE.userAddress + 1)
  const found = columns.takeDateAndTime(line, NETSKOPE.date, NETSKOPE.time)
  if (found !== TimeFound.found) return line.rejectTime()
  if (count <= NETSKOPE.host) return line.reject('cs-host: expected column 18')
  const stamp = columns.start(NETSKOPE.timestamp)
  // An epoch, which is more precise.
  if (digitsEnd(view, stamp, columns.end(NETSKOPE.timestamp)) >= stamp + 10) columns.takeTime(line, NETSKOPE.timestamp)
  line.timeIsLocal = false
  columns.takeClient(line, NETSKOPE.client)
  // The client's internal address, if c-ip is the external one.
  columns.takeClient(line, NETSKOPE.userAddress)
  line.takeUserAndBytes = takeNetskopeUser
  const host = columns.takeHostOf(line, NETSKOPE.host)
  if (host !== Verdict.noDomain || !columns.is(view, NETSKOPE.host, '-')) return host
  const dns = columns.takeHostOf(line, NETSKOPE.dns)
  return dns === Verdict.noDomain ? columns.takeHostOf(line, NETSKOPE.uri) : dns
}

function takeNetskopeUser(line: LogLine): void {
  columns.takeUser(line, NETSKOPE.user)
  columns.takeSent(line, NETSKOPE.sent)
  columns.takeReceived(line, NETSKOPE.received)
}

/** A date, a time, four integers, and an address. */
function isNetskopeRow(view: DataView, start: number, end: number): boolean {
  if (end - start < 40 || !isDigit(view.getUint8(start))) return false
  if (view.getUint8(start + 4) !== HYPHEN || view.getUint8(start + 7) !== HYPHEN) return false
  if (view.getUint8(start + 13) !== COLON || view.getUint8(start + 16) !== COLON) return false
  const delimiter = view.getUint8(start + 10)
  if (delimiter !== COMMA && delimiter !== SPACE && delimiter !== TAB) return false
  if (view.getUint8(start + ISO_BYTES) !== delimiter) return false
  let at = start + ISO_BYTES + 1
  for (let column: number = NETSKOPE.timeTaken; column < NETSKOPE.client; column++) {
    const stop = view.getUint8(at) === HYPHEN ? at + 1 : digitsEnd(view, at, end)
    if (stop === at || stop + 1 >= end || view.getUint8(stop) !== delimiter) return false
    at = stop + 1
  }
  const next = indexOfByte(view, at, end, delimiter)
  const stop = next === NOT_FOUND ? end : next
  return isText(view, at, stop, '-') || addressKind(view, at, stop) !== AddressKind.none
}
