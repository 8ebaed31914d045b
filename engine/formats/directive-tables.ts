import { Action, isNullAddress } from './action.ts'
import {
  BACKSLASH,
  COMMA,
  digitsEnd,
  HASH,
  hexDigit,
  indexOfByte,
  KeyTable,
  NO_KEY,
  OPEN_BRACKET,
  PIPE,
  QUOTE,
  SEMICOLON,
  SPACE,
  TAB,
  TextPrefixes,
  textAt,
} from './bytes.ts'
import { COLUMNS_MAX, Fields, NO_QUOTE } from './fields.ts'
import { hasScheme } from './host.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'

/*
 * Tables whose columns a directive names, a line that begins with `#`. The columns stay with the
 * source until the next directive.
 */

/**
 * The W3C extended log of Blue Coat, ISA and TMG, IIS and Netskope's web transactions. A row must
 * have exactly the columns of the directive `#Fields:`, with a time and an address in their columns.
 * Times are in UTC. https://www.w3.org/TR/WD-logfile.html
 */
export const w3cExtended: LogFormat = { id: 'w3c-extended', read: readW3c }

/**
 * Zeek's logs as tables, described by the directives `#separator`, `#path` and `#fields`. Only four
 * logs have requests: dns, ssl, quic and http. The originator of the connection (`id.orig_h`) is the
 * client. All other logs name hosts in another role: the subject of a certificate, a mail server, a
 * scanned machine. https://docs.zeek.org/en/master/log-formats.html
 */
export const zeek: LogFormat = { id: 'zeek', read: readZeek }

const fields = new Fields()

const W3C_FIELDS = '#Fields:'
const SOFTWARE = '#Software:'
const W3C_DIRECTIVES = new TextPrefixes([
  ...[W3C_FIELDS, SOFTWARE, '#Version:', '#Date:', '#Start-Date:', '#End-Date:', '#Remark:'],
])
/** Software that logs requests to its own names. */
const OWN_SERVERS = ['Internet Information Services', 'Microsoft Exchange'] as const
/**
 * Columns of logs that only a web server (IIS) or a content delivery network (CloudFront) writes.
 */
const OWN_SERVER_COLUMNS = 's-sitename sc-substatus sc-win32-status x-edge-location x-edge-result-type x-host-header'

/** The columns of these names, in the order of the names. */
function columnsOf(names: readonly string[], wanted: string): number[] {
  return wanted.split(' ').flatMap((name) => (names.includes(name) ? [names.indexOf(name)] : []))
}

/** The columns that a source announced, in the order of their evidence; NO_KEY for an absent one. */
function w3cColumns(names: readonly string[], isOwnServer: boolean) {
  return {
    kind: 'w3c' as const,
    /** The number of columns, known or unknown. */
    count: names.length,
    date: names.indexOf('date'),
    time: names.indexOf('time'),
    timestamp: columnsOf(names, 'x-timestamp x-cs-timestamp gmttime timestamp').sort((a, b) => a - b)[0] ?? NO_KEY,
    client: names.indexOf('c-ip'),
    /** Inside a tunnel, with priority over the tunnel's own address. */
    tunnelClient: names.indexOf('x-cs-userip'),
    forwarded: names.indexOf('cs(x-forwarded-for)'),
    urls: columnsOf(names, 'cs-uri x-cs-url cs-uri-stem'),
    /** Names precede URLs, and a name that the proxy resolved comes last. */
    hosts: columnsOf(names, 'cs-host cs(host) r-host x-cs-sni cs-uri x-cs-url cs-uri-stem cs-dns r-dns'),
    actions: columnsOf(names, 'sc-filter-result x-policy-action action s-action'),
    user: columnsOf(names, 'cs-username x-cs-username cs-userdn'),
    sent: columnsOf(names, 'cs-bytes'),
    received: columnsOf(names, 'sc-bytes'),
    /** The log of a web server's own pages, whose hosts are the server's own names. */
    isOwnServer: isOwnServer || columnsOf(names, OWN_SERVER_COLUMNS).length > 0,
  }
}
type W3cColumns = ReturnType<typeof w3cColumns>
type Columns = W3cColumns | ReturnType<typeof zeekColumns> | undefined

function readW3c(line: LogLine, start: number, end: number): Verdict {
  const { view, memory } = line
  if (start < end && view.getUint8(start) === HASH) {
    if (!W3C_DIRECTIVES.beginAt(view, start, end)) return Verdict.unknown
    takeW3cDirective(line, start, end)
    return Verdict.skip
  }
  const columns = memory.columns as Columns
  if (columns?.kind !== 'w3c' || columns.count === 0) return Verdict.unknown
  const delimiter = delimiterOf(view, start, end)
  const countMax = columns.count + 1
  if (fields.split(view, start, end, delimiter, countMax) !== columns.count) {
    // Values may be separated by several blanks.
    if (delimiter !== SPACE || fields.split(view, start, end, delimiter, countMax, true) !== columns.count) {
      return Verdict.unknown
    }
  }
  const found = takeRowTime(line, columns)
  const hasClient = fields.takeClient(line, columns.tunnelClient) || fields.takeClient(line, columns.client)
  // A source may send other messages, too: a line without a time in its column, or with a word in
  // the client's column, is no row.
  const hasTime = columns.time !== NO_KEY || columns.timestamp !== NO_KEY
  if (hasTime ? found === TimeFound.none : !hasClient) return Verdict.unknown
  if (!hasClient && hasValue(view, columns.client)) return Verdict.unknown
  if (found === TimeFound.impossible) return line.rejectTime()
  fields.takeActions(line, columns.actions)
  line.takeForwarded(fields.start(columns.forwarded), fields.end(columns.forwarded))
  if (columns.isOwnServer) return Verdict.noDomain
  line.takeUserAndBytes = takeUserAndBytes
  return takeRowHost(line, columns)
}

function takeUserAndBytes(line: LogLine): void {
  const { user, sent, received } = line.memory.columns as W3cColumns
  fields.takeUserAndBytes(line, user, sent, received)
}

function takeW3cDirective(line: LogLine, start: number, end: number): void {
  const { view, memory } = line
  const text = line.text(start, end)
  const before = memory.columns as Columns
  const isOwnServer = before?.kind === 'w3c' && before.isOwnServer
  if (textAt(view, start, end, SOFTWARE)) {
    memory.columns = w3cColumns(
      [],
      OWN_SERVERS.some((name) => text.includes(name)),
    )
  } else if (textAt(view, start, end, W3C_FIELDS)) {
    const names = text
      .slice(W3C_FIELDS.length)
      .toLowerCase()
      .split(/[ \t,"]+/)
    memory.columns = w3cColumns(names.filter((name) => name !== '').slice(0, COLUMNS_MAX), isOwnServer)
  }
}

/** Takes the time of date and time, else of a timestamp. */
function takeRowTime(line: LogLine, { date, time, timestamp }: W3cColumns): TimeFound {
  let found: TimeFound = TimeFound.none
  if (date >= 0 && time >= 0) {
    if (fields.start(time) === fields.end(date) + 1) {
      found = line.takeTimeIfAny(fields.start(date), fields.end(time))
      // An epoch in the first column is another format's line.
      if (found === TimeFound.found && line.timeEnd !== fields.end(time)) found = TimeFound.none
    } else found = fields.takeDateAndTime(line, date, time)
  }
  if (found === TimeFound.none && fields.has(timestamp)) {
    const start = fields.start(timestamp)
    const isBracketed = line.view.getUint8(start) === OPEN_BRACKET
    found = line.takeTime(isBracketed ? start + 1 : start, fields.end(timestamp))
  }
  line.timeIsLocal = false
  return found
}

function hasValue(view: DataView, column: number): boolean {
  return fields.has(column) && !fields.is(view, column, '-')
}

function takeRowHost(line: LogLine, { hosts, urls }: W3cColumns): Verdict {
  const { view } = line
  for (let index = 0; index < hosts.length; index++) {
    const column = hosts[index] ?? NO_KEY
    if (!hasValue(view, column)) continue
    // A URL needs a scheme, or it is the path of a page.
    if (urls.includes(column) && !hasScheme(view, fields.start(column), fields.end(column))) continue
    const verdict = fields.takeHost(line, column)
    // The name may be in a later column if this column has an address.
    if (verdict !== Verdict.noDomain) return verdict
  }
  return Verdict.noDomain
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

const SEPARATOR = '#separator '
const ZEEK_FIELDS = '#fields'
const ZEEK_DIRECTIVES = [
  ZEEK_FIELDS,
  ...['#path', '#types', '#open', '#close', '#set_separator', '#empty_field', '#unset_field'],
]
/** Only dns.log has the type of a lookup, and only http.log has the target of a request. */
const LOOKUPS = 'trans_id qclass qclass_name qtype qtype_name'
/** SMTP, POP3, IMAP: the name of a mail server in TLS is no request to a platform. */
const MAIL_PORTS = new KeyTable({ 25: 0, 110: 0, 143: 0, 465: 0, 587: 0, 993: 0, 995: 0 })

export function isMailPort(view: DataView, start: number, end: number): boolean {
  return MAIL_PORTS.find(view, start, end) !== NO_KEY
}

/** The table that a source announced; NO_KEY for an absent column. */
function zeekColumns(separator: number, names: readonly string[]) {
  const query = names.indexOf('query')
  // The columns show the kind of log, because `#path` can be configured.
  const inHttp = names.includes('uri') ? names.indexOf('host') : NO_KEY
  const inTls = names.includes('server_name') ? names.indexOf('server_name') : inHttp
  return {
    kind: 'zeek' as const,
    separator,
    count: names.length,
    time: names.indexOf('ts'),
    client: names.indexOf('id.orig_h'),
    server: names.indexOf('id.resp_h'),
    port: names.indexOf('id.resp_p'),
    query,
    answers: names.indexOf('answers'),
    /** The column of the requested host. */
    host: columnsOf(names, LOOKUPS).length > 0 ? query : inTls,
  }
}

function readZeek(line: LogLine, start: number, end: number): Verdict {
  const { view, memory } = line
  if (start >= end || view.getUint8(start) === HASH) {
    if (!textAt(view, start, end, SEPARATOR) && !isZeekDirective(view, start, end)) return Verdict.unknown
    takeZeekDirective(line, start, end)
    return Verdict.skip
  }
  const columns = memory.columns as Columns
  if (columns?.kind !== 'zeek' || columns.count === 0) return Verdict.unknown
  const count = fields.split(view, start, end, columns.separator, columns.count + 1, false, NO_QUOTE)
  if (count !== columns.count) {
    // A truncated row, which no other format may guess at.
    const isRow = count > 1 && columns.time === 0 && digitsEnd(view, start, fields.end(0)) >= start + 10
    return isRow ? line.reject('columns: expected those of the #fields directive') : Verdict.unknown
  }
  const { client, server, port, host, query } = columns
  const found = fields.takeTime(line, columns.time)
  const hasClient = fields.takeClient(line, client)
  if (found === TimeFound.impossible) return line.rejectTime()
  if (found === TimeFound.none && !hasClient) return Verdict.unknown
  // Mail, or a request of an external client to one of the organization's own servers.
  const isNoRequest = isMailPort(view, fields.start(port), fields.end(port)) || fields.isInbound(view, client, server)
  if (host < 0 || !hasClient || isNoRequest) return Verdict.noDomain
  if (host !== query) return fields.takeHost(line, host)
  if (columns.answers >= 0) takeAnswers(line, fields.start(columns.answers), fields.end(columns.answers))
  return fields.takeName(line, host)
}

/** A set, separated by commas, of addresses and aliases. */
function takeAnswers(line: LogLine, start: number, end: number): void {
  for (let at = start; at < end; ) {
    const comma = indexOfByte(line.view, at, end, COMMA)
    const stop = comma < 0 ? end : comma
    if (isNullAddress(line.view, at, stop)) line.action = Action.blocked
    at = stop + 1
  }
}

/** A letter or `:` after the word belongs to another format. */
function isZeekDirective(view: DataView, start: number, end: number): boolean {
  return ZEEK_DIRECTIVES.some((word) => {
    const next = start + word.length
    if (!textAt(view, start, end, word) || next >= end) return false
    const byte = view.getUint8(next)
    return byte === TAB || byte === COMMA || byte === PIPE || byte === SEMICOLON
  })
}

function takeZeekDirective(line: LogLine, start: number, end: number): void {
  const { view, memory } = line
  if (textAt(view, start, end, SEPARATOR)) {
    memory.columns = zeekColumns(separatorOf(view, start + SEPARATOR.length, end), [])
  } else if (textAt(view, start, end, ZEEK_FIELDS)) {
    const separator = view.getUint8(start + ZEEK_FIELDS.length)
    const names = line.text(start + ZEEK_FIELDS.length + 1, end).toLowerCase()
    memory.columns = zeekColumns(separator, names.split(String.fromCharCode(separator)).slice(0, COLUMNS_MAX))
  }
}

/** The separator is written as `\x09`, or as itself. */
function separatorOf(view: DataView, start: number, end: number): number {
  if (start >= end) return TAB
  if (view.getUint8(start) !== BACKSLASH || start + 4 > end) return view.getUint8(start)
  const high = hexDigit(view.getUint8(start + 2))
  const low = hexDigit(view.getUint8(start + 3))
  return high < 0 || low < 0 ? TAB : high * 16 + low
}
