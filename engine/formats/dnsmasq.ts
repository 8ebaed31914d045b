import { isNullAddress } from './action.ts'
import {
  CLOSE_BRACKET,
  digitsEnd,
  indexOfByte,
  indexOfText,
  isDigit,
  isText,
  KeyTable,
  LESS,
  lastIndexOfByte,
  NOT_FOUND,
  OPEN_BRACKET,
  SLASH,
  SPACE,
  skipBlanks,
  TextPrefixes,
  TextSearch,
  tagAt,
  textAt,
  tokenEnd,
} from './bytes.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'

/*
 * The log of dnsmasq with log-queries, and of Pi-hole, which is built on dnsmasq:
 *
 *   Nov 20 09:15:02 dnsmasq[310]: query[A] api.openai.com from 192.0.2.45
 *   Nov 20 09:15:02 dnsmasq[310]: 17 192.0.2.45/51234 query[AAAA] api.openai.com from 192.0.2.45
 *
 * The second form has log-queries=extra; with log-queries=proto, `UDP` or `TCP` precedes it. All
 * other lines follow a query. Some say that it was blocked:
 *
 *   Nov 20 09:15:02 dnsmasq[310]: gravity blocked api.openai.com is 0.0.0.0
 *   Nov 20 09:15:02 dnsmasq[310]: config api.openai.com is NXDOMAIN
 *
 * https://thekelleys.org.uk/dnsmasq/docs/dnsmasq-man.html
 */
export const dnsmasq: LogFormat = { id: 'dnsmasq', read }

const QUERY = 'query['
const UNPRINTABLE = '<name unprintable>'
const PREFIX_BYTES_MAX = 128
const FTL_TIME_BYTES = '2026-11-20 09:15:02.109'.length

/** First words that precede a name and then `is` or `to`. */
const Following = { other: 0, answer: 1, config: 2 } as const
const FOLLOWING = new KeyTable({
  ...{ reply: Following.answer, cached: Following.answer, 'cached-stale': Following.answer },
  ...{ config: Following.config, forwarded: Following.other, dhcp: Following.other },
})
/** Pi-hole's words for a name on one of its lists. */
const LISTED = ['gravity blocked ', 'exactly denied ', 'regex denied ', 'exactly blacklisted ', 'regex blacklisted ']
const UPSTREAM = 'blocked upstream with '
const BLOCKED = [...LISTED, UPSTREAM]
const BLOCKED_PREFIXES = new TextPrefixes(BLOCKED)
/** A name that dnsmasq.conf denies. The same answer of a server may also mean a typing error. */
const NO_ANSWERS = new KeyTable({ nxdomain: 0, nodata: 0, 'nodata-ipv4': 0, 'nodata-ipv6': 0 })
const SYSTEM_EVENTS = new TextPrefixes([
  ...BLOCKED,
  ...'special domain |Rate-limiting |dnssec-query[|dnssec-retry[|Apple iCloud Private Relay domain '.split('|'),
  ...'validation |inotify|using nameserver |using local addresses |reading /|read /|started, version '.split('|'),
  ...'compile time options: |query[|auth[|DHCPDISCOVER(|DHCPOFFER(|DHCPREQUEST(|DHCPACK(|DHCPNAK('.split('|'),
  ...'DHCPINFORM(|DHCPRELEASE(|DHCPDECLINE(|DHCPSOLICIT(|DHCPADVERTISE(|DHCPCONFIRM(|DHCPRENEW('.split('|'),
  ...'DHCPREBIND(|DHCPREPLY(|DHCP, |DHCPv6, |RTR-ADVERT(|RTR-SOLICIT(|SLAAC-CONFIRM('.split('|'),
  ...'exiting on receipt of SIGTERM|possible DNS-rebind attack detected|started, cache'.split('|'),
  ...'ignoring nameserver |Maximum number of concurrent DNS queries reached|cleared cache'.split('|'),
  ...'reducing DNS packet size for nameserver |DNS service limited to |nameserver '.split('|'),
])
const TAG = new TextSearch('dnsmasq')
const PIHOLE_TAG = new TextSearch('pihole')

function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const body = bodyAt(line, start, end)
  if (body < 0) return line.rejectTime()
  const word = afterSerial(view, body, end)
  if (!isQuery(view, word, end)) {
    const isOther = body !== start || isFollowing(view, word, end) || isFtlMessage(view, start, end)
    return isOther ? takeBlocked(line, body, word, end) : Verdict.unknown
  }
  // One blank: a name may begin with others.
  const name = Math.min(tokenEnd(view, word, end) + 1, end)
  const isUnprintable = view.getUint8(name) === LESS && textAt(view, name, end, UNPRINTABLE)
  const nameEnd = isUnprintable ? name + UNPRINTABLE.length : tokenEnd(view, name, end)
  const from = skipBlanks(view, nameEnd, end)
  const fromEnd = tokenEnd(view, from, end)
  const client = skipBlanks(view, fromEnd, end)
  const clientEnd = tokenEnd(view, client, end)
  // A name may have blanks, and itself be `claude.ai from 192.0.2.66`.
  const isLast = skipBlanks(view, clientEnd, end) >= end
  if (!isText(view, from, fromEnd, 'from') || !isLast || !line.takeClient(client, clientEnd)) {
    return line.reject('client: expected "from" and an address after the name, at the end')
  }
  line.isQuestion = true
  return line.takeName(name, nameEnd)
}

/** The offset after `gravity blocked`, `exactly denied (CNAME)` or `blocked upstream with NULL address`. */
function blockedWordsEnd(view: DataView, word: number, end: number): number {
  const isUpstream = textAt(view, word, end, UPSTREAM)
  const second = isUpstream ? word + UPSTREAM.length : skipBlanks(view, tokenEnd(view, word, end), end)
  const stop = tokenEnd(view, second, end)
  const more = isUpstream ? ' address ' : ' (CNAME) '
  return textAt(view, stop, end, more) ? stop + more.length : stop
}

/** `gravity blocked NAME is ADDRESS` and the like: whether an earlier query was blocked. */
function takeBlocked(line: LogLine, body: number, word: number, end: number): Verdict {
  const { view } = line
  const isOfList = BLOCKED_PREFIXES.beginAt(view, word, end)
  const first = tokenEnd(view, word, end)
  const following = view.getUint8(word) === SLASH ? Following.answer : FOLLOWING.find(view, word, first)
  if (!isOfList && following !== Following.answer && following !== Following.config) return Verdict.skip
  const name = skipBlanks(view, isOfList ? blockedWordsEnd(view, word, end) : first, end)
  const nameEnd = tokenEnd(view, name, end)
  const is = skipBlanks(view, nameEnd, end)
  const isEnd = tokenEnd(view, is, end)
  const value = skipBlanks(view, isEnd, end)
  const valueEnd = tokenEnd(view, value, end)
  // A name may have blanks, and itself be `claude.ai is`.
  if (!isText(view, is, isEnd, 'is') || skipBlanks(view, valueEnd, end) < end) return Verdict.skip
  const isNull =
    isNullAddress(view, value, valueEnd) ||
    (following === Following.config && NO_ANSWERS.find(view, value, valueEnd) >= 0)
  if (!isOfList && !isNull) return Verdict.skip
  // With log-queries=extra, the client comes first.
  if (word > body) {
    const port = indexOfByte(view, body, word, SLASH)
    line.takeClient(lastIndexOfByte(view, body, port, SPACE) + 1, port)
  }
  return line.refuseName(name, nameEnd)
}

/**
 * The offset after the tag (`dnsmasq[310]: `, `pihole-FTL[310]: `), `start` without a tag, or NOT_FOUND
 * if the time before the tag is impossible.
 */
function bodyAt(line: LogLine, start: number, end: number): number {
  const { view } = line
  if (isBody(view, afterSerial(view, start, end), end)) return start
  const limit = Math.min(end, start + PREFIX_BYTES_MAX)
  const dnsmasq = tagAt(view, TAG, start, limit)
  const tag = dnsmasq < 0 ? tagAt(view, PIHOLE_TAG, start, limit) : dnsmasq
  const header = tag < 0 ? TimeFound.none : line.takeHeader(start, tag)
  if (header === TimeFound.none) return start
  return header === TimeFound.found ? skipBlanks(view, tokenEnd(view, tag, limit), limit) : NOT_FOUND
}

/**
 * The offset after the query's number and client, which log-queries=extra puts first, and
 * log-queries=proto after the protocol.
 */
function afterSerial(view: DataView, at: number, end: number): number {
  const hasProtocol = textAt(view, at, end, 'UDP ') || textAt(view, at, end, 'TCP ')
  const serial = hasProtocol ? at + 4 : at
  const digits = digitsEnd(view, serial, end)
  if (digits === serial || digits >= end || view.getUint8(digits) !== SPACE) return at
  const client = skipBlanks(view, digits, end)
  const clientEnd = tokenEnd(view, client, Math.min(end, client + PREFIX_BYTES_MAX))
  const slash = indexOfByte(view, client, clientEnd, SLASH)
  if (slash < 0 || addressKind(view, client, slash) === AddressKind.none) return at
  return skipBlanks(view, clientEnd, end)
}

/** `query[TYPE] `. A name cannot match, because names come later. */
function isQuery(view: DataView, at: number, end: number): boolean {
  if (!textAt(view, at, end, QUERY)) return false
  const stop = tokenEnd(view, at, Math.min(end, at + 32))
  return view.getUint8(stop - 1) === CLOSE_BRACKET
}

function isFollowing(view: DataView, at: number, end: number): boolean {
  if (at >= end) return false
  const stop = wordEnd(view, at, end)
  if (view.getUint8(at) === SLASH || FOLLOWING.find(view, at, stop) >= 0) {
    return IS.find(view, stop, end) >= 0 || TO.find(view, stop, end) >= 0
  }
  return SYSTEM_EVENTS.beginAt(view, at, end)
}
const IS = new TextSearch(' is ')
const TO = new TextSearch(' to ')

function isBody(view: DataView, at: number, end: number): boolean {
  return isQuery(view, at, end) || FOLLOWING.find(view, at, wordEnd(view, at, end)) >= 0
}

function wordEnd(view: DataView, at: number, end: number): number {
  return tokenEnd(view, at, Math.min(end, at + PREFIX_BYTES_MAX))
}

/**
 * `2026-11-20 09:15:02.109 CET [71/T80] INFO: ...` of Pi-hole's FTL: the process and its thread,
 * `M` for the main thread, `F` for a fork.
 */
function isFtlMessage(view: DataView, start: number, end: number): boolean {
  if (end - start < FTL_TIME_BYTES + 6) return false
  const isBracketed = view.getUint8(start) === OPEN_BRACKET
  const time = isBracketed ? start + 1 : start
  if (!isDigit(view.getUint8(time)) || view.getUint8(time + 4) !== 0x2d || view.getUint8(time + 10) !== SPACE)
    return false
  const limit = Math.min(end, start + FTL_TIME_BYTES + 24)
  const bracket = isBracketed ? time + FTL_TIME_BYTES : indexOfText(view, time + FTL_TIME_BYTES, limit, ' [') + 1
  if (bracket === NOT_FOUND + 1) return false
  let at = digitsEnd(view, bracket + 1, end)
  if (at === bracket + 1 || at >= end) return false
  if (view.getUint8(at) === SLASH) at++
  const kind = at < end ? view.getUint8(at) : 0
  if (kind !== 0x4d && kind !== 0x54 && kind !== 0x46) return false
  at = digitsEnd(view, at + 1, end)
  return at < end && view.getUint8(at) === CLOSE_BRACKET
}
