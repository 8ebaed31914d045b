import { PacketClass } from '../batch/packet-class.ts'
import { EtherType } from './link.ts'

/**
 * Tunnels: GRE with ERSPAN, and tunnels over UDP -> EtherType and offset of the inner packet. Not
 * read: GRE with source routes, VXLAN with unknown group policy bits, L2TP, ESP, WireGuard.
 */

/**
 * UDP ports: RFC 7348 §5 (8472 is Linux's earlier default), RFC 8926 §3.3, 3GPP TS 29.281 §4.4.2,
 * RFC 4380 §2.7.
 */
const PORT_VXLAN = 4789
const PORT_VXLAN_LINUX = 8472
const PORT_VXLAN_GPE = 4790
const PORT_GENEVE = 6081
const PORT_GTP_U = 2152
const PORT_TEREDO = 3544

/**
 * EtherType and offset of the packet inside a tunnel. One per worker, overwritten by each tunnel.
 */
export class InnerPacket {
  etherType = 0
  offset = 0

  set(etherType: number, offset: number): void {
    this.etherType = etherType
    this.offset = offset
  }
}

/**
 * RFC 2784 §2.1, RFC 2890 §2: the fields that follow the four bytes of flags and protocol. RFC 2637
 * §4.1: version 1 carries PPP.
 */
const GRE_CHECKSUM = 0x8000
const GRE_ROUTING = 0x4000
const GRE_KEY = 0x2000
const GRE_SEQUENCE = 0x1000
const GRE_ACKNOWLEDGEMENT = 0x0080
const GRE_VERSION = 0x0007
const GRE_ERSPAN = 0x88be
const GRE_ERSPAN3 = 0x22eb
const ERSPAN2_HEADER_BYTES = 8
const ERSPAN3_HEADER_BYTES = 12
/** draft-foschiano-erspan §4.3: the O bit announces a subheader of 8 bytes. */
const ERSPAN3_SUBHEADER_BYTES = 8
/**
 * draft-wilson-wrec-wccp-v2 §5.1: except in version 1, a redirect header of 4 bytes precedes the IP
 * packet.
 */
const GRE_WCCP = 0x883e

/**
 * Finds the inner packet of the GRE packet in bytes [at, end). Returns 0 or the complement of a
 * class.
 */
export function greInner(view: DataView, at: number, end: number, inner: InnerPacket): number {
  if (at + 4 > end) return ~PacketClass.truncated
  const flags = view.getUint16(at)
  const protocol = view.getUint16(at + 2)
  if ((flags & GRE_ROUTING) !== 0 || (flags & GRE_VERSION) > 1) return ~PacketClass.otherTransport
  let offset = at + 4
  if ((flags & GRE_CHECKSUM) !== 0) offset += 4
  if ((flags & GRE_KEY) !== 0) offset += 4
  if ((flags & GRE_SEQUENCE) !== 0) offset += 4
  if ((flags & GRE_VERSION) === 1 && (flags & GRE_ACKNOWLEDGEMENT) !== 0) offset += 4
  if (offset >= end) return ~PacketClass.otherTransport
  switch (protocol) {
    case GRE_ERSPAN:
      // Type I has no sequence number and no header of its own.
      inner.set(EtherType.transparentEthernet, (flags & GRE_SEQUENCE) === 0 ? offset : offset + ERSPAN2_HEADER_BYTES)
      return 0
    case GRE_ERSPAN3: {
      if (offset + ERSPAN3_HEADER_BYTES > end) return ~PacketClass.truncated
      const subheader = (view.getUint8(offset + ERSPAN3_HEADER_BYTES - 1) & 1) === 1 ? ERSPAN3_SUBHEADER_BYTES : 0
      inner.set(EtherType.transparentEthernet, offset + ERSPAN3_HEADER_BYTES + subheader)
      return 0
    }
    case GRE_WCCP:
      inner.set(EtherType.ipv4, view.getUint8(offset) >> 4 === 4 ? offset : offset + 4)
      return 0
    default:
      inner.set(protocol, offset)
      return 0
  }
}

/**
 * Returns the tunnel port of a datagram between these ports, or 0. VXLAN and GENEVE senders use any
 * source port. GTP-U and Teredo peers may answer from the tunnel port.
 */
export function tunnelPort(source: number, destination: number): number {
  switch (destination) {
    case PORT_VXLAN:
    case PORT_VXLAN_LINUX:
    case PORT_VXLAN_GPE:
    case PORT_GENEVE:
    case PORT_GTP_U:
    case PORT_TEREDO:
      return destination
    default:
      return source === PORT_GTP_U || source === PORT_TEREDO ? source : 0
  }
}

/**
 * Finds the inner packet in the datagram's payload, bytes [at, end), for the tunnel type of `port`.
 * Returns false if the payload is not such a tunnel: other traffic may use the port.
 */
export function udpInner(view: DataView, port: number, at: number, end: number, inner: InnerPacket): boolean {
  switch (port) {
    case PORT_VXLAN:
    case PORT_VXLAN_LINUX:
      return vxlanInner(view, at, end, inner)
    case PORT_VXLAN_GPE:
      return vxlanGpeInner(view, at, end, inner)
    case PORT_GENEVE:
      return geneveInner(view, at, end, inner)
    case PORT_GTP_U:
      return gtpInner(view, at, end, inner)
    case PORT_TEREDO:
      return teredoInner(view, at, end, inner)
    default:
      return false
  }
}

/** RFC 7348 §5: flags with the I bit, reserved, 24 bits of VNI, reserved. */
function vxlanInner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  if (at + 8 > end || (view.getUint8(at) & 0x08) === 0) return false
  inner.set(EtherType.transparentEthernet, at + 8)
  return true
}

/** draft-ietf-nvo3-vxlan-gpe §3: the P bit says that the fourth byte is the next protocol. */
function vxlanGpeInner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  if (at + 8 > end || (view.getUint8(at) & 0x0c) !== 0x0c) return false
  const next = view.getUint8(at + 3)
  if (next < 1 || next > 3) return false
  const etherTypes = [EtherType.ipv4, EtherType.ipv6, EtherType.transparentEthernet]
  inner.set(etherTypes[next - 1] ?? 0, at + 8)
  return true
}

/**
 * RFC 8926 §3.4: version 0 and length of the options in units of 4 bytes, flags, protocol, VNI,
 * options.
 */
function geneveInner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  if (at + 8 > end || view.getUint8(at) >> 6 !== 0) return false
  const offset = at + 8 + (view.getUint8(at) & 0x3f) * 4
  if (offset >= end) return false
  inner.set(view.getUint16(at + 2), offset)
  return true
}

/**
 * 3GPP TS 29.281 §5.1: version 1 and GTP, message type 255 (G-PDU), length, TEID. Any of E, S and
 * PN adds 4 bytes.
 */
function gtpInner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  if (at + 8 > end) return false
  const flags = view.getUint8(at)
  if ((flags & 0xf0) !== 0x30 || view.getUint8(at + 1) !== 0xff) return false
  let offset = at + 8
  if ((flags & 0x07) !== 0) {
    if (offset + 4 > end) return false
    let next = (flags & 0x04) === 0 ? 0 : view.getUint8(offset + 3)
    offset += 4
    // §5.2: each extension header starts with its length in units of 4 bytes and ends with the type
    // of the next.
    while (next !== 0) {
      if (offset >= end) return false
      const bytes = view.getUint8(offset) * 4
      if (bytes === 0 || offset + bytes > end) return false
      next = view.getUint8(offset + bytes - 1)
      offset += bytes
    }
  }
  if (offset >= end) return false
  const nibble = view.getUint8(offset) >> 4
  if (nibble !== 4 && nibble !== 6) return false
  inner.set(nibble === 4 ? EtherType.ipv4 : EtherType.ipv6, offset)
  return true
}

/** RFC 4380 §5.1.1: an authentication and an origin indication may precede the IPv6 packet. */
function teredoInner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  let offset = at
  if (offset + 4 <= end && view.getUint16(offset) === 0x0001) {
    // Lengths of client identification and authentication value. A nonce of 8 bytes and a
    // confirmation byte follow them.
    offset += 4 + view.getUint8(offset + 2) + view.getUint8(offset + 3) + 9
  }
  if (offset + 8 <= end && view.getUint16(offset) === 0x0000) offset += 8
  if (offset + 40 > end || view.getUint8(offset) >> 4 !== 6) return false
  inner.set(EtherType.ipv6, offset)
  return true
}
