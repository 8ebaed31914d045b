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
  SPACE,
  skipBlanks,
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
const FILTER_REASON = 5
const FILTER_ACTION = 6
const FILTER_DIRECTION = 7
const FILTER_VERSION = 8
const FILTER_SOURCE_IPV4 = 18
const FILTER_SOURCE_IPV6 = 15
const FILTER_ACTIONS = new KeyTable({
  pass: Action.allowed,
  block: Action.blocked,
  reject: Action.blocked,
  ...wordsOf(Action.unknown, 'match rdr nat binat nordr nonat nobinat synproxy defer'),
})

const TIME = 1
const BLOCKED_DOMAIN = 2
const BLOCKED_CLIENT = 3
const REPLY_DOMAIN = 6
const REPLY_CLIENT = 7
/** A row has one less or none. A name with commas adds some. */
const BLOCKER_COLUMNS_MAX = 11
const REPLY_COLUMNS_MAX = 10
/**
 * Rows of addresses have more columns than this. That many columns distinguish a row from a text.
 */
const ADDRESS_ROW_COLUMNS_MIN = 8

const PLAIN_DOMAIN = 'domain: expected no comma and no quotes'

const Kind = { none: 0, filter: 1, blocked: 2, reply: 3, addresses: 4 } as const
type Kind = (typeof Kind)[keyof typeof Kind]

const fields = new Fields()

function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const kind = kindOf(view, start, end)
  if (kind === Kind.none) return Verdict.unknown
  if (kind === Kind.filter) return readFilter(line, afterTag(view, start, end), end)
  fields.split(view, start, end, COMMA, BLOCKER_COLUMNS_MAX + 1)
  if (fields.takeTime(line, TIME) === TimeFound.impossible) return line.rejectTime()
  if (kind === Kind.addresses) {
    fields.takeAction(line, 0)
    return Verdict.noDomain
  }
  // A quote would hide columns.
  if (indexOfByte(view, start, end, QUOTE) !== NOT_FOUND) return line.reject(PLAIN_DOMAIN)
  const isReply = kind === Kind.reply
  line.action = isReply ? Action.allowed : Action.blocked
  return isReply ? takeRow(line, REPLY_DOMAIN, REPLY_CLIENT) : takeRow(line, BLOCKED_DOMAIN, BLOCKED_CLIENT)
}

/** A filter line has no host, even if its end is missing or damaged (pf truncates copied lines). */
function readFilter(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const count = fields.split(view, start, end, COMMA, FILTER_SOURCE_IPV4 + 1)
  if (count <= FILTER_VERSION) return Verdict.noDomain
  const found = fields.find(view, FILTER_ACTION, FILTER_ACTIONS)
  if (found !== NO_KEY) line.action = found as Action
  const isIpv6 = fields.is(view, FILTER_VERSION, '6')
  const source = isIpv6 ? FILTER_SOURCE_IPV6 : FILTER_SOURCE_IPV4
  if (count > source) fields.takeClient(line, source)
  return Verdict.noDomain
}

function takeRow(line: LogLine, domain: number, client: number): Verdict {
  // Another column after the client's shows that the address is complete.
  if (fields.count <= client + 1) return line.reject('fields: expected a domain and a client')
  const isReply = domain === REPLY_DOMAIN
  // The answer of a reply is an address, but of a blocked query none is after the client.
  const isShifted = !isReply && fields.takeClient(line, client + 1)
  const isWide = fields.count > (isReply ? REPLY_COLUMNS_MAX : BLOCKER_COLUMNS_MAX)
  if (isShifted || isWide) return line.reject(PLAIN_DOMAIN)
  if (!fields.takeClient(line, client)) return line.reject('client: expected an address')
  return fields.takeName(line, domain)
}

function kindOf(view: DataView, start: number, end: number): Kind {
  if (start >= end) return Kind.none
  // D, B, P and M begin pfBlockerNG's words, f the filter's tag, digits the filter's rules.
  const first = view.getUint8(start)
  switch (first) {
    case 0x44:
      return blockerKind(view, start, end)
    case 0x42:
    case 0x50:
    case 0x4d:
      return isAddressRow(view, start, end) ? Kind.addresses : Kind.none
    case 0x66:
      return textAt(view, start, end, FILTER_TAG) && afterTag(view, start, end) > start ? Kind.filter : Kind.none
    default:
      // The rule is a number, or empty.
      return (first === COMMA || isDigit(first)) && isFilter(view, start, end) ? Kind.filter : Kind.none
  }
}

function blockerKind(view: DataView, start: number, end: number): Kind {
  const isReply = textAt(view, start, end, 'DNS-reply,')
  if (!isReply && !textAt(view, start, end, 'DNSBL')) return Kind.none
  const comma = indexOfByte(view, start, Math.min(end, start + CUE_BYTES), COMMA)
  if (comma === NOT_FOUND || !isTime(view, comma + 1, end)) return Kind.none
  return isReply ? Kind.reply : Kind.blocked
}

function isAddressRow(view: DataView, start: number, end: number): boolean {
  const isWord =
    textAt(view, start, end, 'Block,') || textAt(view, start, end, 'Permit,') || textAt(view, start, end, 'Match,')
  if (!isWord) return false
  const count = fields.split(view, start, Math.min(end, start + CUE_BYTES), COMMA, ADDRESS_ROW_COLUMNS_MIN)
  return count === ADDRESS_ROW_COLUMNS_MIN && isTime(view, fields.start(TIME), end)
}

/** Whether the column at `start` has a time's length and colons. */
function isTime(view: DataView, start: number, end: number): boolean {
  let colons = 0
  let hasBlank = false
  for (let at = start; at < end && at - start <= 32; at++) {
    const byte = view.getUint8(at)
    if (byte === COMMA) return colons === 2 && hasBlank && at - start >= 14
    if (byte === COLON) colons++
    hasBlank ||= byte === SPACE
  }
  return false
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

/** Columns 6, 7 and 8: an action, a direction, an IP version. */
function isFilter(view: DataView, start: number, end: number): boolean {
  const count = fields.split(view, start, Math.min(end, start + CUE_BYTES), COMMA, FILTER_VERSION + 1)
  if (count <= FILTER_VERSION || fields.end(FILTER_REASON) <= fields.start(FILTER_REASON)) return false
  return (
    (fields.is(view, FILTER_VERSION, '4') || fields.is(view, FILTER_VERSION, '6')) &&
    (fields.is(view, FILTER_DIRECTION, 'in') || fields.is(view, FILTER_DIRECTION, 'out')) &&
    fields.find(view, FILTER_ACTION, FILTER_ACTIONS) !== NO_KEY
  )
}
