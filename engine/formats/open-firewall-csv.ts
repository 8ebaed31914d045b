import { Action } from './action.ts'
import {
  COLON,
  COMMA,
  digitsEnd,
  indexOfByte,
  isDigit,
  KeyTable,
  NO_KEY,
  NOT_FOUND,
  OPEN_BRACKET,
  QUOTE,
  skipBlanks,
  TextPrefixes,
  textAt,
  wordsOf,
} from './bytes.ts'
import { Fields } from './fields.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'

/*
 * The CSV of pfSense and OPNsense without a header: pf's filterlog, and the logs of pfBlockerNG.
 *
 *   rule,subrule,anchor,tracker,interface,reason,action,direction,ip-version,...      filterlog
 *   DNSBL-...,time,domain,client,agent,mode,group,evaluated,feed,duplicate            dnsbl.log
 *   DNS-reply,time,type,record,final-record,ttl,domain,client,answer,place            dns_reply.log
 *   Block|Permit|Match,time,rule,interface,...                    unified.log: rows of addresses
 *
 * https://docs.netgate.com/pfsense/en/latest/monitoring/logs/raw-filter-format.html
 * Interfaces (`igb0.40`) and feeds look like hosts, so each kind is recognized by more than its
 * commas.
 */
export const openFirewallCsv: LogFormat = { id: 'open-firewall-csv', read }

const FILTER_TAG = 'filterlog'
/** The indexes of filterlog's columns, of which the last depends on the IP version. */
const FILTER = { reason: 5, action: 6, direction: 7, version: 8, sourceIpv4: 18, sourceIpv6: 15 } as const
const FILTER_ACTIONS = new KeyTable(
  wordsOf(0, 'pass block reject match rdr nat binat nordr nonat nobinat synproxy defer'),
)

/** A row has one column less than `columnsMax`, or none less. A name with commas adds some. */
const BLOCKED = { domain: 2, client: 3, columnsMax: 11 } as const
const REPLY = { domain: 6, client: 7, columnsMax: 10 } as const
const BLOCKED_WORD = 'DNSBL'
const REPLY_WORD = 'DNS-reply,'
const ROWS = new TextPrefixes([BLOCKED_WORD, REPLY_WORD, 'Block,', 'Permit,', 'Match,'])
const TIME = 1
/** A row with a name has more columns. */
const ROW_COLUMNS_MIN = 8
/** The columns that distinguish a row of addresses from another CSV file that begins with an action. */
const ADDRESSES = { action: 5, version: 6 } as const
const PLAIN_DOMAIN = 'domain: expected no comma and no quotes'

const fields = new Fields()

function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const filter = afterTag(view, start, end)
  if (filter > start || isFilter(view, start, end)) return readFilter(line, filter, end)
  if (!ROWS.beginAt(view, start, end)) return Verdict.unknown
  const count = fields.split(view, start, end, COMMA, BLOCKED.columnsMax + 1)
  const isReply = textAt(view, start, end, REPLY_WORD)
  const isOfName = isReply || textAt(view, start, end, BLOCKED_WORD)
  const time = fields.takeTime(line, TIME)
  // That many columns distinguish a row from a text.
  const isRow = isOfName ? time !== TimeFound.none || count >= ROW_COLUMNS_MIN : hasPacket(view, ADDRESSES)
  if (!isRow) return Verdict.unknown
  if (time !== TimeFound.found) return line.rejectTime()
  if (!isOfName) return Verdict.noDomain
  // A quote would hide columns.
  if (indexOfByte(view, start, end, QUOTE) !== NOT_FOUND) return line.reject(PLAIN_DOMAIN)
  line.action = isReply ? Action.allowed : Action.blocked
  const { domain, client, columnsMax } = isReply ? REPLY : BLOCKED
  // Another column after the client's shows that the address is complete.
  if (count <= client + 1) return line.reject('fields: expected a domain and a client')
  // The answer of a reply is an address, but of a blocked query none is after the client.
  const isShifted = !isReply && fields.takeClient(line, client + 1)
  if (isShifted || count > columnsMax) return line.reject(PLAIN_DOMAIN)
  if (!fields.takeClient(line, client)) return line.reject('client: expected an address')
  return fields.takeName(line, domain)
}

/** A filter line has no host, even if its end is missing or damaged (pf truncates copied lines). */
function readFilter(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  fields.split(view, start, end, COMMA, FILTER.sourceIpv4 + 1)
  fields.takeClient(line, fields.is(view, FILTER.version, '6') ? FILTER.sourceIpv6 : FILTER.sourceIpv4)
  return Verdict.noDomain
}

/** The offset after `filterlog[40112]: ` in all spellings, or `start` without a tag. */
function afterTag(view: DataView, start: number, end: number): number {
  if (!textAt(view, start, end, FILTER_TAG)) return start
  let at = start + FILTER_TAG.length
  if (at < end && view.getUint8(at) === OPEN_BRACKET) {
    at = digitsEnd(view, at + 1, end)
    // The closing bracket.
    if (at < end) at++
  }
  if (at < end && view.getUint8(at) === COLON) at++
  return skipBlanks(view, at, end)
}

/** The rule is a number, or empty; columns 6, 7 and 8 are an action, a direction, an IP version. */
function isFilter(view: DataView, start: number, end: number): boolean {
  const first = start < end ? view.getUint8(start) : 0
  if (first !== COMMA && !isDigit(first)) return false
  fields.split(view, start, Math.min(end, start + CUE_BYTES), COMMA, FILTER.version + 1)
  return (
    fields.has(FILTER.reason) &&
    (fields.is(view, FILTER.direction, 'in') || fields.is(view, FILTER.direction, 'out')) &&
    hasPacket(view, FILTER)
  )
}

/** Whether the columns are an action of pf and an IP version. */
function hasPacket(
  view: DataView,
  { action, version }: { readonly action: number; readonly version: number },
): boolean {
  const isVersion = fields.is(view, version, '4') || fields.is(view, version, '6')
  return isVersion && fields.find(view, action, FILTER_ACTIONS) !== NO_KEY
}
