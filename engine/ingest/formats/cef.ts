import { DOT, digitsEnd, isDigit, isLetter, NOT_FOUND, PIPE, SPACE, textAt } from './bytes.ts'
import { clearAttributes, EventHeader, judgeAttributes, noteAttribute } from './event-attributes.ts'
import { HeaderBars } from './header-bars.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Mark, Verdict } from './log-line.ts'
import { isKey, isPayloadByte, PairScanner, Separator } from './pairs.ts'

/*
 * ArcSight's Common Event Format (Implementing ArcSight Common Event Format, version 26):
 *
 *   CEF:Version|Vendor|Product|Device Version|Event Class ID|Name|Severity|key=value key=value ...
 *
 * A bar or backslash in the header, an equals sign or backslash in a value has a backslash before it, and some senders forget that. Values are
 * not quoted and hold blanks. A relay that reads `CEF:` as a tag leaves `0|Vendor|...`.
 */
export const cef: LogFormat = { id: 'cef', detect, parse }

/** Where each part of the header ends: version, vendor, product, version, class, name, severity. */
const HEADER_PARTS = 7
const VENDOR = 1
const CLASS = 4
const NAME = 5

const bars = new HeaderBars(HEADER_PARTS, true)
const header = new EventHeader()
const pairs = new PairScanner()

function detect({ view, marks }: LogLine, start: number, end: number): boolean {
  return (marks & Mark.pipe) !== 0 && versionAt(view, start, end) !== NOT_FOUND
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const version = versionAt(view, start, end)
  if (version === NOT_FOUND) return Verdict.unknown
  if (!bars.find(view, version, end)) return line.reject('header: expected seven bars')
  header.vendorStart = bars.end(VENDOR - 1) + 1
  header.vendorEnd = bars.end(VENDOR)
  header.idStart = bars.end(CLASS - 1) + 1
  header.idEnd = bars.end(CLASS)
  header.nameStart = bars.end(NAME - 1) + 1
  header.nameEnd = bars.end(NAME)
  clearAttributes()
  pairs.open(view, bars.end(HEADER_PARTS - 1) + 1, end, Separator.blank)
  while (pairs.next()) noteAttribute(view, pairs.keyStart, pairs.keyEnd, pairs.start, pairs.end)
  return judgeAttributes(line, header)
}

/** Where the version of the header stands, or NOT_FOUND. What a relay left before it may be there, too. */
function versionAt(view: DataView, start: number, end: number): number {
  if (textAt(view, start, end, '0|') || textAt(view, start, end, '1|')) {
    // Without its word any text with bars could look so: the first key decides. (`1.0|` is what LEEF leaves.)
    return bars.find(view, start, end) && isKey(view, bars.end(HEADER_PARTS - 1) + 1, end) ? start : NOT_FOUND
  }
  const limit = Math.min(end, start + CUE_BYTES) - 4
  for (let at = start; at < limit; at++) {
    const byte = view.getUint8(at)
    if (isPayloadByte(byte)) return NOT_FOUND
    if (byte !== 0x43 || !textAt(view, at, end, 'CEF:')) continue
    if (at > start && isLetter(view.getUint8(at - 1))) continue
    const version = at + 4 < end && view.getUint8(at + 4) === SPACE ? at + 5 : at + 4
    if (isVersion(view, version, end)) return version
  }
  return NOT_FOUND
}

/** `0|`, `1|`, `0.1|`. */
function isVersion(view: DataView, at: number, end: number): boolean {
  if (at >= end || !isDigit(view.getUint8(at))) return false
  let stop = digitsEnd(view, at, end)
  if (stop < end && view.getUint8(stop) === DOT) stop = digitsEnd(view, stop + 1, end)
  return stop < end && stop - at <= 3 && view.getUint8(stop) === PIPE
}
