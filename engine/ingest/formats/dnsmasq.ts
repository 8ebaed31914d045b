import {
  CLOSE_BRACKET,
  COLON,
  digitsEnd,
  indexOfByte,
  indexOfText,
  isDigit,
  isText,
  LESS,
  NOT_FOUND,
  OPEN_BRACKET,
  SLASH,
  SPACE,
  skipBlanks,
  textAt,
  tokenEnd,
} from './bytes.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { KeyTable } from './key-table.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { TextPrefixes, TextSearch } from './text-search.ts'

/*
 * The log of dnsmasq with log-queries, and of Pi-hole, which is built on dnsmasq:
 *
 *   Nov 20 09:15:02 dnsmasq[310]: query[A] api.openai.com from 192.0.2.45
 *   Nov 20 09:15:02 dnsmasq[310]: 17 192.0.2.45/51234 query[AAAA] api.openai.com from 192.0.2.45
 *
 * The second form has log-queries=extra. All other lines follow a query: forwarded, answered,
 * blocked.
 * https://thekelleys.org.uk/dnsmasq/docs/dnsmasq-man.html
 */
export const dnsmasq: LogFormat = { id: 'dnsmasq', detect, parse }

const QUERY = 'query['
const UNPRINTABLE = '<name unprintable>'
const PREFIX_BYTES_MAX = 128
const FTL_TIME_BYTES = '2026-11-20 09:15:02.109'.length

/** First words that precede a name and then `is` or `to`. */
const FOLLOWING = new KeyTable({ forwarded: 0, reply: 0, cached: 0, 'cached-stale': 0, config: 0, dhcp: 0 })
const SYSTEM_EVENTS = new TextPrefixes([
  ...['gravity blocked ', 'exactly denied ', 'regex denied ', 'exactly blacklisted ', 'regex blacklisted '],
  ...['special domain ', 'Rate-limiting ', 'dnssec-query[', 'dnssec-retry[', 'Apple iCloud Private Relay domain '],
  ...[
    'validation ',
    'inotify',
    'using nameserver ',
    'using local addresses ',
    'reading /',
    'read /',
    'started, version ',
  ],
  ...['compile time options: ', 'query[', 'auth['],
  ...[
    'DHCPDISCOVER(',
    'DHCPOFFER(',
    'DHCPREQUEST(',
    'DHCPACK(',
    'DHCPNAK(',
    'DHCPINFORM(',
    'DHCPRELEASE(',
    'DHCPDECLINE(',
  ],
  ...[
    'DHCPSOLICIT(',
    'DHCPADVERTISE(',
    'DHCPCONFIRM(',
    'DHCPRENEW(',
    'DHCPREBIND(',
    'DHCPREPLY(',
    'DHCP, ',
    'DHCPv6, ',
  ],
  ...[
    'RTR-ADVERT(',
    'RTR-SOLICIT(',
    'SLAAC-CONFIRM(',
    'exiting on receipt of SIGTERM',
    'possible DNS-rebind attack detected',
  ],
  ...['started, cache', 'ignoring nameserver ', 'Maximum number of concurrent DNS queries reached', 'cleared cache'],
  ...['reducing DNS packet size for nameserver ', 'DNS service limited to ', 'nameserver '],
])
const TAG = new TextSearch('dnsmasq')
const PIHOLE_TAG = new TextSearch('pihole')

function detect({ view }: LogLine, start: number, end: number): boolean {
  const body = bodyAt(view, start, end)
  if (body !== start) return true
  const word = afterSerial(view, start, end)
  return isQuery(view, word, end) || isFollowing(view, word, end) || isFtlMessage(view, start, end)
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const body = bodyAt(view, start, end)
  const word = afterSerial(view, body, end)
  if (!isQuery(view, word, end)) return Verdict.skip
  if (body > start && line.takeTimeIfAny(start, body) === TimeFound.impossible) {
    return line.reject('time: expected a valid date and time')
  }
  const name = skipBlanks(view, tokenEnd(view, word, end), end)
  const isUnprintable = view.getUint8(name) === LESS && textAt(view, name, end, UNPRINTABLE)
  const nameEnd = isUnprintable ? name + UNPRINTABLE.length : tokenEnd(view, name, end)
  const from = skipBlanks(view, nameEnd, end)
  const fromEnd = tokenEnd(view, from, end)
  if (!isText(view, from, fromEnd, 'from')) return line.reject('client: expected "from" and an address after the name')
  const client = skipBlanks(view, fromEnd, end)
  if (!line.takeClient(client, tokenEnd(view, client, end))) {
    return line.reject('client: expected "from" and an address after the name')
  }
  return line.takeName(name, nameEnd)
}

/** The offset after the tag (`dnsmasq[310]: `, `pihole-FTL[310]: `), or `start` without a tag. */
function bodyAt(view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + PREFIX_BYTES_MAX)
  const body = afterTag(view, TAG, start, limit)
  return body >= 0 ? body : Math.max(start, afterTag(view, PIHOLE_TAG, start, limit))
}

function afterTag(view: DataView, tag: TextSearch, start: number, limit: number): number {
  for (let at = start; ; at++) {
    at = tag.find(view, at, limit)
    if (at < 0) return NOT_FOUND
    if (at > start && view.getUint8(at - 1) !== SPACE) continue
    // A host may have the same name, but not the process number.
    const stop = tokenEnd(view, at, limit)
    const last = view.getUint8(stop - 1)
    if (last === COLON || last === CLOSE_BRACKET) return skipBlanks(view, stop, limit)
  }
}

/** The offset after the query's number and client, which log-queries=extra puts first. */
function afterSerial(view: DataView, at: number, end: number): number {
  const digits = digitsEnd(view, at, end)
  if (digits === at || digits >= end || view.getUint8(digits) !== SPACE) return at
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
  const limit = Math.min(end, at + 3 * PREFIX_BYTES_MAX)
  const stop = tokenEnd(view, at, limit)
  if (view.getUint8(at) === SLASH || FOLLOWING.find(view, at, stop) >= 0) {
    const name = skipBlanks(view, stop, limit)
    const verb = skipBlanks(view, tokenEnd(view, name, limit), limit)
    const verbEnd = tokenEnd(view, verb, limit)
    return isText(view, verb, verbEnd, 'is') || isText(view, verb, verbEnd, 'to')
  }
  return SYSTEM_EVENTS.beginAt(view, at, end)
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
