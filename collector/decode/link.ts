import { PacketClass } from '../batch/packet-class.ts'
import { EtherType, ipOfVersion, networkLayer, SNAP, SNAP_BYTES, type VirtualNetworks } from './network-layer.ts'

/**
 * IEEE 802.11 data frames, with and without radiotap -> offset of the IP header. Not read:
 * encrypted frames, aggregated MSDUs after the first.
 */

/** IEEE 802.11-2020 §9.2. */
const WLAN_HEADER_BYTES = 24
const WLAN_TYPE_DATA = 2
/** Version 0 and type data, in the low nibble of the first byte. */
const DATA_FRAME = 0x08
const WLAN_TO_AND_FROM_DS = 0x03
const WLAN_PROTECTED = 0x40
const WLAN_ORDER = 0x80
const WLAN_SUBTYPE_NO_DATA = 0x4
const WLAN_SUBTYPE_QOS = 0x8
const WLAN_QOS_AMSDU = 0x80
/** §9.3.2.2.2: destination, source, length. */
const AMSDU_SUBFRAME_HEADER_BYTES = 14

/**
 * https://www.radiotap.org: version, pad, length of the header in little-endian, words that flag
 * the fields present, fields.
 */
function radiotapPayload(view: DataView, offset: number, end: number, networks: VirtualNetworks): number {
  if (offset + 8 > end) return ~PacketClass.truncated
  const headerBytes = view.getUint16(offset + 2, true)
  if (headerBytes < 8) return ~PacketClass.linkUnsupported
  const frame = offset + headerBytes
  if (frame > end) return ~PacketClass.truncated
  const fields = view.getUint32(offset + 4, true)
  let at = offset + 8
  for (let word = fields; word >>> 31 === 1 && at + 4 <= frame; at += 4) word = view.getUint32(at, true)
  let padded = false
  if ((fields & 0x2) !== 0) {
    // The first field, a time of 8 bytes, is aligned to 8 bytes from the header's start.
    if ((fields & 0x1) !== 0) at = offset + (((at - offset + 7) & ~7) + 8)
    if (at < frame) padded = (view.getUint8(at) & 0x20) !== 0
  }
  return wlanPayload(view, frame, end, padded, networks)
}

/**
 * IEEE 802.11-2020 §9.3.2.1: the header of a data frame, then LLC and SNAP. With `padded`, the
 * header is padded to 4 bytes.
 */
function wlanPayload(view: DataView, offset: number, end: number, padded: boolean, networks: VirtualNetworks): number {
  if (offset + 2 > end) return ~PacketClass.truncated
  return dataPayload(view, offset, end, padded, view.getUint8(offset), view.getUint8(offset + 1), networks)
}

/**
 * The same in CAPWAP. Some access points swap the first two bytes. The type of a data frame shows
 * the order: the flags of frames to or from an access point have another low nibble.
 */
function capwapWlanPayload(view: DataView, offset: number, end: number, networks: VirtualNetworks): number {
  if (offset + 2 > end) return ~PacketClass.truncated
  const first = view.getUint8(offset)
  const second = view.getUint8(offset + 1)
  const isSwapped = (first & 0x0f) !== DATA_FRAME && (second & 0x0f) === DATA_FRAME
  return isSwapped
    ? dataPayload(view, offset, end, false, second, first, networks)
    : dataPayload(view, offset, end, false, first, second, networks)
}

function dataPayload(
  view: DataView,
  offset: number,
  end: number,
  padded: boolean,
  control: number,
  flags: number,
  networks: VirtualNetworks,
): number {
  const subtype = control >> 4
  if (((control >> 2) & 3) !== WLAN_TYPE_DATA || (subtype & WLAN_SUBTYPE_NO_DATA) !== 0) return ~PacketClass.notIp
  if ((flags & WLAN_PROTECTED) !== 0) return ~PacketClass.linkEncrypted
  let header = WLAN_HEADER_BYTES
  if ((flags & WLAN_TO_AND_FROM_DS) === WLAN_TO_AND_FROM_DS) header += 6
  let aggregated = false
  if ((subtype & WLAN_SUBTYPE_QOS) !== 0) {
    if (offset + header + 2 > end) return ~PacketClass.truncated
    aggregated = (view.getUint8(offset + header) & WLAN_QOS_AMSDU) !== 0
    header += 2
    if ((flags & WLAN_ORDER) !== 0) header += 4
  }
  if (padded) header = (header + 3) & ~3
  if (aggregated) header += AMSDU_SUBFRAME_HEADER_BYTES
  const llc = offset + header
  if (llc + SNAP_BYTES > end) return ~PacketClass.truncated
  if (view.getUint16(llc) !== SNAP) return ~PacketClass.notIp
  return networkLayer(view, view.getUint16(llc + SNAP_BYTES - 2), llc + SNAP_BYTES, end, networks)
}

/**
 * Link layer -> offset of the IP header. Read: Ethernet and what network-layer.ts reads after it;
 * raw IP; Linux cooked v1 and v2; BSD null, loop and enc; PPP; IEEE 802.11 data frames; FDDI; PPI;
 * PFLOG; NFLOG; PKTAP; IPNET; mPackets; Juniper Ethernet. Not read: ARCNET, Frame Relay, ATM, USB, Bluetooth.
 */

/** https://www.tcpdump.org/linktypes.html. Some systems write 12 and 14 for raw IP. */
export const LinkType = {
  null: 0,
  ethernet: 1,
  ppp: 9,
  fddi: 10,
  rawBsd: 12,
  rawOpenBsd: 14,
  pppHdlc: 50,
  pppoe: 51,
  raw: 101,
  ciscoHdlc: 104,
  ieee80211: 105,
  loop: 108,
  enc: 109,
  linuxCooked: 113,
  pflog: 117,
  radiotap: 127,
  /** LINKTYPE_USER2, by which macOS means PKTAP. */
  pktapOfMac: 149,
  ppi: 192,
  pppWithDirection: 204,
  juniperEthernet: 178,
  ipnet: 226,
  ipv4: 228,
  ipv6: 229,
  nflog: 239,
  pktap: 258,
  mPacket: 274,
  linuxCooked2: 276,
  /** Not a number of a capture file: IEEE 802.11 in CAPWAP. */
  capwapWlan: -1,
} as const

/**
 * LINKTYPE_LINUX_SLL: the protocol is the last field of 16 bytes. LINKTYPE_LINUX_SLL2: the first of
 * 20.
 */
const COOKED_HEADER_BYTES = 16
const COOKED_PROTOCOL = 14
const COOKED2_HEADER_BYTES = 20

const CISCO_UNICAST = 0x0f00
const CISCO_MULTICAST = 0x8f00

/** Address families of the systems that write null and loop headers. AF_INET is always 2. */
const FAMILY_IPV4 = 2
const FAMILIES_IPV6 = [10, 24, 28, 30]

/** Juniper: "MGC", flags, then optional extensions with their length. */
const JUNIPER_MAGIC = 0x4d4743
const JUNIPER_EXTENSIONS = 0x80
const JUNIPER_NO_LINK_LAYER = 0x02

/**
 * ANSI X3.139: frame control, destination, source. Then LLC as in 802.3. The class in the frame
 * control's bits 4 and 5 is 1 for LLC.
 */
const FDDI_HEADER_BYTES = 13
const FDDI_CLASS = 0x30
const FDDI_LLC = 0x10

/** <linux/netfilter/nfnetlink_log.h>: address family, version, resource; then attributes. */
const NFLOG_HEADER_BYTES = 4
const NFLOG_ATTRIBUTE_HEADER_BYTES = 4
const NFLOG_PAYLOAD = 9
const NFLOG_TYPE = 0x7fff

/** <net/if_enc.h>: address family, security parameter index, flags. */
const ENC_HEADER_BYTES = 12

/** Solaris, <inet/ipnet.h>: version, address family; its AF_INET6 is 26. */
const IPNET_HEADER_BYTES = 24
const IPNET_IPV6 = 26

/** IEEE 802.3br, an express packet: preamble and start of frame. */
const MPACKET_HEADER_BYTES = 8

/** <net/pktap.h>: length of the header, type of the record, link type; in little-endian. */
const PKTAP_HEADER_BYTES_MIN = 12
const PKTAP_RECORD = 4
const PKTAP_LINK_TYPE = 8
/** The only type of record, a packet. */
const PKTAP_PACKET = 1

/** PPI: version, flags, length of the header and link type of the frame, in little-endian. */
const PPI_HEADER_BYTES = 8

/**
 * Returns the offset of the IP header of the frame in bytes [offset, end), after checking its
 * version nibble against the link layer. Otherwise returns the complement of a class.
 */
export function linkPayload(
  view: DataView,
  linkType: number,
  offset: number,
  end: number,
  networks: VirtualNetworks,
): number {
  switch (linkType) {
    case LinkType.ethernet:
      return networkLayer(view, EtherType.transparentEthernet, offset, end, networks)
    case LinkType.raw:
    case LinkType.rawBsd:
    case LinkType.rawOpenBsd:
    case LinkType.ipv4:
    case LinkType.ipv6:
      return offset < end ? offset : ~PacketClass.truncated
    case LinkType.linuxCooked:
      if (offset + COOKED_HEADER_BYTES > end) return ~PacketClass.truncated
      return networkLayer(view, view.getUint16(offset + COOKED_PROTOCOL), offset + COOKED_HEADER_BYTES, end, networks)
    case LinkType.linuxCooked2:
      if (offset + COOKED2_HEADER_BYTES > end) return ~PacketClass.truncated
      return networkLayer(view, view.getUint16(offset), offset + COOKED2_HEADER_BYTES, end, networks)
    case LinkType.null:
    case LinkType.loop:
      return familyPayload(view, offset, offset + 4, end)
    case LinkType.enc:
      return familyPayload(view, offset, offset + ENC_HEADER_BYTES, end)
    case LinkType.ipnet:
      if (offset + IPNET_HEADER_BYTES > end) return ~PacketClass.truncated
      return ipOfVersion(view, view.getUint8(offset + 1) === IPNET_IPV6 ? 6 : 4, offset + IPNET_HEADER_BYTES, end)
    case LinkType.mPacket:
      return networkLayer(view, EtherType.transparentEthernet, offset + MPACKET_HEADER_BYTES, end, networks)
    case LinkType.pktap:
    case LinkType.pktapOfMac:
      return pktapPayload(view, offset, end, networks)
    case LinkType.ppp:
    case LinkType.pppHdlc:
      return serialPayload(view, offset, end, networks)
    case LinkType.pppWithDirection:
      return networkLayer(view, EtherType.ppp, offset + 1, end, networks)
    case LinkType.pppoe:
      return networkLayer(view, EtherType.pppoeSession, offset, end, networks)
    case LinkType.ciscoHdlc:
      return ciscoPayload(view, offset, end, networks)
    case LinkType.fddi:
      return fddiPayload(view, offset, end, networks)
    case LinkType.nflog:
      return nflogPayload(view, offset, end)
    case LinkType.ppi:
      return ppiPayload(view, offset, end, networks)
    case LinkType.ieee80211:
      return wlanPayload(view, offset, end, false, networks)
    case LinkType.capwapWlan:
      return capwapWlanPayload(view, offset, end, networks)
    case LinkType.radiotap:
      return radiotapPayload(view, offset, end, networks)
    case LinkType.pflog:
      return pflogPayload(view, offset, end)
    case LinkType.juniperEthernet:
      return juniperPayload(view, offset, end, networks)
    default:
      return ~PacketClass.linkUnsupported
  }
}

/**
 * RFC 1547 §4.3.1: Cisco's framing begins with a unicast or multicast address. All other serial
 * framing is PPP.
 */
function serialPayload(view: DataView, offset: number, end: number, networks: VirtualNetworks): number {
  if (offset + 2 > end) return ~PacketClass.truncated
  const start = view.getUint16(offset)
  if (start === CISCO_UNICAST || start === CISCO_MULTICAST) return ciscoPayload(view, offset, end, networks)
  return networkLayer(view, EtherType.ppp, offset, end, networks)
}

function ciscoPayload(view: DataView, offset: number, end: number, networks: VirtualNetworks): number {
  if (offset + 4 > end) return ~PacketClass.truncated
  return networkLayer(view, view.getUint16(offset + 2), offset + 4, end, networks)
}

/**
 * The family is in the byte order of the writing machine. It is below 256, so the value shows the
 * order. Some programs write an EtherType in its place.
 */
function familyPayload(view: DataView, offset: number, at: number, end: number): number {
  if (at > end) return ~PacketClass.truncated
  const big = view.getUint32(offset)
  const family = big > 0xffff ? view.getUint32(offset, true) : big
  if (family === FAMILY_IPV4 || family === EtherType.ipv4) return ipOfVersion(view, 4, at, end)
  const isIpv6 = FAMILIES_IPV6.includes(family) || family === EtherType.ipv6
  return isIpv6 ? ipOfVersion(view, 6, at, end) : ~PacketClass.notIp
}

/** Headers that name the link type of the frame after them. One within another would have no end. */
function isWrapper(linkType: number): boolean {
  return linkType === LinkType.pktap || linkType === LinkType.pktapOfMac || linkType === LinkType.ppi
}

function pktapPayload(view: DataView, offset: number, end: number, networks: VirtualNetworks): number {
  if (offset + PKTAP_HEADER_BYTES_MIN > end) return ~PacketClass.truncated
  const headerBytes = view.getUint32(offset, true)
  const linkType = view.getUint32(offset + PKTAP_LINK_TYPE, true)
  const isPacket = view.getUint32(offset + PKTAP_RECORD, true) === PKTAP_PACKET
  if (!isPacket || headerBytes < PKTAP_HEADER_BYTES_MIN || isWrapper(linkType)) return ~PacketClass.linkUnsupported
  return linkPayload(view, linkType, Math.min(offset + headerBytes, end), end, networks)
}

/** <net/if_pflog.h>: length of the header without its padding to 4 bytes, address family. */
function pflogPayload(view: DataView, offset: number, end: number): number {
  if (offset + 2 > end) return ~PacketClass.truncated
  const at = offset + ((view.getUint8(offset) + 3) & ~3)
  if (at <= offset) return ~PacketClass.linkUnsupported
  if (at >= end) return ~PacketClass.truncated
  const family = view.getUint8(offset + 1)
  if (family === FAMILY_IPV4) return ipOfVersion(view, 4, at, end)
  return FAMILIES_IPV6.includes(family) ? ipOfVersion(view, 6, at, end) : ~PacketClass.notIp
}

function juniperPayload(view: DataView, offset: number, end: number, networks: VirtualNetworks): number {
  if (offset + 4 > end) return ~PacketClass.truncated
  const word = view.getUint32(offset)
  if (word >>> 8 !== JUNIPER_MAGIC) return ~PacketClass.linkUnsupported
  let at = offset + 4
  if ((word & JUNIPER_EXTENSIONS) !== 0) {
    if (at + 2 > end) return ~PacketClass.truncated
    at += 2 + view.getUint16(at)
  }
  if ((word & JUNIPER_NO_LINK_LAYER) !== 0) {
    // The protocol field of 4 bytes has no defined byte order. The IP header's version nibble
    // decides.
    at += 4
    if (at >= end) return ~PacketClass.truncated
    const nibble = view.getUint8(at) >> 4
    return nibble === 4 || nibble === 6 ? at : ~PacketClass.notIp
  }
  return networkLayer(view, EtherType.transparentEthernet, at, end, networks)
}

function fddiPayload(view: DataView, offset: number, end: number, networks: VirtualNetworks): number {
  if (offset + FDDI_HEADER_BYTES > end) return ~PacketClass.truncated
  if ((view.getUint8(offset) & FDDI_CLASS) !== FDDI_LLC) return ~PacketClass.notIp
  // 0 is a length in place of an EtherType: LLC follows.
  return networkLayer(view, 0, offset + FDDI_HEADER_BYTES, end, networks)
}

/** The attributes are in the byte order of the machine that captured. */
function nflogPayload(view: DataView, offset: number, end: number): number {
  if (offset + NFLOG_HEADER_BYTES > end) return ~PacketClass.truncated
  const family = view.getUint8(offset)
  const isIpv6 = FAMILIES_IPV6.includes(family)
  if (family !== FAMILY_IPV4 && !isIpv6) return ~PacketClass.notIp
  let at = offset + NFLOG_HEADER_BYTES
  if (at + NFLOG_ATTRIBUTE_HEADER_BYTES > end) return ~PacketClass.truncated
  // The types are below 256, so the first one shows the order.
  const isLittle = (view.getUint16(at + 2) & NFLOG_TYPE) > 0xff || view.getUint16(at + 2) === 0
  while (at + NFLOG_ATTRIBUTE_HEADER_BYTES <= end) {
    const bytes = view.getUint16(at, isLittle)
    if (bytes < NFLOG_ATTRIBUTE_HEADER_BYTES) return ~PacketClass.linkUnsupported
    if ((view.getUint16(at + 2, isLittle) & NFLOG_TYPE) === NFLOG_PAYLOAD)
      return ipOfVersion(view, isIpv6 ? 6 : 4, at + NFLOG_ATTRIBUTE_HEADER_BYTES, end)
    at += (bytes + 3) & ~3
  }
  return ~PacketClass.truncated
}

function ppiPayload(view: DataView, offset: number, end: number, networks: VirtualNetworks): number {
  if (offset + PPI_HEADER_BYTES > end) return ~PacketClass.truncated
  const headerBytes = view.getUint16(offset + 2, true)
  const linkType = view.getUint32(offset + 4, true)
  if (headerBytes < PPI_HEADER_BYTES || isWrapper(linkType)) return ~PacketClass.linkUnsupported
  return linkPayload(view, linkType, offset + headerBytes, end, networks)
}
