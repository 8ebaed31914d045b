import { CLOSE_BRACKET, COLON, hexDigit, isDigit } from './bytes.ts'
import { isIpv4Text, isIpv6Text } from './ip-text.ts'

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
  if (isIpv4Text(view, start, end)) return AddressKind.ipv4
  return isIpv6Text(view, start, end) ? AddressKind.ipv6 : AddressKind.none
}

/**
 * Where the address ends that `port`, or `port:interface:name`, may follow. An address with several colons and no dot is IPv6 and has no port
 * behind it, since nothing could tell.
 */
export function endBeforePort(view: DataView, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === CLOSE_BRACKET) return at + 1
    if (byte === COLON && (isIpv4Text(view, start, at) || view.getUint8(start) === COLON)) return at
  }
  return end
}
