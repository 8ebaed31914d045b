import { DOT, digitsEnd, isDigit, isLetter, NOT_FOUND, PIPE, SPACE, textAt } from './bytes.ts'
import { readExtension, takeUserAndBytes } from './event-attributes.ts'
import { EventHeader } from './event-header.ts'
import { isKey, isPayloadByte, Separator } from './extension-scanner.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Mark, Verdict } from './log-line.ts'

/*
 * ArcSight's Common Event Format (Implementing ArcSight Common Event Format, version 26):
 *
 *   CEF:Version|Vendor|Product|Device Version|Event Class ID|Name|Severity|key=value key=value ...
 *
 * A backslash escapes a bar or backslash in the header, and an equals sign or backslash in a value;
 * some senders omit it. Values are not quoted and contain blanks. A relay that parses `CEF:` as a
 * tag leaves `0|Vendor|...`.
 */
export const cef: LogFormat = {
  id: 'cef',
  detect,
  parse,
  takeUserAndBytes: (line) => takeUserAndBytes(line, header),
}

/** Version, vendor, product, version, class, name, severity. */
const HEADER_PARTS = 7

const header = new EventHeader(HEADER_PARTS, true)

function detect({ view, marks }: LogLine, start: number, end: number): boolean {
  return (marks & Mark.pipe) !== 0 && versionAt(view, start, end) !== NOT_FOUND
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const version = versionAt(view, start, end)
  if (version === NOT_FOUND) return Verdict.unknown
  if (!header.read(view, version, end)) return line.reject('header: expected seven bars')
  return readExtension(line, header, header.extension, end, Separator.blank)
}

/**
 * The offset of the header's version, or NOT_FOUND. Remnants of a relay's header may precede it.
 */
function versionAt(view: DataView, start: number, end: number): number {
  if (textAt(view, start, end, '0|') || textAt(view, start, end, '1|')) {
    // Without `CEF:`, any text with bars could match, so a key must follow. (`1.0|` is left from
    // LEEF.)
    return header.read(view, start, end) && isKey(view, header.extension, end) ? start : NOT_FOUND
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
