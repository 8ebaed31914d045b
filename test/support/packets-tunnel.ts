import {
  addressBytes,
  checksum,
  EtherType,
  type NetworkPacket,
  otherTransport,
  type Transport,
  u16,
  u24,
  u32,
} from './packets.ts'
import { pppFrame } from './packets-link.ts'

/** IANA Assigned Internet Protocol Numbers */
const PROTOCOL_IPV4 = 4
const PROTOCOL_IPV6 = 41
const PROTOCOL_GRE = 47
const PROTOCOL_MPLS = 137

/** IANA Service Name and Transport Protocol Port Number Registry */
export const TunnelPort = {
  ...{ l2tp: 1701, gtpU: 2152, teredo: 3544, greInUdp: 4754, vxlan: 4789, vxlanGpe: 4790, capwapData: 5247 },
  ...{ geneve: 6081, mplsInUdp: 6635, tzsp: 37_008 },
} as const

/** RFC 3032 §2.1: the label stack. The bottom entry has the S bit. */
function labelStack(labels: readonly number[]): Buffer {
  const last = labels.length - 1
  return Buffer.concat(labels.map((label, index) => u32(((label << 12) | (index === last ? 0x100 : 0) | 64) >>> 0)))
}

/** IP under MPLS labels. Only the first four bits of the payload identify it as IP (RFC 4928). */
export function mpls(labels: readonly number[], packet: NetworkPacket): NetworkPacket {
  return { etherType: EtherType.mpls, bytes: Buffer.concat([labelStack(labels), packet.bytes]) }
}

/**
 * RFC 4448 §4: an Ethernet frame under MPLS labels, with or without the control word of four zero
 * bytes.
 */
export function mplsPseudowire(
  labels: readonly number[],
  frame: Buffer,
  fields: { controlWord?: boolean } = {},
): NetworkPacket {
  const controlWord = fields.controlWord === true ? u32(1) : Buffer.alloc(0)
  return { etherType: EtherType.mpls, bytes: Buffer.concat([labelStack(labels), controlWord, frame]) }
}

/** RFC 4023 §3: labels directly after the IP header. */
export function mplsInIp(packet: NetworkPacket): Transport {
  return otherTransport(PROTOCOL_MPLS, packet.bytes)
}

/** RFC 2003 and RFC 4213 §3: IP directly after the IP header, including 6in4. */
export function ipInIp(packet: NetworkPacket): Transport {
  return otherTransport(packet.etherType === EtherType.ipv4 ? PROTOCOL_IPV4 : PROTOCOL_IPV6, packet.bytes)
}

/** An Ethernet frame as the payload of an EtherType. */
export function transparentEthernet(frame: Buffer): NetworkPacket {
  return { etherType: EtherType.transparentEthernet, bytes: frame }
}

export interface GreFields {
  readonly key?: number
  readonly sequence?: number
  readonly checksum?: boolean
}

const GRE_CHECKSUM = 0x8000
const GRE_KEY = 0x2000
const GRE_SEQUENCE = 0x1000

/** RFC 2784 §2 with RFC 2890 §2 */
export function gre(fields: GreFields, packet: NetworkPacket): Transport {
  const flags =
    (fields.checksum === true ? GRE_CHECKSUM : 0) |
    (fields.key === undefined ? 0 : GRE_KEY) |
    (fields.sequence === undefined ? 0 : GRE_SEQUENCE)
  const bytes = Buffer.concat([
    u16(flags),
    u16(packet.etherType),
    ...(fields.checksum === true ? [u32(0)] : []),
    ...(fields.key === undefined ? [] : [u32(fields.key)]),
    ...(fields.sequence === undefined ? [] : [u32(fields.sequence)]),
    packet.bytes,
  ])
  if (fields.checksum === true) bytes.writeUInt16BE(checksum(bytes), 4)
  return otherTransport(PROTOCOL_GRE, bytes)
}

/**
 * RFC 2637 §4.1 (PPTP): version 1; key with payload length and call ID; sequence and
 * acknowledgement numbers; then PPP.
 */
export function grePpp(
  fields: { sequence?: number; acknowledgement?: number; addressControl?: boolean },
  packet: NetworkPacket,
): Transport {
  const addressControl = fields.addressControl === true ? Buffer.from([0xff, 0x03]) : Buffer.alloc(0)
  const payload = Buffer.concat([addressControl, pppFrame(packet)])
  const flags =
    GRE_KEY | (fields.sequence === undefined ? 0 : GRE_SEQUENCE) | (fields.acknowledgement === undefined ? 0 : 0x80) | 1
  return otherTransport(
    PROTOCOL_GRE,
    Buffer.concat([
      u16(flags),
      u16(0x880b),
      u16(payload.length),
      u16(17),
      ...(fields.sequence === undefined ? [] : [u32(fields.sequence)]),
      ...(fields.acknowledgement === undefined ? [] : [u32(fields.acknowledgement)]),
      payload,
    ]),
  )
}

/**
 * draft-foschiano-erspan §4: types I and II share a protocol number in GRE, type III has its own.
 */
const ETHER_TYPE_ERSPAN = 0x88be
const ETHER_TYPE_ERSPAN_3 = 0x22eb

/** Type I: no ERSPAN header. GRE without a sequence number distinguishes it from type II. */
export function erspan1(frame: Buffer): Transport {
  return gre({}, { etherType: ETHER_TYPE_ERSPAN, bytes: frame })
}

/** Type II: version 1 and VLAN, session, index. */
export function erspan2(frame: Buffer): Transport {
  const header = Buffer.concat([u16(0x1000 | 7), u16(100), u32(3)])
  return gre({ sequence: 9 }, { etherType: ETHER_TYPE_ERSPAN, bytes: Buffer.concat([header, frame]) })
}

/**
 * Type III: version 2, timestamp. If the last bit is set, the platform-specific eight bytes follow.
 */
export function erspan3(frame: Buffer, fields: { platformHeader?: boolean } = {}): Transport {
  const flags = fields.platformHeader === true ? 1 : 0
  const header = Buffer.concat([u16(0x2000 | 7), u16(100), u32(12_345), u16(0), u16(flags)])
  const platform = fields.platformHeader === true ? Buffer.from('0c00000100000000', 'hex') : Buffer.alloc(0)
  return gre({ sequence: 9 }, { etherType: ETHER_TYPE_ERSPAN_3, bytes: Buffer.concat([header, platform, frame]) })
}

/** RFC 7348 §5: flags with the I bit, VNI. */
export function vxlan(vni: number, frame: Buffer): Buffer {
  return Buffer.concat([u32(0x0800_0000), u24(vni), Buffer.from([0]), frame])
}

/** draft-ietf-nvo3-vxlan-gpe §3: flags with the I and P bits, next protocol 4 (NSH), VNI. */
export function vxlanGpeNsh(packet: NetworkPacket): Buffer {
  return Buffer.concat([u32(0x0c00_0004), u24(9), Buffer.from([0]), packet.bytes])
}

/**
 * RFC 8926 §3.4. `options` has a length that is a multiple of four bytes; each option has class,
 * type and length.
 */
export function geneve(vni: number, packet: NetworkPacket, options: Buffer = Buffer.alloc(0)): Buffer {
  const header = [Buffer.from([options.length / 4, 0]), u16(packet.etherType), u24(vni), Buffer.from([0])]
  return Buffer.concat([...header, options, packet.bytes])
}

/** RFC 8926 §3.5 */
export function geneveOption(optionClass: number, type: number, bytes: Buffer): Buffer {
  return Buffer.concat([u16(optionClass), Buffer.from([type, bytes.length / 4]), bytes])
}

export interface GtpUFields {
  readonly tunnel?: number
  readonly sequence?: number
  /** Extension headers: type and content of each. The content's length is 2 modulo 4. */
  readonly extensions?: readonly { readonly type: number; readonly bytes: Buffer }[]
}

/**
 * 3GPP TS 29.281 §5.1: version 1, message type 255 (G-PDU). If E, S or PN is set, all four optional
 * bytes are present.
 */
export function gtpU(fields: GtpUFields, packet: NetworkPacket): Buffer {
  const extensions = fields.extensions ?? []
  const flags = 0x30 | (extensions.length > 0 ? 4 : 0) | (fields.sequence === undefined ? 0 : 2)
  const types = [...extensions.map(({ type }) => type), 0]
  const optional = (flags & 7) === 0 ? [] : [u16(fields.sequence ?? 0), Buffer.from([0, types[0] as number])]
  const chain = extensions.map(({ bytes }, index) =>
    Buffer.concat([Buffer.from([(bytes.length + 2) / 4]), bytes, Buffer.from([types[index + 1] as number])]),
  )
  const content = Buffer.concat([...optional, ...chain, packet.bytes])
  return Buffer.concat([Buffer.from([flags, 255]), u16(content.length), u32(fields.tunnel ?? 1), content])
}

/**
 * RFC 4380 §5.1.1: the headers that may precede the IPv6 packet in Teredo, authentication before
 * origin.
 */
export function teredo(packet: NetworkPacket, fields: { origin?: boolean; authentication?: boolean } = {}): Buffer {
  const parts: Buffer[] = []
  if (fields.authentication === true) {
    // Lengths of client identifier and authentication value (one byte each), nonce, confirmation.
    parts.push(
      Buffer.from([0, 1, 2, 4]),
      Buffer.from('id'),
      Buffer.alloc(4, 0xaa),
      Buffer.alloc(8, 0x55),
      Buffer.alloc(1),
    )
  }
  if (fields.origin === true) {
    // Port and address are sent with inverted bits.
    const port = u16(~40_000)
    const address = Buffer.from(addressBytes('198.51.100.4').map((byte) => ~byte & 0xff))
    parts.push(u16(0), port, address)
  }
  return Buffer.concat([...parts, packet.bytes])
}
