import { EtherType, ethernet, ipv4, ipv6, type NetworkPacket, type Transport, udp, vlan } from '../support/packets.ts'
import { dnsQuery } from '../support/packets-dns.ts'
import { ipv4Fragments } from '../support/packets-fragments.ts'
import { ieee80211Frame } from '../support/packets-link.ts'
import {
  backboneServiceTag,
  capwap,
  ciscoMetadata,
  eTag,
  l2tp2,
  l2tp3InIp,
  l2tp3InUdp,
  macsec,
  nsh,
  tzsp,
  vnTag,
} from '../support/packets-tags.ts'
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
  vxlanGpeNsh,
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

const nshOf = (packet: NetworkPacket) => nsh(packet.etherType === EtherType.ipv4 ? 'ipv4' : 'ipv6', packet.bytes)
const wlanFrame = (packet: NetworkPacket) => ieee80211Frame(packet, { qos: true })

/** Encapsulations of campus, provider and data center networks, and of remote capture. */
function moreTunnelCases(): Record<string, GeneratedCapture> {
  return {
    'tunnel-in-udp': throughTunnels('GRE in UDP (RFC 8086), also with Ethernet inside, and MPLS in UDP (RFC 7510).', {
      gre: (packet) => over4(toPort(TunnelPort.greInUdp, gre({ key: 5 }, packet).bytes)),
      'gre-ethernet': (packet) =>
        over6(toPort(TunnelPort.greInUdp, gre({}, transparentEthernet(frameOf(packet))).bytes)),
      mpls: (packet) => over4(toPort(TunnelPort.mplsInUdp, mpls([44, 45], packet).bytes)),
    }),
    'tunnel-capwap': throughTunnels(
      'CAPWAP data (RFC 5415): 802.11 frames whose first two bytes are swapped, as many access points send them, and 802.3 frames.',
      {
        swapped: (packet) =>
          over4(toPort(TunnelPort.capwapData, capwap(wlanFrame(packet), { native: true, swapped: true }))),
        ethernet: (packet) => over4(toPort(TunnelPort.capwapData, capwap(frameOf(packet), { native: false }))),
      },
    ),
    'tunnel-l2tp': throughTunnels(
      'L2TP version 2 (RFC 2661): plain, with the length, and with sequence numbers and padding too.',
      {
        plain: (packet) => over4(toPort(TunnelPort.l2tp, l2tp2(packet))),
        length: (packet) => over4(toPort(TunnelPort.l2tp, l2tp2(packet, { length: true }))),
        all: (packet) => over4(toPort(TunnelPort.l2tp, l2tp2(packet, { length: true, sequence: true, padding: 4 }))),
      },
    ),
    'tunnel-capwap-in-order': {
      ...throughTunnels('CAPWAP data with 802.11 frames in the order of RFC 5416.', {
        native: (packet) => over4(toPort(TunnelPort.capwapData, capwap(wlanFrame(packet), { native: true }))),
      }),
      tsharkDiffers: 'tshark needs the option -o capwap.swap_fc:FALSE and then shows the same names.',
    },
    'tunnel-l2tp3': {
      ...throughTunnels(
        'L2TP version 3 (RFC 3931) over UDP and IP: plain, with a cookie, and with a cookie and the sublayer.',
        {
          'v3-udp': (packet) => over4(toPort(TunnelPort.l2tp, l2tp3InUdp(frameOf(packet)))),
          'v3-ip': (packet) => over4(l2tp3InIp(frameOf(packet))),
          'v3-cookie': (packet) => over4(l2tp3InIp(frameOf(packet), { cookieBytes: 8 })),
          'v3-sublayer': (packet) => over6(l2tp3InIp(frameOf(packet), { cookieBytes: 4, sublayer: true })),
        },
      ),
      tsharkDiffers:
        'without the control connection, tshark must be told the type, the length of the cookie and the sublayer.',
    },
    'tunnel-tzsp': throughTunnels('TZSP, by which sensors send captured frames: Ethernet and 802.11.', {
      ethernet: (packet) => over4(toPort(TunnelPort.tzsp, tzsp(frameOf(packet), 'ethernet'))),
      wlan: (packet) => over4(toPort(TunnelPort.tzsp, tzsp(wlanFrame(packet), 'ieee80211'))),
    }),
    'link-tags': throughTunnels(
      'Tags before the packet: VN-Tag, E-Tag (802.1BR), backbone service tag (802.1ah), Cisco metadata, MACsec without encryption.',
      {
        'vn-tag': (packet) => vnTag(vlan(7, packet)),
        'e-tag': (packet) => eTag(vlan(7, packet)),
        backbone: (packet) => vlan(9, backboneServiceTag(frameOf(packet)), EtherType.qinq),
        metadata: (packet) => ciscoMetadata(packet),
        'metadata-after-vlan': (packet) => vlan(7, ciscoMetadata(packet)),
        macsec: (packet) => macsec(packet, {}),
        'macsec-channel': (packet) => macsec(packet, { channel: true }),
      },
    ),
    'tunnel-nsh': throughTunnels(
      'Network service headers (RFC 8300): with IP, with Ethernet, with another header, and in VXLAN-GPE.',
      {
        ip: (packet) => nshOf(packet),
        ethernet: (packet) => nsh('ethernet', frameOf(packet), false),
        nested: (packet) => nsh('nsh', nshOf(packet).bytes),
        'vxlan-gpe': (packet) => over4(toPort(TunnelPort.vxlanGpe, vxlanGpeNsh(nshOf(packet)))),
      },
    ),
  }
}

export function tunnelCases(): Record<string, GeneratedCapture> {
  return {
    ...moreTunnelCases(),
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
