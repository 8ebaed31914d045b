import { HYPHEN, indexOfByte, isDigit, isText, LESS, NOT_FOUND, OPEN_BRACKET, SPACE } from '../../formats/bytes.ts'
import type { SyslogMessage } from './message.ts'
import { priEnd, priValue } from './pri.ts'
import { readStructuredData } from './structured-data.ts'

/** Beginning of the data of Junos. */
const JUNOS = '[junos@'

/**
 * Reads `<PRI>VERSION SP TIMESTAMP SP HOSTNAME SP APP-NAME SP PROCID SP MSGID SP STRUCTURED-DATA
 * [SP MSG]` (RFC 5424 §6) in [start, end). Returns false for a message of another kind. Tolerates a
 * missing PRI (some relays strip it), missing STRUCTURED-DATA, and fields longer than allowed.
 */
export function readRfc5424(view: DataView, start: number, end: number, message: SyslogMessage): boolean {
  let at = start
  if (view.getUint8(at) === LESS) {
    at = priEnd(view, start, end)
    if (at === NOT_FOUND) return false
    message.pri = priValue(view, start, at)
  }
  // VERSION is a non-zero digit and up to two more digits; a timestamp or NILVALUE follows.
  const versionStart = at
  while (at < end && at - versionStart < 3 && isDigit(view.getUint8(at))) at++
  if (at === versionStart || at + 2 >= end || view.getUint8(versionStart) === 0x30) return false
  if (view.getUint8(at) !== SPACE) return false
  at++
  const timeStart = at
  const isNil = view.getUint8(at) === HYPHEN && view.getUint8(at + 1) === SPACE
  if (!isNil && !isYear(view, at, end)) return false
  at = fieldEnd(view, at, end)
  // Some senders write a blank in place of the `T`.
  if (!isNil && at - timeStart === 10) at = fieldEnd(view, at + 1, end)
  message.timeStart = timeStart
  message.timeEnd = isNil ? timeStart : at
  if (at >= end) return false

  at++
  message.hostStart = at
  at = fieldEnd(view, at, end)
  message.hostEnd = isNilValue(view, message.hostStart, at) ? message.hostStart : at
  if (at >= end) return false

  at++
  message.appStart = at
  at = fieldEnd(view, at, end)
  message.appEnd = isNilValue(view, message.appStart, at) ? message.appStart : at
  if (at >= end) return false

  at = fieldEnd(view, at + 1, end) // PROCID
  if (at >= end) return false
  const msgIdStart = at + 1
  at = fieldEnd(view, msgIdStart, end) // MSGID
  if (at >= end) {
    message.msgStart = end
    return true
  }
  at++
  message.msgStart = at
  if (at === end) return true
  const first = view.getUint8(at)
  if (first === HYPHEN && (at + 1 === end || view.getUint8(at + 1) === SPACE)) {
    message.msgStart = Math.min(at + 2, end)
  } else if (first === OPEN_BRACKET) {
    const { tokenEnd } = message
    const after = readStructuredData(view, at, end, message)
    // Brackets of another kind (Check Point) belong to the message.
    if (after !== NOT_FOUND) message.msgStart = after < end && view.getUint8(after) === SPACE ? after + 1 : after
    // Juniper SRX writes its data into STRUCTURED-DATA, and part of it again into MSG, if any. An
    // element with a token is not read.
    const hasData = message.msgStart === end || isText(view, at, Math.min(at + JUNOS.length, end), JUNOS)
    if (hasData && message.tokenEnd === tokenEnd) message.msgStart = msgIdStart
  }
  return true
}

function isYear(view: DataView, at: number, end: number): boolean {
  if (at + 5 > end || view.getUint8(at + 4) !== HYPHEN) return false
  for (let digit = at; digit < at + 4; digit++) if (!isDigit(view.getUint8(digit))) return false
  return true
}

/** The offset of the next blank, or `end`. */
function fieldEnd(view: DataView, at: number, end: number): number {
  const blank = indexOfByte(view, at, end, SPACE)
  return blank === NOT_FOUND ? end : blank
}

function isNilValue(view: DataView, start: number, end: number): boolean {
  return isText(view, start, end, '-')
}
