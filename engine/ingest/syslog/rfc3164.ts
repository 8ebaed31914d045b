import {
  CLOSE_BRACKET,
  CLOSE_PARENTHESIS,
  COLON,
  COMMA,
  DOT,
  digitsEnd,
  EQUALS,
  HYPHEN,
  indexOfByte,
  isDigit,
  isLetter,
  KeyTable,
  LESS,
  NOT_FOUND,
  OPEN_BRACE,
  OPEN_BRACKET,
  OPEN_PARENTHESIS,
  PIPE,
  QUOTE,
  SLASH,
  SPACE,
  skipBlanks,
  textAt,
  tokenEnd,
  wordsOf,
} from '../../formats/bytes.ts'
import { AddressKind, addressKind } from '../../formats/ip-address.ts'
import { LogTime, TimeFound } from '../../formats/log-time.ts'
import { SD_ID, type SyslogMessage } from './message.ts'
import { priEnd, priValue } from './pri.ts'
import { readStructuredData } from './structured-data.ts'

/**
 * A relay puts its own header before the sender's. No message has more than two relays' headers.
 */
const HEADERS_MAX = 3
/** RFC 3164 §4.1.3 allows 32 characters; devices send longer names. */
const TAG_BYTES_MAX = 64
const STAR = 0x2a
/** From 2001 to 2286. */
const EPOCH_DIGITS = 10
/** Zones that devices write between time and host. They are not read: most are ambiguous. */
const ZONE_WORDS =
  'utc gmt est edt cst cdt mst mdt pst pdt akst akdt hst brt art wet west cet cest eet eest msk bst ist sast gst pkt wib ict sgt hkt awst jst kst acst aest aedt nzst nzdt'
const ZONES = new KeyTable(Object.fromEntries(ZONE_WORDS.split(' ').map((word, index) => [word, index])))

/** `kern.info`, which BusyBox (OpenWrt's logread and syslogd) writes before the tag. */
const FACILITIES = new KeyTable(
  wordsOf(
    0,
    'kern user mail daemon auth syslog lpr news uucp cron authpriv ftp local0 local1 local2 local3 local4 local5 local6 local7',
  ),
)
const LEVELS = new KeyTable(wordsOf(0, 'emerg alert crit err warn notice info debug'))

const time = new LogTime()

/**
 * Strips the parts of `<PRI>Mmm dd hh:mm:ss HOST TAG[pid]: MSG` (RFC 3164 §4.1) that precede the
 * message, in all variants of devices and relays, and the sender's header after a relay's. Keeps
 * the beginning of a format: a time that is no header's, `CEF:0|`, `date=...`. `referenceMs` is
 * when the message was received.
 */
export function readRfc3164(
  view: DataView,
  start: number,
  end: number,
  message: SyslogMessage,
  referenceMs: number,
): void {
  let at = start
  for (let headers = 0; headers < HEADERS_MAX; headers++) {
    const afterPri = priEnd(view, at, end)
    if (afterPri !== NOT_FOUND) {
      if (headers === 0) message.pri = priValue(view, at, afterPri)
      at = afterPri
    } else if (headers > 0 && !beginsWithHeaderTime(view, at, end, referenceMs)) break
    const before = at
    at = readHeader(view, at, end, message, afterPri !== NOT_FOUND, referenceMs)
    if (at === before && afterPri === NOT_FOUND) break
  }
  message.msgStart = at
  // Relays with a template of their own put the element before the message.
  if (textAt(view, at + 1, end, SD_ID) && view.getUint8(at) === OPEN_BRACKET) {
    const after = readStructuredData(view, at, end, message)
    if (after !== NOT_FOUND) message.msgStart = skipBlanks(view, after, end)
  }
}

/**
 * Whether a header may be at `at`: a cheap check, for a message that a relay has wrapped in RFC
 * 5424.
 */
export function mayBeHeader(view: DataView, at: number, end: number, referenceMs: number): boolean {
  return at < end && (view.getUint8(at) === LESS || beginsWithHeaderTime(view, at, end, referenceMs))
}

/** Reads from the end of the PRI to the start of the message. */
function readHeader(
  view: DataView,
  start: number,
  end: number,
  message: SyslogMessage,
  hasPri: boolean,
  referenceMs: number,
): number {
  let at = skipBlanks(view, start, end)
  const timeEnd = headerTimeEnd(view, at, end, referenceMs)
  if (timeEnd !== NOT_FOUND) {
    message.timeStart = at
    message.timeEnd = timeEnd
    at = skipBlanks(view, timeEnd, end)
    // `Nov 20 09:15:02 CET:` and `Nov 20 09:15:02:` of Cisco.
    const zone = tokenEnd(view, at, end)
    if (zone > at && view.getUint8(zone - 1) === COLON && zone - at <= 5 && isUpperWord(view, at, zone - 1)) {
      at = skipBlanks(view, zone, end)
    } else if (isZoneWord(view, at, zone) && isHostAhead(view, skipBlanks(view, zone, end), end)) {
      at = skipBlanks(view, zone, end)
    }
  }
  const hostEnd = tokenEnd(view, at, end)
  if (isPriority(view, at, hostEnd)) at = skipBlanks(view, hostEnd, end)
  else if (timeEnd !== NOT_FOUND ? isHost(view, at, hostEnd) : hasPri && isHostBeforeTag(view, at, hostEnd, end)) {
    message.hostStart = at
    message.hostEnd = hostEnd
    at = skipBlanks(view, hostEnd, end)
    // `asa-1 : %ASA-...` of Cisco.
    if (textAt(view, at, end, ': ')) at = skipBlanks(view, at + 1, end)
    // A relay's host, followed by the address that the relay received the message from.
    const second = tokenEnd(view, at, end)
    const isLast = skipBlanks(view, second, end) >= end
    const isAddress = addressKind(view, at, second) !== AddressKind.none && !isLogStart(view, second, end)
    if (!isLast && (isAddress || isPriority(view, at, second))) at = skipBlanks(view, second, end)
  }
  const tagEnd = endOfTag(view, at, end)
  if (tagEnd === NOT_FOUND) return at
  message.appStart = at
  message.appEnd = tagNameEnd(view, at, tagEnd)
  return skipBlanks(view, tagEnd, end)
}

/**
 * The bytes after an address in a common log (` - user [`), which begins with the client's address
 * and has no header.
 */
function isLogStart(view: DataView, at: number, end: number): boolean {
  return textAt(view, at, end, ' - ') || textAt(view, at, end, ' -\t')
}

function beginsWithHeaderTime(view: DataView, at: number, end: number, referenceMs: number): boolean {
  return headerTimeEnd(view, skipBlanks(view, at, end), end, referenceMs) !== NOT_FOUND
}

/**
 * The offset after a header's time: `Mmm dd hh:mm:ss` in all variants, or RFC 3339 with its `T`. A
 * blank, or a colon and a blank, must follow. Other times belong to the message.
 */
function headerTimeEnd(view: DataView, at: number, end: number, referenceMs: number): number {
  if (at + 15 > end) return NOT_FOUND
  const first = view.getUint8(at)
  let isLogread = false
  if (isDigit(first)) {
    if (view.getUint8(at + 4) !== HYPHEN || (view.getUint8(at + 10) | 0x20) !== 0x74) return NOT_FOUND
  } else if (isLetter(first)) {
    // Three letters and a blank. Of headers, only logread's begins with a weekday.
    if (view.getUint8(at + 3) !== SPACE) return NOT_FOUND
    isLogread = !isDigit(view.getUint8(skipBlanks(view, at + 3, end)))
  } else if (first !== STAR && first !== DOT) return NOT_FOUND
  if (time.read(view, at, end, referenceMs) !== TimeFound.found) return NOT_FOUND
  let after = time.end
  if (isLogread && !isPriority(view, after + 1, tokenEnd(view, after + 1, end))) return NOT_FOUND
  if (after < end && view.getUint8(after) === COLON) after++
  return after === end || view.getUint8(after) === SPACE ? after : NOT_FOUND
}

function isPriority(view: DataView, start: number, end: number): boolean {
  const dot = indexOfByte(view, start, end, DOT)
  return dot !== NOT_FOUND && FACILITIES.find(view, start, dot) >= 0 && LEVELS.find(view, dot + 1, end) >= 0
}

/** Whether a word can be a host after a time: no byte that messages begin with, and no tag. */
function isHost(view: DataView, start: number, end: number): boolean {
  if (end === start || end - start > 255) return false
  const first = view.getUint8(start)
  if (first === OPEN_BRACKET || first === OPEN_PARENTHESIS || first === OPEN_BRACE || first === QUOTE) return false
  if (view.getUint8(end - 1) === COLON) return false
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === EQUALS || byte === PIPE || byte === COMMA || byte === OPEN_BRACKET || byte === QUOTE) return false
    if (byte === SLASH && !isLetter(first)) return false
  }
  // dnsmasq with log-queries=extra and others begin with a number.
  return digitsEnd(view, start, end) !== end && !isEpoch(view, start, end)
}

/** Seconds since 1970 with decimals, with which Squid's lines begin: rsyslog takes them for a host. */
export function isEpoch(view: DataView, start: number, end: number): boolean {
  const digits = digitsEnd(view, start, end)
  if (digits - start !== EPOCH_DIGITS || digits >= end || view.getUint8(digits) !== DOT) return false
  return digitsEnd(view, digits + 1, end) === end
}

/**
 * Without a time, a word is a host only if a tag follows, or if the word is an address and
 * key=value pairs follow.
 */
function isHostBeforeTag(view: DataView, start: number, end: number, messageEnd: number): boolean {
  if (end >= messageEnd || !isHost(view, start, end)) return false
  const next = skipBlanks(view, end, messageEnd)
  if (addressKind(view, start, end) !== AddressKind.none) {
    const word = tokenEnd(view, next, messageEnd)
    return indexOfByte(view, next, word, EQUALS) !== NOT_FOUND
  }
  const tag = endOfTag(view, next, messageEnd)
  return tag !== NOT_FOUND && view.getUint8(tag - 2) === CLOSE_BRACKET
}

/**
 * The offset after the tag at `at`: `name:`, `name[pid]:`, `(name)[pid]:`, or `name[pid]` with a
 * blank; a blank or the end must follow. NOT_FOUND without a tag: `CEF:0|` has no blank after its
 * colon, `date=` no colon, `query[A]` no number in its brackets.
 */
function endOfTag(view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + TAG_BYTES_MAX)
  let at = start
  for (; at < limit; at++) {
    const byte = view.getUint8(at)
    if (byte === COLON) {
      const after = at + 1
      return at > start && (after === end || view.getUint8(after) === SPACE) ? after : NOT_FOUND
    }
    if (byte === OPEN_BRACKET) break
    const isTagByte =
      isLetter(byte) || isDigit(byte) || byte === HYPHEN || byte === DOT || byte === SLASH || byte === 0x5f
    if (!isTagByte && byte !== OPEN_PARENTHESIS && byte !== CLOSE_PARENTHESIS) return NOT_FOUND
  }
  if (at === start || at >= limit) return NOT_FOUND
  const close = indexOfByte(view, at, Math.min(end, at + 24), CLOSE_BRACKET)
  if (close === NOT_FOUND || digitsEnd(view, at + 1, close) !== close) return NOT_FOUND
  let after = close + 1
  if (after < end && view.getUint8(after) === COLON) after++
  return after === end || view.getUint8(after) === SPACE ? after : NOT_FOUND
}

/** Whether a word at `at` can be a host, before a tag or a message of Cisco's. */
function isHostAhead(view: DataView, at: number, end: number): boolean {
  const hostEnd = tokenEnd(view, at, end)
  if (!isHost(view, at, hostEnd)) return false
  const next = skipBlanks(view, hostEnd, end)
  return textAt(view, next, end, ': ') || textAt(view, next, end, '%') || endOfTag(view, next, end) !== NOT_FOUND
}

function tagNameEnd(view: DataView, start: number, tagEnd: number): number {
  for (let at = start; at < tagEnd; at++) {
    const byte = view.getUint8(at)
    if (byte === OPEN_BRACKET || byte === COLON) return at
  }
  return tagEnd
}

/** A host may have such a name, but hardly in capitals. */
function isZoneWord(view: DataView, start: number, end: number): boolean {
  return isUpperWord(view, start, end) && ZONES.find(view, start, end) >= 0
}

function isUpperWord(view: DataView, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte < 0x41 || byte > 0x5a) return false
  }
  return end > start
}
