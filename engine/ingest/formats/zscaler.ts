import { actionOf } from './action.ts'
import {
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
  NOT_FOUND,
  QUOTE,
  SPACE,
  skipBlanks,
  TAB,
  textAt,
  textAtIgnoreCase,
} from './bytes.ts'
import { CsvFields } from './csv.ts'
import { ExtensionScanner, Separator } from './extension-scanner.ts'
import { FIELD_RANKS, FieldKind, idsOf, NameTable, NO_FIELD, SYNONYMS } from './field-names.ts'
import { applyZone, FoundFields, takeHostOf } from './found-fields.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { dropUserIf, takeUser } from './user-name.ts'

/*
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
export const zscaler: LogFormat = { id: 'zscaler', detect, parse, takeUserAndBytes }

const LOGIN_COLUMN = 1
const URL_COLUMN = 3
const ACTION_COLUMN = 4
const REQUEST_SIZE_COLUMN = 7
const RESPONSE_SIZE_COLUMN = 8
const LOCATION_COLUMN = 19
const CLIENT_COLUMN = 21
/** `Fri Nov 20 08:15:02 2026` */
const ASCTIME_BYTES = 24
/** `2026-11-20 09:15:02` */
const ISO_BYTES = 19
const TAG = 'zscalernss'

const CONTROL = FieldKind.control * FIELD_RANKS
const ZONE = CONTROL
const EVENT_ID = CONTROL + 1
const LOCATION = CONTROL + 2
const REASON = SYNONYMS['reason'] ?? NO_FIELD
const EXTERNAL_CLIENT = FieldKind.client * FIELD_RANKS + FIELD_RANKS - 1
const { name: _mayBeAFile, ...NAMES } = SYNONYMS
const FIELDS = new NameTable({
  ...NAMES,
  ...idsOf(FieldKind.control, 'tz/timezone eventid location'),
  srcpostnat: EXTERNAL_CLIENT,
  cdfqdn: FieldKind.host * FIELD_RANKS + FIELD_RANKS - 1,
})

const columns = new CsvFields()
const pairs = new ExtensionScanner()
const fields = new FoundFields()

function detect({ view }: LogLine, start: number, end: number): boolean {
  return (
    isRecord(view, start, end) ||
    textAtIgnoreCase(view, start, end, TAG) ||
    pairsAfterTime(view, start, end) !== NOT_FOUND ||
    isUntagged(view, start, end)
  )
}

/** The template with circumflexes, without the tag that was read as the syslog header's. */
function isUntagged(view: DataView, start: number, end: number): boolean {
  const value = start + 'time='.length
  if (!textAt(view, start, end, 'time=')) return false
  const mark = indexOfText(view, value, Math.min(end, start + UNTAGGED_CUE_BYTES), '^^')
  return mark >= 0 && indexOfByte(view, value, mark, EQUALS) < 0 && isPair(view, mark + 2, end)
}
/** The maximum length of the first pair with its time. */
const UNTAGGED_CUE_BYTES = 64

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  hasColumns = isRecord(view, start, end)
  if (hasColumns) return parseRecord(line, start, end)
  fields.clear()
  if (isUntagged(view, start, end)) return parsePairs(line, start, end, Separator.circumflexes)
  if (textAtIgnoreCase(view, start, end, TAG)) {
    let at = start + TAG.length
    // `ZscalerNSS: The NSS free memory is low` is about the service, `ZSCALERNSS[pid]: time=` about
    // clients.
    while (at < end && view.getUint8(at) !== SPACE && view.getUint8(at) !== TAB) at++
    at = skipBlanks(view, at, end)
    if (!isPair(view, at, end)) {
      if (pairsAfterTime(view, at, end) === NOT_FOUND) return Verdict.skip
      return parseTimedPairs(line, at, end, true)
    }
    return parsePairs(line, at, end, detectSeparator(view, at, end))
  }
  return parseTimedPairs(line, start, end, false)
}

/** A weekday, a month and the full time, quoted or not, followed by a comma. */
function isRecord(view: DataView, start: number, end: number): boolean {
  if (end - start < ASCTIME_BYTES + 2) return false
  const at = view.getUint8(start) === QUOTE ? start + 1 : start
  const close = at + ASCTIME_BYTES
  if (!isLetter(view.getUint8(at)) || view.getUint8(at + 3) !== SPACE || view.getUint8(at + 7) !== SPACE) return false
  if (digitsEnd(view, at + 20, close) !== close || !isLetter(view.getUint8(at + 4))) return false
  if (at === start) return view.getUint8(close) === COMMA
  return textAt(view, close, end, '",') || textAt(view, close, end, '" ,')
}

function parseRecord(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const count = columns.split(view, start, end, COMMA, CLIENT_COLUMN + 1)
  if (line.takeTime(columns.start(0), columns.end(0)) !== TimeFound.found) {
    return line.reject('time: expected a valid date and time')
  }
  if (count <= CLIENT_COLUMN || columns.unclosed) return line.reject('client: expected an address in column 22')
  const clientStart = columns.start(CLIENT_COLUMN)
  const clientEnd = columns.end(CLIENT_COLUMN)
  if (!line.takeClient(clientStart, clientEnd) && !isHidden(view, clientStart, clientEnd)) {
    return line.reject('client: expected an address in column 22')
  }
  line.action = actionOf(view, columns.start(ACTION_COLUMN), columns.end(ACTION_COLUMN))
  return takeHostOf(line, columns.start(URL_COLUMN), columns.end(URL_COLUMN))
}

/** Whether the message that parse read last has columns, not pairs. */
let hasColumns = false

function takeUserAndBytes(line: LogLine): void {
  if (!hasColumns) {
    fields.takeUserAndBytes(line)
    dropLogin(line, fields.start(LOCATION), fields.end(LOCATION))
    return
  }
  takeUser(line, columns.start(LOGIN_COLUMN), columns.end(LOGIN_COLUMN))
  dropLogin(line, columns.start(LOCATION_COLUMN), columns.end(LOCATION_COLUMN))
  line.takeSent(columns.start(REQUEST_SIZE_COLUMN), columns.end(REQUEST_SIZE_COLUMN))
  line.takeReceived(columns.start(RESPONSE_SIZE_COLUMN), columns.end(RESPONSE_SIZE_COLUMN))
}

/**
 * Without a user, the login is the name of the client's location in [start, end). A feed that hides
 * users has numbers for logins.
 */
function dropLogin(line: LogLine, start: number, end: number): void {
  dropUserIf(line, start, end)
  if (digitsEnd(line.view, line.userStart, line.userEnd) === line.userEnd) line.userEnd = line.userStart
}

/** Values for a hidden or unknown client. */
function isHidden(view: DataView, start: number, end: number): boolean {
  return (
    digitsEnd(view, start, end) === end ||
    isText(view, start, end, '-') ||
    isText(view, start, end, 'None') ||
    isText(view, start, end, 'NA') ||
    isText(view, start, end, 'N/A') ||
    isText(view, start, end, '0.0.0.0')
  )
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
function parseTimedPairs(line: LogLine, start: number, end: number, isTagged: boolean): Verdict {
  notePairs(line.view, pairsAfterTime(line.view, start, end), end, Separator.tab)
  if (!isTagged && !fields.has(REASON) && !fields.has(EVENT_ID)) return Verdict.unknown
  if (line.takeTime(start, start + ISO_BYTES) !== TimeFound.found) {
    return line.reject('time: expected a valid date and time')
  }
  return judgePairs(line)
}

function parsePairs(line: LogLine, at: number, end: number, separator: number): Verdict {
  notePairs(line.view, at, end, separator)
  return judgePairs(line)
}

function notePairs(view: DataView, at: number, end: number, separator: number): void {
  pairs.open(view, at, end, separator)
  while (pairs.next()) {
    const id = FIELDS.find(view, pairs.keyStart, pairs.keyEnd)
    if (id !== NO_FIELD) fields.note(id, pairs.start, pairs.end)
  }
}

function judgePairs(line: LogLine): Verdict {
  const { view } = line
  if (fields.takeTime(line) === TimeFound.impossible) return line.reject('time: expected a valid date and time')
  applyZone(line, fields.start(ZONE), fields.end(ZONE))
  const hasClient = fields.takeClient(line)
  fields.takeAction(line)
  if (!fields.hasKind(FieldKind.action)) line.action = actionOf(view, fields.start(REASON), fields.end(REASON))
  const found = fields.takeHost(line)
  if (found !== Verdict.noDomain) return found
  return hasClient ? Verdict.noDomain : Verdict.skip
}

function detectSeparator(view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + SEPARATOR_CUE_BYTES)
  if (indexOfText(view, start, limit, '^^') !== NOT_FOUND) return Separator.circumflexes
  if (indexOfText(view, start, limit, '\t') !== NOT_FOUND) return Separator.tab
  return indexOfText(view, start, limit, '#011') !== NOT_FOUND ? Separator.tab : Separator.blank
}
/** The maximum length of the first pair. */
const SEPARATOR_CUE_BYTES = 256

function isPair(view: DataView, start: number, end: number): boolean {
  let at = start
  while (at < end && (isLetter(view.getUint8(at)) || isDigit(view.getUint8(at)) || view.getUint8(at) === 0x5f)) at++
  return at > start && at < end && view.getUint8(at) === EQUALS
}
