import { Action } from './action.ts'
import { COLON, indexOfByte, isText, isUpper, NOT_FOUND, SLASH, skipBlanks, tokenEnd } from './bytes.ts'
import { isPlausibleHost } from './csv-cells.ts'
import {
  DOMAIN_FIELD,
  FieldKind,
  METHOD_FIELD,
  REQUEST_METHOD_FIELD,
  SOURCE_PORT_FIELD,
  WEBSITE_FIELD,
} from './field-names.ts'
import { type FoundFields, takeHostOf } from './found-fields.ts'
import { hasScheme } from './host.ts'
import { endBeforePort } from './ip-address.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { isPrivateAddress } from './private-address.ts'
import { hasRecordWord } from './record-words.ts'

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
  if (verdict === Verdict.event) return isClient ? verdict : ambiguous(line, 'client')
  const isReverse = verdict === Verdict.skip
  verdict = fields.takeNamed(line, FieldKind.host)
  if (verdict !== Verdict.noDomain) return verdict
  verdict = takeOwnName(line, fields, isClient && !isSystem)
  return verdict === Verdict.noDomain && isReverse ? Verdict.skip : verdict
}

/** Sets the reason of a record that names a host without evidence of a request. */
export function ambiguous(line: LogLine, missing: 'client' | 'host'): Verdict {
  line.reason =
    missing === 'client'
      ? 'client: expected a field that names the client'
      : 'host: expected a field that names the requested host'
  return Verdict.ambiguous
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

function hasWordOf(view: DataView, fields: FoundFields, kind: FieldKind): boolean {
  for (let id = fields.first(kind); id !== NOT_FOUND; id = fields.next(id)) {
    if (hasRecordWord(view, fields.start(id), fields.end(id))) return true
  }
  return false
}

function takeOwnName(line: LogLine, fields: FoundFields, isClient: boolean): Verdict {
  const { view } = line
  let verdict: Verdict = Verdict.noDomain
  for (let id = fields.first(FieldKind.own); id !== NOT_FOUND; id = fields.next(id)) {
    if (id > WEBSITE_FIELD) break
    verdict = takeHostOf(line, fields.start(id), fields.end(id))
    if (verdict === Verdict.noDomain) continue
    const isRequested = id === DOMAIN_FIELD ? isRequestedDomain(line, fields) : isRequestedName(view, fields)
    if (isClient && isRequested) return verdict
    return ambiguous(line, isClient ? 'host' : 'client')
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
    const found = takeHostOf(line, start, end)
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
