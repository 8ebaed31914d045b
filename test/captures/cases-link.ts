import { EtherType, ethernet, type NetworkPacket, u16, vlan } from '../support/packets.ts'
import {
  AddressFamily,
  bsdLoop,
  bsdNull,
  ethernet8023,
  ieee80211,
  juniperEthernet,
  type LinkFrame,
  LinkType,
  linuxCooked,
  linuxCooked2,
  pflog,
  ppp,
  pppoe,
  radiotap,
  rawIp,
} from '../support/packets-link.ts'
import { PcapngWriter } from '../support/packets-pcapng.ts'
import { fddi, nflog, ppi } from '../support/packets-tags.ts'
import type { GeneratedCapture } from './generated-capture.ts'
import { ARP, everyMillisecond, helloFor, queryFor, type UntimedPacket } from './parties.ts'

/**
 * Link encapsulations of a packet, by a label that becomes part of the names. The names in `unread`
 * packets must not be found.
 */
type Links = Readonly<Record<string, (packet: NetworkPacket) => LinkFrame>>

/** A query over IPv4 and a ClientHello over IPv6 for each encapsulation. */
function throughLinks(about: string, links: Links, unread: Links = {}, more: readonly Buffer[] = []): GeneratedCapture {
  const packets: UntimedPacket[] = []
  let linkType = 0
  let clientPort = 50_001
  for (const [label, link] of Object.entries(links)) {
    for (const message of [queryFor(`${label}.example.org`), helloFor(`${label}.example.net`, clientPort++)]) {
      const frame = link(message.packet)
      linkType = frame.linkType
      packets.push({ bytes: frame.bytes, names: [message.reported] })
    }
  }
  for (const [label, link] of Object.entries(unread))
    packets.push({ bytes: link(queryFor(`${label}.example`).packet).bytes })
  for (const bytes of more) packets.push({ bytes })
  return { about: `${about}\n`, packets: everyMillisecond(packets), pcap: { linkType } }
}

export function linkCases(): Record<string, GeneratedCapture> {
  return {
    'link-linux-cooked': throughLinks('Linux cooked capture, version 1 (link type 113).', { sll: linuxCooked }, {}, [
      linuxCooked(ARP).bytes,
    ]),
    'link-linux-cooked-2': throughLinks(
      'Linux cooked capture, version 2 (link type 276).',
      { sll2: linuxCooked2 },
      {},
      [linuxCooked2(ARP).bytes],
    ),
    'link-linux-cooked-vlan': throughLinks('Linux cooked captures with an 802.1Q tag after the header.', {
      tagged: (packet) => linuxCooked(vlan(7, packet)),
    }),
    'link-raw': throughLinks('IP without a link header (link type 101).', { raw: rawIp }),
    'link-raw-numbers': rawNumbers(),
    'link-bsd-null': throughLinks(
      "BSD loopback (link type 0): the address family little-endian and big-endian, and each system's number for IPv6.",
      {
        little: (packet) => bsdNull(packet),
        big: (packet) => bsdNull(packet, { bigEndian: true }),
        freebsd: (packet) => bsdNull(packet, ipv6Family(packet, AddressFamily.inet6FreeBsd)),
        darwin: (packet) => bsdNull(packet, ipv6Family(packet, AddressFamily.inet6Darwin)),
      },
    ),
    'link-bsd-loop': throughLinks('OpenBSD loopback (link type 108): the address family in network byte order.', {
      loop: bsdLoop,
    }),
    'link-ppp': throughLinks(
      'PPP (link type 9) with and without address and control, with the protocol in two bytes or one (RFC 1661 §6.5).',
      {
        plain: (packet) => ppp(packet),
        'address-control': (packet) => ppp(packet, { addressControl: true }),
        'one-byte': (packet) => ppp(packet, { oneByteProtocol: true }),
        both: (packet) => ppp(packet, { addressControl: true, oneByteProtocol: true }),
      },
    ),
    'link-ppp-hdlc': throughLinks('PPP in HDLC-like framing (link type 50), and Cisco HDLC with the same link type.', {
      ppp: (packet) => ppp(packet, { addressControl: true, linkType: LinkType.pppHdlc }),
      cisco: (packet) => ({
        linkType: LinkType.pppHdlc,
        bytes: Buffer.concat([Buffer.from([0x0f, 0]), u16(packet.etherType), packet.bytes]),
      }),
    }),
    'link-ppp-ether': throughLinks('PPPoE without the Ethernet header (link type 51).', {
      pppoe: (packet) => ({ linkType: LinkType.pppEther, bytes: pppoe(packet).bytes }),
    }),
    'link-pppoe': throughLinks('PPPoE sessions over Ethernet, plain and after a VLAN tag (RFC 2516).', {
      plain: (packet) => overEthernet(pppoe(packet)),
      tagged: (packet) => overEthernet(vlan(7, pppoe(packet))),
    }),
    'link-80211': throughLinks(
      'IEEE 802.11 data frames (link type 105): plain, from the access point, QoS, HT control, four addresses. One frame is marked as encrypted.',
      {
        plain: (packet) => ieee80211(packet),
        'from-ds': (packet) => ieee80211(packet, { fromDs: true }),
        qos: (packet) => ieee80211(packet, { qos: true }),
        ht: (packet) => ieee80211(packet, { qos: true, htControl: true }),
        four: (packet) => ieee80211(packet, { fourAddresses: true }),
        'four-qos': (packet) => ieee80211(packet, { fourAddresses: true, qos: true }),
      },
      { protected: (packet) => ieee80211(packet, { qos: true, isProtected: true }) },
      // A beacon: a management frame without data.
      [Buffer.concat([Buffer.from('80000000ffffffffffff0200000000030200000000030000', 'hex'), Buffer.alloc(16)])],
    ),
    'link-fddi': throughLinks('FDDI (link type 10).', { fddi }),
    'link-ppi': throughLinks('PPI before IEEE 802.11 (link type 192).', { ppi }),
    'link-nflog': throughLinks('Netfilter log (link type 239) with attributes before the packet, little-endian.', {
      nflog: (packet) => nflog(packet),
    }),
    'link-nflog-big-endian': {
      ...throughLinks('The same, written by a machine of the other byte order.', {
        nflog: (packet) => nflog(packet, { bigEndian: true }),
      }),
      tsharkDiffers:
        'tshark expects the byte order of the file; it shows the same names with -o nflog.byte_order_type:BE.',
    },
    'link-radiotap': throughLinks(
      'Radiotap before IEEE 802.11 (link type 127): with and without the frame check sequence, with padding after the header, with two bitmaps.',
      {
        plain: (packet) => radiotap(packet),
        fcs: (packet) => radiotap(packet, { qos: true, fcs: true }),
        pad: (packet) => radiotap(packet, { qos: true, padBytes: 2 }),
        bitmaps: (packet) => radiotap(packet, { secondBitmap: true }),
      },
      { protected: (packet) => radiotap(packet, { isProtected: true }) },
    ),
    'link-pflog': throughLinks("The log of OpenBSD's packet filter (link type 117).", { pflog }),
    'link-juniper-ethernet': throughLinks(
      'Juniper Ethernet (link type 178): with and without extensions, and without a link header.',
      {
        plain: (packet) => juniperEthernet(packet),
        extensions: (packet) => juniperEthernet(packet, { extensions: true }),
        'no-link': (packet) => juniperEthernet(packet, { noLinkHeader: true }),
      },
    ),
    'link-llc-snap': throughLinks(
      'IEEE 802.3: a length in place of the EtherType, then LLC and SNAP (RFC 1042); with and without padding, and tagged.',
      {
        plain: (packet) => ({ linkType: LinkType.ethernet, bytes: ethernet8023(packet) }),
        padded: (packet) => ({ linkType: LinkType.ethernet, bytes: ethernet8023(packet, true) }),
        tagged: (packet) => {
          const frame = ethernet8023(packet)
          const tag = Buffer.concat([u16(EtherType.vlan), u16(7)])
          return { linkType: LinkType.ethernet, bytes: Buffer.concat([frame.subarray(0, 12), tag, frame.subarray(12)]) }
        },
      },
      {},
      // Spanning tree: LLC without SNAP.
      [ethernet({}, { etherType: 38, bytes: Buffer.concat([Buffer.from('424203', 'hex'), Buffer.alloc(43)]) })],
    ),
  }
}

function overEthernet(packet: NetworkPacket): LinkFrame {
  return { linkType: LinkType.ethernet, bytes: ethernet({}, packet) }
}

function ipv6Family(packet: NetworkPacket, family: number): { family?: number } {
  return packet.etherType === EtherType.ipv6 ? { family } : {}
}

/** The other link types of raw IP, each on its own interface. */
function rawNumbers(): GeneratedCapture {
  const numbers = [LinkType.rawDlt, LinkType.rawOpenBsd, LinkType.raw, LinkType.rawIpv4, LinkType.rawIpv6]
  const messages = numbers.map((linkType) => {
    const name = `raw-${linkType}.example.org`
    return linkType === LinkType.rawIpv6 ? helloFor(name, 50_001) : queryFor(name)
  })
  return {
    about: 'IP without a link header, with each of its link types: 12, 14, 101, 228 (IPv4 only), 229 (IPv6 only).\n',
    packets: everyMillisecond(messages.map(({ packet, reported }) => ({ bytes: packet.bytes, names: [reported] }))),
    file: 'input.pcapng',
    write: (packets) => {
      const file = new PcapngWriter().section()
      for (const linkType of numbers) file.interface({ linkType })
      for (const [interfaceId, { bytes, timeMs }] of packets.entries()) file.enhanced(bytes, { interfaceId, timeMs })
      return file.bytes()
    },
  }
}
