import { Action, actionOf } from './action.ts'
import {
  COMMA,
  HASH,
  indexOfText,
  isText,
  NOT_FOUND,
  QUOTE,
  SPACE,
  skipBlanks,
  TAB,
  textAt,
  tokenEnd,
} from './bytes.ts'
import { COLUMNS_MAX, CsvFields } from './csv.ts'
import { KeyTable, NO_KEY } from './key-table.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { takeUser } from './user-name.ts'

/*
 * The W3C extended log of Blue Coat, ISA and TMG, IIS and Netskope's web transactions. The
 * directive `#Fields:` names the columns of the rows after it, and the columns stay with the source
 * until the next directive. A row must have exactly these columns, with a time and an address in
 * their columns. Times are in UTC. https://www.w3.org/TR/WD-logfile.html
 */
export const w3cExtended: LogFormat = { id: 'w3c-extended', detect, parse, takeUserAndBytes }

const FIELDS = '#Fields:'
const SOFTWARE = '#Software:'
/** Software that logs requests to its own names. */
const OWN_SERVERS = ['Internet Information Services', 'Microsoft Exchange'] as const
/**
 * Columns of logs that only a web server (IIS) or a content delivery network (CloudFront) writes.
 */
const OWN_SERVER_COLUMNS = new KeyTable(
  Object.fromEntries(
    's-sitename sc-substatus sc-win32-status x-edge-location x-edge-result-type x-host-header'
      .split(' ')
      .map((name) => [name, 0]),
  ),
)
const DIRECTIVES = ['#Fields:', '#Software:', '#Version:', '#Date:', '#Start-Date:', '#End-Date:', '#Remark:'] as const

/** The columns that are read. Hosts and actions are tried in this order. */
const Column = {
  date: 0,
  time: 1,
  timestamp: 2,
  client: 3,
  lastClient: 4,
  firstHost: 5,
  lastName: 8,
  firstUrl: 9,
  lastUrl: 11,
  firstWeak: 12,
  lastHost: 13,
  firstAction: 14,
  lastAction: 17,
  user: 18,
  lastUser: 20,
  sent: 21,
  received: 22,
  count: 23,
} as const
const COLUMNS = new KeyTable({
  date: Column.date,
  time: Column.time,
  'x-timestamp': Column.timestamp,
  'x-cs-timestamp': Column.timestamp,
  gmttime: Column.timestamp,
  timestamp: Column.timestamp,
  // The client inside a tunnel has priority over the tunnel's own address.
  'x-cs-userip': Column.client,
  'c-ip': Column.lastClient,
  'cs-host': Column.firstHost,
  'cs(host)': Column.firstHost + 1,
  'r-host': Column.firstHost + 2,
  'x-cs-sni': Column.lastName,
  'cs-uri': Column.firstUrl,
  'x-cs-url': Column.firstUrl + 1,
  'cs-uri-stem': Column.lastUrl,
  'cs-dns': Column.firstWeak,
  'r-dns': Column.lastHost,
  'sc-filter-result': Column.firstAction,
  'x-policy-action': Column.firstAction + 1,
  action: Column.firstAction + 2,
  's-action': Column.lastAction,
  'cs-username': Column.user,
  'x-cs-username': Column.user + 1,
  'cs-userdn': Column.lastUser,
  'cs-bytes': Column.sent,
  'sc-bytes': Column.received,
})

/** The columns that a source announced. */
export class W3cColumns {
  /** The index in a row of each Column, or NO_KEY. */
  readonly places = new Int16Array(Column.count).fill(NO_KEY)
  /** The number of columns, known or unknown. */
  count = 0
  /** Whether any column is known. */
  isKnown = false
  /** The log of a web server's own pages, whose hosts are the server's own names. */
  isOwnServer = false

  get hasTime(): boolean {
    return this.place(Column.time) >= 0 || this.place(Column.timestamp) >= 0
  }

  place(column: number): number {
    return this.places[column] ?? NO_KEY
  }
}

const fields = new CsvFields()

function detect(line: LogLine, start: number, end: number): boolean {
  if (start < end && line.view.getUint8(start) === HASH) {
    for (let index = 0; index < DIRECTIVES.length; index++) {
      if (textAt(line.view, start, end, DIRECTIVES[index] ?? '')) return true
    }
    return false
  }
  return line.memory.columns instanceof W3cColumns
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view, memory } = line
  if (view.getUint8(start) === HASH) {
    takeDirective(line, start, end)
    return Verdict.skip
  }
  const columns = memory.columns
  if (!(columns instanceof W3cColumns) || !columns.isKnown) return Verdict.unknown
  const delimiter = delimiterOf(view, start, end)
  if (fields.split(view, start, end, delimiter, columns.count + 1) !== columns.count) return Verdict.unknown
  const found = takeRowTime(line, columns)
  const hasClient = takeFirst(columns, Column.client, Column.lastClient, line)
  // A source may send other messages, too: a line without a time in its column, or with a word in
  // the client's column, is no row.
  if (columns.hasTime ? found === TimeFound.none : !hasClient) return Verdict.unknown
  if (!hasClient && isNoAddress(view, columns.place(Column.lastClient))) return Verdict.unknown
  if (found === TimeFound.impossible) return line.reject('time: expected a valid date and time')
  line.action = actionIn(view, columns)
  return columns.isOwnServer ? Verdict.noDomain : takeRowHost(line, columns)
}

function takeUserAndBytes(line: LogLine): void {
  const { columns } = line.memory
  if (!(columns instanceof W3cColumns)) return
  for (let column: number = Column.user; column <= Column.lastUser; column++) {
    const place = columns.place(column)
    if (place >= 0 && takeUser(line, fields.start(place), fields.end(place))) break
  }
  const sent = columns.place(Column.sent)
  if (sent >= 0) line.takeSent(fields.start(sent), fields.end(sent))
  const received = columns.place(Column.received)
  if (received >= 0) line.takeReceived(fields.start(received), fields.end(received))
}

function takeDirective(line: LogLine, start: number, end: number): void {
  const { view, memory } = line
  if (textAt(view, start, end, SOFTWARE)) {
    const columns = new W3cColumns()
    columns.isOwnServer = isOwnServer(view, start, Math.min(end, start + 256))
    memory.columns = columns
    return
  }
  if (!textAt(view, start, end, FIELDS)) return
  const columns = new W3cColumns()
  if (memory.columns instanceof W3cColumns) columns.isOwnServer = memory.columns.isOwnServer
  let at = start + FIELDS.length
  for (let index = 0; index < COLUMNS_MAX; index++) {
    at = afterDelimiters(view, at, end)
    if (at >= end) break
    const stop = nameEnd(view, at, end)
    if (OWN_SERVER_COLUMNS.find(view, at, stop) >= 0) columns.isOwnServer = true
    const column = COLUMNS.find(view, at, stop)
    if (column >= 0 && columns.place(column) === NO_KEY) {
      columns.places[column] = index
      columns.isKnown = true
    }
    columns.count = index + 1
    at = stop
  }
  memory.columns = columns
}

function isOwnServer(view: DataView, start: number, end: number): boolean {
  for (let index = 0; index < OWN_SERVERS.length; index++) {
    if (indexOfText(view, start, end, OWN_SERVERS[index] ?? '') !== NOT_FOUND) return true
  }
  return false
}

/**
 * Takes the time of a timestamp, or of date and time. Date and time in columns that are not
 * adjacent are joined in the scratch area.
 */
function takeRowTime(line: LogLine, columns: W3cColumns): TimeFound {
  const date = columns.place(Column.date)
  const time = columns.place(Column.time)
  const stamp = columns.place(Column.timestamp)
  let found: TimeFound = TimeFound.none
  if (date >= 0 && time >= 0 && date < fields.count && time < fields.count) {
    if (fields.starts[time] === fields.end(date) + 1) {
      found = line.takeTimeIfAny(fields.start(date), fields.end(time))
      // An epoch in the first column is another format's line.
      if (found === TimeFound.found && line.timeEnd !== fields.end(time)) found = TimeFound.none
    } else {
      found = takeApart(line, date, time)
    }
  }
  if (found === TimeFound.none && stamp >= 0 && stamp < fields.count) {
    const start = fields.start(stamp)
    const isBracketed = start < fields.end(stamp) && line.view.getUint8(start) === 0x5b
    found = line.takeTime(isBracketed ? start + 1 : start, fields.end(stamp))
  }
  line.timeIsLocal = false
  return found
}

function takeApart(line: LogLine, date: number, time: number): TimeFound {
  const { bytes, scratchStart } = line
  const dateBytes = fields.end(date) - fields.start(date)
  const timeBytes = fields.end(time) - fields.start(time)
  if (dateBytes > 32 || timeBytes > 32) return TimeFound.none
  bytes.copyWithin(scratchStart, fields.start(date), fields.end(date))
  bytes[scratchStart + dateBytes] = SPACE
  bytes.copyWithin(scratchStart + dateBytes + 1, fields.start(time), fields.end(time))
  return line.takeTime(scratchStart, scratchStart + dateBytes + 1 + timeBytes)
}

function takeFirst(columns: W3cColumns, first: number, last: number, line: LogLine): boolean {
  for (let column = first; column <= last; column++) {
    const place = columns.place(column)
    if (place >= 0 && place < fields.count && line.takeClient(fields.start(place), fields.end(place))) return true
  }
  return false
}

/** Whether the column has a value that is neither absent nor an address. */
function isNoAddress(view: DataView, place: number): boolean {
  if (place < 0 || place >= fields.count) return false
  return fields.end(place) > fields.start(place) && !isText(view, fields.start(place), fields.end(place), '-')
}

/**
 * Names precede URLs. A URL needs a scheme, or it is the path of a page. A name that the proxy
 * resolved comes last.
 */
function takeRowHost(line: LogLine, columns: W3cColumns): Verdict {
  for (let column: number = Column.firstHost; column <= Column.lastHost; column++) {
    const place = columns.place(column)
    if (place < 0 || place >= fields.count) continue
    const start = fields.start(place)
    const end = fields.end(place)
    if (start === end || isText(line.view, start, end, '-')) continue
    if (column >= Column.firstUrl && column <= Column.lastUrl && !hasScheme(line.view, start, end)) continue
    const verdict = line.takeHost(start, end)
    // The name may be in a later column if this column has an address.
    if (verdict !== Verdict.noDomain) return verdict
  }
  return Verdict.noDomain
}

function hasScheme(view: DataView, start: number, end: number): boolean {
  return indexOfText(view, start, Math.min(end, start + 24), '://') > start
}

function actionIn(view: DataView, columns: W3cColumns): Action {
  for (let column: number = Column.firstAction; column <= Column.lastAction; column++) {
    const place = columns.place(column)
    if (place < 0 || place >= fields.count) continue
    const action = actionOf(view, fields.start(place), fields.end(place))
    if (action !== Action.unknown) return action
  }
  return Action.unknown
}

/** The first blank, TAB or comma outside of quotes. */
function delimiterOf(view: DataView, start: number, end: number): number {
  let isQuoted = false
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === QUOTE) isQuoted = !isQuoted
    else if (!isQuoted && (byte === SPACE || byte === TAB || byte === COMMA)) return byte
  }
  return SPACE
}

function afterDelimiters(view: DataView, at: number, end: number): number {
  at = skipBlanks(view, at, end)
  while (at < end && (view.getUint8(at) === COMMA || view.getUint8(at) === QUOTE)) at = skipBlanks(view, at + 1, end)
  return at
}

function nameEnd(view: DataView, at: number, end: number): number {
  const stop = tokenEnd(view, at, end)
  while (at < stop && view.getUint8(at) !== COMMA && view.getUint8(at) !== QUOTE) at++
  return at
}
