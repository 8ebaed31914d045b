import { VLAN_TAGS_MAX } from '../limits.ts'
import { PacketClass } from './packet-class.ts'

/**
 * Link layer -> offset of the IP header. Read: Ethernet with 802.1Q and 802.1ad tags, raw IP, Linux cooked v1 and v2.
 * Not read: MPLS, PPPoE, 802.11, tunnels.
 */

/** https://www.tcpdump.org/linktypes.html; 12 and 14 are what some systems write for raw IP. */
export const LinkType = {
  ethernet: 1,
  rawBsd: 12,
  rawOpenBsd: 14,
  raw: 101,
  linuxCooked: 113,
  ipv4: 228,
  ipv6: 229,
  linuxCooked2: 276,
} as const

/** IEEE 802 Numbers: EtherTypes. */
const ETHERTYPE_IPV4 = 0x0800
const ETHERTYPE_IPV6 = 0x86dd
const ETHERTYPE_8021Q = 0x8100
const ETHERTYPE_8021AD = 0x88a8
const ETHERTYPE_QINQ_OLD = 0x9100
const ETHERTYPE_MPLS = 0x8847
const ETHERTYPE_PPPOE = 0x8864

/** IEEE 802.3: destination, source, EtherType. */
const ETHERNET_HEADER_BYTES = 14
const ETHERNET_TYPE = 12
const VLAN_TAG_BYTES = 4

/** LINKTYPE_LINUX_SLL: the protocol stands last in 16 bytes; LINKTYPE_LINUX_SLL2: first in 20. */
const COOKED_HEADER_BYTES = 16
const COOKED_PROTOCOL = 14
const COOKED2_HEADER_BYTES = 20

/** Offset of the IP header of the frame in bytes [offset, end), whose version nibble agrees with the EtherType; or a complement of a class. */
export function linkPayload(view: DataView, linkType: number, offset: number, end: number): number {
  switch (linkType) {
    case LinkType.ethernet:
      if (offset + ETHERNET_HEADER_BYTES > end) return ~PacketClass.truncated
      return networkLayer(view, view.getUint16(offset + ETHERNET_TYPE), offset + ETHERNET_HEADER_BYTES, end)
    case LinkType.raw:
    case LinkType.rawBsd:
    case LinkType.rawOpenBsd:
    case LinkType.ipv4:
    case LinkType.ipv6:
      return offset < end ? offset : ~PacketClass.truncated
    case LinkType.linuxCooked:
      if (offset + COOKED_HEADER_BYTES > end) return ~PacketClass.truncated
      return networkLayer(view, view.getUint16(offset + COOKED_PROTOCOL), offset + COOKED_HEADER_BYTES, end)
    case LinkType.linuxCooked2:
      if (offset + COOKED2_HEADER_BYTES > end) return ~PacketClass.truncated
      return networkLayer(view, view.getUint16(offset), offset + COOKED2_HEADER_BYTES, end)
    default:
      return ~PacketClass.linkUnsupported
  }
}

/** Skips VLAN tags (IEEE 802.1Q §9.3): each stands between an EtherType and the next. */
function networkLayer(view: DataView, firstEtherType: number, first: number, end: number): number {
  let etherType = firstEtherType
  let at = first
  for (let tags = 0; tags <= VLAN_TAGS_MAX; tags++) {
    switch (etherType) {
      case ETHERTYPE_IPV4:
        return ipOfVersion(view, 4, at, end)
      case ETHERTYPE_IPV6:
        return ipOfVersion(view, 6, at, end)
      case ETHERTYPE_8021Q:
      case ETHERTYPE_8021AD:
      case ETHERTYPE_QINQ_OLD:
        if (at + VLAN_TAG_BYTES > end) return ~PacketClass.truncated
        etherType = view.getUint16(at + 2)
        at += VLAN_TAG_BYTES
        break
      case ETHERTYPE_MPLS:
      case ETHERTYPE_PPPOE:
        return ~PacketClass.linkUnsupported
      default:
        return ~PacketClass.notIp
    }
  }
  return ~PacketClass.linkUnsupported
}

function ipOfVersion(view: DataView, version: number, at: number, end: number): number {
  if (at >= end) return ~PacketClass.truncated
  return view.getUint8(at) >> 4 === version ? at : ~PacketClass.ipMalformed
}
