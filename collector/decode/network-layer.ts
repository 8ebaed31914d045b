import { PacketClass } from '../batch/packet-class.ts'
import { ENCAPSULATIONS_MAX } from '../limits.ts'

/**
 * EtherType -> offset of the IP header. Read: VLAN tags and other tags, MPLS, PPPoE, PPP, NSH,
 * LLC/SNAP, MACsec without encryption, time stamps of TAP aggregators, and Ethernet in Ethernet,
 * FabricPath and TRILL.
 */

/** IEEE 802 Numbers: EtherTypes. */
export const EtherType = {
  ipv4: 0x0800,
  ipv6: 0x86dd,
  vlan: 0x8100,
  providerBridge: 0x88a8,
  qinqOld: 0x9100,
  qinqOlder: 0x9200,
  qinqOldest: 0x9300,
  /** RFC 6325 §3 */
  trill: 0x22f3,
  mpls: 0x8847,
  mplsMulticast: 0x8848,
  pppoeSession: 0x8864,
  /** IEEE 802.1AE */
  macsec: 0x88e5,
  /** IEEE 802.1ah: provider backbone bridges. */
  backboneServiceTag: 0x88e7,
  /** IEC 62439-3: high-availability seamless redundancy. */
  hsr: 0x892f,
  ciscoFabricPath: 0x8903,
  /** Arista TAP aggregators insert the time of receipt. */
  aristaTime: 0xd28b,
  /** Cisco metadata with a security group tag. */
  ciscoMetadata: 0x8909,
  /** Cisco VN-Tag. */
  vnTag: 0x8926,
  /** IEEE 802.1BR */
  eTag: 0x893f,
  /** RFC 8300 §7.1 */
  nsh: 0x894f,
  ppp: 0x880b,
  transparentEthernet: 0x6558,
} as const

/**
 * The identifiers of the VLANs and tunnels around a packet: networks of tenants may have the same
 * addresses, and their connections are told apart by these. One per worker, reset for each packet.
 */
export class VirtualNetworks {
  /** 0 outside of any. */
  id = 0

  enter(identifier: number): void {
    this.id = (Math.imul(this.id, 0x0100_0193) ^ identifier) >>> 0
  }
}

/** IEEE 802.3: destination, source, EtherType. A value up to 1500 is a length, and LLC follows. */
const ETHERNET_HEADER_BYTES = 14
const ETHERNET_TYPE = 12
const LENGTH_MAX = 1500
const VLAN_TAG_BYTES = 4

/** IEEE 802.2 and RFC 1042: DSAP and SSAP aa, UI, an organization code of zero, EtherType. */
export const SNAP_BYTES = 8
export const SNAP = 0xaaaa
/** RFC 2427 §4.2: the organization code of bridged frames. */
const SNAP_BRIDGED = 0x0080c2
/** DSAP and SSAP of IP, then UI. */
const LLC_IP = 0x0606
const LLC_BYTES = 3

/** RFC 3032 §2.1: 20 bits of label, 3 of traffic class, bottom of stack, 8 of time to live. */
const MPLS_ENTRY_BYTES = 4
const MPLS_BOTTOM = 0x100
const MPLS_LABEL_SHIFT = 12
/** RFC 4385 §3: a pseudowire's control word begins with a zero nibble. */
const CONTROL_WORD_BYTES = 4

/** RFC 2516 §4: version and type 1, code, session, length. */
const PPPOE_HEADER_BYTES = 6

/** RFC 1661 §2, RFC 1662 §3.1 and the protocol numbers of IANA. */
const PPP_ADDRESS_CONTROL = 0xff03
const PPP_IPV4 = 0x0021
const PPP_IPV6 = 0x0057
const PPP_MPLS = 0x0281
const PPP_MPLS_MULTICAST = 0x0283
const PPP_CONTROL_MIN = 0x4000

/** Bytes after the EtherType of a tag: its fields, then the EtherType of the content. */
const TAG_BYTES = new Uint8Array(65_536)
const VLAN_ID = 0x0fff
const { vlan, providerBridge, qinqOld, qinqOlder, qinqOldest, vnTag, hsr, eTag, ciscoMetadata } = EtherType
for (const etherType of [vlan, providerBridge, qinqOld, qinqOlder, qinqOldest]) TAG_BYTES[etherType] = VLAN_TAG_BYTES
// HSR: path and length, sequence.
for (const etherType of [vnTag, hsr]) TAG_BYTES[etherType] = 6
// Cisco metadata: version, length, option, security group.
for (const etherType of [eTag, ciscoMetadata]) TAG_BYTES[etherType] = 8

/** IEEE 802.1ah: flags and a service identifier of 24 bits, then the customer's Ethernet frame. */
const BACKBONE_SERVICE_TAG_BYTES = 4
const BACKBONE_SERVICE_ID = 0xff_ffff
/** A forwarding tag and a time to live, then the Ethernet frame. */
const FABRIC_PATH_BYTES = 2
/** RFC 6325 §3.2: version, length of the options in units of 4 bytes, hops; two nicknames. */
const TRILL_BYTES = 6
/** Kind and version, then seconds of 32 bits, or of 16 in version 2, and nanoseconds; EtherType. */
const ARISTA_TIME_BYTES = 14
const ARISTA_SHORT_TIME = 0x20

/**
 * IEEE 802.1AE §9.3, the SecTAG: flags with the association number, short length, packet number,
 * and the secure channel if the SC bit is set. E and C mean that the content is encrypted or
 * changed; without them, it is only protected by the check value at the frame's end.
 */
const MACSEC_VERSION = 0x80
const MACSEC_HAS_CHANNEL = 0x20
const MACSEC_CHANGED = 0x0c
const MACSEC_TAG_BYTES = 6
const MACSEC_CHANNEL_BYTES = 8

/**
 * RFC 8300 §2.2: version, flags, time to live, length of the whole header in units of 4 bytes;
 * metadata type; next protocol. At least the base header and the service path.
 */
/** RFC 8300 §9.1.5: IPv4, IPv6, Ethernet, another NSH, MPLS. */
const NSH_CONTENT: readonly number[] = [
  ...[0, EtherType.ipv4, EtherType.ipv6, EtherType.transparentEthernet, EtherType.nsh, EtherType.mpls],
]
const NSH_LENGTH = 0x3f
const NSH_BYTES_MIN = 8

/**
 * EtherTypes of protocols without IP inside, from IEEE's and IANA's lists: address resolution, link
 * control, time, storage, industrial networks, and protocols of old. Frames of any other EtherType
 * that is not read are counted as unknown, because they may contain IP.
 */
const WITHOUT_IP: readonly number[] = [
  ...[0x0600, 0x0801, 0x0804, 0x0805, 0x0806, 0x0807, 0x0808, 0x0842, 0x0bad, 0x1000, 0x2000, 0x2001, 0x2003, 0x2004],
  ...[0x22ea, 0x22f0, 0x6000, 0x6001, 0x6002, 0x6003, 0x6004, 0x6005, 0x6006, 0x6007, 0x6008, 0x6009, 0x7030, 0x8035],
  ...[0x8037, 0x8038, 0x809b, 0x80d5, 0x80f3, 0x8102, 0x8137, 0x8138, 0x814c, 0x8204, 0x876b, 0x8780, 0x8808, 0x8809],
  ...[0x8819, 0x8863, 0x886d, 0x8870, 0x8874, 0x887a, 0x887b, 0x888e, 0x8892, 0x8899, 0x889a, 0x88a2, 0x88a4, 0x88ab],
  ...[0x88b5, 0x88b6, 0x88b7, 0x88b8, 0x88b9, 0x88ba, 0x88bb, 0x88bf, 0x88c7, 0x88ca, 0x88cc, 0x88cd, 0x88d9, 0x88dc],
  ...[0x88e1, 0x88e3, 0x88ed, 0x88ee, 0x88f5, 0x88f6, 0x88f7, 0x88f8, 0x88fb, 0x8902, 0x8904, 0x8906, 0x890d],
  ...[0x8914, 0x8915, 0x891d, 0x8929, 0x8940, 0x8946, 0x8947, 0x9000, 0x9003, 0xb7ea, 0xcafe, 0xfbfb, 0xffff],
]
const isWithoutIp = new Uint8Array(65_536)
const isRead = new Uint8Array(65_536)
for (const etherType of Object.values(EtherType)) isRead[etherType] = 1
for (const etherType of WITHOUT_IP) isWithoutIp[etherType] = 1

/**
 * Returns the offset of the IP header after the layers that `firstEtherType` announces at `first`:
 * VLAN and other tags (IEEE 802.1Q §9.3), MPLS labels, PPPoE, PPP, NSH and Ethernet, in any order.
 */
export function networkLayer(
  view: DataView,
  firstEtherType: number,
  first: number,
  end: number,
  networks: VirtualNetworks,
): number {
  let etherType = firstEtherType
  let at = first
  for (let layers = 0; layers < ENCAPSULATIONS_MAX; layers++) {
    switch (etherType) {
      case EtherType.ipv4:
        return ipOfVersion(view, 4, at, end)
      case EtherType.ipv6:
        return ipOfVersion(view, 6, at, end)
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
        // RFC 1661 §2: the lower half is of networks, perhaps in links of a bundle or compressed.
        else return protocol < PPP_CONTROL_MIN ? ~PacketClass.etherTypeUnknown : ~PacketClass.notIp
        break
      }
      case EtherType.mpls:
      case EtherType.mplsMulticast: {
        if (at + MPLS_ENTRY_BYTES > end) return ~PacketClass.truncated
        const entry = view.getUint32(at)
        at += MPLS_ENTRY_BYTES
        if ((entry & MPLS_BOTTOM) === 0) break
        // RFC 4364 §5: the bottom label is that of a tenant. Those above change from router to router.
        networks.enter(entry >>> MPLS_LABEL_SHIFT)
        // A label stack does not name its content: an IP header, or a pseudowire's Ethernet with or
        // without a control word.
        if (at >= end) return ~PacketClass.truncated
        const nibble = view.getUint8(at) >> 4
        if (nibble === 4 || nibble === 6) return at
        if (nibble === 0 && !etherTypeIsRead(view, at + ETHERNET_TYPE, end)) at += CONTROL_WORD_BYTES
        etherType = EtherType.transparentEthernet
        break
      }
      case EtherType.backboneServiceTag:
        if (at + BACKBONE_SERVICE_TAG_BYTES > end) return ~PacketClass.truncated
        networks.enter(view.getUint32(at) & BACKBONE_SERVICE_ID)
        etherType = EtherType.transparentEthernet
        at += BACKBONE_SERVICE_TAG_BYTES
        break
      case EtherType.ciscoFabricPath:
        etherType = EtherType.transparentEthernet
        at += FABRIC_PATH_BYTES
        break
      case EtherType.trill:
        if (at + TRILL_BYTES > end) return ~PacketClass.truncated
        etherType = EtherType.transparentEthernet
        at += TRILL_BYTES + ((view.getUint16(at) >> 6) & 0x1f) * 4
        break
      case EtherType.aristaTime: {
        if (at + ARISTA_TIME_BYTES > end) return ~PacketClass.truncated
        const bytes = (view.getUint16(at + 2) & ARISTA_SHORT_TIME) === 0 ? ARISTA_TIME_BYTES : ARISTA_TIME_BYTES - 2
        etherType = view.getUint16(at + bytes - 2)
        at += bytes
        break
      }
      case EtherType.macsec: {
        if (at + MACSEC_TAG_BYTES > end) return ~PacketClass.truncated
        const flags = view.getUint8(at)
        if ((flags & MACSEC_VERSION) !== 0) return ~PacketClass.linkUnsupported
        if ((flags & MACSEC_CHANGED) !== 0) return ~PacketClass.macsecEncrypted
        at += MACSEC_TAG_BYTES + ((flags & MACSEC_HAS_CHANNEL) === 0 ? 0 : MACSEC_CHANNEL_BYTES)
        if (at + 2 > end) return ~PacketClass.truncated
        etherType = view.getUint16(at)
        at += 2
        break
      }
      case EtherType.nsh: {
        if (at + NSH_BYTES_MIN > end) return ~PacketClass.truncated
        const headerBytes = (view.getUint16(at) & NSH_LENGTH) * 4
        const next = NSH_CONTENT[view.getUint8(at + 3)] ?? 0
        if (view.getUint8(at) >> 6 !== 0 || headerBytes < NSH_BYTES_MIN || next === 0)
          return ~PacketClass.linkUnsupported
        etherType = next
        at += headerBytes
        break
      }
      default: {
        const tagBytes = TAG_BYTES[etherType] ?? 0
        if (tagBytes > 0) {
          if (at + tagBytes > end) return ~PacketClass.truncated
          if (tagBytes === VLAN_TAG_BYTES) networks.enter(view.getUint16(at) & VLAN_ID)
          etherType = view.getUint16(at + tagBytes - 2)
          at += tagBytes
          break
        }
        if (etherType > LENGTH_MAX) return withoutIp(etherType)
        if (at + SNAP_BYTES > end) return ~PacketClass.notIp
        if (view.getUint16(at) === LLC_IP) {
          etherType = EtherType.ipv4
          at += LLC_BYTES
          break
        }
        if (view.getUint16(at) !== SNAP) return ~PacketClass.notIp
        etherType = view.getUint16(at + SNAP_BYTES - 2)
        if (etherType <= LENGTH_MAX) {
          const isBridged = view.getUint32(at + 2) % 0x100_0000 === SNAP_BRIDGED
          return isBridged ? ~PacketClass.etherTypeUnknown : ~PacketClass.notIp
        }
        at += SNAP_BYTES
      }
    }
  }
  return ~PacketClass.nestedTooDeep
}

function withoutIp(etherType: number): number {
  return isWithoutIp[etherType] === 1 ? ~PacketClass.notIp : ~PacketClass.etherTypeUnknown
}

export function etherTypeIsRead(view: DataView, at: number, end: number): boolean {
  return at + 2 <= end && isRead[view.getUint16(at)] === 1
}

export function ipOfVersion(view: DataView, version: number, at: number, end: number): number {
  if (at >= end) return ~PacketClass.truncated
  return view.getUint8(at) >> 4 === version ? at : ~PacketClass.ipMalformed
}
