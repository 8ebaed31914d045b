import { DOT, digitsEnd, textAt, wholeNumberAt } from './bytes.ts'
import { AddressKind, addressKind, isIpv4Text, isIpv6Text } from './ip-address.ts'

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
