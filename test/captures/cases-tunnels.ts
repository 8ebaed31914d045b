import { ethernet, ipv4, ipv6, type NetworkPacket, type Transport, udp, vlan } from '../support/packets.ts'
import { dnsQuery } from '../support/packets-dns.ts'
import { ipv4Fragments } from '../support/packets-fragments.ts'
import {
  erspan1,
  erspan2,
  erspan3,
  geneve,
  geneveOption,
  gre,
  grePpp,
  gtpU,
  ipInIp,
  mpls,
  mplsInIp,
  mplsPseudowire,
  TunnelPort,
  teredo,
  transparentEthernet,
  vxlan,
} from '../support/packets-tunnel.ts'
import type { GeneratedCapture } from './generated-capture.ts'
import {
  CLIENT,
  everyMillisecond,
  frames,
  helloFor,
  query,
  queryFor,
  queryName,
  RESOLVER,
  type UntimedPacket,
} from './parties.ts'

/** The endpoints of the tunnels. No name may be attributed to them. */
const NEAR = '198.51.100.1'
const FAR = '198.51.100.2'
const NEAR6 = '2001:db8:ff::1'
const FAR6 = '2001:db8:ff::2'

type Tunnels = Readonly<Record<string, (packet: NetworkPacket) => NetworkPacket>>

const over4 = (transport: Transport) => ipv4({ source: NEAR, destination: FAR }, transport)
const over6 = (transport: Transport) => ipv6({ source: NEAR6, destination: FAR6 }, transport)
const toPort = (destinationPort: number, payload: Buffer) => udp({ sourcePort: 61_000, destinationPort }, payload)
const frameOf = (packet: NetworkPacket) =>
  ethernet({ source: '02:00:00:00:01:01', destination: '02:00:00:00:01:02' }, packet)

/**
 * The frame's first four bits are not an IP version. tshark recognizes the frame by the vendor
 * prefixes of its addresses.
 */
const pseudowireFrame = (packet: NetworkPacket) =>
  ethernet({ source: '00:00:0c:00:01:01', destination: 'ac:de:48:00:01:02' }, packet)

/**
 * Sends a query over IPv4 and a ClientHello over IPv6 through each tunnel, or only the version that
 * the tunnel can carry.
 */
function throughTunnels(about: string, tunnels: Tunnels, versions: readonly (4 | 6)[] = [4, 6]): GeneratedCapture {
  const packets: UntimedPacket[] = []
  let clientPort = 50_001
  for (const [label, tunnel] of Object.entries(tunnels)) {
    const messages = versions.map((version) =>
      version === 4 ? queryFor(`${label}.example.org`) : helloFor(`${label}.example.net`, clientPort++),
    )
    for (const { packet, reported } of messages)
      packets.push({ bytes: ethernet({}, tunnel(packet)), names: [reported] })
  }
  return { about: `${about}\n`, packets: everyMillisecond(packets) }
}

export function tunnelCases(): Record<string, GeneratedCapture> {
  return {
    'tunnel-mpls': throughTunnels(
      'MPLS label stacks of one and three labels with IP, and pseudowires (RFC 4448) with a control word.',
      {
        one: (packet) => mpls([100], packet),
        three: (packet) => mpls([16, 200, 3000], packet),
        tagged: (packet) => vlan(7, mpls([100], packet)),
        'control-word': (packet) => mplsPseudowire([100, 17], pseudowireFrame(packet), { controlWord: true }),
        'pseudowire-vlan': (packet) =>
          mplsPseudowire([100, 17], pseudowireFrame(vlan(9, packet)), { controlWord: true }),
      },
    ),
    'tunnel-mpls-bare-pseudowire': {
      ...throughTunnels('An Ethernet pseudowire without a control word. Only its first bytes distinguish it from IP.', {
        bare: (packet) => mplsPseudowire([100, 17], pseudowireFrame(packet)),
      }),
      tsharkDiffers: 'tshark needs the option -d mpls.label==17,pwethnocw and then shows the same names.',
    },
    'tunnel-gre': throughTunnels(
      'GRE (RFC 2784, RFC 2890): plain, with key, sequence number, checksum or all of them, over IPv6, with Ethernet or MPLS inside, and with PPP in version 1 (RFC 2637).',
      {
        plain: (packet) => over4(gre({}, packet)),
        key: (packet) => over4(gre({ key: 5 }, packet)),
        sequence: (packet) => over4(gre({ sequence: 6 }, packet)),
        checksum: (packet) => over4(gre({ checksum: true }, packet)),
        all: (packet) => over4(gre({ key: 5, sequence: 6, checksum: true }, packet)),
        'over-ipv6': (packet) => over6(gre({}, packet)),
        ethernet: (packet) => over4(gre({ key: 5 }, transparentEthernet(frameOf(packet)))),
        mpls: (packet) => over4(gre({}, mpls([44], packet))),
        ppp: (packet) => over4(grePpp({ sequence: 3 }, packet)),
        'ppp-acknowledged': (packet) =>
          over4(grePpp({ sequence: 3, acknowledgement: 2, addressControl: true }, packet)),
      },
    ),
    'tunnel-erspan': throughTunnels(
      'Mirrored Ethernet in GRE: ERSPAN type I, II, and III with and without its platform header (draft-foschiano-erspan).',
      {
        one: (packet) => over4(erspan1(frameOf(packet))),
        two: (packet) => over4(erspan2(frameOf(packet))),
        'two-tagged': (packet) => over4(erspan2(frameOf(vlan(9, packet)))),
        three: (packet) => over4(erspan3(frameOf(packet))),
        'three-platform': (packet) => over4(erspan3(frameOf(packet), { platformHeader: true })),
      },
    ),
    'tunnel-ip-in-ip': throughTunnels(
      'IP in IP in all four pairings: IPv4 in IPv4 (RFC 2003), 6in4 (RFC 4213), either in IPv6 (RFC 2473).',
      {
        'over-ipv4': (packet) => over4(ipInIp(packet)),
        'over-ipv6': (packet) => over6(ipInIp(packet)),
        mpls: (packet) => over4(mplsInIp(mpls([44], packet))),
      },
    ),
    'tunnel-teredo': throughTunnels(
      'Teredo (RFC 4380 §5.1.1): plain, with origin indication, with authentication, with both.',
      {
        plain: (packet) => over4(toPort(TunnelPort.teredo, teredo(packet))),
        origin: (packet) => over4(toPort(TunnelPort.teredo, teredo(packet, { origin: true }))),
        authentication: (packet) => over4(toPort(TunnelPort.teredo, teredo(packet, { authentication: true }))),
        both: (packet) => over4(toPort(TunnelPort.teredo, teredo(packet, { origin: true, authentication: true }))),
      },
      [6],
    ),
    'tunnel-vxlan': throughTunnels('VXLAN (RFC 7348) over IPv4 and IPv6, and with a VLAN tag inside.', {
      plain: (packet) => over4(toPort(TunnelPort.vxlan, vxlan(5000, frameOf(packet)))),
      'over-ipv6': (packet) => over6(toPort(TunnelPort.vxlan, vxlan(5000, frameOf(packet)))),
      tagged: (packet) => over4(toPort(TunnelPort.vxlan, vxlan(5000, frameOf(vlan(9, packet))))),
    }),
    'tunnel-geneve': throughTunnels(
      'GENEVE (RFC 8926) with Ethernet inside, with options, and with IP directly inside.',
      {
        ethernet: (packet) => over4(toPort(TunnelPort.geneve, geneve(1, transparentEthernet(frameOf(packet))))),
        options: (packet) =>
          over4(
            toPort(
              TunnelPort.geneve,
              geneve(
                1,
                transparentEthernet(frameOf(packet)),
                Buffer.concat([geneveOption(0x0102, 1, Buffer.alloc(8)), geneveOption(0xff00, 0x82, Buffer.alloc(0))]),
              ),
            ),
          ),
        ip: (packet) => over6(toPort(TunnelPort.geneve, geneve(1, packet))),
      },
    ),
    'tunnel-gtp-u': throughTunnels(
      'GTP-U (3GPP TS 29.281): plain, with sequence number, with one extension header (the PDU session container of 5G) or two.',
      {
        plain: (packet) => over4(toPort(TunnelPort.gtpU, gtpU({}, packet))),
        sequence: (packet) => over4(toPort(TunnelPort.gtpU, gtpU({ sequence: 4 }, packet))),
        extension: (packet) => over4(toPort(TunnelPort.gtpU, gtpU({ extensions: [PDU_SESSION] }, packet))),
        extensions: (packet) =>
          over6(toPort(TunnelPort.gtpU, gtpU({ sequence: 4, extensions: [UDP_PORT, PDU_SESSION] }, packet))),
      },
    ),
    'tunnels-nested': throughTunnels('Tunnels in tunnels, and tunnels after VLAN tags and MPLS labels.', {
      'vxlan-in-vlan': (packet) => vlan(7, over4(toPort(TunnelPort.vxlan, vxlan(1, frameOf(packet))))),
      'vxlan-in-gre': (packet) => over4(gre({}, over4(toPort(TunnelPort.vxlan, vxlan(1, frameOf(packet)))))),
      'gre-in-geneve': (packet) =>
        over6(toPort(TunnelPort.geneve, geneve(1, transparentEthernet(frameOf(over4(gre({ key: 1 }, packet))))))),
      'ip-in-erspan': (packet) => over4(erspan2(frameOf(over4(ipInIp(packet))))),
      'gtp-in-mpls': (packet) => mpls([7, 8], over4(toPort(TunnelPort.gtpU, gtpU({}, packet)))),
      'four-ip': (packet) => over4(ipInIp(over6(ipInIp(over4(ipInIp(packet)))))),
    }),
    'tunnel-in-fragments': tunnelInFragments(),
  }
}

/** Extension header type 0x85 with two bytes: uplink, QoS flow 1. */
const PDU_SESSION = { type: 0x85, bytes: Buffer.from([0x10, 1]) }
/** Type 0x40: the UDP port of the sender. */
const UDP_PORT = { type: 0x40, bytes: Buffer.from([0xee, 0x48]) }

function tunnelInFragments(): GeneratedCapture {
  const packets: UntimedPacket[] = []
  for (const [index, reversed] of [false, true].entries()) {
    const label = reversed ? 'reversed' : 'in-order'
    const order = reversed ? [1, 0] : [0, 1]
    const hello = helloFor(`outer-${label}.example.net`, 50_001 + index)
    const outer = { source: NEAR, destination: FAR, identification: 100 + index }
    const carried = toPort(TunnelPort.vxlan, vxlan(1, frameOf(hello.packet)))
    const pieces = ipv4Fragments(outer, carried, 240, order)
    packets.push(...frames(pieces.map(frameOf), [hello.reported]))

    const name = `inner-${label}.example.org`
    const inner = { source: CLIENT, destination: RESOLVER, identification: 200 + index }
    const innerPieces = ipv4Fragments(inner, query(dnsQuery([name])), 32, order)
    packets.push(
      ...frames(
        innerPieces.map((piece) => frameOf(over4(gre({}, piece)))),
        [queryName(name)],
      ),
    )
  }
  return {
    about: 'A tunnel whose outer packets are fragmented, and a tunnel that carries fragments; in order and reversed.\n',
    packets: everyMillisecond(packets),
  }
}
