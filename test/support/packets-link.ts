import { EtherType, ethernet, type NetworkPacket, u16, u32 } from './packets.ts'

/** Link types of captures (https://www.tcpdump.org/linktypes.html). */
export const LinkType = {
  bsdNull: 0,
  ethernet: 1,
  ppp: 9,
  fddi: 10,
  /** DLT_RAW on most systems; OpenBSD uses 14. */
  rawDlt: 12,
  rawOpenBsd: 14,
  pppHdlc: 50,
  pppEther: 51,
  raw: 101,
  ieee80211: 105,
  bsdLoop: 108,
  linuxCooked: 113,
  pflog: 117,
  radiotap: 127,
  juniperEthernet: 178,
  ppi: 192,
  rawIpv4: 228,
  rawIpv6: 229,
  nflog: 239,
  linuxCooked2: 276,
} as const

/** A frame and the link type of its capture. */
export interface LinkFrame {
  readonly linkType: number
  readonly bytes: Buffer
}

/** ARPHRD_ETHER of Linux: the device type in the cooked header. */
const ARPHRD_ETHER = 1
const STATION = Buffer.from('020000000002', 'hex')
const OTHER_STATION = Buffer.from('020000000001', 'hex')
const ACCESS_POINT = Buffer.from('020000000003', 'hex')

/** LINKTYPE_LINUX_SLL: packet type, ARPHRD, address, EtherType. */
export function linuxCooked(packet: NetworkPacket): LinkFrame {
  const header = [u16(0), u16(ARPHRD_ETHER), u16(6), STATION, u16(0), u16(packet.etherType)]
  return { linkType: LinkType.linuxCooked, bytes: Buffer.concat([...header, packet.bytes]) }
}

/** LINKTYPE_LINUX_SLL2: EtherType first, then the interface. */
export function linuxCooked2(packet: NetworkPacket): LinkFrame {
  const header = [
    ...[u16(packet.etherType), u16(0), u32(2), u16(ARPHRD_ETHER), Buffer.from([0, 6])],
    ...[STATION, u16(0)],
  ]
  return { linkType: LinkType.linuxCooked2, bytes: Buffer.concat([...header, packet.bytes]) }
}

/** IP without a link header. */
export function rawIp(packet: NetworkPacket, linkType: number = LinkType.raw): LinkFrame {
  return { linkType, bytes: packet.bytes }
}

/** AF_INET6 differs between systems: 24 on NetBSD and OpenBSD, 28 on FreeBSD, 30 on Darwin. */
export const AddressFamily = { inet: 2, inet6Bsd: 24, inet6FreeBsd: 28, inet6Darwin: 30 } as const

function familyOf(packet: NetworkPacket): number {
  return packet.etherType === EtherType.ipv4 ? AddressFamily.inet : AddressFamily.inet6Bsd
}

/** LINKTYPE_NULL: the address family in the capturing machine's byte order. */
export function bsdNull(packet: NetworkPacket, fields: { bigEndian?: boolean; family?: number } = {}): LinkFrame {
  const header = u32(fields.family ?? familyOf(packet))
  if (fields.bigEndian !== true) header.reverse()
  return { linkType: LinkType.bsdNull, bytes: Buffer.concat([header, packet.bytes]) }
}

/** LINKTYPE_LOOP: the address family in network byte order. */
export function bsdLoop(packet: NetworkPacket): LinkFrame {
  return { linkType: LinkType.bsdLoop, bytes: Buffer.concat([u32(familyOf(packet)), packet.bytes]) }
}

/** RFC 1661 §2 and §6.5: the protocol field, one byte if it is compressed. */
export function pppFrame(packet: NetworkPacket, fields: { oneByteProtocol?: boolean } = {}): Buffer {
  const protocol = packet.etherType === EtherType.mpls ? 0x0281 : packet.etherType === EtherType.ipv4 ? 0x0021 : 0x0057
  const header = fields.oneByteProtocol === true ? Buffer.from([protocol]) : u16(protocol)
  return Buffer.concat([header, packet.bytes])
}

/** RFC 1662 §3.1: address and control, unless compressed away. */
const PPP_ADDRESS_CONTROL = Buffer.from([0xff, 0x03])

export function ppp(
  packet: NetworkPacket,
  fields: { addressControl?: boolean; oneByteProtocol?: boolean; linkType?: number } = {},
): LinkFrame {
  const addressControl = fields.addressControl === true ? PPP_ADDRESS_CONTROL : Buffer.alloc(0)
  const bytes = Buffer.concat([addressControl, pppFrame(packet, fields)])
  return { linkType: fields.linkType ?? LinkType.ppp, bytes }
}

/** RFC 2516 §4: version and type 1, code 0 (session data), session, length. */
export function pppoe(packet: NetworkPacket, session = 7): NetworkPacket {
  const frame = pppFrame(packet)
  const bytes = Buffer.concat([Buffer.from([0x11, 0]), u16(session), u16(frame.length), frame])
  return { etherType: EtherType.pppoeSession, bytes }
}

/** IEEE 802.2 with SNAP (RFC 1042): the header before the EtherType in 802.11 and 802.3. */
export function llcSnap(packet: NetworkPacket): Buffer {
  return Buffer.concat([Buffer.from('aaaa03000000', 'hex'), u16(packet.etherType), packet.bytes])
}

/**
 * IEEE 802.3: a length in place of Ethernet II's EtherType. `padded` fills the frame to 60 bytes.
 */
export function ethernet8023(packet: NetworkPacket, padded = false): Buffer {
  const content = llcSnap(packet)
  const frame = ethernet({}, { etherType: content.length, bytes: content })
  return padded ? Buffer.concat([frame, Buffer.alloc(Math.max(0, 60 - frame.length))]) : frame
}

export interface Ieee80211Fields {
  /** A QoS data frame, with two bytes of QoS Control. */
  readonly qos?: boolean
  /** Between two distribution systems: both DS bits and a fourth address. */
  readonly fourAddresses?: boolean
  /** +HTC: four bytes of HT Control after QoS Control. */
  readonly htControl?: boolean
  /** The Protected Frame bit: the body is encrypted and unreadable. */
  readonly isProtected?: boolean
  /** From the access point; otherwise to the access point. */
  readonly fromDs?: boolean
  /**
   * Padding between header and body. Some drivers align the body to 4 bytes; radiotap flags this.
   */
  readonly padBytes?: number
  /** Appends the frame check sequence. */
  readonly fcs?: boolean
}

/** IEEE 802.11-2020 §9.3.2.1: a data frame. */
export function ieee80211Frame(packet: NetworkPacket, fields: Ieee80211Fields = {}): Buffer {
  const type = fields.qos === true ? 0x88 : 0x08
  const direction = fields.fourAddresses === true ? 3 : fields.fromDs === true ? 2 : 1
  const flags = direction | (fields.isProtected === true ? 0x40 : 0) | (fields.htControl === true ? 0x80 : 0)
  const addresses =
    fields.fromDs === true ? [STATION, ACCESS_POINT, OTHER_STATION] : [ACCESS_POINT, STATION, OTHER_STATION]
  const header = [Buffer.from([type, flags, 0, 0]), ...addresses, u16(0x1000)]
  if (fields.fourAddresses === true) header.push(STATION)
  if (fields.qos === true) header.push(u16(0))
  if (fields.htControl === true) header.push(u32(0))
  const frame = [...header, Buffer.alloc(fields.padBytes ?? 0), llcSnap(packet)]
  return Buffer.concat(fields.fcs === true ? [...frame, frameCheck(Buffer.concat(frame))] : frame)
}

export function ieee80211(packet: NetworkPacket, fields: Ieee80211Fields = {}): LinkFrame {
  return { linkType: LinkType.ieee80211, bytes: ieee80211Frame(packet, fields) }
}

/** https://www.radiotap.org/fields/Flags.html */
const RADIOTAP_FCS = 0x10
const RADIOTAP_DATA_PAD = 0x20

/**
 * A radiotap header with one or two bitmaps, then the frame. Length and fields are little-endian.
 */
export function radiotap(
  packet: NetworkPacket,
  fields: Ieee80211Fields & { readonly secondBitmap?: boolean } = {},
): LinkFrame {
  const flags = (fields.fcs === true ? RADIOTAP_FCS : 0) | ((fields.padBytes ?? 0) > 0 ? RADIOTAP_DATA_PAD : 0)
  // TSFT (8 bytes, aligned to 8) and Flags are present. Bit 31 announces another bitmap.
  const bitmaps = fields.secondBitmap === true ? [0x8000_0003, 0] : [0x0000_0003]
  const padding = fields.secondBitmap === true ? 4 : 0
  const header = Buffer.alloc(4 + 4 * bitmaps.length + padding + 9)
  header.writeUInt16LE(header.length, 2)
  for (const [index, bitmap] of bitmaps.entries()) header.writeUInt32LE(bitmap, 4 + 4 * index)
  header[header.length - 1] = flags
  return { linkType: LinkType.radiotap, bytes: Buffer.concat([header, ieee80211Frame(packet, fields)]) }
}

/** IEEE 802.3 §3.2.9: CRC-32, least significant byte first. */
function frameCheck(bytes: Buffer): Buffer {
  let crc = 0xffff_ffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ ((crc & 1) === 0 ? 0 : 0xedb8_8320)
  }
  return u32(~crc >>> 0).reverse()
}

/**
 * OpenBSD's if_pflog.h: length without padding, address family, action, reason, interface, ruleset,
 * rules, ids, direction.
 */
export function pflog(packet: NetworkPacket): LinkFrame {
  const header = Buffer.alloc(64)
  header.set([61, familyOf(packet), 0, 0])
  header.write('em0', 4, 'latin1')
  // No rule and no subrule; the direction is in.
  header.fill(0xff, 36, 44)
  header[60] = 1
  return { linkType: LinkType.pflog, bytes: Buffer.concat([header, packet.bytes]) }
}

/** Juniper's magic number. */
const JUNIPER_MAGIC = Buffer.from([0x4d, 0x47, 0x43])
const JUNIPER_IN = 0x01
const JUNIPER_NO_LINK_HEADER = 0x02
const JUNIPER_EXTENSIONS = 0x80

/**
 * LINKTYPE_JUNIPER_ETHER: magic, flags, extensions (total length, then type-length-values), then
 * Ethernet, or four bytes and IP.
 */
export function juniperEthernet(
  packet: NetworkPacket,
  fields: { extensions?: boolean; noLinkHeader?: boolean } = {},
): LinkFrame {
  // Two extensions: the device's media type (3) and its index (1).
  const extensions = fields.extensions === true ? Buffer.from('00080301040103020000', 'hex') : Buffer.alloc(0)
  const flags =
    JUNIPER_IN |
    (fields.extensions === true ? JUNIPER_EXTENSIONS : 0) |
    (fields.noLinkHeader === true ? JUNIPER_NO_LINK_HEADER : 0)
  const content = fields.noLinkHeader === true ? [juniperProtocol(packet), packet.bytes] : [ethernet({}, packet)]
  const bytes = Buffer.concat([JUNIPER_MAGIC, Buffer.from([flags]), extensions, ...content])
  return { linkType: LinkType.juniperEthernet, bytes }
}

/** The four bytes in place of the link header, little-endian: 2 for IPv4, 6 for IPv6. */
function juniperProtocol(packet: NetworkPacket): Buffer {
  return u32(packet.etherType === EtherType.ipv4 ? 2 : 6).reverse()
}
