import { PacketClass } from '../batch/packet-class.ts'
import { ENCAPSULATIONS_MAX } from '../limits.ts'

/**
 * Link layer -> offset of the IP header. Read: Ethernet with VLAN tags, MPLS, PPPoE and LLC/SNAP;
 * raw IP; Linux cooked v1 and v2; BSD null and loop; PPP; IEEE 802.11 data frames with and without
 * radiotap; PFLOG; Juniper Ethernet. Not read: encrypted 802.11, aggregated MSDUs after the first,
 * Frame Relay, ATM, USB, Bluetooth.
 */

/** https://www.tcpdump.org/linktypes.html. Some systems write 12 and 14 for raw IP. */
export const LinkType = {
  null: 0,
  ethernet: 1,
  ppp: 9,
  rawBsd: 12,
  rawOpenBsd: 14,
  pppHdlc: 50,
  pppoe: 51,
  raw: 101,
  ciscoHdlc: 104,
  ieee80211: 105,
  loop: 108,
  linuxCooked: 113,
  pflog: 117,
  radiotap: 127,
  pppWithDirection: 204,
  juniperEthernet: 178,
  ipv4: 228,
  ipv6: 229,
  linuxCooked2: 276,
} as const

/** IEEE 802 Numbers: EtherTypes. */
export const EtherType = {
  ipv4: 0x0800,
  ipv6: 0x86dd,
  vlan: 0x8100,
  providerBridge: 0x88a8,
  qinqOld: 0x9100,
  qinqOlder: 0x9200,
  mpls: 0x8847,
  mplsMulticast: 0x8848,
  pppoeSession: 0x8864,
  ppp: 0x880b,
  transparentEthernet: 0x6558,
} as const

/** IEEE 802.3: destination, source, EtherType. A value up to 1500 is a length, and LLC follows. */
const ETHERNET_HEADER_BYTES = 14
const ETHERNET_TYPE = 12
const LENGTH_MAX = 1500
const VLAN_TAG_BYTES = 4

/** IEEE 802.2 and RFC 1042: DSAP and SSAP aa, UI, an organization code of zero, EtherType. */
const SNAP_BYTES = 8
const SNAP = 0xaaaa

/**
 * LINKTYPE_LINUX_SLL: the protocol is the last field of 16 bytes. LINKTYPE_LINUX_SLL2: the first of
 * 20.
 */
const COOKED_HEADER_BYTES = 16
const COOKED_PROTOCOL = 14
const COOKED2_HEADER_BYTES = 20

/** RFC 3032 §2.1: 20 bits of label, 3 of traffic class, bottom of stack, 8 of time to live. */
const MPLS_ENTRY_BYTES = 4
const MPLS_BOTTOM = 0x100
/** RFC 4385 §3: a pseudowire's control word begins with a zero nibble. */
const CONTROL_WORD_BYTES = 4

/** RFC 2516 §4: version and type 1, code, session, length. */
const PPPOE_HEADER_BYTES = 6

/** RFC 1661 §2, RFC 1662 §3.1 and the protocol numbers of IANA. */
const PPP_ADDRESS_CONTROL = 0xff03
const CISCO_UNICAST = 0x0f00
const CISCO_MULTICAST = 0x8f00
const PPP_IPV4 = 0x0021
const PPP_IPV6 = 0x0057
const PPP_MPLS = 0x0281
const PPP_MPLS_MULTICAST = 0x0283

/** Address families of the systems that write null and loop headers. AF_INET is always 2. */
const FAMILY_IPV4 = 2
const FAMILIES_IPV6 = [10, 24, 28, 30]

/** IEEE 802.11-2020 §9.2. */
const WLAN_HEADER_BYTES = 24
const WLAN_TYPE_DATA = 2
const WLAN_TO_AND_FROM_DS = 0x03
const WLAN_PROTECTED = 0x40
const WLAN_ORDER = 0x80
const WLAN_SUBTYPE_NO_DATA = 0x4
const WLAN_SUBTYPE_QOS = 0x8
const WLAN_QOS_AMSDU = 0x80
/** §9.3.2.2.2: destination, source, length. */
const AMSDU_SUBFRAME_HEADER_BYTES = 14

/** Juniper: "MGC", flags, then optional extensions with their length. */
const JUNIPER_MAGIC = 0x4d4743
const JUNIPER_EXTENSIONS = 0x80
const JUNIPER_NO_LINK_LAYER = 0x02

/**
 * Returns the offset of the IP header of the frame in bytes [offset, end), after checking its
 * version nibble against the link layer. Otherwise returns the complement of a class.
 */
export function linkPayload(view: DataView, linkType: number, offset: number, end: number): number {
  switch (linkType) {
    case LinkType.ethernet:
      return networkLayer(view, EtherType.transparentEthernet, offset, end)
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
    case LinkType.null:
    case LinkType.loop:
      return familyPayload(view, offset, end)
    case LinkType.ppp:
    case LinkType.pppHdlc:
      return serialPayload(view, offset, end)
    case LinkType.pppWithDirection:
      return networkLayer(view, EtherType.ppp, offset + 1, end)
    case LinkType.pppoe:
      return networkLayer(view, EtherType.pppoeSession, offset, end)
    case LinkType.ciscoHdlc:
      return ciscoPayload(view, offset, end)
    case LinkType.ieee80211:
      return wlanPayload(view, offset, end, false)
    case LinkType.radiotap:
      return radiotapPayload(view, offset, end)
    case LinkType.pflog:
      return pflogPayload(view, offset, end)
    case LinkType.juniperEthernet:
      return juniperPayload(view, offset, end)
    default:
      return ~PacketClass.linkUnsupported
  }
}

/**
 * Returns the offset of the IP header after the layers that `firstEtherType` announces at `first`:
 * VLAN tags (IEEE 802.1Q §9.3), MPLS labels, PPPoE, PPP and Ethernet, in any order.
 */
export function networkLayer(view: DataView, firstEtherType: number, first: number, end: number): number {
  let etherType = firstEtherType
  let at = first
  for (let layers = 0; layers < ENCAPSULATIONS_MAX; layers++) {
    switch (etherType) {
      case EtherType.ipv4:
        return ipOfVersion(view, 4, at, end)
      case EtherType.ipv6:
        return ipOfVersion(view, 6, at, end)
      case EtherType.vlan:
      case EtherType.providerBridge:
      case EtherType.qinqOld:
      case EtherType.qinqOlder:
        if (at + VLAN_TAG_BYTES > end) return ~PacketClass.truncated
        etherType = view.getUint16(at + 2)
        at += VLAN_TAG_BYTES
        break
      case EtherType.transparentEthernet:
        if (at + ETHERNET_HEADER_BYTES > end) return ~PacketClass.truncated
        etherType = view.getUint16(at + ETHERNET_TYPE)
        at += ETHERNET_HEADER_BYTES
        break
      case EtherType.pppoeSession:
        if (at + PPPOE_HEADER_BYTES > end) return ~PacketClass.truncated
        if (view.getUint8(at) !== 0x11) return ~PacketClass.linkUnsupported
        // Code 0: session data.
        if (view.getUint8(at + 1) !== 0) return ~PacketClass.notIp
        etherType = EtherType.ppp
        at += PPPOE_HEADER_BYTES
        break
      case EtherType.ppp: {
        if (at + 2 <= end && view.getUint16(at) === PPP_ADDRESS_CONTROL) at += 2
        if (at + 1 > end) return ~PacketClass.truncated
        // RFC 1661 §2: an odd byte ends the protocol field, so a leading zero byte may be omitted.
        const short = (view.getUint8(at) & 1) === 1
        if (!short && at + 2 > end) return ~PacketClass.truncated
        const protocol = short ? view.getUint8(at) : view.getUint16(at)
        at += short ? 1 : 2
        if (protocol === PPP_IPV4) etherType = EtherType.ipv4
        else if (protocol === PPP_IPV6) etherType = EtherType.ipv6
        else if (protocol === PPP_MPLS || protocol === PPP_MPLS_MULTICAST) etherType = EtherType.mpls
        else return ~PacketClass.notIp
        break
      }
      case EtherType.mpls:
      case EtherType.mplsMulticast: {
        if (at + MPLS_ENTRY_BYTES > end) return ~PacketClass.truncated
        const bottom = (view.getUint32(at) & MPLS_BOTTOM) !== 0
        at += MPLS_ENTRY_BYTES
        if (!bottom) break
        // A label stack does not name its content: an IP header, or a pseudowire's Ethernet with or
        // without a control word.
        if (at >= end) return ~PacketClass.truncated
        const nibble = view.getUint8(at) >> 4
        if (nibble === 4 || nibble === 6) return at
        if (nibble === 0 && !etherTypeIsRead(view, at + ETHERNET_TYPE, end)) at += CONTROL_WORD_BYTES
        etherType = EtherType.transparentEthernet
        break
      }
      default:
        if (etherType > LENGTH_MAX) return ~PacketClass.notIp
        if (at + SNAP_BYTES > end) return ~PacketClass.notIp
        if (view.getUint16(at) !== SNAP) return ~PacketClass.notIp
        etherType = view.getUint16(at + SNAP_BYTES - 2)
        if (etherType <= LENGTH_MAX) return ~PacketClass.notIp
        at += SNAP_BYTES
    }
  }
  return ~PacketClass.nestedTooDeep
}

function etherTypeIsRead(view: DataView, at: number, end: number): boolean {
  if (at + 2 > end) return false
  const etherType = view.getUint16(at)
  return etherType === EtherType.ipv4 || etherType === EtherType.ipv6 || etherType === EtherType.vlan
}

function ipOfVersion(view: DataView, version: number, at: number, end: number): number {
  if (at >= end) return ~PacketClass.truncated
  return view.getUint8(at) >> 4 === version ? at : ~PacketClass.ipMalformed
}

/**
 * RFC 1547 §4.3.1: Cisco's framing begins with a unicast or multicast address. All other serial
 * framing is PPP.
 */
function serialPayload(view: DataView, offset: number, end: number): number {
  if (offset + 2 > end) return ~PacketClass.truncated
  const start = view.getUint16(offset)
  if (start === CISCO_UNICAST || start === CISCO_MULTICAST) return ciscoPayload(view, offset, end)
  return networkLayer(view, EtherType.ppp, offset, end)
}

function ciscoPayload(view: DataView, offset: number, end: number): number {
  if (offset + 4 > end) return ~PacketClass.truncated
  return networkLayer(view, view.getUint16(offset + 2), offset + 4, end)
}

/**
 * The family is in the byte order of the writing machine. It is below 256, so the value shows the
 * order.
 */
function familyPayload(view: DataView, offset: number, end: number): number {
  if (offset + 4 > end) return ~PacketClass.truncated
  const big = view.getUint32(offset)
  const family = big > 0xffff ? view.getUint32(offset, true) : big
  if (family === FAMILY_IPV4) return ipOfVersion(view, 4, offset + 4, end)
  return FAMILIES_IPV6.includes(family) ? ipOfVersion(view, 6, offset + 4, end) : ~PacketClass.notIp
}

/**
 * https://www.radiotap.org: version, pad, length of the header in little-endian, words that flag
 * the fields present, fields.
 */
function radiotapPayload(view: DataView, offset: number, end: number): number {
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
  return wlanPayload(view, frame, end, padded)
}

/**
 * IEEE 802.11-2020 §9.3.2.1: the header of a data frame, then LLC and SNAP. With `padded`, the
 * header is padded to 4 bytes.
 */
function wlanPayload(view: DataView, offset: number, end: number, padded: boolean): number {
  if (offset + 2 > end) return ~PacketClass.truncated
  const control = view.getUint8(offset)
  const flags = view.getUint8(offset + 1)
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
  return networkLayer(view, view.getUint16(llc + SNAP_BYTES - 2), llc + SNAP_BYTES, end)
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

function juniperPayload(view: DataView, offset: number, end: number): number {
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
  return networkLayer(view, EtherType.transparentEthernet, at, end)
}
