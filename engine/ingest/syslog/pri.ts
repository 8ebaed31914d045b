import { GREATER, isDigit, LESS, NOT_FOUND, SPACE } from '../../formats/bytes.ts'
import { PRI_DEFAULT } from './message.ts'

/** facility x 8 + severity, of facilities 0 to 23 (RFC 5424 §6.2.1). */
const PRI_MAX = 191
/** With the blanks and zeros that devices send. */
const PRI_BYTES_MAX = 8

/**
 * The offset after `<PRI>` at `start`, or NOT_FOUND. Accepts blanks and leading zeros inside, which
 * the RFC forbids but devices send.
 */
export function priEnd(view: DataView, start: number, end: number): number {
  if (start >= end || view.getUint8(start) !== LESS) return NOT_FOUND
  let at = start + 1
  while (at < end && view.getUint8(at) === SPACE && at - start < 3) at++
  const digits = at
  while (at < end && isDigit(view.getUint8(at)) && at - digits < 4) at++
  if (at === digits || at >= end || view.getUint8(at) !== GREATER) return NOT_FOUND
  return at + 1
}

/** Whether the bytes in [start, end), which have no `>`, may be the beginning of a PRI. */
export function mayBecomePri(view: DataView, start: number, end: number): boolean {
  if (end - start >= PRI_BYTES_MAX) return false
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (at === start ? byte !== LESS : !isDigit(byte) && byte !== SPACE) return false
  }
  return true
}

/** The value of a PRI that ends before `end`. An invalid value counts as the default. */
export function priValue(view: DataView, start: number, end: number): number {
  let value = 0
  for (let at = start + 1; at < end - 1; at++) {
    const byte = view.getUint8(at)
    if (byte !== SPACE) value = value * 10 + byte - 0x30
  }
  return value <= PRI_MAX ? value : PRI_DEFAULT
}
