import type { GoldenCases, NamedCase } from '../../collector/commands/selftest.ts'
import { EtherType, ethernet, ipFrame, ipv4, type NetworkPacket, tcp, udp, vlan } from '../support/packets.ts'
import { dnsMessage, dnsOverTcp, dnsQuery, labels, pointer, ROOT, TYPE_A_IN } from '../support/packets-dns.ts'
import { ipv4Fragments, ipv6Fragments } from '../support/packets-fragments.ts'
import { ieee80211Frame, pppoe } from '../support/packets-link.ts'
import { framesAt, pcapFile } from '../support/packets-pcap.ts'
import { connectRequest, proxyV2, socks4aRequest, socks5Greeting, socks5Request } from '../support/packets-proxy.ts'
import { initialDatagrams, QUIC_V1, QUIC_V2 } from '../support/packets-quic.ts'
import {
  backboneServiceTag,
  capwap,
  ciscoMetadata,
  eTag,
  innerFrame,
  l2tp2,
  l2tp3InIp,
  macsec,
  nsh,
  tzsp,
  vnTag,
} from '../support/packets-tags.ts'
import { TcpStream } from '../support/packets-tcp-stream.ts'
import { clientHello, encryptedClientHello, fill, tlsRecords } from '../support/packets-tls.ts'
import {
  erspan2,
  geneve,
  gre,
  gtpU,
  ipInIp,
  mpls,
  TunnelPort,
  teredo,
  transparentEthernet,
  vxlan,
} from '../support/packets-tunnel.ts'
import { ANSWERED, type Wire } from './golden-answers.ts'
import { COUNTED, type Counted, datagram } from './golden-counted.ts'
import { CLIENT, CLIENT6, RESOLVER, SERVER, SERVER6, START_MS } from './parties.ts'

/**
 * The capture of `posture-collector selftest`: a distinct name for every encapsulation and
 * segmentation that the collector must read.
 */
export interface Golden {
  readonly cases: GoldenCases
  readonly capture: Buffer
  readonly frames: readonly Buffer[]
}

const MSS = 1460

const pq = (serverName: string, serverNameLast = false): Buffer =>
  tlsRecords(clientHello({ serverName, serverNameLast, postQuantum: true, grease: true }))
const short = (serverName: string): Buffer => tlsRecords(clientHello({ serverName, grease: true }))

/**
 * A connection whose client sends these bytes, split at the given offsets and sent in this order.
 */
function tcpFrames(
  port: number,
  clientBytes: Buffer,
  cuts: readonly number[] = [],
  order?: readonly number[],
): Buffer[] {
  const one = new TcpStream({ clientPort: port }, clientBytes)
  return [...one.open(), ...one.sendSplit(cuts, order)]
}

function quic(port: number, hello: Buffer, fields: Partial<Parameters<typeof initialDatagrams>[1]>): Buffer[] {
  const datagrams = initialDatagrams(hello, { dcid: fill(port)(8), scid: fill(port + 1)(4), datagrams: 1, ...fields })
  return datagrams.map((datagram) =>
    ipFrame({ source: CLIENT, destination: SERVER }, udp({ sourcePort: port, destinationPort: 443 }, datagram)),
  )
}

const query = (name: string, port: number): NetworkPacket =>
  ipv4({ source: CLIENT, destination: RESOLVER }, udp({ sourcePort: port, destinationPort: 53 }, dnsQuery([name])))
const outer = { source: '198.51.100.1', destination: '198.51.100.2' }
const inUdp = (destinationPort: number, payload: Buffer): NetworkPacket =>
  ipv4(outer, udp({ sourcePort: 49_152, destinationPort }, payload))

type Encapsulations = Readonly<Record<string, (packet: NetworkPacket) => NetworkPacket>>

const encapsulated = (all: Encapsulations): Wire[] =>
  Object.entries(all).map(([sentence, encapsulate]) => {
    return { case: sentence, method: 'dns', frames: (name, port) => [ethernet({}, encapsulate(query(name, port)))] }
  })

/** Encapsulations that networks use most. */
const COMMON_ENCAPSULATIONS: Encapsulations = {
  VLAN: (packet) => vlan(7, packet),
  QinQ: (packet) => vlan(100, vlan(7, packet), EtherType.qinq),
  MPLS: (packet) => mpls([16, 17], packet),
  PPPoE: pppoe,
  GRE: (packet) => ipv4(outer, gre({ key: 5, sequence: 1 }, packet)),
  'Ethernet in GRE': (packet) => ipv4(outer, gre({}, transparentEthernet(ethernet({}, packet)))),
  ERSPAN: (packet) => ipv4(outer, erspan2(ethernet({}, packet))),
  'IP in IP': (packet) => ipv4(outer, ipInIp(packet)),
  VXLAN: (packet) => inUdp(TunnelPort.vxlan, vxlan(9, ethernet({}, packet))),
  GENEVE: (packet) => inUdp(TunnelPort.geneve, geneve(9, packet)),
  'GTP-U': (packet) => inUdp(TunnelPort.gtpU, gtpU({ sequence: 1 }, packet)),
}

const ENCAPSULATIONS: Encapsulations = {
  'GRE in UDP': (packet) => inUdp(TunnelPort.greInUdp, gre({}, packet).bytes),
  'MPLS in UDP': (packet) => inUdp(TunnelPort.mplsInUdp, mpls([16], packet).bytes),
  'CAPWAP with 802.11': (packet) =>
    inUdp(TunnelPort.capwapData, capwap(ieee80211Frame(packet, { qos: true }), { native: true })),
  'L2TP version 2': (packet) => inUdp(TunnelPort.l2tp, l2tp2(packet, { length: true })),
  'L2TP version 3': (packet) => ipv4(outer, l2tp3InIp(innerFrame(packet), { cookieBytes: 4 })),
  TZSP: (packet) => inUdp(TunnelPort.tzsp, tzsp(innerFrame(packet), 'ethernet')),
  'VN-Tag': vnTag,
  'E-Tag (802.1BR)': eTag,
  'Backbone service tag (802.1ah)': (packet) => backboneServiceTag(innerFrame(packet)),
  'Cisco metadata': ciscoMetadata,
  'Network service header': (packet) => nsh('ipv4', packet.bytes),
  'MACsec without encryption': (packet) => macsec(packet, { channel: true }),
}

/** Handshakes with a proxy, which end in the segment of the hello. */
const PROXIED: readonly (readonly [sentence: string, serverPort: number, handshake: (name: string) => Buffer])[] = [
  ['HTTP CONNECT and hello in one segment', 3128, (name) => connectRequest(`${name}:443`)],
  ['SOCKS 4A', 1080, socks4aRequest],
  ['SOCKS 5 with a password', 1080, (name) => Buffer.concat([socks5Greeting('user', 'word'), socks5Request(name)])],
  ['hello after a PROXY header', 443, () => proxyV2({ client: CLIENT, server: SERVER, clientPort: 1, serverPort: 2 })],
]

const AT_MSS = (): number[] => [MSS]

/** Hellos over TCP, the offsets at which they are split, and the order of the segments. */
const HELLOS: readonly (readonly [
  sentence: string,
  helloOf: (name: string) => Buffer,
  cutsOf?: (hello: Buffer, name: string) => number[],
  order?: readonly number[],
])[] = [
  ['ClientHello in one segment', short],
  ['post-quantum hello in two segments, server_name in the first', pq, AT_MSS],
  ['post-quantum hello in two segments, server_name in the second', (name) => pq(name, true), AT_MSS],
  [
    'post-quantum hello in two segments, split in the middle of the name',
    pq,
    (hello, name) => [hello.indexOf(name) + 5],
  ],
  ['post-quantum hello in two segments, the second first', pq, AT_MSS, [1, 0]],
  ['hello sent twice', pq, AT_MSS, [0, 0, 1, 1]],
  ['hello over several TLS records', (name) => tlsRecords(clientHello({ serverName: name }), 50)],
]

const WIRES: readonly Wire[] = [
  { case: 'DNS over UDP', method: 'dns', frames: (name, port) => [ethernet({}, query(name, port))] },
  {
    case: 'DNS over TCP in one-byte segments',
    method: 'dns',
    frames: (name, port) => {
      const one = new TcpStream({ clientPort: port, serverPort: 53 }, dnsOverTcp(dnsQuery([name])))
      return [...one.open(), ...one.sendSegments(1)]
    },
  },
  ...HELLOS.map(
    ([sentence, helloOf, cutsOf = () => [], order]): Wire => ({
      case: sentence,
      method: 'tls',
      frames: (name, port) => tcpFrames(port, helloOf(name), cutsOf(helloOf(name), name), order),
    }),
  ),
  {
    case: 'hello in one-byte segments',
    method: 'tls',
    frames: (name, port) => {
      const one = new TcpStream({ clientPort: port }, short(name))
      return [...one.open(), ...one.sendSegments(1)]
    },
  },
  {
    case: 'hello after HTTP CONNECT',
    method: 'tls',
    frames: (name, port) => {
      const request = Buffer.from(`CONNECT ${name}:443 HTTP/1.1\r\nHost: ${name}:443\r\n\r\n`)
      const one = new TcpStream({ clientPort: port, serverPort: 3128 }, Buffer.concat([request, short(name)]))
      return [...one.open(), ...one.sendSplit([request.length])]
    },
  },
  ...PROXIED.map(
    ([sentence, serverPort, handshake]): Wire => ({
      case: sentence,
      method: 'tls',
      frames: (name, port) => {
        const bytes = handshake(name)
        const one = new TcpStream({ clientPort: port, serverPort }, Buffer.concat([bytes, short(name)]))
        return [...one.open(), ...one.sendSplit([bytes.length >> 1])]
      },
    }),
  ),
  {
    case: 'hello with Encrypted Client Hello, the outer name',
    method: 'tls',
    ech: true,
    frames: (name, port) =>
      tcpFrames(port, tlsRecords(clientHello({ serverName: name, moreExtensions: [encryptedClientHello()] }))),
  },
  {
    case: 'QUIC v1 hello in one Initial',
    method: 'quic',
    frames: (name, port) => quic(port, clientHello({ serverName: name }), {}),
  },
  ...[QUIC_V1, QUIC_V2].flatMap((version): Wire[] => {
    const is = version === QUIC_V1 ? 'v1' : 'v2'
    return [
      {
        case: `QUIC ${is} post-quantum hello over two Initials, the second first`,
        method: 'quic',
        frames: (name, port) =>
          quic(port, clientHello({ serverName: name, postQuantum: true }), { version, datagrams: 2 }).reverse(),
      },
      {
        case: `QUIC ${is} hello over three Initials out of order, the name in slices`,
        method: 'quic',
        frames: (name, port) =>
          quic(port, clientHello({ serverName: name }), {
            version,
            datagrams: 3,
            pieces: 15,
            order: [14, 3, 8, 1, 10, 5, 12, 7, 0, 9, 2, 11, 4, 13, 6],
          }),
      },
    ]
  }),
  {
    case: 'QUIC v1, the connection id changed before the second Initial',
    method: 'quic',
    frames: (name, port) => {
      const hello = clientHello({ serverName: name, serverNameLast: true, postQuantum: true })
      const dcid = fill(port)(8)
      const [first] = quic(port, hello, { datagrams: 2 })
      const [, second] = quic(port, hello, { dcid: fill(port + 2)(8), keyDcid: dcid, datagrams: 2 })
      return [first as Buffer, second as Buffer]
    },
  },
  ...encapsulated(COMMON_ENCAPSULATIONS),
  {
    case: 'Teredo with IPv6 fragments in it',
    method: 'dns',
    frames: (name, port) =>
      ipv6Fragments(
        { source: CLIENT6, destination: SERVER6 },
        udp({ sourcePort: port, destinationPort: 53 }, dnsQuery([name])),
        16,
      ).map((fragment) => ethernet({}, inUdp(TunnelPort.teredo, teredo(fragment)))),
  },
  {
    case: 'IPv4 fragments, the last first',
    method: 'dns',
    frames: (name, port) =>
      ipv4Fragments(
        { source: CLIENT, destination: RESOLVER, identification: port },
        udp({ sourcePort: port, destinationPort: 53 }, dnsQuery([name])),
        24,
        [2, 1, 0],
      ).map((fragment) => ethernet({}, fragment)),
  },
  {
    case: 'IPv6 fragments',
    method: 'tls',
    frames: (name, port) =>
      ipv6Fragments(
        { source: CLIENT6, destination: SERVER6 },
        tcp({ sourcePort: port, destinationPort: 443 }, short(name)),
        200,
      ).map((fragment) => ethernet({}, fragment)),
  },
  ...encapsulated(ENCAPSULATIONS),
  {
    case: 'DNS name with a pointer to a later position',
    method: 'dns',
    frames: (name, port) => {
      // The pointer takes 2 bytes and the type and class 4, so the name is at 12 + 6.
      const message = dnsMessage({ questions: 1 }, pointer(18), TYPE_A_IN, labels(...name.split('.')), ROOT)
      return [
        ipFrame({ source: CLIENT, destination: RESOLVER }, udp({ sourcePort: port, destinationPort: 53 }, message)),
      ]
    },
  },
  {
    case: 'hello that looks like Tor',
    method: 'tls',
    nameOf: () => 'www.k3vq7xzwlt5bhr.com',
    frames: (name, port) => tcpFrames(port, tlsRecords(clientHello({ serverName: name, alpn: false }))),
  },
  {
    case: 'QUIC to the port of DNS over QUIC',
    method: 'quic',
    frames: (name, port) =>
      initialDatagrams(clientHello({ serverName: name }), {
        ...{ dcid: fill(port)(8), scid: fill(port + 1)(4), datagrams: 1 },
      }).map((bytes) => datagram(port, 853, bytes)),
  },
  {
    case: 'hello to a resolver for DNS over HTTPS',
    method: 'tls',
    nameOf: (label) => `${label}.dns.nextdns.io`,
    frames: (name, port) => tcpFrames(port, short(name)),
  },
  ...ANSWERED,
]

/** Cases that have a name and are also counted. */
const COUNTED_NAMES: Readonly<Partial<Record<string, Counted['counter']>>> = {
  'hello that looks like Tor': 'tor_sessions',
  'QUIC to the port of DNS over QUIC': 'doq_sessions',
  'hello to a resolver for DNS over HTTPS': 'doh_sessions',
}

export function golden(): Golden {
  const named = WIRES.map(({ case: sentence, method, ech, nameOf }, index): NamedCase => {
    const name = (nameOf ?? ((label) => `${label}.selftest.example`))(`case-${index + 1}`)
    return { case: sentence, name, method, ...(ech === undefined ? {} : { ech }) }
  })
  const counted = [
    ...COUNTED.map(({ case: sentence, counter }) => ({ case: sentence, counter })),
    ...named.flatMap(({ case: sentence }) => {
      const counter = COUNTED_NAMES[sentence]
      return counter === undefined ? [] : [{ case: sentence, counter }]
    }),
  ]
  const frames = [
    ...WIRES.flatMap((wire, index) => wire.frames((named[index] as NamedCase).name, 52_000 + 10 * index)),
    ...COUNTED.flatMap((each, index) => each.frames(54_000 + 10 * index)),
  ]
  return { cases: { named, counted }, capture: pcapFile(framesAt(START_MS, frames)), frames }
}
