import { Action, actionOf } from './action.ts'
import {
  DOT,
  digitsEnd,
  indexOfText,
  isText,
  KeyTable,
  NO_KEY,
  NOT_FOUND,
  skipBlanks,
  textAt,
  tokenEnd,
} from './bytes.ts'
import { endBeforePort } from './ip-address.ts'
import { type LogLine, TRUNCATED, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'

/*
 * Cisco Meraki's appliances and access points: an epoch with nanoseconds, the device's name, a word
 * for the kind, and then
 *
 *   urls src=address:port dst=address:port mac=... [agent='...'] request: METHOD URL
 *
 * https://documentation.meraki.com/General_Administration/Monitoring_and_Reporting/Syslog_Server_Overview_and_Configuration
 */
const Kind = { urls: 1, flows: 2, systemEvent: 3 } as const
const KINDS = new KeyTable({
  urls: Kind.urls,
  flows: Kind.flows,
  ip_flow_start: Kind.flows,
  ip_flow_end: Kind.flows,
  firewall: Kind.flows,
  vpn_firewall: Kind.flows,
  cellular_firewall: Kind.flows,
  bridge_anyconnect_client_vpn_firewall: Kind.flows,
  events: Kind.systemEvent,
  'ids-alerts': Kind.systemEvent,
  security_event: Kind.systemEvent,
  airmarshal_events: Kind.systemEvent,
})

const SOURCE = 'src='
const REQUEST = 'request: '
const AGENT = " agent='"
const REQUEST_AFTER_AGENT = "' request: "
/** `1795162502.342705328`: ten digits, a dot and at least this many. */
const FRACTION_DIGITS_MIN = 6

/** The end of the kind's word, which kindStart found. */
let kindEnd = 0

/** @param first offset of the first `=`, or `limit` */
export function isMeraki(view: DataView, start: number, first: number, limit: number): boolean {
  start = afterVersion(view, start, limit)
  const at = kindStart(view, start, first)
  // The word ends at `=`, so it is a key.
  if (at === NOT_FOUND || (kindEnd === first && first < limit)) return false
  if (hasEpoch(view, start, limit)) return true
  // Without the epoch, a text may begin with the same word.
  if (isText(view, at, kindEnd, 'ids-alerts') || isText(view, at, kindEnd, 'security_event')) return true
  const next = skipBlanks(view, kindEnd, limit)
  const afterVerdict = skipBlanks(view, tokenEnd(view, next, limit), limit)
  return textAt(view, next, limit, SOURCE) || textAt(view, afterVerdict, limit, SOURCE)
}

export function readMeraki(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  start = afterVersion(view, start, end)
  const at = kindStart(view, start, end)
  if (at === NOT_FOUND) return Verdict.unknown
  const kind = KINDS.find(view, at, kindEnd)
  if (kind === Kind.systemEvent) return Verdict.skip
  if (hasEpoch(view, start, end) && line.takeTime(start, end) === TimeFound.impossible) {
    return line.reject('time: expected seconds since 1970')
  }
  takeFlow(line, kindEnd, end)
  if (kind === Kind.flows) return Verdict.noDomain
  // An agent string may contain `request:`, and its own apostrophes look like the device's.
  const hasAgent = indexOfText(view, kindEnd, end, AGENT) !== NOT_FOUND
  const request = lastIndexOfText(view, kindEnd, end, hasAgent ? REQUEST_AFTER_AGENT : REQUEST)
  if (request === NOT_FOUND) return line.reject('request: expected a method and a URL')
  const method = skipBlanks(view, request + (hasAgent ? REQUEST_AFTER_AGENT : REQUEST).length, end)
  const url = skipBlanks(view, tokenEnd(view, method, end), end)
  const urlEnd = tokenEnd(view, url, end)
  const verdict = line.takeHost(url, urlEnd)
  if (verdict === Verdict.event && line.hostIsOpen(end)) {
    return line.reject(TRUNCATED)
  }
  return verdict
}

/** Takes the client and the action, a word before the addresses. */
function takeFlow(line: LogLine, start: number, end: number): void {
  const { view } = line
  let at = start
  for (;;) {
    at = skipBlanks(view, at, end)
    if (at >= end) return
    const stop = tokenEnd(view, at, end)
    if (textAt(view, at, stop, SOURCE)) {
      const address = at + SOURCE.length
      line.takeClient(address, endBeforePort(view, address, stop))
    } else if (
      isText(view, at, stop, 'agent=') ||
      textAt(view, at, stop, "agent='") ||
      isText(view, at, stop, 'request:')
    ) {
      return
    } else if (line.action === Action.unknown) {
      line.action = actionOf(view, at, stop)
    }
    at = stop
  }
}

/**
 * The offset after RFC 5424's version `1 `. The rest is no RFC 5424 header, because an epoch is no
 * TIMESTAMP, so relays may leave the version.
 */
function afterVersion(view: DataView, start: number, end: number): number {
  return textAt(view, start, end, '1 ') ? start + 2 : start
}

/** The offset of the kind's word: first, or after the epoch and the device's name. Sets kindEnd. */
function kindStart(view: DataView, start: number, limit: number): number {
  let at = start
  for (let word = 0; word < 3; word++) {
    at = skipBlanks(view, at, limit)
    if (at >= limit) return NOT_FOUND
    kindEnd = tokenEnd(view, at, limit)
    if (KINDS.find(view, at, kindEnd) !== NO_KEY) return at
    at = kindEnd
  }
  return NOT_FOUND
}

function hasEpoch(view: DataView, start: number, end: number): boolean {
  const digits = digitsEnd(view, start, Math.min(end, start + 11))
  if (digits - start !== 10 || digits >= end || view.getUint8(digits) !== DOT) return false
  return digitsEnd(view, digits + 1, Math.min(end, digits + 10)) - digits - 1 >= FRACTION_DIGITS_MIN
}

function lastIndexOfText(view: DataView, start: number, end: number, text: string): number {
  for (let at = end - text.length; at >= start; at--) if (textAt(view, at, end, text)) return at
  return NOT_FOUND
}
