import { Action } from './action.ts'
import {
  COLON,
  indexOfByte,
  isLetter,
  isText,
  isUpper,
  NOT_FOUND,
  SLASH,
  skipBlanks,
  textAtIgnoreCase,
  tokenEnd,
} from './bytes.ts'
import {
  ACTION_FIELD,
  ACTIVITY_FIELD,
  APP_FIELD,
  DOMAIN_FIELD,
  FieldKind,
  METHOD_FIELD,
  REQUEST_METHOD_FIELD,
  SOURCE_PORT_FIELD,
  WEBSITE_FIELD,
} from './field-names.ts'
import type { FoundFields } from './found-fields.ts'
import { hasScheme, isPlausibleHost } from './host.ts'
import { endBeforePort, isPrivateAddress } from './ip-address.ts'
import { type LogLine, Verdict } from './log-line.ts'

/*
 * Words of records that are no client's request: sign-ins, mail, audits, leases, processes,
 * messages about a device. A match begins at the start of a word or at a capital: `SigninLogs`,
 * `UserLoggedIn` and `AUDIT_SUCCESS` match, `release` does not.
 */
const WORDS = [
  'auth logon login logoff logout logged signin sign-in sign_in signon sso mfa saml radius kerberos ldap password credential account',
  'vpn ssh sshd sudo su session-open rdp tunnel_up tunnel-up',
  'mail email e-mail smtp imap pop3 pop3s imaps lmtp postfix sendmail dovecot exchange spam phish recipient',
  'audit admin configuration config exchangeadmin directory iam identity user_management',
  'dhcp lease snmp trap arp wlan roam',
  'process exec malware virus antivirus endpoint edr quarantine infect incident gravityzone vulnerability scan',
  'cron kernel systemd startup shutdown reboot heartbeat license keepalive backup',
  'waf asm appfw incapsula imperva netscaler fortiweb big-ip f5 cloudfront modsecurity loadbalancer elasticloadbalancing access_log access-log nginx apache httpd iis w3svc haproxy envoy traefik caddy',
]
  .join(' ')
  .split(' ')

/**
 * For the first two bytes of a word: its index in BUCKETS, or 0. Most words of a text have no
 * bucket.
 */
const BUCKET_OF = new Uint8Array(1 << 10)
const BUCKETS: string[][] = [[]]
for (const word of WORDS) {
  const start = startOf(word.charCodeAt(0), word.charCodeAt(1))
  if (BUCKET_OF[start] === 0) BUCKET_OF[start] = BUCKETS.push([]) - 1
  BUCKETS[BUCKET_OF[start] ?? 0]?.push(word)
}

/** Five bits of each byte, which ignore the case of a letter. */
function startOf(first: number, second: number): number {
  return ((first & 31) << 5) | (second & 31)
}

/** A longer text is searched up to this length, because names of kinds are near the beginning. */
const TEXT_BYTES_MAX = 128
/** A shorter word must be a whole word: `su` and `edr` match, `support` does not. */
const STEM_BYTES_MIN = 4

/** Whether the text in [start, end) has one of the words. */
export function hasRecordWord(view: DataView, start: number, end: number): boolean {
  // No word begins at the last byte: the shortest has two bytes.
  const limit = Math.min(end, start + TEXT_BYTES_MAX) - 1
  let isWordStart = true
  let wasUpper = false
  for (let at = start; at < limit; at++) {
    const byte = view.getUint8(at)
    const upper = isUpper(byte)
    const bucket = isWordStart || (upper && !wasUpper) ? (BUCKET_OF[startOf(byte, view.getUint8(at + 1))] ?? 0) : 0
    if (bucket !== 0 && isInBucket(view, at, end, BUCKETS[bucket] ?? [])) return true
    isWordStart = !isLetter(byte)
    wasUpper = upper
  }
  return false
}

function isInBucket(view: DataView, at: number, end: number, words: readonly string[]): boolean {
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? ''
    if (!textAtIgnoreCase(view, at, end, word)) continue
    const next = at + word.length
    if (word.length >= STEM_BYTES_MIN || next === end || !isLetter(view.getUint8(next))) return true
  }
  return false
}

/**
 * The verdict on a record of no known product, from the names of its fields. The record is an event
 * only with positive evidence of a client's request:
 *
 *   client        requested name                          condition
 *   client role   URL, or a name with no other meaning    none
 *   client role   `domain`                                a connection, an action, or no account
 *   client role   `host`, `website`                       the method CONNECT
 *   any address   a name with no other meaning            none
 *
 * Any other record that names a host is ambiguous. A record that is evidently of another kind
 * (mail, a sign-in, an audit, a lease, a web server's own request) is noDomain. Takes the client,
 * unless its role was taken before.
 *
 * @param isWhole the format shows that the message was not truncated, so a bare name in a URL field
 * is complete
 */
export function takeRequest(line: LogLine, fields: FoundFields, isWhole: boolean): Verdict {
  const isClient = line.clientEnd > line.clientStart || fields.takeClient(line)
  if (!isClient && !fields.takeAddress(line)) return Verdict.noDomain
  if (isFromOutside(line, fields) || isOtherRecord(line.view, fields)) return Verdict.noDomain
  const isSystem = fields.hasKind(FieldKind.system)
  let verdict = isSystem ? Verdict.noDomain : takeUrl(line, fields, isWhole)
  if (verdict === Verdict.event) return isClient ? verdict : line.ambiguous('client')
  const isReverse = verdict === Verdict.skip
  verdict = fields.takeNamed(line, FieldKind.host)
  if (verdict !== Verdict.noDomain) return verdict
  verdict = takeOwnName(line, fields, isClient && !isSystem)
  return verdict === Verdict.noDomain && isReverse ? Verdict.skip : verdict
}

function isOtherRecord(view: DataView, fields: FoundFields): boolean {
  if (fields.hasKind(FieldKind.foreign) || isFromServer(view, fields)) return true
  return hasWordOf(view, fields, FieldKind.kind) || hasWordOf(view, fields, FieldKind.action)
}

/** An external client sent the request to one of the organization's own servers. */
function isFromOutside({ view, clientStart, clientEnd }: LogLine, fields: FoundFields): boolean {
  if (isPrivateAddress(view, clientStart, clientEnd)) return false
  for (let id = fields.first(FieldKind.target); id !== NOT_FOUND; id = fields.next(id)) {
    const start = fields.start(id)
    if (isPrivateAddress(view, start, endBeforePort(view, start, fields.end(id)))) return true
  }
  return false
}

/** Of an answer or a file that a server sent, the source is the server. */
function isFromServer(view: DataView, fields: FoundFields): boolean {
  if (!fields.has(SOURCE_PORT_FIELD)) return false
  const start = fields.start(SOURCE_PORT_FIELD)
  const end = fields.end(SOURCE_PORT_FIELD)
  return isText(view, start, end, '443') || isText(view, start, end, '80') || isText(view, start, end, '53')
}

/** A login that a gateway saw is a request: with its URL, and the gateway's action or application. */
function isOfGateway(fields: FoundFields): boolean {
  return fields.hasKind(FieldKind.url) && (fields.has(ACTION_FIELD) || fields.has(APP_FIELD))
}

function hasWordOf(view: DataView, fields: FoundFields, kind: FieldKind): boolean {
  for (let id = fields.first(kind); id !== NOT_FOUND; id = fields.next(id)) {
    if (id === ACTIVITY_FIELD && isOfGateway(fields)) continue
    if (hasRecordWord(view, fields.start(id), fields.end(id))) return true
  }
  return false
}

function takeOwnName(line: LogLine, fields: FoundFields, isClient: boolean): Verdict {
  const { view } = line
  let verdict: Verdict = Verdict.noDomain
  for (let id = fields.first(FieldKind.own); id !== NOT_FOUND; id = fields.next(id)) {
    if (id > WEBSITE_FIELD) break
    verdict = line.takeHostOf(fields.start(id), fields.end(id))
    if (verdict === Verdict.noDomain) continue
    const isRequested = id === DOMAIN_FIELD ? isRequestedDomain(line, fields) : isRequestedName(view, fields)
    if (isClient && isRequested) return verdict
    return line.ambiguous(isClient ? 'host' : 'client')
  }
  return verdict
}

/**
 * With an account and no connection, the domain may be the account's. With a path, the domain is a
 * web server's own.
 */
function isRequestedDomain(line: LogLine, fields: FoundFields): boolean {
  if (hasPath(line.view, fields)) return false
  if (!fields.hasKind(FieldKind.account) && !fields.hasKind(FieldKind.user)) return true
  return fields.hasKind(FieldKind.target) || line.action !== Action.unknown
}

/** `host` and `website` name the device or the web server, unless a proxy logged the request. */
function isRequestedName(view: DataView, fields: FoundFields): boolean {
  return fields.is(view, METHOD_FIELD, 'connect') || fields.is(view, REQUEST_METHOD_FIELD, 'connect')
}

/** Whether a target is in the origin form, as in a web server's own log (RFC 9112 §3.2.1). */
function hasPath(view: DataView, fields: FoundFields): boolean {
  for (let id = fields.first(FieldKind.url); id !== NOT_FOUND; id = fields.next(id)) {
    const start = afterMethod(view, fields.start(id), fields.end(id))
    if (start < fields.end(id) && view.getUint8(start) === SLASH) return true
  }
  return false
}

/** A URL, `GET URL HTTP/1.1`, or a host with its port or path: `claude.ai:443`. */
function takeUrl(line: LogLine, fields: FoundFields, isWhole: boolean): Verdict {
  const { view } = line
  let verdict: Verdict = Verdict.noDomain
  for (let id = fields.first(FieldKind.url); id !== NOT_FOUND; id = fields.next(id)) {
    const end = fields.end(id)
    const start = afterMethod(view, fields.start(id), end)
    if (!isHostAhead(view, start, end, isWhole)) continue
    const found = line.takeHostOf(start, end)
    if (found === Verdict.event) return found
    if (found === Verdict.skip) verdict = found
  }
  return verdict
}

/** A bare name may be a file's. */
function isHostAhead(view: DataView, start: number, end: number, isWhole: boolean): boolean {
  if (hasScheme(view, start, end)) return true
  const stop = tokenEnd(view, start, end)
  if (indexOfByte(view, start, stop, COLON) !== NOT_FOUND || indexOfByte(view, start, stop, SLASH) !== NOT_FOUND) {
    return true
  }
  return isWhole && isPlausibleHost(view, start, end)
}

/** Offset after an HTTP method and blanks, or `start` where no method precedes. */
function afterMethod(view: DataView, start: number, end: number): number {
  let at = start
  while (at < end && isUpper(view.getUint8(at))) at++
  if (at === start) return start
  const next = skipBlanks(view, at, end)
  return next > at ? next : start
}
