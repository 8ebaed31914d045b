import { Action } from './action.ts'
import { indexOfText, isLetter, isTextIgnoreCase, NOT_FOUND, OPEN_BRACE, QUOTE, textAtIgnoreCase } from './bytes.ts'
import { isCollectorMessage } from './collector-json.ts'
import {
  FIELD_RANKS,
  FieldKind,
  HOST_FIELD,
  idsOf,
  NamePrefix,
  NameTable,
  NO_FIELD,
  SOURCE_FIELD,
  SYNONYMS,
} from './field-names.ts'
import { FoundFields } from './found-fields.ts'
import { takeRequest } from './generic-request.ts'
import { JSON_DEPTH_MAX, JsonKind, JsonScanner } from './json.ts'
import { JSON_ARRAYS, JSON_PRODUCTS, ProductPaths } from './json-products.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { dropUserIf, UserForm } from './user-name.ts'

/*
 * One JSON object per message, from a product whose members have known paths (json-products.ts),
 * from Zscaler NSS, Netskope, Palo Alto Networks Strata Logging, FortiGate and the Elastic Common
 * Schema (OPNsense's Squid), or from any other product with evidence of a client's request
 * (generic-request.ts). Fields are found by name; fields of nested objects by path (`source.ip`),
 * as in flat ECS. The fields of a forwarder's envelope do not belong to the message:
 * https://docs.splunk.com/Documentation/Splunk/latest/Data/FormateventsforHTTPEventCollector
 */
export const jsonLogs: LogFormat = { id: 'json-logs', isJson: true, read }

const CONTROL = FieldKind.control * FIELD_RANKS
const DEVICE = CONTROL
const URL_BASE64 = CONTROL + 1
const IS_FILTERED = CONTROL + 2
const ZONE = CONTROL + 3
const DNS_TYPE = CONTROL + 4
const LOCATION = CONTROL + 5
/** A line as its sender wrote it, by a name with no other meaning. */
const ORIGINAL = CONTROL + 6
const WORDS =
  'logid/devid b64url/burl/eb64url resultisfiltered tz/timezone/dtz dnstype location log/raw/resultraw/original/eventoriginal/fullmessage shortmessage'
const { name: _mayBeAFile, ...NAMES } = SYNONYMS
const IDS: Readonly<Record<string, number>> = { ...NAMES, ...idsOf(FieldKind.control, WORDS) }
const products = new ProductPaths(JSON_PRODUCTS)
/** A path may be a field of a role, a path of a product, or both. */
const PATHS = [...new Set([...Object.keys(IDS), ...Object.keys(products.slots)])]
const TABLE = new NameTable(Object.fromEntries(PATHS.map((path, index) => [path, index])))
/** What a path begins with. Members of other objects are not read. */
const PREFIXES: readonly NamePrefix[] = [
  '',
  ...new Set(PATHS.flatMap((path) => Array.from(path, (_, index) => path.slice(0, index + 1)))),
].map((text, id) => new NamePrefix(id, text))
const BEGINNINGS = new NameTable(Object.fromEntries(PREFIXES.slice(1).map(({ id, text }) => [text, id])))
const ID_OF = Int16Array.from(PATHS, (path) => IDS[path] ?? NO_FIELD)
const ARRAYS = new NameTable(Object.fromEntries(JSON_ARRAYS.map((word, index) => [word, index])))
const SLOT_OF = Int16Array.from(PATHS, (path) => products.slots[path] ?? NO_FIELD)
const SOURCE_TYPE = SYNONYMS['sourcetype'] ?? NO_FIELD
const LOG_TYPE = SYNONYMS['logtype'] ?? NO_FIELD
const SUBTYPE = SYNONYMS['subtype'] ?? NO_FIELD
const TYPE = SYNONYMS['type'] ?? NO_FIELD
const NETSKOPE_TIME = SYNONYMS['xcstimestamp'] ?? NO_FIELD
/** GELF's only mandatory text. */
const SHORT_MESSAGE = CONTROL + 7
/** Members that may be such a line, or the program's own text. */
const ENVELOPES = [ORIGINAL, SHORT_MESSAGE, SYNONYMS['message'] ?? NO_FIELD, SYNONYMS['event'] ?? NO_FIELD]
const USER_IP = SYNONYMS['userip'] ?? NO_FIELD
const ZSCALER = 'zscalernss-'
const UNESCAPED = String.raw`JSON: expected escaped quotes; set the NSS feed's Feed Escape Character to ,\"`

/** Objects that only contain the fields. */
const WRAPPERS = new NameTable({ event: 0, source: 1, data: 2, fields: 3, json: 4, record: 5, log: 6 })
const SOURCE = 1

const scanner = new JsonScanner()
const fields = new FoundFields()
/** For each depth, the path of the objects before the keys, or IGNORED. */
const paths = new Int16Array(JSON_DEPTH_MAX + 2)
/** For each depth, the object there, and for each path, the object that had it last: a number for each object. */
const objects = new Int32Array(JSON_DEPTH_MAX + 2)
const objectOf = new Int32Array(PATHS.length)
let objectCount = 0
/** An object has two values of one path: a client wrote one, into a text without escapes. */
let isContradictory = false
const ROOT = 0
/** The members are not read. */
const IGNORED = -1
/** The depth of the members of the object `host`, which is the machine that wrote the log, or 0. */
let deviceDepth = 0

function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  if (start >= end || view.getUint8(start) !== OPEN_BRACE || isCollectorMessage(line, start, end))
    return Verdict.unknown
  if (!scan(view, start, end)) {
    const isZscaler = indexOfText(view, start, Math.min(end, start + CUE_BYTES), ZSCALER) !== NOT_FOUND
    return line.reject(isZscaler ? UNESCAPED : 'JSON: expected one complete object')
  }
  const isOfProduct = products.find(view)
  const verdict = isOfProduct ? readProduct(line) : judge(line)
  if (verdict === Verdict.event && isContradictory) return line.ambiguous('contradictory')
  if (verdict === Verdict.event) line.takeUserAndBytes = takeUserAndBytes
  else if (!isOfProduct) noteWrapped(line)
  return verdict
}

function readProduct(line: LogLine): Verdict {
  const verdict = products.read(line)
  if (Number.isNaN(line.timeMs) && verdict !== Verdict.reject) fields.takeTime(line)
  if (fields.has(IS_FILTERED)) line.action = Action.blocked
  return verdict
}

/** Forwarders and container platforms put the sender's line into a member of their own object. */
function noteWrapped(line: LogLine): void {
  for (const id of ENVELOPES) {
    if (!fields.has(id) || line.view.getUint8(fields.start(id) - 1) !== QUOTE) continue
    line.wrappedStart = fields.start(id)
    line.wrappedEnd = fields.end(id)
    return
  }
}

function scan(view: DataView, start: number, end: number): boolean {
  fields.clear()
  products.clear()
  scanner.open(view, start, end)
  let isWrapped = false
  deviceDepth = 0
  paths[1] = ROOT
  objects[1] = ++objectCount
  isContradictory = false
  for (;;) {
    let kind = scanner.next()
    if (kind <= JsonKind.broken) return kind === JsonKind.end
    const { keyStart, keyEnd } = scanner
    if (kind === JsonKind.array) {
      if (find(ARRAYS, view, keyStart, keyEnd) === NO_FIELD) continue
      kind = scanner.enterArray()
    }
    if (kind === JsonKind.object) {
      const { depth } = scanner
      enter(depth, view, keyStart, keyEnd)
      objects[depth] = ++objectCount
      if (depth <= deviceDepth) deviceDepth = 0
      if (deviceDepth === 0 && paths[depth - 1] === ROOT && isTextIgnoreCase(view, keyStart, keyEnd, 'host'))
        deviceDepth = depth
      // In a forwarder's envelope, host is the forwarder's machine, and source is the file that it
      // read.
      if (depth === 2 && isEnvelopeFor(view, keyStart, keyEnd)) {
        isWrapped = true
        fields.forget(HOST_FIELD)
        fields.forget(SOURCE_FIELD)
      }
      continue
    }
    if (kind === JsonKind.end) continue
    if (scanner.depth < deviceDepth) deviceDepth = 0
    const index = find(TABLE, view, keyStart, keyEnd)
    if (index === NO_FIELD) continue
    const object = objects[scanner.depth] ?? 0
    isContradictory ||= objectOf[index] === object
    objectOf[index] = object
    const slot = SLOT_OF[index] ?? NO_FIELD
    if (slot !== NO_FIELD && kind !== JsonKind.word) products.note(slot, scanner.start, scanner.end)
    const id = ID_OF[index] ?? NO_FIELD
    if (id === NO_FIELD || isOfDevice(view, keyStart, keyEnd)) continue
    if (isWrapped && (id === HOST_FIELD || id === SOURCE_FIELD) && scanner.depth === 1) continue
    if (kind === JsonKind.word && !(id === IS_FILTERED && isTextIgnoreCase(view, scanner.start, scanner.end, 'true')))
      continue
    fields.note(id, scanner.start, scanner.end)
  }
}

function isEnvelopeFor(view: DataView, start: number, end: number): boolean {
  return isTextIgnoreCase(view, start, end, 'event') || isTextIgnoreCase(view, start, end, '_source')
}

/** In ECS, `host.*` is the machine that wrote the log. */
function isOfDevice(view: DataView, keyStart: number, keyEnd: number): boolean {
  if (deviceDepth !== 0) return scanner.depth >= deviceDepth
  return paths[scanner.depth] === ROOT && textAtIgnoreCase(view, keyStart, keyEnd, 'host.')
}

/** What `table` has for the key after the path of the objects that contain it. */
function find(table: NameTable, view: DataView, start: number, end: number): number {
  const prefix = PREFIXES[paths[scanner.depth] ?? IGNORED]
  return prefix === undefined ? NO_FIELD : table.findAfter(prefix, view, start, end)
}

/** Notes the path for the members of the object with this key, at `depth`. */
function enter(depth: number, view: DataView, start: number, end: number): void {
  const before = PREFIXES[paths[depth - 1] ?? IGNORED]
  paths[depth] = before === undefined ? IGNORED : ROOT
  if (before === undefined) return
  if (before.id === ROOT) {
    const wrapper = WRAPPERS.find(view, start, end)
    // `source` is part of its members' meaning; `_source` of a search engine is not.
    if (wrapper >= 0 && (wrapper !== SOURCE || !isLetter(view.getUint8(start)))) return
  }
  paths[depth] = BEGINNINGS.findAfter(before, view, start, end)
}

function judge(line: LogLine): Verdict {
  const { view } = line
  if (fields.takeTime(line) === TimeFound.impossible) return line.rejectTime()
  line.applyZone(fields.start(ZONE), fields.end(ZONE))
  fields.takeAction(line)
  if (fields.has(IS_FILTERED)) line.action = Action.blocked
  const verdict = vendorVerdict(line)
  if (verdict !== Verdict.event) {
    fields.takeClient(line)
    return verdict
  }
  if (!isOfProduct(view)) return fields.hasKind(FieldKind.time) ? takeRequest(line, fields, true) : Verdict.noDomain
  const hasClient = fields.takeClient(line)
  const found = takeHost(line)
  return found === Verdict.event && !hasClient && !mayHideClient(view) ? Verdict.noDomain : found
}

function takeUserAndBytes(line: LogLine): void {
  fields.takeUserAndBytes(line, UserForm.json)
  products.takeUserAndBytes(line)
  // Zscaler's login is the location of a client without a user.
  dropUserIf(line, fields.start(LOCATION), fields.end(LOCATION))
}

function takeHost(line: LogLine): Verdict {
  const found = fields.takeHost(line)
  if (found === Verdict.event || !fields.has(URL_BASE64)) return found
  const end = decodeHead(line, fields.start(URL_BASE64), fields.end(URL_BASE64))
  return line.takeHostOf(line.scratchStart, end)
}

/** Event if the vendor's kind of message may name a host, else the verdict. */
function vendorVerdict({ view }: LogLine): Verdict {
  if (fields.has(SOURCE_TYPE)) {
    const start = fields.start(SOURCE_TYPE)
    const end = fields.end(SOURCE_TYPE)
    if (textAtIgnoreCase(view, start, end, ZSCALER)) {
      const feed = start + ZSCALER.length
      if (isTextIgnoreCase(view, feed, end, 'fw')) return Verdict.noDomain
      return isTextIgnoreCase(view, feed, end, 'web') || isTextIgnoreCase(view, feed, end, 'dns')
        ? Verdict.event
        : Verdict.skip
    }
  }
  if (fields.has(LOG_TYPE)) return strataVerdict(view)
  if (fields.has(DEVICE) && fields.is(view, TYPE, 'event')) return Verdict.skip
  if (fields.has(USER_IP) && (fields.is(view, TYPE, 'audit') || fields.is(view, TYPE, 'infrastructure')))
    return Verdict.skip
  // Mail to or from a domain is no request to the domain.
  if (fields.is(view, TYPE, 'email')) return Verdict.noDomain
  return fields.is(view, DNS_TYPE, 'answer') || fields.is(view, DNS_TYPE, 'response') ? Verdict.skip : Verdict.event
}

/** The URL field of a threat is a file name, unless the subtype is url. */
function strataVerdict(view: DataView): Verdict {
  if (fields.is(view, LOG_TYPE, 'traffic')) return Verdict.noDomain
  if (fields.is(view, LOG_TYPE, 'url') || fields.is(view, LOG_TYPE, 'decryption')) return Verdict.event
  if (fields.is(view, LOG_TYPE, 'threat')) return fields.is(view, SUBTYPE, 'url') ? Verdict.event : Verdict.skip
  return fields.is(view, LOG_TYPE, 'dns') || fields.is(view, LOG_TYPE, 'dns_security') ? Verdict.event : Verdict.skip
}

/** Products whose fields need no evidence: Zscaler, FortiGate and Netskope's transactions. */
function isOfProduct(view: DataView): boolean {
  return mayHideClient(view) || (fields.has(DEVICE) && fields.has(TYPE) && fields.has(SUBTYPE))
}

/** Zscaler and Netskope can be configured to leave out the client. */
function mayHideClient(view: DataView): boolean {
  if (fields.has(NETSKOPE_TIME)) return true
  return fields.has(SOURCE_TYPE) && textAtIgnoreCase(view, fields.start(SOURCE_TYPE), fields.end(SOURCE_TYPE), ZSCALER)
}

/**
 * Decodes the beginning of a base64 value (RFC 4648 §4 and §5) into the scratch area: the URL's
 * host is there. Returns the end.
 */
function decodeHead(line: LogLine, start: number, end: number): number {
  const head = line.text(start, Math.min(end, start + ENCODED_BYTES_MAX))
  return line.scratchStart + Buffer.from(head, 'base64').copy(line.bytes, line.scratchStart)
}
/** Of 252 bytes, which the scratch area has space for. */
const ENCODED_BYTES_MAX = 336
