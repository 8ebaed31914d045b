import { CLOSE_BRACKET, COLON, DOT, hexDigit, isDigit, PERCENT } from './bytes.ts'

/** What the bytes of a field are, as addresses go. */
export const AddressKind = { none: 0, ipv4: 4, ipv6: 6 } as const
export type AddressKind = (typeof AddressKind)[keyof typeof AddressKind]

/**
 * Whether [start, end) is the text of an address (RFC 4291 §2.2 for IPv6, with or without a zone behind `%`). An IPv4 part with a leading
 * zero is none: some read it as octal.
 */
export function addressKind(view: DataView, start: number, end: number): AddressKind {
  const length = end - start
  if (length < 2 || length > 64) return AddressKind.none
  const first = view.getUint8(start)
  if (!isDigit(first) && first !== COLON && hexDigit(first) < 0) return AddressKind.none
  if (isIpv4(view, start, end)) return AddressKind.ipv4
  return isIpv6(view, start, end) ? AddressKind.ipv6 : AddressKind.none
}

export function isIpv4(view: DataView, start: number, end: number): boolean {
  if (end - start < 7 || end - start > 15) return false
  let parts = 0
  let value = 0
  let digits = 0
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === DOT) {
      if (digits === 0 || parts === 3) return false
      parts++
      value = 0
      digits = 0
      continue
    }
    if (!isDigit(byte)) return false
    if (digits > 0 && value === 0) return false
    value = value * 10 + byte - 0x30
    digits++
    if (value > 255) return false
  }
  return parts === 3 && digits > 0
}

export function isIpv6(view: DataView, start: number, end: number): boolean {
  let groups = 0
  let digits = 0
  let gap = false
  let groupStart = start
  let at = start
  if (at + 1 < end && view.getUint8(at) === COLON) {
    if (view.getUint8(at + 1) !== COLON) return false
    gap = true
    at += 2
    groupStart = at
  }
  for (; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === COLON) {
      if (digits === 0) {
        // The second colon of `::`, which may stand once.
        if (gap || at === start) return false
        gap = true
      } else {
        groups++
        if (groups > 7) return false
      }
      digits = 0
      groupStart = at + 1
    } else if (byte === DOT) {
      if (!isIpv4(view, groupStart, endOfAddress(view, at, end))) return false
      groups += 2
      digits = 0
      at = endOfAddress(view, at, end)
      return gap ? groups <= 7 : groups === 8
    } else if (byte === PERCENT) {
      if (at + 1 === end) return false
      break
    } else {
      if (hexDigit(byte) < 0 || digits === 4) return false
      digits++
    }
  }
  if (digits > 0) groups++
  else if (!gap || view.getUint8(at - 2) !== COLON) return false
  return gap ? groups <= 7 : groups === 8
}

/**
 * Where the address ends that `port`, or `port:interface:name`, may follow. An address with several colons and no dot is IPv6 and has no port
 * behind it, since nothing could tell.
 */
export function endBeforePort(view: DataView, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === CLOSE_BRACKET) return at + 1
    if (byte === COLON && (isIpv4(view, start, at) || view.getUint8(start) === COLON)) return at
  }
  return end
}

function endOfAddress(view: DataView, at: number, end: number): number {
  while (at < end && view.getUint8(at) !== PERCENT) at++
  return at
}
