import {
  AT,
  COLON,
  COMMA,
  CR,
  indexOfByte,
  isLetter,
  LF,
  lastIndexOfByte,
  NO_KEY,
  NOT_FOUND,
  OPEN_PARENTHESIS,
  SPACE,
  skipBlanks,
  textAt,
  tokenEnd,
} from './bytes.ts'
import { endBeforePort, isInbound } from './ip-address.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { PairFields } from './pair-fields.ts'

/*
 * Messages of Cisco ASA and Secure Firewall (FTD): `%FTD-1-430003: SrcIP: 192.0.2.45, DstIP: ...`.
 * Connection events name hosts: 430002 at the beginning of a connection, 430003 at its end; and the
 * URLs of `inspect http`: `304001: 192.0.2.45 Accessed URL 198.51.100.20:http://claude.ai/api`.
 * https://www.cisco.com/c/en/us/td/docs/security/firepower/Syslogs/b_fptd_syslog_guide.html
 */
export const cisco: LogFormat = { id: 'cisco', read }

const DEVICES = ['%FTD-', '%ASA-', '%NGIPS-'] as const
const CONNECTION_BEGIN = '430002: '
const CONNECTION_END = '430003: '
const URL_ACCESS = '304001: '
/** NGIPS may write this word before its mark. */
const ALERTS = 'Alerts '

const EVENT = new PairFields({
  time: 'firstpacketsecond',
  client: 'srcip',
  forwarded: 'originalclientsrcip',
  server: 'dstip',
  question: 'dnsquery',
  url: 'url',
  host: 'referencedhost',
  action: 'accesscontrolruleaction',
  user: 'user',
  sent: 'initiatorbytes',
  received: 'responderbytes',
})

/**
 * The offset after the device's mark, or -1. No other words may precede it: a client can write them
 * into a message of another program, such as a user name for sshd.
 */
function markEnd(view: DataView, start: number, end: number): number {
  const at = textAt(view, start, end, ': ')
    ? start + 2
    : textAt(view, start, end, ALERTS)
      ? start + ALERTS.length
      : start
  for (let index = 0; index < DEVICES.length; index++) {
    const device = DEVICES[index] ?? ''
    if (textAt(view, at, end, device)) return at + device.length
  }
  return -1
}

function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  let at = markEnd(view, start, end)
  if (at < 0) return Verdict.unknown
  // The severity is one digit, or an event class and a digit.
  while (at < end && view.getUint8(at) !== SPACE && !isEvent(view, at, end)) at++
  if (at >= end || view.getUint8(at) === SPACE) return Verdict.skip
  if (textAt(view, at, end, URL_ACCESS)) return readUrlAccess(line, at + URL_ACCESS.length, end)
  const { id } = EVENT
  readPairs(view, at + CONNECTION_END.length, end)
  if (EVENT.takeTimes(line) === TimeFound.impossible) return line.rejectTime()
  if (!EVENT.takeClient(line, id.client)) return line.reject('SrcIP: expected an address')
  EVENT.takeActions(line)
  if (EVENT.isInbound(view, id.client, id.server)) return Verdict.noDomain
  let verdict = EVENT.takeName(line, id.question)
  if (verdict === Verdict.noDomain) verdict = EVENT.takeHost(line, id.url)
  if (verdict === Verdict.noDomain) verdict = EVENT.takeHost(line, id.host)
  return verdict === Verdict.event && EVENT.isContradictory
    ? line.ambiguous('contradictory')
    : EVENT.takeRest(line, verdict)
}

function isEvent(view: DataView, at: number, end: number): boolean {
  return (
    textAt(view, at, end, CONNECTION_END) ||
    textAt(view, at, end, CONNECTION_BEGIN) ||
    textAt(view, at, end, URL_ACCESS)
  )
}

/** `CLIENT Accessed [JAVA ]URL SERVER:URL`; the server's address has no brackets. */
function readUrlAccess(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const wordEnd = tokenEnd(view, start, end)
  // A user's name may precede the address or follow it: `jdoe@192.0.2.45`, `192.0.2.45(LOCAL\jdoe)`.
  const client = lastIndexOfByte(view, start, wordEnd, AT) + 1 || start
  const parenthesis = indexOfByte(view, client, wordEnd, OPEN_PARENTHESIS)
  const clientEnd = endBeforePort(view, client, parenthesis === NOT_FOUND ? wordEnd : parenthesis)
  if (!line.takeClient(client, clientEnd)) return line.reject('client: expected an address')
  let words = skipBlanks(view, wordEnd, end)
  if (words < end && view.getUint8(words) === OPEN_PARENTHESIS) {
    words = skipBlanks(view, tokenEnd(view, words, end), end)
  }
  const server = ACCESSES.reduce((at, text) => (textAt(view, words, end, text) ? words + text.length : at), NOT_FOUND)
  if (server === NOT_FOUND) return line.reject('URL: expected "Accessed URL" after the client')
  const serverEnd = endBeforePort(view, server, tokenEnd(view, server, end))
  const url = serverEnd < end && view.getUint8(serverEnd) === COLON ? serverEnd + 1 : server
  if (isInbound(view, client, clientEnd, server, serverEnd)) return Verdict.noDomain
  return line.takeHostOf(url, tokenEnd(view, url, end))
}
const ACCESSES = ['Accessed URL ', 'Accessed JAVA URL '] as const

/** Notes the values of the known keys. A value ends before a comma, a key and a colon. */
function readPairs(view: DataView, start: number, end: number): void {
  EVENT.begin()
  let at = start
  let id = NO_KEY
  let valueStart = start
  for (;;) {
    const keyStart = skipBlanks(view, at, end)
    const keyEnd = wordsEnd(view, keyStart, end)
    if (keyEnd > keyStart && textAt(view, keyEnd, end, ': ')) {
      EVENT.add(view, id, valueStart, at - 1)
      id = EVENT.idOf(view, keyStart, keyEnd)
      valueStart = keyEnd + 2
      at = valueStart
    }
    const comma = indexOfByte(view, at, end, COMMA)
    if (comma === NOT_FOUND) break
    at = comma + 1
  }
  EVENT.add(view, id, valueStart, end)
}

/** The end of letters, digits and single blanks. */
function wordsEnd(view: DataView, at: number, end: number): number {
  while (at < end) {
    const byte = view.getUint8(at)
    if (byte === CR || byte === LF || !(isLetter(byte) || byte === SPACE)) break
    at++
  }
  return at
}
