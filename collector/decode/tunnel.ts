import { PacketClass } from '../batch/packet-class.ts'
import { IpProtocol } from './ip.ts'
import { LinkType } from './link.ts'
import { EtherType, etherTypeIsRead } from './network-layer.ts'
import { GENEVE_PORTS, type ServerPorts, VXLAN_PORTS } from './ports.ts'

/**
 * Tunnels: GRE with ERSPAN, L2TP, and tunnels over UDP -> EtherType and offset of the inner packet.
 * Not read: GRE with source routes, VXLAN with unknown group policy bits, ESP, WireGuard.
 */

/** There is an EtherType instead. */
export const NO_LINK_TYPE = -2

/**
 * EtherType, or link type, and offset of the packet inside a tunnel. One per worker, overwritten by
 * each tunnel.
 */
export class InnerPacket {
  etherType = 0
  linkType = NO_LINK_TYPE
  offset = 0
  /** Identifier of a tenant's network; 0 if the tunnel has none. */
  network = 0

  set(etherType: number, offset: number, network = 0): void {
    this.etherType = etherType
    this.linkType = NO_LINK_TYPE
    this.offset = offset
    this.network = network
  }

  setLink(linkType: number, offset: number): void {
    this.linkType = linkType
    this.offset = offset
    this.network = 0
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
  const key = (flags & GRE_KEY) !== 0 && (flags & GRE_VERSION) === 0 && offset + 4 <= end ? view.getUint32(offset) : 0
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
      inner.set(protocol, offset, key)
      return 0
  }
}

/** RFC 9300 §5.3: flags and nonce, locator bits; then an IP packet. */
const LISP_HEADER_BYTES = 8

/** Finds an IP packet of the version that its first byte shows. */
function ipInner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  if (at >= end) return false
  const nibble = view.getUint8(at) >> 4
  if (nibble !== 4 && nibble !== 6) return false
  inner.set(nibble === 4 ? EtherType.ipv4 : EtherType.ipv6, at)
  return true
}

/**
 * draft-ietf-intarea-gue §3: in variant 0, a control bit, the length of the options in units of 4
 * bytes, an IP protocol, flags. Variant 1 has no header: an IP packet begins with its bits.
 */
const GUE_CONTROL = 0x20
const GUE_LENGTH = 0x1f
const GUE_HEADER_BYTES = 4
const GUE_CONTENT: Readonly<Partial<Record<number, number>>> = {
  [IpProtocol.ipv4]: EtherType.ipv4,
  [IpProtocol.ipv6]: EtherType.ipv6,
  [IpProtocol.ethernet]: EtherType.transparentEthernet,
}

function gueInner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  if (at + GUE_HEADER_BYTES > end) return false
  const first = view.getUint8(at)
  if (first >> 6 === 1) return ipInner(view, at, end, inner)
  if (first >> 6 !== 0 || (first & GUE_CONTROL) !== 0) return false
  const offset = at + GUE_HEADER_BYTES + (first & GUE_LENGTH) * 4
  const content = GUE_CONTENT[view.getUint8(at + 1)]
  if (content === undefined || offset >= end) return false
  inner.set(content, offset)
  return true
}

/** RFC 7348 §5: flags with the I bit, reserved, 24 bits of VNI, reserved. */
function vxlanInner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  if (at + 8 > end || (view.getUint8(at) & 0x08) === 0) return false
  inner.set(EtherType.transparentEthernet, at + 8, view.getUint32(at + 4) >>> 8)
  return true
}

const GPE_CONTENT = [EtherType.ipv4, EtherType.ipv6, EtherType.transparentEthernet, EtherType.nsh] as const

/** draft-ietf-nvo3-vxlan-gpe §3: the P bit says that the fourth byte is the next protocol. */
function vxlanGpeInner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  if (at + 8 > end || (view.getUint8(at) & 0x0c) !== 0x0c) return false
  const next = view.getUint8(at + 3)
  if (next < 1 || next > 4) return false
  inner.set(GPE_CONTENT[next - 1] ?? 0, at + 8, view.getUint32(at + 4) >>> 8)
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
  inner.set(view.getUint16(at + 2), offset, view.getUint32(at + 4) >>> 8)
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
  return ipInner(view, offset, end, inner)
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

/**
 * RFC 5415 §4.3: version and type 0 (1 is DTLS); header length in units of 4 bytes, radio, binding,
 * the bits T (native frame), F (fragment), L, W, M and K (keep-alive). RFC 5416: binding 1 is
 * 802.11.
 */
const CAPWAP_HEADER_BYTES_MIN = 8
const CAPWAP_NATIVE = 0x01
const CAPWAP_FRAGMENT = 0x80
const CAPWAP_KEEP_ALIVE = 0x08
const CAPWAP_BINDING_80211 = 1

function capwapInner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  if (at + CAPWAP_HEADER_BYTES_MIN > end || view.getUint8(at) !== 0) return false
  const offset = at + (view.getUint8(at + 1) >> 3) * 4
  const third = view.getUint8(at + 2)
  const flags = view.getUint8(at + 3)
  if (offset < at + CAPWAP_HEADER_BYTES_MIN || offset >= end || (flags & CAPWAP_KEEP_ALIVE) !== 0) return false
  // The first fragment has the headers of the frame and perhaps all of it.
  if ((flags & CAPWAP_FRAGMENT) !== 0 && view.getUint16(at + 6) >> 3 !== 0) return false
  if ((third & CAPWAP_NATIVE) === 0) inner.set(EtherType.transparentEthernet, offset)
  else if (((third >> 1) & 0x1f) === CAPWAP_BINDING_80211) inner.setLink(LinkType.capwapWlan, offset)
  else return false
  return true
}

/**
 * RFC 2661 §3.1, version 2: flags, length if L, tunnel, session, sequence numbers if S, padding if
 * O, then PPP. RFC 3931 §4.1.2.1, version 3 over UDP: flags, reserved, session.
 */
const L2TP_CONTROL = 0x8000
const L2TP_LENGTH = 0x4000
const L2TP_SEQUENCE = 0x0800
const L2TP_OFFSET = 0x0200
const L2TP_VERSION = 0x000f

function l2tpInner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  if (at + 8 > end) return false
  const flags = view.getUint16(at)
  if ((flags & L2TP_CONTROL) !== 0) return false
  if ((flags & L2TP_VERSION) === 3) return l2tp3Inner(view, at + 4, end, inner)
  if ((flags & L2TP_VERSION) !== 2) return false
  let offset = at + 6 + ((flags & L2TP_LENGTH) === 0 ? 0 : 2) + ((flags & L2TP_SEQUENCE) === 0 ? 0 : 4)
  if ((flags & L2TP_OFFSET) !== 0) {
    if (offset + 2 > end) return false
    offset += 2 + view.getUint16(offset)
  }
  if (offset >= end) return false
  inner.set(EtherType.ppp, offset)
  return true
}

/**
 * RFC 3931 §4.1.1: session, a cookie of 0, 4 or 8 bytes, and perhaps a sublayer of 4. Only the
 * control connection says which, so the first position at which a frame with IP can begin counts.
 */
const L2TP3_SESSION_BYTES = 4
const L2TP3_SKIPPED_MAX = 12
const ETHERNET_ADDRESSES_BYTES = 12
const PPP_ADDRESS_CONTROL = 0xff03

/** Finds the inner packet of the L2TP version 3 session in bytes [at, end). */
export function l2tp3Inner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  if (at + L2TP3_SESSION_BYTES > end || view.getUint32(at) === 0) return false
  const first = at + L2TP3_SESSION_BYTES
  for (let offset = first; offset <= first + L2TP3_SKIPPED_MAX; offset += 4) {
    if (offset + 4 > end) return false
    if (etherTypeIsRead(view, offset + ETHERNET_ADDRESSES_BYTES, end)) {
      inner.set(EtherType.transparentEthernet, offset)
      return true
    }
    if (view.getUint16(offset) === PPP_ADDRESS_CONTROL) {
      inner.set(EtherType.ppp, offset)
      return true
    }
  }
  return false
}

function mplsInner(_view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  inner.set(EtherType.mpls, at)
  return at < end
}

/**
 * TaZmen Sniffer Protocol: version 1, type 0 or 1 (a frame received or to be sent), link type, tags
 * of type, length and value until the tag 1; a tag 0 is one byte of padding.
 */
const TZSP_HEADER_BYTES = 4
const TZSP_PADDING = 0
const TZSP_END = 1
const TZSP_ETHERNET = 1
const TZSP_80211 = 18

function tzspInner(view: DataView, at: number, end: number, inner: InnerPacket): boolean {
  if (at + TZSP_HEADER_BYTES > end || view.getUint8(at) !== 1 || view.getUint8(at + 1) > 1) return false
  const linkType = view.getUint16(at + 2)
  for (let tag = at + TZSP_HEADER_BYTES; tag < end; ) {
    const type = view.getUint8(tag++)
    if (type === TZSP_PADDING) continue
    if (type === TZSP_END) {
      if (linkType === TZSP_ETHERNET) inner.set(EtherType.transparentEthernet, tag)
      else if (linkType === TZSP_80211) inner.setLink(LinkType.ieee80211, tag)
      else return false
      return true
    }
    if (tag >= end) return false
    tag += 1 + view.getUint8(tag)
  }
  return false
}

/**
 * Tunnels over UDP. `inner` finds the inner packet in the datagram's payload, bytes [at, end). It
 * returns false if the payload is not such a tunnel, because other traffic may use the port. Senders
 * use any source port, but peers of some tunnels may answer from the tunnel port.
 */
interface UdpTunnel {
  readonly ports: readonly number[]
  readonly answers?: boolean
  readonly inner: (view: DataView, at: number, end: number, inner: InnerPacket) => boolean
}

function udpTunnels({ vxlanPorts = VXLAN_PORTS, genevePorts = GENEVE_PORTS }: TunnelPorts): readonly UdpTunnel[] {
  return [
    { ports: vxlanPorts, inner: vxlanInner },
    { ports: genevePorts, inner: geneveInner },
    // draft-ietf-nvo3-vxlan-gpe §6, 3GPP TS 29.281 §4.4.2, RFC 4380 §2.7
    { ports: [4790], inner: vxlanGpeInner },
    { ports: [2152], inner: gtpInner, answers: true },
    { ports: [3544], inner: teredoInner, answers: true },
    // RFC 8086 §8, RFC 7510 §6, RFC 5415 §3.1, RFC 2661 §8.1
    { ports: [4754], inner: (view, at, end, inner) => greInner(view, at, end, inner) === 0 },
    { ports: [6635], inner: mplsInner },
    { ports: [5247], inner: capwapInner, answers: true },
    { ports: [1701], inner: l2tpInner, answers: true },
    // TZSP has no specification of its port. RFC 9300 §5.3; draft-ietf-intarea-gue §3.
    { ports: [37_008], inner: tzspInner },
    { ports: [4341], inner: (view, at, end, inner) => ipInner(view, at + LISP_HEADER_BYTES, end, inner) },
    { ports: [6080], inner: gueInner },
  ]
}

type TunnelPorts = Pick<ServerPorts, 'vxlanPorts' | 'genevePorts'>

/** UDP ports of all tunnels. */
export function tunnelPorts(ports: TunnelPorts): number[] {
  return udpTunnels(ports).flatMap((tunnel) => tunnel.ports)
}

/** Finds the tunnel of a datagram by its ports. */
export class UdpTunnels {
  readonly #tunnels: readonly UdpTunnel[]
  /** 1 + index of the tunnel to, and from, each port; 0 for no tunnel. */
  readonly #to = new Uint8Array(65_536)
  readonly #from = new Uint8Array(65_536)

  constructor(ports: TunnelPorts = {}) {
    this.#tunnels = udpTunnels(ports)
    for (const [index, tunnel] of this.#tunnels.entries()) {
      for (const port of tunnel.ports) {
        this.#to[port] = index + 1
        if (tunnel.answers === true) this.#from[port] = index + 1
      }
    }
  }

  /** Finds the inner packet of the datagram between these ports. Returns false if it has none. */
  inner(source: number, destination: number, view: DataView, at: number, end: number, inner: InnerPacket): boolean {
    const found = this.#to[destination] || this.#from[source] || 0
    return found !== 0 && (this.#tunnels[found - 1] as UdpTunnel).inner(view, at, end, inner)
  }
}
