import { PacketClass } from '../batch/packet-class.ts'
import { TUNNELS_MAX } from '../limits.ts'
import { fragmentPayload, IpHeader, IpProtocol, ipPayload, ipv6Extensions } from './ip.ts'
import type { IpFragments } from './ip-fragments.ts'
import { linkPayload } from './link.ts'
import { EtherType, networkLayer, VirtualNetworks } from './network-layer.ts'
import { greInner, InnerPacket, l2tp3Inner, NO_LINK_TYPE, UdpTunnels } from './tunnel.ts'
import { UDP_DESTINATION_PORT, UDP_SOURCE_PORT, udpEnd, udpPayload } from './udp.ts'

/** The innermost UDP, TCP or ESP of a packet. One per worker, overwritten by each packet. */
export class Transport {
  /** The memory of the UDP, TCP or ESP header and its payload, in bytes [start, end). */
  view: DataView
  bytes: Uint8Array
  start = 0
  end = 0
  /** IpProtocol.udp, tcp or esp. */
  protocol = 0
  /** For UDP, the payload: bytes [payload, payloadEnd). */
  payload = 0
  payloadEnd = 0
  /** 1 if the frame ends before the packet: the payload is incomplete. */
  truncated = 0
  /**
   * The innermost IP header's addresses: the source at `source`, then the destination. For a
   * fragment, the memory differs from that of the payload.
   */
  addressView: DataView
  source = 0
  addressBytes = 0
  version = 0
  /** VirtualNetworks.id of the networks around the packet. */
  network = 0
  /** 1 if an IP packet had an authentication header. */
  authenticated = 0

  constructor(view: DataView, bytes: Uint8Array) {
    this.view = view
    this.bytes = bytes
    this.addressView = view
  }
}

/**
 * Walks the layers of a packet inward from its link header: IP, reassembled fragments, tunnels, to
 * the innermost UDP, TCP or ESP.
 */
export class Layers {
  readonly #ip = new IpHeader()
  readonly #inner = new InnerPacket()
  readonly #networks = new VirtualNetworks()
  readonly #tunnels: UdpTunnels
  readonly #fragments: IpFragments | undefined

  /** Without `fragments`, the walk ends at a fragment. */
  constructor(tunnels = new UdpTunnels(), fragments?: IpFragments) {
    this.#tunnels = tunnels
    this.#fragments = fragments
  }

  /**
   * Returns 0 if the frame in bytes [start, end) has a UDP, TCP or ESP packet, which is then in
   * `transport`. Otherwise returns the complement of the packet's class.
   */
  unwrap(
    view: DataView,
    bytes: Uint8Array,
    linkType: number,
    start: number,
    end: number,
    seconds: number,
    transport: Transport,
  ): number {
    this.#fragments?.reclaim()
    const ip = this.#ip
    const networks = this.#networks
    ip.authenticated = 0
    networks.id = 0
    let header = linkPayload(view, linkType, start, end, networks)
    let inView = view
    let inBytes = bytes
    let inEnd = end
    for (let tunnels = 0; tunnels <= TUNNELS_MAX; tunnels++) {
      if (header < 0) return header
      let payload = ipPayload(inView, header, inEnd, ip)
      transport.addressView = inView
      transport.source = ip.source
      transport.addressBytes = ip.addressBytes
      if (payload < 0) {
        if (~payload !== PacketClass.ipFragment) return payload
        const fragments = this.#fragments
        if (fragments === undefined) return payload
        if (tunnels === TUNNELS_MAX) break
        if (!fragments.add(inView, fragmentPayload(inView, header, ip), ip, seconds, networks.id)) return payload
        inView = fragments.view
        inBytes = fragments.bytes
        ip.end = fragments.end
        payload = ipv6Extensions(inView, ip.protocol, fragments.start, ip)
        if (payload < 0) return payload
      }
      inEnd = ip.end
      const inner = this.#inner
      switch (ip.protocol) {
        case IpProtocol.udp: {
          const data = udpPayload(inView, payload, inEnd)
          if (data < 0) return data
          const source = inView.getUint16(payload + UDP_SOURCE_PORT)
          const destination = inView.getUint16(payload + UDP_DESTINATION_PORT)
          const dataEnd = udpEnd(inView, payload, inEnd)
          if (!this.#tunnels.inner(source, destination, inView, data, dataEnd, inner)) {
            transport.payload = data
            transport.payloadEnd = dataEnd
            return this.#found(transport, inView, inBytes, payload, inEnd)
          }
          inEnd = dataEnd
          header = innerHeader(inView, inner, inEnd, networks)
          break
        }
        case IpProtocol.tcp:
        case IpProtocol.esp:
          return this.#found(transport, inView, inBytes, payload, inEnd)
        case IpProtocol.ipv4:
          header = networkLayer(inView, EtherType.ipv4, payload, inEnd, networks)
          break
        case IpProtocol.ipv6:
          header = networkLayer(inView, EtherType.ipv6, payload, inEnd, networks)
          break
        case IpProtocol.gre: {
          const refused = greInner(inView, payload, inEnd, inner)
          if (refused < 0) return refused
          header = innerHeader(inView, inner, inEnd, networks)
          break
        }
        case IpProtocol.etherIp:
          // RFC 3378 §3: a version of two bytes precedes the frame.
          header = networkLayer(inView, EtherType.transparentEthernet, payload + 2, inEnd, networks)
          break
        case IpProtocol.ethernet:
          header = networkLayer(inView, EtherType.transparentEthernet, payload, inEnd, networks)
          break
        case IpProtocol.mpls:
          header = networkLayer(inView, EtherType.mpls, payload, inEnd, networks)
          break
        case IpProtocol.l2tp:
          if (!l2tp3Inner(inView, payload, inEnd, inner)) return ~PacketClass.otherTransport
          header = innerHeader(inView, inner, inEnd, networks)
          break
        default:
          return ~PacketClass.otherTransport
      }
    }
    return ~PacketClass.nestedTooDeep
  }

  #found(transport: Transport, view: DataView, bytes: Uint8Array, start: number, end: number): number {
    const ip = this.#ip
    transport.view = view
    transport.bytes = bytes
    transport.start = start
    transport.end = end
    transport.protocol = ip.protocol
    transport.truncated = ip.truncated
    transport.version = ip.version
    transport.authenticated = ip.authenticated
    transport.network = this.#networks.id
    return 0
  }
}

function innerHeader(view: DataView, inner: InnerPacket, end: number, networks: VirtualNetworks): number {
  const { linkType, etherType, offset, network } = inner
  if (network !== 0) networks.enter(network)
  if (linkType === NO_LINK_TYPE) return networkLayer(view, etherType, offset, end, networks)
  return linkPayload(view, linkType, offset, end, networks)
}
