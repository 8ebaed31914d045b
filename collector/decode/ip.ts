import { PacketClass } from '../batch/packet-class.ts'
import { EXTENSION_HEADERS_MAX } from '../limits.ts'

/**
 * IP header -> protocol and payload. Read: IPv4 with options, IPv6 with extension headers.
 * ip-fragments.ts reassembles fragments. Not read: ESP.
 */

/** RFC 791 §3.1 */
const IPV4_HEADER_BYTES = 20
const IPV4_TOTAL_LENGTH = 2
const IPV4_IDENTIFICATION = 4
const IPV4_FRAGMENT = 6
const IPV4_PROTOCOL = 9
const IPV4_SOURCE = 12
const IPV4_MORE_FRAGMENTS = 0x2000
const IPV4_FRAGMENT_OFFSET = 0x1fff

/** RFC 8200 §3 */
const IPV6_HEADER_BYTES = 40
const IPV6_PAYLOAD_LENGTH = 4
const IPV6_NEXT_HEADER = 6
const IPV6_SOURCE = 8
/**
 * RFC 8200 §4.5: the fragment header: next header, reserved, 13 bits of offset and the M bit,
 * identification.
 */
const FRAGMENT_HEADER_BYTES = 8
const FRAGMENT_OFFSET = 0xfff8
const MORE_FRAGMENTS = 1

/** IANA Assigned Internet Protocol Numbers */
export const IpProtocol = {
  ipv4: 4,
  tcp: 6,
  udp: 17,
  ipv6: 41,
  gre: 47,
  esp: 50,
  etherIp: 97,
  l2tp: 115,
  mpls: 137,
  /** RFC 8986 §9.1 */
  ethernet: 143,
} as const
const HOP_BY_HOP = 0
const ROUTING = 43
const FRAGMENT = 44
const AUTHENTICATION = 51
const DESTINATION_OPTIONS = 60
const MOBILITY = 135
const HIP = 139
const SHIM6 = 140

/**
 * The fields of an IP header that the layers above need. One per worker, overwritten by each
 * packet.
 */
export class IpHeader {
  version = 0
  /** Offset of the source address. The destination address follows it. */
  source = 0
  addressBytes = 0
  protocol = 0
  /** End of the payload: the end by the header or the end of the frame, whichever comes first. */
  end = 0
  /** 1 if the frame ends before the packet: the payload is incomplete. */
  truncated = 0
  /**
   * For a fragment: identification, offset of its bytes in the whole payload, and 1 if more
   * fragments follow.
   */
  identification = 0
  fragmentOffset = 0
  moreFragments = 0
  /** 1 if this packet, or one around it, has an authentication header. Reset for each frame. */
  authenticated = 0
}

/**
 * Returns the offset of the payload of the IP packet in bytes [offset, end), and fills `ip`.
 * Link-layer padding after the packet is excluded. For a fragment, returns the complement of
 * ipFragment; fragmentPayload() then returns where its bytes begin.
 */
export function ipPayload(view: DataView, offset: number, end: number, ip: IpHeader): number {
  if (offset >= end) return ~PacketClass.truncated
  const version = view.getUint8(offset) >> 4
  if (version === 4) return ipv4Payload(view, offset, end, ip)
  if (version === 6) return ipv6Payload(view, offset, end, ip)
  return ~PacketClass.ipMalformed
}

function ipv4Payload(view: DataView, offset: number, end: number, ip: IpHeader): number {
  if (offset + IPV4_HEADER_BYTES > end) return ~PacketClass.truncated
  const headerBytes = (view.getUint8(offset) & 0x0f) * 4
  if (headerBytes < IPV4_HEADER_BYTES) return ~PacketClass.ipMalformed
  // With segmentation offload, a capture on the sending host sees packets of length 0.
  const totalBytes = view.getUint16(offset + IPV4_TOTAL_LENGTH)
  if (totalBytes !== 0 && totalBytes < headerBytes) return ~PacketClass.ipMalformed
  if (offset + headerBytes > end) return ~PacketClass.truncated
  ip.version = 4
  ip.source = offset + IPV4_SOURCE
  ip.addressBytes = 4
  ip.protocol = view.getUint8(offset + IPV4_PROTOCOL)
  ip.end = totalBytes === 0 ? end : Math.min(end, offset + totalBytes)
  ip.truncated = offset + totalBytes > end ? 1 : 0
  const payload = offset + headerBytes
  const fragment = view.getUint16(offset + IPV4_FRAGMENT)
  if ((fragment & (IPV4_MORE_FRAGMENTS | IPV4_FRAGMENT_OFFSET)) === 0) {
    return ip.protocol === AUTHENTICATION ? ipv6Extensions(view, AUTHENTICATION, payload, ip) : payload
  }
  ip.identification = view.getUint16(offset + IPV4_IDENTIFICATION)
  ip.fragmentOffset = (fragment & IPV4_FRAGMENT_OFFSET) * 8
  ip.moreFragments = (fragment & IPV4_MORE_FRAGMENTS) === 0 ? 0 : 1
  return ~PacketClass.ipFragment
}

/**
 * Returns where the bytes of a fragment begin. The header at `offset` must be the one that
 * ipPayload() just read.
 */
export function fragmentPayload(view: DataView, offset: number, ip: IpHeader): number {
  if (ip.version === 4) return offset + (view.getUint8(offset) & 0x0f) * 4
  let at = offset + IPV6_HEADER_BYTES
  for (let next = view.getUint8(offset + IPV6_NEXT_HEADER); next !== FRAGMENT; ) {
    const lengthField = view.getUint8(at + 1)
    const headerBytes = next === AUTHENTICATION ? (lengthField + 2) * 4 : (lengthField + 1) * 8
    next = view.getUint8(at)
    at += headerBytes
  }
  return at + FRAGMENT_HEADER_BYTES
}

function ipv6Payload(view: DataView, offset: number, end: number, ip: IpHeader): number {
  if (offset + IPV6_HEADER_BYTES > end) return ~PacketClass.truncated
  // 0 means a jumbogram (RFC 2675 §3) or segmentation offload.
  const payloadBytes = view.getUint16(offset + IPV6_PAYLOAD_LENGTH)
  const at = offset + IPV6_HEADER_BYTES
  ip.version = 6
  ip.source = offset + IPV6_SOURCE
  ip.addressBytes = 16
  ip.end = payloadBytes === 0 ? end : Math.min(end, at + payloadBytes)
  ip.truncated = at + payloadBytes > end ? 1 : 0
  return ipv6Extensions(view, view.getUint8(offset + IPV6_NEXT_HEADER), at, ip)
}

/**
 * RFC 8200 §4: each extension header begins with the number of the next header and, except for the
 * fragment header, its own length. Returns the offset after the last extension header and sets
 * ip.protocol. `first` is the number of the header at `start`.
 */
export function ipv6Extensions(view: DataView, first: number, start: number, ip: IpHeader): number {
  let next = first
  let at = start
  const end = ip.end
  for (let headers = 0; headers < EXTENSION_HEADERS_MAX; headers++) {
    switch (next) {
      case HOP_BY_HOP:
      case ROUTING:
      case DESTINATION_OPTIONS:
      case MOBILITY:
      case HIP:
      case SHIM6:
      case AUTHENTICATION: {
        if (at + 8 > end) return ~PacketClass.truncated
        const lengthField = view.getUint8(at + 1)
        // RFC 4302 §2.2: the authentication header counts units of 4 bytes, minus 2. All others
        // count units of 8 bytes, minus 1.
        const headerBytes = next === AUTHENTICATION ? (lengthField + 2) * 4 : (lengthField + 1) * 8
        if (next === AUTHENTICATION) ip.authenticated = 1
        next = view.getUint8(at)
        at += headerBytes
        if (at > end) return ~PacketClass.truncated
        break
      }
      case FRAGMENT: {
        if (at + FRAGMENT_HEADER_BYTES > end) return ~PacketClass.truncated
        const fragment = view.getUint16(at + 2)
        next = view.getUint8(at)
        // RFC 6946: an atomic fragment (offset 0, no more fragments) is a whole packet.
        if ((fragment & (FRAGMENT_OFFSET | MORE_FRAGMENTS)) !== 0) {
          ip.protocol = next
          ip.identification = view.getUint32(at + 4)
          ip.fragmentOffset = fragment & FRAGMENT_OFFSET
          ip.moreFragments = fragment & MORE_FRAGMENTS
          return ~PacketClass.ipFragment
        }
        at += FRAGMENT_HEADER_BYTES
        break
      }
      default:
        ip.protocol = next
        return at
    }
  }
  return ~PacketClass.ipMalformed
}
