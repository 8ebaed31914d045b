import { EQUALS, HASH, hexDigit, NOT_FOUND, PIPE, TAB, textAt } from './bytes.ts'
import { readExtension, takeUserAndBytes } from './event-attributes.ts'
import { EventHeader } from './event-header.ts'
import { isKey, isPayloadByte, Separator } from './extension-scanner.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Mark, Verdict } from './log-line.ts'

/*
 * QRadar's Log Event Extended Format (QRadar Log Event Extended Format Guide, version 2):
 *
 *   LEEF:1.0|Vendor|Product|Version|EventID|key=value<TAB>key=value ...
 *   LEEF:2.0|Vendor|Product|Version|EventID|Delimiter|key=value^key=value ...
 *
 * The delimiter is a byte or its code (`0x5E`, `x5E`). An empty delimiter means TAB, and some
 * senders omit the delimiter. Relays write a TAB as `#011`, `\t` or a blank, and some senders of
 * 1.0 write a bar. A relay that parses `LEEF:` as a tag leaves `1.0|Vendor|...`.
 */
export const leef: LogFormat = {
  id: 'leef',
  detect,
  parse,
  takeUserAndBytes: (line) => takeUserAndBytes(line, header),
}

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
  let separator = UNSPECIFIED
  if (view.getUint8(version) === 0x32) {
    const delimiterEnd = delimiterEndAt(view, at, end)
    if (delimiterEnd !== NOT_FOUND) {
      separator = delimiterOf(view, at, delimiterEnd)
      at = delimiterEnd + 1
    }
  }
  if (separator === UNSPECIFIED) separator = detectSeparator(view, at, end)
  return readExtension(line, header, at, end, separator)
}

const UNSPECIFIED = -9

/**
 * The offset of the header's version, or NOT_FOUND. Remnants of a relay's header may precede it.
 */
function versionAt(view: DataView, start: number, end: number): number {
  if (isVersion(view, start, end)) {
    // Without `LEEF:`, any text with bars could match, so a key must follow.
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
  if (end - start === 1) return view.getUint8(start) === TAB ? Separator.tab : view.getUint8(start)
  const digits = textAt(view, start, end, '0x') ? start + 2 : start + 1
  if (end - digits < 1 || end - digits > 2) return UNSPECIFIED
  let value = 0
  for (let at = digits; at < end; at++) {
    const digit = hexDigit(view.getUint8(at))
    if (digit < 0) return UNSPECIFIED
    value = value * 16 + digit
  }
  return value === TAB ? Separator.tab : value
}

/** The separator after the first pair. */
function detectSeparator(view: DataView, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === TAB || (byte === HASH && textAt(view, at, end, '#011'))) return Separator.tab
    if (byte === PIPE && isKey(view, at + 1, end)) return PIPE
    if (byte === 0x5c && textAt(view, at, end, '\\t') && isKey(view, at + 2, end)) return Separator.escapedTab
    // Values contain blanks, so a blank is the separator only if no other is found.
    if (at - start > SEPARATOR_CUE_BYTES) break
  }
  return Separator.blank
}
/** The maximum length of the first pair. */
const SEPARATOR_CUE_BYTES = 512
