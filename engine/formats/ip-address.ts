import {
  ALPHANUMERIC,
  ByteSet,
  CLOSE_BRACKET,
  COLON,
  DOT,
  digitsEnd,
  HEX_SET,
  hexDigit,
  indexOfByte,
  isDigit,
  NOT_FOUND,
  PERCENT,
  textAt,
  wholeNumberAt,
} from './bytes.ts'

const DIGIT_0 = 0x30

const IPV4_PARTS = 4
/** Groups of 16 bits. Two colons replace at least one group. */
const IPV6_GROUPS = 8

/** The bytes after the percent sign. */
const ZONE = new ByteSet(`${ALPHANUMERIC}-.:`)

/**
 * Whether bytes [start, end) are the text of an IP address. Agrees with isIP of node:net (Node 20),
 * without a string or regular expression.
 */
export function isIpText(view: DataView, start: number, end: number): boolean {
  return isIpv4Text(view, start, end) || isIpv6Text(view, start, end)
}

/** Four numbers from 0 to 255 without leading zeros. */
function isIpv4Text(view: DataView, start: number, end: number): boolean {
  let at = start
  for (let part = 1; part <= IPV4_PARTS; part++) {
    if (at >= end) return false
    let value = view.getUint8(at++) - DIGIT_0
    if (value < 0 || value > 9) return false
    const digitsEnd = value === 0 ? at : Math.min(at + 2, end)
    for (; at < digitsEnd; at++) {
      const digit = view.getUint8(at) - DIGIT_0
      if (digit < 0 || digit > 9) break
      value = value * 10 + digit
    }
    if (value > 255) return false
    if (part === IPV4_PARTS) return at === end
    if (at >= end || view.getUint8(at++) !== DOT) return false
  }
  return false
}

/** RFC 4291 §2.2, the last two groups also as IPv4; and a zone (RFC 4007 §11). */
function isIpv6Text(view: DataView, start: number, end: number): boolean {
  let groups = 0
  let shortened = false
  let at = start
  if (at + 1 < end && view.getUint8(at) === COLON && view.getUint8(at + 1) === COLON) {
    shortened = true
    at += 2
  }
  // A group must follow a colon, except after the two colons of a shortened address.
  let mayEnd = shortened
  while (at < end && groups < IPV6_GROUPS && view.getUint8(at) !== PERCENT) {
    const groupStart = at
    at = HEX_SET.endOf(view, at, Math.min(at + 4, end))
    if (at === groupStart) return false
    if (at < end && view.getUint8(at) === DOT) {
      const zone = indexOfByte(view, at, end, PERCENT)
      const textEnd = zone === NOT_FOUND ? end : zone
      if (!isIpv4Text(view, groupStart, textEnd)) return false
      groups += 2
      at = textEnd
      mayEnd = true
      break
    }
    groups++
    mayEnd = true
    if (at >= end || view.getUint8(at) !== COLON) break
    at++
    mayEnd = false
    if (at < end && view.getUint8(at) === COLON) {
      if (shortened) return false
      shortened = true
      mayEnd = true
      at++
    }
  }
  const whole = shortened ? groups < IPV6_GROUPS : groups === IPV6_GROUPS
  return whole && mayEnd && (at === end || isZone(view, at, end))
}

function isZone(view: DataView, start: number, end: number): boolean {
  return view.getUint8(start) === PERCENT && start + 1 < end && ZONE.hasAll(view, start + 1, end)
}

/** The kind of address that a field has. */
export const AddressKind = { none: 0, ipv4: 4, ipv6: 6 } as const
export type AddressKind = (typeof AddressKind)[keyof typeof AddressKind]

/**
 * Whether [start, end) is the text of an address (RFC 4291 §2.2 for IPv6, with or without a zone
 * after `%`). An IPv4 octet with a leading zero is rejected, because some parsers read it as octal.
 */
export function addressKind(view: DataView, start: number, end: number): AddressKind {
  const length = end - start
  if (length < 2 || length > 64) return AddressKind.none
  const first = view.getUint8(start)
  if (!isDigit(first) && first !== COLON && hexDigit(first) < 0) return AddressKind.none
  if (isIpv4Text(view, start, end)) return AddressKind.ipv4
  return isIpv6Text(view, start, end) ? AddressKind.ipv6 : AddressKind.none
}

/**
 * The end of an address that `port` or `port:interface:name` may follow. Of IPv6 without brackets,
 * a last part that cannot belong to the address is the port: a fifth digit, or a ninth part.
 */
export function endBeforePort(view: DataView, start: number, end: number): number {
  let last = NOT_FOUND
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === CLOSE_BRACKET) return at + 1
    if (byte !== COLON) continue
    if (isIpv4Text(view, start, at) || view.getUint8(start) === COLON) return at
    last = at
  }
  return last !== NOT_FOUND && !isIpv6Text(view, start, end) && isIpv6Text(view, start, last) ? last : end
}

/**
 * Whether the address in [start, end) is in a private network: RFC 1918, RFC 6598, RFC 4193,
 * link-local.
 */
export function isPrivateAddress(view: DataView, start: number, end: number): boolean {
  if (end - start < 4) return false
  const first = view.getUint8(start)
  if (first === 0x31) return hasPrivatePrefix(view, start, end) && isIpv4Text(view, start, end)
  if ((first | 0x20) !== 0x66) return false
  const second = view.getUint8(start + 1) | 0x20
  const third = view.getUint8(start + 2) | 0x20
  const isLinkLocal = second === 0x65 && (third === 0x38 || third === 0x39 || third === 0x61 || third === 0x62)
  return (second === 0x63 || second === 0x64 || isLinkLocal) && isIpv6Text(view, start, end)
}

function hasPrivatePrefix(view: DataView, start: number, end: number): boolean {
  switch (view.getUint8(start + 1)) {
    case 0x30: {
      if (view.getUint8(start + 2) === DOT) return true
      const part = textAt(view, start, end, '100.') ? partAt(view, start + 4, end) : 0
      return part >= 64 && part <= 127
    }
    case 0x36:
      return textAt(view, start, end, '169.254.')
    case 0x37: {
      const part = textAt(view, start, end, '172.') ? partAt(view, start + 4, end) : 0
      return part >= 16 && part <= 31
    }
    case 0x39:
      return textAt(view, start, end, '192.168.')
    default:
      return false
  }
}

function partAt(view: DataView, start: number, end: number): number {
  return wholeNumberAt(view, start, digitsEnd(view, start, end))
}

/** Whether an external client sent a request to one of the organization's own servers. */
export function isInbound(
  view: DataView,
  sourceStart: number,
  sourceEnd: number,
  targetStart: number,
  targetEnd: number,
): boolean {
  return (
    isPrivateAddress(view, targetStart, targetEnd) &&
    !isPrivateAddress(view, sourceStart, sourceEnd) &&
    addressKind(view, sourceStart, sourceEnd) !== AddressKind.none
  )
}
