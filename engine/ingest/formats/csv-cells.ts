import {
  AT,
  COLON,
  DOT,
  digitsEnd,
  HYPHEN,
  hexDigit,
  indexOfByte,
  isDigit,
  isLetter,
  isText,
  NOT_FOUND,
  SLASH,
  skipBlanks,
  textAt,
  trimEnd,
} from './bytes.ts'
import type { CsvFields } from './csv.ts'
import { takeHostOf } from './found-fields.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { KeyTable } from './key-table.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { hasRecordWord } from './record-words.ts'

/**
 * What the content of a cell without a header looks like. A `path` is the target of a web server's
 * own log; a `bareUrl` has a host that is no domain.
 */
export const CellKind = {
  other: 0,
  absent: 1,
  time: 2,
  impossibleTime: 3,
  date: 4,
  timeOfDay: 5,
  address: 6,
  host: 7,
  url: 8,
  path: 9,
  status: 10,
  bareUrl: 11,
} as const
export type CellKind = (typeof CellKind)[keyof typeof CellKind]

/**
 * A ten-digit number is a time only if it is this near to the receipt; otherwise it is an
 * identifier.
 */
const EPOCH_YEARS_MS = 10 * 365 * 86_400_000
/** The maximum length of a cell with a single name: a name, a port and a dot. */
const HOST_CELL_BYTES_MAX = 260
const SCHEME_BYTES_MAX = 16

/**
 * The last labels of file names and of internal machine names. No registry assigns these labels,
 * except zip and mov.
 */
const NO_TOP_LEVEL = new KeyTable(
  Object.fromEntries(
    'exe zip pdf mov dll doc docx docm xls xlsx xlsm ppt pptx txt rtf log csv json xml yaml yml html htm php asp aspx jsp js css png jpg jpeg gif bmp svg ico tif tiff webp mp3 mp4 avi mkv wav wmv gz tgz tar rar bz xz iso img dmg msi apk jar war cab deb rpm bin dat db tmp bak old cfg conf ini inf sys lnk reg bat cmd vbs pcap pem crt cer der key pfx eml msg esp woff ttf swf torrent local lan internal intranet corp home localdomain localhost workgroup test invalid onion arpa'
      .split(' ')
      .map((word) => [word, 1]),
  ),
)

/**
 * The kind of the cell in [start, end). Sets the line's time or host as a side effect, so the
 * caller must take both again.
 */
export function cellKind(line: LogLine, start: number, end: number): CellKind {
  const { view } = line
  start = skipBlanks(view, start, end)
  end = trimEnd(view, start, end)
  if (start === end || isText(view, start, end, '-')) return CellKind.absent
  const first = view.getUint8(start)
  if (first === SLASH) return CellKind.path
  if (addressKind(view, start, end) !== AddressKind.none) return CellKind.address
  if (isDigit(first) || isLetter(first)) {
    const time = timeKind(line, start, end)
    if (time !== CellKind.other) return time
  }
  if (hasScheme(view, start, end)) {
    return takeHostOf(line, start, end) === Verdict.event ? CellKind.url : CellKind.bareUrl
  }
  return isPlausibleHost(view, start, end) && takeHostOf(line, start, end) === Verdict.event
    ? hostKind(view, start, end)
    : CellKind.other
}

/**
 * Whether the name in a cell ends as a domain does, not as a file does. A port is sufficient
 * evidence.
 */
export function isPlausibleHost(view: DataView, start: number, end: number): boolean {
  let at = start
  let labelStart = start
  const limit = Math.min(end, start + HOST_CELL_BYTES_MAX)
  for (; at < limit; at++) {
    const byte = view.getUint8(at)
    if (byte === DOT) {
      // A trailing dot belongs to the name.
      if (at + 1 === end) break
      labelStart = at + 1
    } else if (byte === COLON) {
      return digitsEnd(view, at + 1, end) > at + 1
    } else if (byte === SLASH) break
    else if (byte === AT || (byte < 0x80 && !isLetter(byte) && !isDigit(byte) && byte !== HYPHEN && byte !== 0x5f)) {
      return false
    }
  }
  if (at === limit && limit !== end) return false
  return labelStart > start && NO_TOP_LEVEL.find(view, labelStart, at) < 0
}

function hostKind(view: DataView, start: number, end: number): CellKind {
  for (let at = start; at < end; at++) if (view.getUint8(at) === SLASH) return CellKind.url
  return CellKind.host
}

/** Whether `://` follows letters at `start`. */
export function hasScheme(view: DataView, start: number, end: number): boolean {
  const limit = Math.min(end, start + SCHEME_BYTES_MAX)
  let at = start
  while (at < limit && isLetter(view.getUint8(at))) at++
  return at > start && textAt(view, at, end, '://')
}

function timeKind(line: LogLine, start: number, end: number): CellKind {
  const { view } = line
  const digits = digitsEnd(view, start, end)
  if (digits === end && end - start === 3) {
    const hundreds = view.getUint8(start) - 0x30
    return hundreds >= 1 && hundreds <= 5 ? CellKind.status : CellKind.other
  }
  const found = line.takeTimeIfAny(start, end)
  if (found === TimeFound.impossible) return CellKind.impossibleTime
  if (found === TimeFound.found && line.timeEnd === end) {
    const isNear = Math.abs(line.timeMs - line.referenceMs) < EPOCH_YEARS_MS
    return digits < start + 10 || isNear ? CellKind.time : CellKind.other
  }
  if (digits === start || digits === end) return CellKind.other
  const separator = view.getUint8(digits)
  if (separator === COLON && digits - start <= 2 && end - start >= 4 && isDigit(view.getUint8(digits + 1))) {
    return CellKind.timeOfDay
  }
  return isDate(view, start, end) ? CellKind.date : CellKind.other
}

/** Three numbers with the same separator: `2026-11-20`, `20.11.2026`, `11/20/26`. */
function isDate(view: DataView, start: number, end: number): boolean {
  if (end - start < 6 || end - start > 10) return false
  const first = digitsEnd(view, start, end)
  const separator = view.getUint8(first)
  if (separator !== HYPHEN && separator !== DOT && separator !== SLASH) return false
  const second = digitsEnd(view, first + 1, end)
  if (second === first + 1 || second >= end || view.getUint8(second) !== separator) return false
  return second + 1 < end && digitsEnd(view, second + 1, end) === end
}

/** A longer cell is a text, which may contain any word. */
const WORD_CELL_BYTES_MAX = 32
/** One mail address may be the user's; two are a sender and a recipient. */
const MAIL_ADDRESSES_MIN = 2

/**
 * Whether a row without a header is evidently no client's request: a cell is a MAC address (a
 * lease) or a short text with a word of other records, or two cells are mail addresses.
 */
export function isOtherRow(view: DataView, cells: CsvFields): boolean {
  let mailAddresses = 0
  for (let column = 0; column < cells.count; column++) {
    const start = skipBlanks(view, cells.start(column), cells.end(column))
    const end = trimEnd(view, start, cells.end(column))
    if (isMacAddress(view, start, end)) return true
    if (indexOfByte(view, start, end, AT) !== NOT_FOUND) mailAddresses++
    // A cell with a dot is a name: `auth.example.com` is no evidence about the record.
    if (end - start > WORD_CELL_BYTES_MAX || indexOfByte(view, start, end, DOT) !== NOT_FOUND) continue
    if (hasRecordWord(view, start, end)) return true
  }
  return mailAddresses >= MAIL_ADDRESSES_MIN
}

/**
 * `00:53:00:00:00:2a`, `00-53-00-00-00-2a` or `00530000002A`; a number without letters is no MAC
 * address.
 */
function isMacAddress(view: DataView, start: number, end: number): boolean {
  const isJoined = end - start === 12
  if (!isJoined && end - start !== 17) return false
  let hasLetter = false
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (!isJoined && (at - start) % 3 === 2) {
      if (byte !== COLON && byte !== HYPHEN) return false
    } else if (hexDigit(byte) < 0) return false
    hasLetter ||= isLetter(byte)
  }
  return hasLetter || !isJoined
}
