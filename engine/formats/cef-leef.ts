import { Action } from './action.ts'
import {
  ALPHANUMERIC,
  ALPHANUMERIC_SET,
  BACKSLASH,
  ByteSet,
  DOT,
  digitsEnd,
  EQUALS,
  HASH,
  hexDigit,
  indexOfText,
  isLetter,
  NOT_FOUND,
  PIPE,
  QUOTE,
  skipBlanks,
  TAB,
  TextPrefixes,
  textAt,
  textAtIgnoreCase,
  tokenEnd,
  trimEnd,
} from './bytes.ts'
import { FIELD_RANKS, FieldKind, idsOf, NameTable, NO_FIELD, SYNONYMS } from './field-names.ts'
import { Fields } from './fields.ts'
import { FoundFields } from './found-fields.ts'
import { hasRecordWord, takeRequest } from './generic-request.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Mark, Verdict } from './log-line.ts'
import { DayOrder, TimeFound } from './log-time.ts'
import { takeUser } from './user-name.ts'

/**
 * ArcSight's Common Event Format (Implementing ArcSight Common Event Format, version 26):
 *
 *   CEF:Version|Vendor|Product|Device Version|Event Class ID|Name|Severity|key=value key=value ...
 *
 * A backslash escapes a bar or backslash in the header, and an equals sign or backslash in a value;
 * some senders omit it. Values are not quoted and contain blanks. A relay that parses `CEF:` as a
 * tag leaves `0|Vendor|...`.
 */
export const cef: LogFormat = { id: 'cef', read: readCef }

/**
 * QRadar's Log Event Extended Format (QRadar Log Event Extended Format Guide, version 2):
 *
 *   LEEF:1.0|Vendor|Product|Version|EventID|key=value<TAB>key=value ...
 *   LEEF:2.0|Vendor|Product|Version|EventID|Delimiter|key=value^key=value ...
 *
 * The delimiter is a byte or its code (`0x5E`, `x5E`). An empty delimiter means TAB, and some
 * senders omit the delimiter. Relays write a TAB as `#011`, `\t` or a blank, and some senders of
 * 1.0 write a bar. A relay that parses `LEEF:` as a tag leaves `1.0|Vendor|...`.
 */
export const leef: LogFormat = { id: 'leef', read: readLeef }

/** The maximum length of a header. */
const HEADER_BYTES_MAX = 1024
const CEF_PARTS = 7
const LEEF_PARTS = 5
/** Parts that both formats have at the same index: CEF's event class is LEEF's event id. */
const Part = { vendor: 1, id: 4, name: 5 } as const
const CEF_VERSIONS = new TextPrefixes(['0|', '1|'])
const LEEF_VERSIONS = new TextPrefixes(['1.0|', '2.0|'])
/** `0x5E|` */
const DELIMITER_BYTES_MAX = 5

/** The parts of the header that was read last. LEEF has no name. */
const header = new Fields(CEF_PARTS)

/** Finds the parts, which each end with a bar. Returns the offset after the last one, or NOT_FOUND. */
function headerEnd(view: DataView, start: number, end: number, parts: number, isEscaped: boolean): number {
  const limit = Math.min(end, start + HEADER_BYTES_MAX)
  let count = 0
  let from = start
  header.clear()
  for (let at = start; at < limit; at++) {
    const byte = view.getUint8(at)
    // A bar after a backslash belongs to its part.
    if (byte === BACKSLASH && isEscaped) at++
    else if (byte === PIPE) {
      header.note(count++, from, at)
      from = at + 1
      if (count === parts) return from
    }
  }
  return NOT_FOUND
}

function readCef(line: LogLine, start: number, end: number): Verdict {
  const { view, marks } = line
  if ((marks & Mark.pipe) === 0) return Verdict.unknown
  // Without `CEF:`, any text with bars could match, so a key must follow. (`1.0|` is left from LEEF.)
  const isBare = CEF_VERSIONS.beginAt(view, start, end)
  const version = isBare ? start : versionAfter('CEF:', view, start, end)
  if (version === NOT_FOUND) return Verdict.unknown
  const extension = headerEnd(view, version, end, CEF_PARTS, true)
  if (isBare && !isKey(view, extension, end)) return Verdict.unknown
  if (extension === NOT_FOUND) return line.reject('header: expected seven bars')
  return readExtension(line, extension, end, Separator.blank)
}

function readLeef(line: LogLine, start: number, end: number): Verdict {
  const { view, marks } = line
  if ((marks & Mark.pipe) === 0) return Verdict.unknown
  const isBare = LEEF_VERSIONS.beginAt(view, start, end)
  const version = isBare ? start : versionAfter('LEEF:', view, start, end)
  if (version === NOT_FOUND || !LEEF_VERSIONS.beginAt(view, version, end)) return Verdict.unknown
  const extension = headerEnd(view, version, end, LEEF_PARTS, false)
  const delimiterEnd = extension === NOT_FOUND ? NOT_FOUND : delimiterEndAt(view, extension, end)
  const first = delimiterEnd === NOT_FOUND ? extension : delimiterEnd + 1
  if (isBare && !isKey(view, first, end)) return Verdict.unknown
  if (extension === NOT_FOUND) return line.reject('header: expected five bars')
  if (view.getUint8(version) !== 0x32 || delimiterEnd === NOT_FOUND) {
    return readExtension(line, extension, end, separatorAhead(view, extension, end))
  }
  const delimiter = delimiterOf(view, extension, delimiterEnd)
  return readExtension(line, first, end, delimiter === UNSPECIFIED ? separatorAhead(view, first, end) : delimiter)
}

const UNSPECIFIED = -9

/** The offset of the version after the tag, or NOT_FOUND. Remnants of a relay's header may precede it. */
function versionAfter(tag: string, view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + CUE_BYTES) - tag.length
  const first = tag.charCodeAt(0)
  for (let at = start; at < limit; at++) {
    const byte = view.getUint8(at)
    if (PAYLOAD.has(byte)) return NOT_FOUND
    if (byte !== first || !textAt(view, at, end, tag)) continue
    if (at > start && isLetter(view.getUint8(at - 1))) continue
    const version = skipBlanks(view, at + tag.length, end)
    // `0|`, `1|`, `0.1|`.
    let stop = digitsEnd(view, version, end)
    if (stop > version && stop < end && view.getUint8(stop) === DOT) stop = digitsEnd(view, stop + 1, end)
    if (stop > version && stop < end && stop - version <= 3 && view.getUint8(stop) === PIPE) return version
  }
  return NOT_FOUND
}

/**
 * How key=value pairs are separated: by one byte; by a TAB as relays write control bytes (rsyslog's
 * `#011`, or `\t`); by two circumflexes; or by a blank, if values contain blanks and end only before
 * the next ` key=`.
 */
export const Separator = { blank: -1, rsyslogTab: -2, escapedTab: -3, circumflexes: -4 } as const
const CIRCUMFLEX = 0x5e

/** Bytes that no remnant of a syslog header has: the payload of another format has begun. */
const PAYLOAD = new ByteSet(',;|\t{\\"=')

/** The bytes of a key: letters, digits, `_`, `.`, `-`, and brackets (ArcSight's arrays). */
const KEY = new ByteSet(`${ALPHANUMERIC}_.-[]`)

/**
 * The first bytes of separators with more than one form. The scan of a value checks only these
 * further.
 */
const MARKS = new ByteSet('#\\^')

/**
 * Walks the key=value pairs of a CEF, LEEF or Zscaler message in place. Values are not quoted; with
 * blanks as separators, a value ends before the next ` key=`. (PairScanner reads firewalls' quoted
 * pairs, a different grammar.)
 */
export class ExtensionScanner {
  keyStart = 0
  keyEnd = 0
  /** The value, without trailing blanks. */
  start = 0
  end = 0
  #view: DataView = new DataView(new ArrayBuffer(0))
  #at = 0
  #stop = 0
  #separator = 0
  /** Of the key at #at, if blanks separate; negative: there is none. */
  #nextKeyEnd = 0
  #isFirst = true

  /** `separator` is one of Separator, or a byte. */
  open(view: DataView, start: number, end: number, separator: number): void {
    this.#view = view
    this.#at = start
    this.#stop = end
    this.#separator = separator
    this.#isFirst = true
  }

  /** Whether there is another pair. */
  next(): boolean {
    return this.#separator === Separator.blank ? this.#nextByKey() : this.#nextBySeparator()
  }

  #nextBySeparator(): boolean {
    const view = this.#view
    const stop = this.#stop
    const separator = this.#separator
    let at = this.#at
    while (at < stop) {
      const start = skipBlanks(view, at, stop)
      const keyEnd = KEY.endOf(view, start, stop)
      const isPair = keyEnd > start && keyEnd < stop && view.getUint8(keyEnd) === EQUALS
      at = isPair ? keyEnd + 1 : start
      const valueStart = at
      while (at < stop) {
        const byte = view.getUint8(at)
        const mayBegin = MARKS.has(byte) || byte === separator
        if (mayBegin && separatorLength(view, at, stop, separator) > 0) break
        at++
      }
      const valueEnd = at
      if (at < stop) at += separatorLength(view, at, stop, separator)
      if (!isPair) continue
      this.#at = at
      this.keyStart = start
      this.keyEnd = keyEnd
      this.start = valueStart
      this.end = trimEnd(view, valueStart, valueEnd)
      return true
    }
    this.#at = stop
    return false
  }

  #nextByKey(): boolean {
    if (this.#isFirst) {
      this.#isFirst = false
      this.#findKey(this.#at)
    }
    const keyEnd = this.#nextKeyEnd
    if (keyEnd < 0) return false
    this.keyStart = this.#at
    this.keyEnd = keyEnd
    this.start = keyEnd + 1
    this.#findKey(tokenEnd(this.#view, keyEnd + 1, this.#stop))
    this.end = trimEnd(this.#view, keyEnd + 1, this.#at)
    return true
  }

  /**
   * Finds the next word from `at`, where a blank or a word begins, that is a key followed by an
   * equals sign.
   */
  #findKey(at: number): void {
    const view = this.#view
    const stop = this.#stop
    while (at < stop) {
      at = skipBlanks(view, at, stop)
      const wordStart = at
      at = KEY.endOf(view, at, stop)
      if (at > wordStart && at < stop && view.getUint8(at) === EQUALS) {
        this.#at = wordStart
        this.#nextKeyEnd = at
        return
      }
      at = tokenEnd(view, at, stop)
    }
    this.#at = stop
    this.#nextKeyEnd = -1
  }
}

/** The length of the separator at `at`, or 0. */
function separatorLength(view: DataView, at: number, end: number, separator: number): number {
  const byte = view.getUint8(at)
  if (separator >= 0) return byte === separator ? 1 : 0
  if (separator === Separator.circumflexes) {
    return byte === CIRCUMFLEX && at + 1 < end && view.getUint8(at + 1) === CIRCUMFLEX ? 2 : 0
  }
  if (separator === Separator.rsyslogTab) return textAt(view, at, end, '#011') ? 4 : 0
  return textAt(view, at, end, '\\t') ? 2 : 0
}

/** The end of the key of these bytes at `at`, where an equals sign follows, or NOT_FOUND. */
export function keyEndAt(view: DataView, at: number, end: number, bytes: ByteSet): number {
  const stop = at === NOT_FOUND ? at : bytes.endOf(view, at, end)
  return stop > at && stop < end && view.getUint8(stop) === EQUALS ? stop : NOT_FOUND
}

/** Whether a pair begins at `at`, in text that need not be an extension. */
function isKey(view: DataView, at: number, end: number): boolean {
  return keyEndAt(view, at, end, ALPHANUMERIC_SET) !== NOT_FOUND
}

/**
 * The offset of the bar after the delimiter of a 2.0 header, or NOT_FOUND if attributes follow
 * directly.
 */
function delimiterEndAt(view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + DELIMITER_BYTES_MAX)
  for (let at = start; at < limit; at++) {
    const byte = view.getUint8(at)
    if (byte === PIPE) return at
    if (byte === EQUALS && at > start) return NOT_FOUND
  }
  return NOT_FOUND
}

function delimiterOf(view: DataView, start: number, end: number): number {
  if (end === start) return UNSPECIFIED
  if (end - start === 1) return view.getUint8(start)
  const digits = textAt(view, start, end, '0x') ? start + 2 : start + 1
  if (end - digits < 1 || end - digits > 2) return UNSPECIFIED
  let value = 0
  for (let at = digits; at < end; at++) {
    const digit = hexDigit(view.getUint8(at))
    if (digit < 0) return UNSPECIFIED
    value = value * 16 + digit
  }
  return value
}

/** The separator after the first pair. */
function separatorAhead(view: DataView, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === TAB) return TAB
    if (byte === HASH && textAt(view, at, end, '#011')) return Separator.rsyslogTab
    if (byte === PIPE && isKey(view, at + 1, end)) return PIPE
    if (byte === BACKSLASH && textAt(view, at, end, '\\t') && isKey(view, at + 2, end)) return Separator.escapedTab
    // Values contain blanks, so a blank is the separator only if no other is found.
    if (at - start > SEPARATOR_CUE_BYTES) break
  }
  return Separator.blank
}
/** The maximum length of the first pair. */
const SEPARATOR_CUE_BYTES = 512

const CONTROL = FieldKind.control * FIELD_RANKS
const ZONE = CONTROL
const TIME_FORMAT = CONTROL + 1
const BYTES_IN = CONTROL + 2
const BYTES_OUT = CONTROL + 3
const CUSTOM = CONTROL + 4
const CUSTOM_COUNT = 6
const CUSTOM_LABEL = CUSTOM + CUSTOM_COUNT

const URL = FieldKind.url * FIELD_RANKS
const HOST = FieldKind.host * FIELD_RANKS
const LAST = FIELD_RANKS - 1

const MESSAGE = SYNONYMS['msg'] ?? NO_FIELD
const CATEGORY = SYNONYMS['cat'] ?? NO_FIELD
const SUBTYPE = SYNONYMS['subtype'] ?? NO_FIELD
const TYPE = SYNONYMS['type'] ?? NO_FIELD
const TARGET_USER = SYNONYMS['duser'] ?? NO_FIELD

/** In these dictionaries, a machine's own name is no target, and `domain` is the user's. */
const NAMES = Object.fromEntries(
  Object.entries(SYNONYMS).filter(([, id]) => Math.trunc(id / FIELD_RANKS) !== FieldKind.own),
)
const FIELDS = new NameTable({
  ...NAMES,
  ...idsOf(
    FieldKind.control,
    'dtz/tz/ftntfgttz/timezone devtimeformat in out cs1 cs2 cs3 cs4 cs5 cs6 cs1label cs2label cs3label cs4label cs5label cs6label',
  ),
  ftntfgteventtime: FieldKind.time * FIELD_RANKS,
  fortinetfortigateeventtime: FieldKind.time * FIELD_RANKS,
  end: FieldKind.time * FIELD_RANKS + LAST,
  c6a2: FieldKind.client * FIELD_RANKS + LAST - 1,
  identsrc: FieldKind.client * FIELD_RANKS + LAST,
  // Palo Alto Networks: the URL, or a file name.
  miscellaneous: URL + LAST,
  ftntfgthostname: HOST,
  ftntfgtqname: HOST,
  fortinetfortigatehostname: HOST,
  fortinetfortigateqname: HOST,
  panosurldomain: HOST,
  question: HOST,
  // WatchGuard's LEEF.
  sentbytes: FieldKind.sent * FIELD_RANKS + LAST,
  rcvdbytes: FieldKind.received * FIELD_RANKS + LAST,
  destinationdnsdomain: HOST + LAST - 1,
  // Usually an address. Some senders write the requested name.
  dst: HOST + LAST,
})

const fields = new FoundFields()
const scanner = new ExtensionScanner()

/**
 * Reads the extension in [start, end) of the event whose header was found.
 *
 * @param separator one of Separator, or a byte
 */
function readExtension(line: LogLine, start: number, end: number, separator: number): Verdict {
  const { view } = line
  fields.clear()
  scanner.open(view, start, end, separator)
  while (scanner.next()) {
    const id = FIELDS.find(view, scanner.keyStart, scanner.keyEnd)
    if (id === NO_FIELD) continue
    let { start: from, end: to } = scanner
    if (to - from > 1 && view.getUint8(from) === QUOTE && view.getUint8(to - 1) === QUOTE) {
      from++
      to--
    }
    fields.noteUnescaped(view, id, scanner.keyStart, scanner.keyEnd, from, to)
  }
  noteLabeled(view)
  takeDayOrder(line)
  if (fields.takeTime(line) === TimeFound.impossible) return line.rejectTime()
  line.applyZone(fields.start(ZONE), fields.end(ZONE))
  const hasClient = fields.takeClient(line)
  fields.takeAction(line)
  const verdict = vendorVerdict(view)
  if (verdict !== Verdict.event) return verdict
  const found = takeEventHost(line)
  if (found === Verdict.event && fields.isContradictory(line.memory.isForwarded)) return line.ambiguous('contradictory')
  line.takeUserAndBytes = takeUserAndBytes
  return found === Verdict.noDomain && !hasClient ? Verdict.skip : found
}

function isVendor(view: DataView, vendor: string): boolean {
  return textAtIgnoreCase(view, header.start(Part.vendor), header.end(Part.vendor), vendor)
}

/** Products that need no evidence from their fields' names. Their client may be hidden. */
const PRODUCTS = ['palo alto', 'fortinet', 'zscaler', 'watchguard', 'sonicwall'] as const

function takeEventHost(line: LogLine): Verdict {
  const { view } = line
  // Infoblox: `CEF:0|Infoblox|NIOS|8.5|RPZ-QNAME|NXDOMAIN|7|... msg="rpz QNAME NXDOMAIN rewrite NAME
  // [A] via ..."`.
  const isResponsePolicy = textAtIgnoreCase(view, header.start(Part.id), header.end(Part.id), 'rpz')
  if (isResponsePolicy && header.is(view, Part.vendor, 'infoblox') && fields.has(MESSAGE)) return takeRewritten(line)
  let isProduct = false
  for (let index = 0; index < PRODUCTS.length && !isProduct; index++) isProduct = isVendor(view, PRODUCTS[index] ?? '')
  // The words of vendor and product (FortiMail), and for an unknown product of the kind of event,
  // too.
  const wordsEnd = isProduct ? header.start(Part.id) : Math.max(header.end(Part.id), header.end(CEF_PARTS - 1)) + 1
  if (hasRecordWord(view, header.start(Part.vendor), wordsEnd)) return Verdict.noDomain
  return isProduct ? fields.takeHost(line) : takeRequest(line, fields, true)
}

/**
 * CEF's dictionary gives `in` the direction from the source to the destination. These vendors
 * document the opposite, the view of the client; FortiOS also writes the client's user as `duser`.
 * https://docs.fortinet.com/document/fortigate/6.2.5/fortios-log-message-reference/949981/traffic-log-support-for-cef
 */
function takeUserAndBytes(line: LogLine): void {
  const { view } = line
  fields.takeUserAndBytes(line)
  const isFortinet = isVendor(view, 'fortinet')
  if (isFortinet && line.userStart === line.userEnd && fields.has(TARGET_USER)) {
    takeUser(line, fields.start(TARGET_USER), fields.end(TARGET_USER))
  }
  if (!isFortinet && !isVendor(view, 'zscaler')) return
  line.takeSent(fields.start(BYTES_OUT), fields.end(BYTES_OUT))
  line.takeReceived(fields.start(BYTES_IN), fields.end(BYTES_IN))
}

/**
 * The label of a custom string is the name of its field (`cs1Label=URL`). Some senders swap label
 * and value.
 */
function noteLabeled(view: DataView): void {
  for (let index = 0; index < CUSTOM_COUNT; index++) {
    const value = CUSTOM + index
    const label = CUSTOM_LABEL + index
    if (!fields.has(value) || !fields.has(label)) continue
    const id = FIELDS.find(view, fields.start(label), fields.end(label))
    if (namesHost(id)) fields.note(id, fields.start(value), fields.end(value))
    const swapped = FIELDS.find(view, fields.start(value), fields.end(value))
    if (id === NO_FIELD && namesHost(swapped)) fields.note(swapped, fields.start(label), fields.end(label))
  }
}

function namesHost(id: number): boolean {
  const kind = (id / FIELD_RANKS) | 0
  return id >= 0 && (kind === FieldKind.host || kind === FieldKind.url)
}

/**
 * LEEF gives the format of its time as a Java pattern, of which only the order of day and month is
 * needed.
 */
function takeDayOrder(line: LogLine): void {
  if (!fields.has(TIME_FORMAT)) return
  const start = fields.start(TIME_FORMAT)
  const end = fields.end(TIME_FORMAT)
  if (textAt(line.view, start, end, 'dd/MM') || textAt(line.view, start, end, 'd/M')) {
    line.memory.dayOrder.settled = DayOrder.dayFirst
  } else if (textAt(line.view, start, end, 'MM/dd') || textAt(line.view, start, end, 'M/d')) {
    line.memory.dayOrder.settled = DayOrder.monthFirst
  }
}

/** Event if the vendor's kind of event may name a host, else the verdict. */
function vendorVerdict(view: DataView): Verdict {
  if (isVendor(view, 'palo alto')) return firewallVerdict(view)
  if (!isVendor(view, 'fortinet')) return Verdict.event
  const isSystemEvent = textAtIgnoreCase(view, header.start(Part.name), header.end(Part.name), 'event:')
  return isSystemEvent || fields.is(view, TYPE, 'event') ? Verdict.skip : Verdict.event
}

/** PAN-OS: the URL field of a threat is a file name, unless the subtype is url (threat id 9999). */
function firewallVerdict(view: DataView): Verdict {
  if (isKind(view, 'traffic')) return Verdict.noDomain
  if (isKind(view, 'url') || fields.is(view, SUBTYPE, 'url')) return Verdict.event
  const isUrlThreat =
    indexOfText(view, header.start(Part.id), header.end(Part.id), '9999') !== NOT_FOUND ||
    (fields.has(CATEGORY) && indexOfText(view, fields.start(CATEGORY), fields.end(CATEGORY), '9999') !== NOT_FOUND)
  return isUrlThreat && isKind(view, 'threat') ? Verdict.event : Verdict.skip
}

function isKind(view: DataView, kind: string): boolean {
  return header.is(view, Part.name, kind) || header.is(view, Part.id, kind) || fields.is(view, CATEGORY, kind)
}

function takeRewritten(line: LogLine): Verdict {
  const { view } = line
  const end = fields.end(MESSAGE)
  const at = indexOfText(view, fields.start(MESSAGE), end, 'rewrite ')
  if (at === NOT_FOUND) return Verdict.skip
  const start = skipBlanks(view, at + 'rewrite '.length, end)
  const stop = tokenEnd(view, start, end)
  const isAllowed = header.is(view, Part.name, 'passthru')
  // The query log of the same server has it.
  if (line.memory.bindQueries.has(line, start, stop)) return isAllowed ? Verdict.skip : line.refuseName(start, stop)
  line.action = isAllowed ? Action.allowed : Action.blocked
  return line.takeHost(start, stop)
}
