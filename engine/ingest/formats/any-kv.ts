import { actionOf } from './action.ts'
import { COLON, EQUALS, indexOfByte, isUpper, NOT_FOUND, SLASH, skipBlanks, tokenEnd } from './bytes.ts'
import { hasScheme } from './host.ts'
import { AddressKind, addressKind, endBeforePort } from './ip-address.ts'
import { KeyTable } from './key-table.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { PairFields } from './pair-fields.ts'

/*
 * Any message of `key=value` pairs whose vendor is not known, by what such keys are called. Case, `_`, `-` and `.` do not count. The order of a list
 * is that in which its keys are believed.
 */
export const anyKv: LogFormat = { id: 'any-kv', detect, parse, fallback: true }

const PAIRS_MIN = 3

const TIMES =
  'eventtime epochtime timestamp timegenerated generatetime generatedtime devtime datetime time receivetime receivedtime logtime eventdate starttime start rt date ts @timestamp'
const CLIENTS =
  'clientip srcip sourceip sourceaddress src cip csip clientaddress internalip userip srcipv6 sourceipaddress client clientipaddress remoteaddr initiator requester hostip ipaddress ip'
/** Keys that mean the host that was asked for, and nothing else. */
const HOSTS =
  'domain dsthost desthost destinationhost dstname destinationdomain destinationhostname dhost qname query queryname questionname requesteddomain fqdn sni dnsrequest dnsreq rrname cshost'
const URLS = 'url urlfilename requesturl uri request eurl fullurl link'
/** Keys that many devices write with their own name, or the client's: believed last, and only of a connection to somewhere else. */
const OWN_HOSTS = 'hostname servername host site website'
/** What tells a connection to somewhere else, besides the keys above. */
const TARGETS =
  'dst dstip destip destinationip destinationaddress dest destination serverip sip daddr dport dstport destport destinationport requestmethod method'
const ACTIONS = 'action act disp disposition policyaction verdict status result decision'
const ZONES = 'tz timezone zone'
/** What only messages about mail have: a domain in them is of a sender, and nobody went there. */
const MAIL = 'from mailfrom envelopefrom envfrom rcpt rcptto mailto spf dkim dmarc'

const ids: Record<string, number> = {}
let idsEnd = 0

/** Gives each of the words an id, and answers them in their order. */
function keys(words: string): readonly number[] {
  return words.split(' ').map((word) => {
    ids[word] = idsEnd++
    return ids[word]
  })
}

const TIME_KEYS = keys(TIMES)
const CLIENT_KEYS = keys(CLIENTS)
const HOST_KEYS = keys(HOSTS)
const URL_KEYS = keys(URLS)
const OWN_HOST_KEYS = keys(OWN_HOSTS)
const TARGET_KEYS = keys(TARGETS)
const ACTION_KEYS = keys(ACTIONS)
const ZONE_KEYS = keys(ZONES)
const MAIL_KEYS = keys(MAIL)
const DATE = ids['date'] ?? 0
const TIME = ids['time'] ?? 0
const NONE: readonly number[] = []

const fields = new PairFields(new KeyTable(ids), idsEnd, EQUALS, true)

function detect({ view }: LogLine, start: number, end: number): boolean {
  return indexOfByte(view, start, Math.min(end, start + CUE_BYTES), EQUALS) !== NOT_FOUND
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  fields.read(view, start, end)
  if (fields.count < PAIRS_MIN) return Verdict.unknown
  const found = takeTime(line, start, end)
  if (found === TimeFound.impossible) return line.reject('time: expected a day and hour that can be')
  const hasClient = takeClient(line)
  const action = firstOf(ACTION_KEYS)
  if (action !== NOT_FOUND) line.action = actionOf(view, fields.start(action), fields.end(action))
  // Settings and texts have pairs, too: a request has a client.
  if (!hasClient) return found === TimeFound.none ? Verdict.unknown : Verdict.skip
  if (isOfMail(view)) return Verdict.noDomain
  const verdict = fields.takeHost(line, HOST_KEYS, NONE)
  if (verdict !== Verdict.noDomain) return verdict
  const ofUrl = takeUrl(line)
  if (ofUrl !== Verdict.noDomain) return ofUrl
  return isConnection(view) ? fields.takeHost(line, OWN_HOST_KEYS, NONE) : Verdict.noDomain
}

/** Whether the message is of a connection to somewhere else, whole, and no URL says where to. */
function isConnection(view: DataView): boolean {
  if (fields.isCut) return false
  const url = firstOf(URL_KEYS)
  return url === NOT_FOUND ? firstOf(TARGET_KEYS) !== NOT_FOUND : !hasScheme(view, fields.start(url), fields.end(url))
}

function isOfMail(view: DataView): boolean {
  const id = firstOf(MAIL_KEYS)
  // Of a connection `from` may be an address.
  return id !== NOT_FOUND && addressKind(view, fields.start(id), fields.end(id)) === AddressKind.none
}

/** The first of these keys that has a value, or NOT_FOUND. */
function firstOf(wanted: readonly number[]): number {
  for (let index = 0; index < wanted.length; index++) {
    const id = wanted[index] ?? 0
    if (fields.has(id)) return id
  }
  return NOT_FOUND
}

/** The first key with a time in it; a date and a time of day that stand apart; else what stands before the pairs. */
function takeTime(line: LogLine, start: number, end: number): TimeFound {
  for (let index = 0; index < TIME_KEYS.length; index++) {
    const id = TIME_KEYS[index] ?? 0
    if (!fields.has(id)) continue
    const found = line.takeTime(fields.start(id), fields.end(id))
    if (found !== TimeFound.none) return found
  }
  if (fields.has(DATE) && fields.has(TIME)) {
    const zone = firstOf(ZONE_KEYS)
    const found = line.takeDateAndTime(
      fields.start(DATE),
      fields.end(DATE),
      fields.start(TIME),
      fields.end(TIME),
      zone === NOT_FOUND ? 0 : fields.start(zone),
      zone === NOT_FOUND ? 0 : fields.end(zone),
    )
    if (found !== TimeFound.none) return found
  }
  return line.takeTimeIfAny(start, end)
}

function takeClient(line: LogLine): boolean {
  for (let index = 0; index < CLIENT_KEYS.length; index++) {
    const id = CLIENT_KEYS[index] ?? 0
    if (!fields.has(id)) continue
    const start = fields.start(id)
    if (line.takeClient(start, endBeforePort(line.view, start, fields.end(id)))) return true
  }
  return false
}

/** URLs, `GET URL HTTP/1.1`, and what has a port or a path behind its host: `claude.ai:443`. A name alone may be a file's. */
function takeUrl(line: LogLine): Verdict {
  const { view } = line
  for (let index = 0; index < URL_KEYS.length; index++) {
    const id = URL_KEYS[index] ?? 0
    if (!fields.has(id)) continue
    const start = afterMethod(view, fields.start(id), fields.end(id))
    const end = fields.end(id)
    if (!hasScheme(view, start, end) && !hasPortOrPath(view, start, end)) continue
    if (line.takeHost(start, end) === Verdict.event) {
      return fields.hostIsCut(line) ? line.reject('host: expected all of it, the message was cut') : Verdict.event
    }
  }
  return Verdict.noDomain
}

/** Behind a method of HTTP, or `start` where there is none. */
function afterMethod(view: DataView, start: number, end: number): number {
  let at = start
  while (at < end && isUpper(view.getUint8(at))) at++
  if (at === start) return start
  const next = skipBlanks(view, at, end)
  return next > at ? next : start
}

function hasPortOrPath(view: DataView, start: number, end: number): boolean {
  const stop = tokenEnd(view, start, end)
  return indexOfByte(view, start, stop, COLON) !== NOT_FOUND || indexOfByte(view, start, stop, SLASH) !== NOT_FOUND
}
