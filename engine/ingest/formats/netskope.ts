import { COLON, COMMA, digitsEnd, HYPHEN, isDigit, isText, SPACE, TAB } from './bytes.ts'
import { CsvFields } from './csv.ts'
import { takeHostOf } from './found-fields.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { takeUser } from './user-name.ts'

/*
 * Netskope's web transactions (https://docs.netskope.com/en/transaction-event-fields) that lost
 * their `#Fields:` line in transit, in the default order: 0 date, 1 time, 2 time-taken, 3 cs-bytes,
 * 4 sc-bytes, 5 bytes, 6 c-ip, 7 s-ip, 8 cs-username, ... 16 cs-dns, 17 cs-host, 18 cs-uri, ... 41
 * x-cs-timestamp, 43 x-cs-userip. Separated by commas, blanks or TABs, strings quoted. Times are in
 * UTC.
 */
export const netskope: LogFormat = { id: 'netskope', detect, parse, takeUserAndBytes }

const FIRST_NUMBER = 2
const BYTES_FROM_CLIENT = 3
const BYTES_TO_CLIENT = 4
const CLIENT = 6
const USER_NAME = 8
const DNS = 16
const HOST = 17
const URI = 18
const TIMESTAMP = 41
const USER_ADDRESS = 43
/** `2026-11-20 09:15:02` */
const TIME_BYTES = 19

const columns = new CsvFields()

/** A date, a time, four integers, and an address. */
function detect({ view }: LogLine, start: number, end: number): boolean {
  if (end - start < 40 || !isDigit(view.getUint8(start))) return false
  if (view.getUint8(start + 4) !== HYPHEN || view.getUint8(start + 7) !== HYPHEN) return false
  if (view.getUint8(start + 13) !== COLON || view.getUint8(start + 16) !== COLON) return false
  const delimiter = view.getUint8(start + 10)
  if (delimiter !== COMMA && delimiter !== SPACE && delimiter !== TAB) return false
  if (view.getUint8(start + TIME_BYTES) !== delimiter) return false
  let at = start + TIME_BYTES + 1
  for (let index = FIRST_NUMBER; index < CLIENT; index++) {
    const stop = view.getUint8(at) === HYPHEN ? at + 1 : digitsEnd(view, at, end)
    if (stop === at || stop + 1 >= end || view.getUint8(stop) !== delimiter) return false
    at = stop + 1
  }
  let stop = at
  while (stop < end && view.getUint8(stop) !== delimiter) stop++
  return isText(view, at, stop, '-') || addressKind(view, at, stop) !== AddressKind.none
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const count = columns.split(view, start, end, view.getUint8(start + 10), USER_ADDRESS + 1)
  const found = line.takeDateAndTime(columns.start(0), columns.end(0), columns.start(1), columns.end(1))
  if (found !== TimeFound.found) return line.reject('time: expected a valid date and time')
  if (count <= HOST) return line.reject('cs-host: expected column 18')
  if (count > TIMESTAMP) takeEpoch(line, columns.start(TIMESTAMP), columns.end(TIMESTAMP))
  line.timeIsLocal = false
  line.takeClient(columns.start(CLIENT), columns.end(CLIENT))
  // The client's internal address, if c-ip is the external one.
  if (count > USER_ADDRESS) line.takeClient(columns.start(USER_ADDRESS), columns.end(USER_ADDRESS))
  const host = takeHostOf(line, columns.start(HOST), columns.end(HOST))
  if (host !== Verdict.noDomain || !isText(view, columns.start(HOST), columns.end(HOST), '-')) return host
  const dns = takeHostOf(line, columns.start(DNS), columns.end(DNS))
  return dns === Verdict.noDomain && count > URI ? takeHostOf(line, columns.start(URI), columns.end(URI)) : dns
}

function takeUserAndBytes(line: LogLine): void {
  takeUser(line, columns.start(USER_NAME), columns.end(USER_NAME))
  line.takeSent(columns.start(BYTES_FROM_CLIENT), columns.end(BYTES_FROM_CLIENT))
  line.takeReceived(columns.start(BYTES_TO_CLIENT), columns.end(BYTES_TO_CLIENT))
}

function takeEpoch(line: LogLine, start: number, end: number): void {
  if (end - start >= 10 && digitsEnd(line.view, start, end) >= start + 10) line.takeTime(start, end)
}
