import { Action } from './action.ts'
import {
  indexOfText,
  isTextIgnoreCase,
  NOT_FOUND,
  QUOTE,
  skipBlanks,
  textAt,
  textAtIgnoreCase,
  tokenEnd,
} from './bytes.ts'
import { DayOrder } from './day-order.ts'
import type { EventHeader } from './event-header.ts'
import { ExtensionScanner } from './extension-scanner.ts'
import { FIELD_RANKS, FieldKind, idsOf, NameTable, NO_FIELD, SYNONYMS } from './field-names.ts'
import { applyZone, FoundFields } from './found-fields.ts'
import { takeRequest } from './generic-request.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { hasRecordWord } from './record-words.ts'
import { takeUser } from './user-name.ts'

/*
 * The common part of CEF and LEEF: the attributes of a security event under names from ArcSight's
 * or QRadar's dictionary and vendors' own names, and the meaning of each vendor's kinds of events.
 */
const CONTROL = FieldKind.control * FIELD_RANKS
const ZONE = CONTROL
const TIME_FORMAT = CONTROL + 1
const BYTES_IN = CONTROL + 2
const BYTES_OUT = CONTROL + 3
const CUSTOM = CONTROL + 8
const CUSTOM_LABEL = CONTROL + 16
const CUSTOM_COUNT = 6

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
  ...idsOf(FieldKind.control, 'dtz/tz/ftntfgttz/timezone devtimeformat in out'),
  ...customNames(),
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

function customNames(): Record<string, number> {
  const ids: Record<string, number> = {}
  for (let index = 0; index < CUSTOM_COUNT; index++) {
    ids[`cs${index + 1}`] = CUSTOM + index
    ids[`cs${index + 1}label`] = CUSTOM_LABEL + index
  }
  return ids
}

const fields = new FoundFields()

const scanner = new ExtensionScanner()

/**
 * Reads the extension in [start, end) of an event with this header and returns the verdict.
 *
 * @param separator one of Separator, or a byte
 */
export function readExtension(
  line: LogLine,
  header: EventHeader,
  start: number,
  end: number,
  separator: number,
): Verdict {
  const { view } = line
  fields.clear()
  scanner.open(view, start, end, separator)
  while (scanner.next()) noteAttribute(view, scanner.keyStart, scanner.keyEnd, scanner.start, scanner.end)
  return judgeAttributes(line, header)
}

function noteAttribute(view: DataView, keyStart: number, keyEnd: number, start: number, end: number): void {
  const id = FIELDS.find(view, keyStart, keyEnd)
  if (id === NO_FIELD) return
  if (end - start > 1 && view.getUint8(start) === QUOTE && view.getUint8(end - 1) === QUOTE) {
    start++
    end--
  }
  fields.note(id, start, end)
}

/** The verdict on the event whose attributes were noted. */
function judgeAttributes(line: LogLine, header: EventHeader): Verdict {
  const { view } = line
  noteLabeled(view)
  takeDayOrder(line)
  if (fields.takeTime(line) === TimeFound.impossible) return line.reject('time: expected a valid date and time')
  applyZone(line, fields.start(ZONE), fields.end(ZONE))
  const hasClient = fields.takeClient(line)
  fields.takeAction(line)
  const verdict = vendorVerdict(view, header)
  if (verdict !== Verdict.event) return verdict
  const found = takeEventHost(line, header)
  return found === Verdict.noDomain && !hasClient ? Verdict.skip : found
}

function takeEventHost(line: LogLine, header: EventHeader): Verdict {
  const { view } = line
  if (isResponsePolicy(view, header)) return takeRewritten(line)
  const isProduct = isOfProduct(view, header)
  // The words of vendor and product (FortiMail), and for an unknown product of the kind of event,
  // too.
  if (hasRecordWord(view, header.vendorStart, isProduct ? header.idStart : header.extension)) return Verdict.noDomain
  if (isProduct) return fields.takeHost(line)
  return takeRequest(line, fields, true)
}

/**
 * Takes the user and the byte counts of the event with this header that was read last.
 *
 * CEF's dictionary gives `in` the direction from the source to the destination. These vendors
 * document the opposite, the view of the client; FortiOS also writes the client's user as `duser`.
 * https://docs.fortinet.com/document/fortigate/6.2.5/fortios-log-message-reference/949981/traffic-log-support-for-cef
 */
export function takeUserAndBytes(line: LogLine, { vendorStart, vendorEnd }: EventHeader): void {
  const { view } = line
  fields.takeUserAndBytes(line)
  const isFortinet = textAtIgnoreCase(view, vendorStart, vendorEnd, 'fortinet')
  if (isFortinet && line.userStart === line.userEnd && fields.has(TARGET_USER)) {
    takeUser(line, fields.start(TARGET_USER), fields.end(TARGET_USER))
  }
  if (!isFortinet && !textAtIgnoreCase(view, vendorStart, vendorEnd, 'zscaler')) return
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
function vendorVerdict(view: DataView, header: EventHeader): Verdict {
  const { vendorStart, vendorEnd, nameStart, nameEnd } = header
  if (textAtIgnoreCase(view, vendorStart, vendorEnd, 'palo alto')) return firewallVerdict(view, header)
  if (textAtIgnoreCase(view, vendorStart, vendorEnd, 'fortinet')) {
    return textAtIgnoreCase(view, nameStart, nameEnd, 'event:') || fields.is(view, TYPE, 'event')
      ? Verdict.skip
      : Verdict.event
  }
  return Verdict.event
}

/** Products that need no evidence from their fields' names. Their client may be hidden. */
const PRODUCTS = ['palo alto', 'fortinet', 'zscaler', 'watchguard', 'sonicwall'] as const

function isOfProduct(view: DataView, { vendorStart, vendorEnd }: EventHeader): boolean {
  for (let index = 0; index < PRODUCTS.length; index++) {
    if (textAtIgnoreCase(view, vendorStart, vendorEnd, PRODUCTS[index] ?? '')) return true
  }
  return false
}

/** PAN-OS: the URL field of a threat is a file name, unless the subtype is url (threat id 9999). */
function firewallVerdict(view: DataView, header: EventHeader): Verdict {
  if (isKind(view, header, 'traffic')) return Verdict.noDomain
  if (isKind(view, header, 'url') || fields.is(view, SUBTYPE, 'url')) return Verdict.event
  const isUrlThreat =
    indexOfText(view, header.idStart, header.idEnd, '9999') !== NOT_FOUND ||
    (fields.has(CATEGORY) && indexOfText(view, fields.start(CATEGORY), fields.end(CATEGORY), '9999') !== NOT_FOUND)
  return isUrlThreat && isKind(view, header, 'threat') ? Verdict.event : Verdict.skip
}

function isKind(view: DataView, header: EventHeader, kind: string): boolean {
  return (
    isTextIgnoreCase(view, header.nameStart, header.nameEnd, kind) ||
    isTextIgnoreCase(view, header.idStart, header.idEnd, kind) ||
    fields.is(view, CATEGORY, kind)
  )
}

/**
 * Infoblox: `CEF:0|Infoblox|NIOS|8.5|RPZ-QNAME|NXDOMAIN|7|... msg="rpz QNAME NXDOMAIN rewrite NAME
 * [A] via ..."`.
 */
function isResponsePolicy(view: DataView, { vendorStart, vendorEnd, idStart, idEnd }: EventHeader): boolean {
  return (
    isTextIgnoreCase(view, vendorStart, vendorEnd, 'infoblox') &&
    textAtIgnoreCase(view, idStart, idEnd, 'rpz') &&
    fields.has(MESSAGE)
  )
}

function takeRewritten(line: LogLine): Verdict {
  const { view } = line
  const end = fields.end(MESSAGE)
  const at = indexOfText(view, fields.start(MESSAGE), end, 'rewrite ')
  if (at === NOT_FOUND) return Verdict.skip
  const start = skipBlanks(view, at + 'rewrite '.length, end)
  line.action = Action.blocked
  return line.takeHost(start, tokenEnd(view, start, end))
}
