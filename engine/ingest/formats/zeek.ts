import { BACKSLASH, HASH, hexDigit, isDigit, isText, NOT_FOUND, TAB, textAt } from './bytes.ts'
import { COLUMNS_MAX } from './csv.ts'
import { KeyTable, NO_KEY } from './key-table.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { isInbound } from './private-address.ts'

/*
 * Zeek's logs as tables. The directives `#separator`, `#path` and `#fields` describe the rows after
 * them, and stay with the source until the next directive. Only four logs have requests: dns, ssl,
 * quic and http. The originator of the connection (`id.orig_h`) is the client. All other logs name
 * hosts in another role: the subject of a certificate, a mail server, a scanned machine.
 * https://docs.zeek.org/en/master/log-formats.html
 */
export const zeek: LogFormat = { id: 'zeek', detect, parse }

const SEPARATOR = '#separator '
const FIELDS = '#fields'
const PATH = '#path'
const DIRECTIVES = [
  FIELDS,
  PATH,
  '#types',
  '#open',
  '#close',
  '#set_separator',
  '#empty_field',
  '#unset_field',
] as const

const Column = { time: 0, client: 1, server: 2, port: 3, query: 4, serverName: 5, host: 6, lookup: 7, uri: 8 } as const
const COLUMNS = new KeyTable({
  ts: Column.time,
  'id.orig_h': Column.client,
  'id.resp_h': Column.server,
  'id.resp_p': Column.port,
  query: Column.query,
  server_name: Column.serverName,
  host: Column.host,
  // Only dns.log has the type of a lookup, and only http.log has the target of a request.
  trans_id: Column.lookup,
  qclass: Column.lookup,
  qclass_name: Column.lookup,
  qtype: Column.lookup,
  qtype_name: Column.lookup,
  uri: Column.uri,
})
const COLUMN_COUNT = 9

/** SMTP, POP3, IMAP: the name of a mail server in TLS is no request to a platform. */
const MAIL_PORTS = ['25', '110', '143', '465', '587', '993', '995'] as const

/** The table that a source announced. */
class ZeekColumns {
  readonly separator: number
  /** The index in a row of each Column, or NO_KEY. */
  readonly places = new Int16Array(COLUMN_COUNT).fill(NO_KEY)
  count = 0
  /** The column of the requested host, or NO_KEY if the log has no requests. */
  host: number = NO_KEY

  constructor(separator: number) {
    this.separator = separator
  }

  place(column: number): number {
    return this.places[column] ?? NO_KEY
  }

  /** The columns show the kind of log, because `#path` can be configured. */
  findHost(): void {
    if (this.place(Column.client) < 0) return
    if (this.place(Column.lookup) >= 0) this.host = this.place(Column.query)
    else if (this.place(Column.serverName) >= 0) this.host = this.place(Column.serverName)
    else if (this.place(Column.uri) >= 0) this.host = this.place(Column.host)
  }
}

const starts = new Int32Array(COLUMNS_MAX)
const ends = new Int32Array(COLUMNS_MAX)

function detect({ view, memory }: LogLine, start: number, end: number): boolean {
  if (start >= end || view.getUint8(start) !== HASH) return memory.columns instanceof ZeekColumns
  return textAt(view, start, end, SEPARATOR) || isDirective(view, start, end)
}

/** A letter or `:` after the word belongs to another format. */
function isDirective(view: DataView, start: number, end: number): boolean {
  for (let index = 0; index < DIRECTIVES.length; index++) {
    const word = DIRECTIVES[index] ?? ''
    if (!textAt(view, start, end, word)) continue
    const next = start + word.length
    return next < end && view.getUint8(next) === separatorAt(view, next, end)
  }
  return false
}

/** The byte that separates the directive's word from its value: a TAB, a comma or a bar. */
function separatorAt(view: DataView, at: number, end: number): number {
  const byte = at < end ? view.getUint8(at) : NOT_FOUND
  return byte === TAB || byte === 0x2c || byte === 0x7c || byte === 0x3b ? byte : NOT_FOUND
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view, memory } = line
  if (view.getUint8(start) === HASH) {
    takeDirective(line, start, end)
    return Verdict.skip
  }
  const columns = memory.columns
  if (!(columns instanceof ZeekColumns) || columns.count === 0) return Verdict.unknown
  const count = split(view, start, end, columns.separator, columns.count + 1)
  if (count !== columns.count) {
    // A truncated row, which no other format may guess at.
    const isRow = count > 1 && columns.place(Column.time) === 0 && isEpoch(view, start, ends[0] ?? start)
    return isRow ? line.reject('columns: expected those of the #fields directive') : Verdict.unknown
  }
  const time = columns.place(Column.time)
  const found = time < 0 ? TimeFound.none : line.takeTime(starts[time] ?? 0, ends[time] ?? 0)
  const client = columns.place(Column.client)
  const hasClient = client >= 0 && line.takeClient(starts[client] ?? 0, ends[client] ?? 0)
  if (found === TimeFound.impossible) return line.reject('time: expected a valid date and time')
  if (found === TimeFound.none && !hasClient) return Verdict.unknown
  if (columns.host < 0 || !hasClient || isNoRequest(line, columns)) return Verdict.noDomain
  const hostStart = starts[columns.host] ?? 0
  const hostEnd = ends[columns.host] ?? 0
  return columns.host === columns.place(Column.query)
    ? line.takeName(hostStart, hostEnd)
    : line.takeHost(hostStart, hostEnd)
}

/** Mail, or a request of an external client to one of the organization's own servers. */
function isNoRequest({ view }: LogLine, columns: ZeekColumns): boolean {
  const port = columns.place(Column.port)
  if (port >= 0 && isMailPort(view, starts[port] ?? 0, ends[port] ?? 0)) return true
  const client = columns.place(Column.client)
  const server = columns.place(Column.server)
  if (server < 0) return false
  return isInbound(view, starts[client] ?? 0, ends[client] ?? 0, starts[server] ?? 0, ends[server] ?? 0)
}

export function isMailPort(view: DataView, start: number, end: number): boolean {
  for (let index = 0; index < MAIL_PORTS.length; index++) {
    if (isText(view, start, end, MAIL_PORTS[index] ?? '')) return true
  }
  return false
}

function takeDirective({ view, memory }: LogLine, start: number, end: number): void {
  if (textAt(view, start, end, SEPARATOR)) {
    memory.columns = new ZeekColumns(separatorOf(view, start + SEPARATOR.length, end))
    return
  }
  if (!textAt(view, start, end, FIELDS)) return
  const columns = new ZeekColumns(view.getUint8(start + FIELDS.length))
  columns.count = split(view, start + FIELDS.length + 1, end, columns.separator, COLUMNS_MAX)
  for (let index = 0; index < columns.count; index++) {
    const column = COLUMNS.find(view, starts[index] ?? 0, ends[index] ?? 0)
    if (column >= 0 && columns.place(column) === NO_KEY) columns.places[column] = index
  }
  columns.findHost()
  memory.columns = columns
}

/** The separator is written as `\x09`, or as itself. */
function separatorOf(view: DataView, start: number, end: number): number {
  if (start >= end) return TAB
  if (view.getUint8(start) !== BACKSLASH || start + 4 > end) return view.getUint8(start)
  const high = hexDigit(view.getUint8(start + 2))
  const low = hexDigit(view.getUint8(start + 3))
  return high < 0 || low < 0 ? TAB : high * 16 + low
}

/** Splits without quotes, which are part of the values in these logs. */
function split(view: DataView, start: number, end: number, separator: number, countMax: number): number {
  let count = 0
  let at = start
  while (count < countMax) {
    starts[count] = at
    while (at < end && view.getUint8(at) !== separator) at++
    ends[count++] = at
    if (at++ >= end) break
  }
  return count
}

function isEpoch(view: DataView, start: number, end: number): boolean {
  if (end - start < 10) return false
  for (let at = start; at < start + 10; at++) if (!isDigit(view.getUint8(at))) return false
  return true
}
