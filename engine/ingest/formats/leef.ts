import { EQUALS, HASH, hexDigit, NOT_FOUND, PIPE, TAB, textAt } from './bytes.ts'
import { readExtension } from './event-attributes.ts'
import { EventHeader } from './event-header.ts'
import { isKey, isPayloadByte, Separator } from './extension-scanner.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Mark, Verdict } from './log-line.ts'

/*
 * QRadar's Log Event Extended Format (QRadar Log Event Extended Format Guide, version 2):
 *
 *   LEEF:1.0|Vendor|Product|Version|EventID|key=value<TAB>key=value ...
 *   LEEF:2.0|Vendor|Product|Version|EventID|Delimiter|key=value^key=value ...
 *
 * The delimiter is a byte, or its code (`0x5E`, `x5E`); empty it is TAB, and some leave it out. Relays write a TAB as `#011`, `\t` or a blank, and
 * some senders of 1.0 a bar. A relay that reads `LEEF:` as a tag leaves `1.0|Vendor|...`.
 */
export const leef: LogFormat = { id: 'leef', detect, parse }

/** Version, vendor, product, version, event id. */
const HEADER_PARTS = 5
/** `0x5E|` */
const DELIMITER_BYTES_MAX = 5

const header = new EventHeader(HEADER_PARTS, false)

function detect({ view, marks }: LogLine, start: number, end: number): boolean {
  return (marks & Mark.pipe) !== 0 && versionAt(view, start, end) !== NOT_FOUND
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const version = versionAt(view, start, end)
  if (version === NOT_FOUND) return Verdict.unknown
  if (!header.read(view, version, end)) return line.reject('header: expected five bars')
  let at = header.extension
  let separator = NOT_SAID
  if (view.getUint8(version) === 0x32) {
    const delimiterEnd = delimiterEndAt(view, at, end)
    if (delimiterEnd !== NOT_FOUND) {
      separator = delimiterOf(view, at, delimiterEnd)
      at = delimiterEnd + 1
    }
  }
  if (separator === NOT_SAID) separator = separatorSeen(view, at, end)
  return readExtension(line, header, at, end, separator)
}

const NOT_SAID = -9

/** Where the version of the header stands, or NOT_FOUND. What a relay left before it may be there, too. */
function versionAt(view: DataView, start: number, end: number): number {
  if (isVersion(view, start, end)) {
    // Without its word any text with bars could look so: the first key decides.
    if (!header.read(view, start, end)) return NOT_FOUND
    const first = header.extension
    const delimiterEnd = delimiterEndAt(view, first, end)
    return isKey(view, delimiterEnd === NOT_FOUND ? first : delimiterEnd + 1, end) ? start : NOT_FOUND
  }
  const limit = Math.min(end, start + CUE_BYTES) - 5
  for (let at = start; at < limit; at++) {
    const byte = view.getUint8(at)
    if (isPayloadByte(byte)) return NOT_FOUND
    if (byte !== 0x4c || !textAt(view, at, end, 'LEEF:')) continue
    if (isVersion(view, at + 5, end)) return at + 5
  }
  return NOT_FOUND
}

function isVersion(view: DataView, at: number, end: number): boolean {
  return textAt(view, at, end, '1.0|') || textAt(view, at, end, '2.0|')
}

/** Where the bar behind the delimiter of a 2.0 header stands, or NOT_FOUND where attributes begin at once. */
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
  if (end === start) return NOT_SAID
  if (end - start === 1) return view.getUint8(start) === TAB ? Separator.tab : view.getUint8(start)
  const digits = textAt(view, start, end, '0x') ? start + 2 : start + 1
  if (end - digits < 1 || end - digits > 2) return NOT_SAID
  let value = 0
  for (let at = digits; at < end; at++) {
    const digit = hexDigit(view.getUint8(at))
    if (digit < 0) return NOT_SAID
    value = value * 16 + digit
  }
  return value === TAB ? Separator.tab : value
}

/** What stands behind the first pair. */
function separatorSeen(view: DataView, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === TAB || (byte === HASH && textAt(view, at, end, '#011'))) return Separator.tab
    if (byte === PIPE && isKey(view, at + 1, end)) return PIPE
    if (byte === 0x5c && textAt(view, at, end, '\\t') && isKey(view, at + 2, end)) return Separator.escapedTab
    // A blank: the pair behind it decides, for values hold blanks.
    if (at - start > SEPARATOR_CUE_BYTES) break
  }
  return Separator.blank
}
/** A first pair is not longer. */
const SEPARATOR_CUE_BYTES = 512
