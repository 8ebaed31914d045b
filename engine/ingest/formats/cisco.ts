import { actionOf } from './action.ts'
import { COMMA, CR, isLetter, LF, SPACE, skipBlanks, textAt } from './bytes.ts'
import { KeyTable } from './key-table.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { isInbound } from './private-address.ts'
import { takeUser } from './user-name.ts'

/*
 * Messages of Cisco ASA and Secure Firewall (FTD): `%FTD-1-430003: SrcIP: 192.0.2.45, DstIP: ...`.
 * Only connection events name hosts: 430002 at the beginning of a connection, 430003 at its end.
 * https://www.cisco.com/c/en/us/td/docs/security/firepower/Syslogs/b_fptd_syslog_guide.html
 */
export const cisco: LogFormat = { id: 'cisco', detect, parse, takeUserAndBytes }

const DEVICES = ['%FTD-', '%ASA-', '%NGIPS-'] as const
const CONNECTION_BEGIN = '430002: '
const CONNECTION_END = '430003: '

const Key = {
  srcip: 0,
  dstip: 1,
  url: 2,
  referencedhost: 3,
  dnsquery: 4,
  firstpacketsecond: 5,
  accesscontrolruleaction: 6,
  user: 7,
  initiatorbytes: 8,
  responderbytes: 9,
} as const
const KEYS = new KeyTable(Key)
const KEY_COUNT = 10

const starts = new Int32Array(KEY_COUNT)
const ends = new Int32Array(KEY_COUNT)

/** The offset after the device's mark, which a colon and a blank may precede, or -1. */
function markEnd(view: DataView, start: number, end: number): number {
  const at = textAt(view, start, end, ': ') ? start + 2 : start
  for (let index = 0; index < DEVICES.length; index++) {
    const device = DEVICES[index] ?? ''
    if (textAt(view, at, end, device)) return at + device.length
  }
  return -1
}

function detect({ view }: LogLine, start: number, end: number): boolean {
  return markEnd(view, start, Math.min(end, start + CUE_BYTES)) >= 0
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  // The severity is one digit, or an event class and a digit.
  let at = markEnd(view, start, end)
  while (at < end && view.getUint8(at) !== SPACE && !isEvent(view, at, end)) at++
  if (at >= end || view.getUint8(at) === SPACE) return Verdict.skip
  read(view, at + CONNECTION_END.length, end)
  if (has(Key.firstpacketsecond)) {
    const found = line.takeTime(startOf(Key.firstpacketsecond), endOf(Key.firstpacketsecond))
    if (found === TimeFound.impossible) return line.reject('time: expected a valid date and time')
  }
  if (!line.takeClient(startOf(Key.srcip), endOf(Key.srcip))) return line.reject('SrcIP: expected an address')
  if (has(Key.accesscontrolruleaction)) {
    line.action = actionOf(view, startOf(Key.accesscontrolruleaction), endOf(Key.accesscontrolruleaction))
  }
  if (isInbound(view, startOf(Key.srcip), endOf(Key.srcip), startOf(Key.dstip), endOf(Key.dstip)))
    return Verdict.noDomain
  let verdict: Verdict = has(Key.dnsquery)
    ? line.takeName(startOf(Key.dnsquery), endOf(Key.dnsquery))
    : Verdict.noDomain
  if (verdict === Verdict.noDomain && has(Key.url)) verdict = line.takeHost(startOf(Key.url), endOf(Key.url))
  if (verdict === Verdict.noDomain && has(Key.referencedhost)) {
    verdict = line.takeHost(startOf(Key.referencedhost), endOf(Key.referencedhost))
  }
  return verdict
}

function isEvent(view: DataView, at: number, end: number): boolean {
  return textAt(view, at, end, CONNECTION_END) || textAt(view, at, end, CONNECTION_BEGIN)
}

/** Notes the values of the known keys. A value ends before a comma, a key and a colon. */
function read(view: DataView, start: number, end: number): void {
  ends.fill(0)
  let at = start
  let key = -1
  let valueStart = start
  for (;;) {
    const keyStart = skipBlanks(view, at, end)
    const keyEnd = wordsEnd(view, keyStart, end)
    if (keyEnd > keyStart && textAt(view, keyEnd, end, ': ')) {
      if (key >= 0) note(key, valueStart, Math.max(valueStart, at - 1))
      key = KEYS.find(view, keyStart, keyEnd)
      valueStart = keyEnd + 2
      at = valueStart
    }
    while (at < end && view.getUint8(at) !== COMMA) at++
    if (at >= end) break
    at++
  }
  if (key >= 0) note(key, valueStart, end)
}

function note(key: number, start: number, end: number): void {
  if (end <= start || has(key)) return
  starts[key] = start
  ends[key] = end
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

function has(key: number): boolean {
  return (ends[key] ?? 0) !== 0
}

function startOf(key: number): number {
  return starts[key] ?? 0
}

function endOf(key: number): number {
  return has(key) ? (ends[key] ?? 0) : startOf(key)
}

function takeUserAndBytes(line: LogLine): void {
  if (has(Key.user)) takeUser(line, startOf(Key.user), endOf(Key.user))
  if (has(Key.initiatorbytes)) line.takeSent(startOf(Key.initiatorbytes), endOf(Key.initiatorbytes))
  if (has(Key.responderbytes)) line.takeReceived(startOf(Key.responderbytes), endOf(Key.responderbytes))
}
