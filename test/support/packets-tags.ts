import { EtherType, ethernet, type NetworkPacket, otherTransport, type Transport, u16, u24, u32 } from './packets.ts'
import { ieee80211Frame, type LinkFrame, LinkType, llcSnap, pppFrame } from './packets-link.ts'

/** Tags, headers and tunnels that few networks use, byte by byte from their specifications. */

/** Cisco VN-Tag: direction, destination, source; then the EtherType. */
export function vnTag(packet: NetworkPacket): NetworkPacket {
  return { etherType: 0x8926, bytes: Buffer.concat([u32(0x8001_0002), u16(packet.etherType), packet.bytes]) }
}

/** IEEE 802.1BR: priority and source, destination, their extensions; then the EtherType. */
export function eTag(packet: NetworkPacket): NetworkPacket {
  return { etherType: 0x893f, bytes: Buffer.concat([u16(1), u32(0x0002_0000), u16(packet.etherType), packet.bytes]) }
}

/** IEEE 802.1ah: flags, service 5000, and the customer's frame. */
export function backboneServiceTag(frame: Buffer): NetworkPacket {
  return { etherType: 0x88e7, bytes: Buffer.concat([Buffer.from([0]), u24(5000), frame]) }
}

/** Cisco metadata: version 1, one option, which is the security group 7. */
export function ciscoMetadata(packet: NetworkPacket): NetworkPacket {
  return {
    etherType: 0x8909,
    bytes: Buffer.concat([Buffer.from([1, 1]), u16(1), u16(7), u16(packet.etherType), packet.bytes]),
  }
}

/**
 * RFC 8300 §2: time to live 63, the content, path 9 at index 255, and a context of 16 bytes or
 * none.
 */
export function nsh(content: 'ipv4' | 'ipv6' | 'ethernet' | 'nsh', bytes: Buffer, withContext = true): NetworkPacket {
  const next = { ipv4: 1, ipv6: 2, ethernet: 3, nsh: 4 }[content]
  const words = withContext ? 6 : 2
  const header = [u16((63 << 6) | words), Buffer.from([withContext ? 1 : 2, next]), u24(9), Buffer.from([255])]
  return { etherType: 0x894f, bytes: Buffer.concat([...header, Buffer.alloc(withContext ? 16 : 0), bytes]) }
}

/** IEEE 802.1AE: flags, short length, packet number, perhaps the channel, content, check value. */
export function macsec(packet: NetworkPacket, fields: { encrypted?: boolean; channel?: boolean }): NetworkPacket {
  const flags = (fields.encrypted === true ? 0x0c : 0) | (fields.channel === true ? 0x20 : 0)
  const channel = fields.channel === true ? Buffer.from('0200000000020001', 'hex') : Buffer.alloc(0)
  const content = Buffer.concat([u16(packet.etherType), packet.bytes])
  return {
    etherType: 0x88e5,
    bytes: Buffer.concat([Buffer.from([flags, 0]), u32(1), channel, content, Buffer.alloc(16, 0xc5)]),
  }
}

/**
 * RFC 5415 §4.3: a header of 8 bytes for binding 1 (802.11), with a native frame or an 802.3 frame.
 */
export function capwap(frame: Buffer, fields: { native: boolean; swapped?: boolean }): Buffer {
  const header = Buffer.from([0, 2 << 3, (1 << 6) | (1 << 1) | (fields.native ? 1 : 0), 0, 0, 0, 0, 0])
  const bytes = Buffer.from(frame)
  if (fields.swapped === true) bytes.subarray(0, 2).swap16()
  return Buffer.concat([header, bytes])
}

/** RFC 2661 §3.1: version 2 with the fields that the flags announce, then PPP. */
export function l2tp2(
  packet: NetworkPacket,
  fields: { length?: boolean; sequence?: boolean; padding?: number } = {},
): Buffer {
  const flags =
    2 |
    (fields.length === true ? 0x4000 : 0) |
    (fields.sequence === true ? 0x0800 : 0) |
    (fields.padding === undefined ? 0 : 0x0200)
  const ppp = Buffer.concat([u16(0xff03), pppFrame(packet)])
  const before = [u16(11), u16(22), ...(fields.sequence === true ? [u16(1), u16(0)] : [])]
  if (fields.padding !== undefined) before.push(u16(fields.padding), Buffer.alloc(fields.padding))
  const rest = Buffer.concat([...before, ppp])
  return Buffer.concat([u16(flags), ...(fields.length === true ? [u16(rest.length + 4)] : []), rest])
}

/** RFC 3931 §4.1.1: the session, a cookie, perhaps the sublayer, and a frame. */
export function l2tp3(frame: Buffer, fields: { cookieBytes?: number; sublayer?: boolean } = {}): Buffer {
  const sublayer = fields.sublayer === true ? u32(0x4000_0001) : Buffer.alloc(0)
  return Buffer.concat([u32(0x1234_5678), Buffer.alloc(fields.cookieBytes ?? 0, 0x5a), sublayer, frame])
}

/** RFC 3931 §4.1.1: directly after the IP header. */
export function l2tp3InIp(frame: Buffer, fields: { cookieBytes?: number; sublayer?: boolean } = {}): Transport {
  return otherTransport(115, l2tp3(frame, fields))
}

/** RFC 3931 §4.1.2: after a UDP header. */
export function l2tp3InUdp(frame: Buffer): Buffer {
  return Buffer.concat([u16(3), u16(0), l2tp3(frame)])
}

/** TZSP: version 1, a received frame, its link type, padding, a tag (signal strength), the end. */
export function tzsp(frame: Buffer, linkType: 'ethernet' | 'ieee80211'): Buffer {
  const header = Buffer.from([1, 0, 0, linkType === 'ethernet' ? 1 : 18])
  return Buffer.concat([header, Buffer.from([0, 10, 1, 0xc4, 1]), frame])
}

/** ANSI X3.139: asynchronous LLC frame, destination, source, then LLC with SNAP. */
export function fddi(packet: NetworkPacket): LinkFrame {
  const header = Buffer.from('50020000000001020000000002', 'hex')
  return { linkType: LinkType.fddi, bytes: Buffer.concat([header, llcSnap(packet)]) }
}

/** PPI: the 802.11-Common field, then an 802.11 frame. */
export function ppi(packet: NetworkPacket): LinkFrame {
  const field = Buffer.alloc(24)
  field.writeUInt16LE(2, 0)
  field.writeUInt16LE(20, 2)
  const header = Buffer.alloc(8)
  header.writeUInt16LE(header.length + field.length, 2)
  header.writeUInt32LE(LinkType.ieee80211, 4)
  return { linkType: LinkType.ppi, bytes: Buffer.concat([header, field, ieee80211Frame(packet, { qos: true })]) }
}

/** NFLOG: family and version, then attributes: packet header, prefix, payload. */
export function nflog(packet: NetworkPacket, fields: { bigEndian?: boolean } = {}): LinkFrame {
  const attribute = (type: number, value: Buffer): Buffer => {
    const header = Buffer.concat([u16(4 + value.length), u16(type)])
    if (fields.bigEndian !== true) header.swap16()
    return Buffer.concat([header, value, Buffer.alloc(-value.length & 3)])
  }
  const bytes = Buffer.concat([
    ...[Buffer.from([packet.etherType === EtherType.ipv4 ? 2 : 10, 0]), u16(1)],
    ...[attribute(1, Buffer.from('08000100', 'hex')), attribute(10, Buffer.from('audit\0'))],
    attribute(9, packet.bytes),
  ])
  return { linkType: LinkType.nflog, bytes }
}

/** A customer's frame inside a provider's. */
export function innerFrame(packet: NetworkPacket): Buffer {
  return ethernet({ source: '02:00:00:00:01:01', destination: '02:00:00:00:01:02' }, packet)
}
