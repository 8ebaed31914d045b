import type { PacketClassName } from '../../collector/batch/packet-class.ts'
import {
  addressBytes,
  EtherType,
  ethernet,
  ipFrame,
  ipv4,
  ipv6,
  type NetworkPacket,
  TcpFlags,
  type Transport,
  tcp,
  udp,
} from '../support/packets.ts'
import { dnsQuery, dnsResponse, type QuestionType } from '../support/packets-dns.ts'
import { applicationData, clientHello, fill, tlsRecords } from '../support/packets-tls.ts'
import type { GeneratedCapture, GeneratedPacket } from './generated-capture.ts'

/**
 * An hour in an office: a dozen people look up names and open pages, some of them on AI platforms.
 * Server addresses are from the documentation blocks (RFC 5737, RFC 3849). Everything else comes
 * from a seed, so that the file is the same on every run.
 */
const START_MS = Date.UTC(2026, 2, 3, 9, 0, 0)
const HOUR_MS = 3_600_000
const SEED = 20_260_303
const MSS = 1460

interface Site {
  readonly names: readonly string[]
  /** Number of visits in the hour. */
  readonly visits: number
}

const SITES: readonly Site[] = [
  { names: ['chatgpt.com', 'cdn.oaistatic.com'], visits: 5 },
  { names: ['api.openai.com'], visits: 3 },
  { names: ['claude.ai'], visits: 4 },
  { names: ['api.anthropic.com'], visits: 2 },
  { names: ['gemini.google.com'], visits: 2 },
  { names: ['api.githubcopilot.com', 'copilot-proxy.githubusercontent.com'], visits: 3 },
  { names: ['www.midjourney.com'], visits: 1 },
  { names: ['www.perplexity.ai'], visits: 2 },
  { names: ['huggingface.co'], visits: 1 },
  { names: ['api2.cursor.sh'], visits: 2 },
  { names: ['chat.deepseek.com'], visits: 1 },
  { names: ['github.com'], visits: 2 },
  { names: ['www.wikipedia.org'], visits: 2 },
  { names: ['outlook.office.com'], visits: 3 },
  { names: ['news.example.com', 'images.example.net'], visits: 2 },
  { names: ['intranet.example.org'], visits: 2 },
  // Names that only resemble the others.
  { names: ['chatgpt.com.example.net'], visits: 1 },
  { names: ['notclaude.ai.example.com'], visits: 1 },
]

/** Returns a number from 0 to `below` - 1, determined by the seed. */
type Draw = (below: number) => number

export function officeHour(): GeneratedCapture {
  const bytes = fill(SEED)
  const draw: Draw = (below) => bytes(4).readUInt32BE() % below
  const packets: GeneratedPacket[] = []
  const servers = [...new Set(SITES.flatMap(({ names }) => names))]
  for (const site of SITES) {
    for (let visit = 0; visit < site.visits; visit++) {
      let atMs = START_MS + draw(HOUR_MS - 20_000)
      const person = draw(12)
      const overIpv6 = draw(3) === 0
      for (const name of site.names) {
        const server = servers.indexOf(name) + 1
        packets.push(...visitOf({ name, server, person, overIpv6, atMs, draw, bytes }))
        atMs += 300 + draw(900)
      }
    }
  }
  packets.push(...background(draw))
  packets.sort((a, b) => a.timeMs - b.timeMs)
  return { packets, about: ABOUT }
}

interface Visit {
  readonly name: string
  readonly server: number
  readonly person: number
  readonly overIpv6: boolean
  readonly atMs: number
  readonly draw: Draw
  readonly bytes: (count: number) => Buffer
}

/** Queries and answers, then a connection: handshake, ClientHello, data, FIN. */
function visitOf({ name, server, person, overIpv6, atMs, draw, bytes }: Visit): GeneratedPacket[] {
  const packets: GeneratedPacket[] = []
  let timeMs = atMs
  const family = overIpv6 ? 'ipv6' : 'ipv4'
  const client = { ipv4: `10.20.1.${20 + person}`, ipv6: `2001:db8:20:1::${(0x20 + person).toString(16)}` }[family]
  const resolver = { ipv4: '10.20.0.53', ipv6: '2001:db8:20::53' }[family]
  const host = { ipv4: `203.0.113.${server}`, ipv6: `2001:db8:443::${server.toString(16)}` }[family]
  const send = (
    from: string,
    to: string,
    transport: Transport,
    packetClass: PacketClassName,
    names?: GeneratedPacket['names'],
  ) => {
    // Rounded to microseconds, the resolution of the file.
    timeMs = Math.round((timeMs + (1 + draw(40_000)) / 1000) * 1000) / 1000
    packets.push({
      bytes: ethernet({}, packetOf(from, to, transport)),
      timeMs,
      packetClass,
      ...(names === undefined ? {} : { names }),
    })
  }

  const types: QuestionType[] = overIpv6 ? ['AAAA', 'HTTPS'] : draw(2) === 0 ? ['A'] : ['A', 'AAAA']
  for (const type of types) {
    const clientPort = 49_152 + draw(16_000)
    const id = draw(65_536)
    // Some resolvers randomize the case of letters (draft-vixie-dnsext-dns0x20). The expected name
    // is in lower case.
    const queryName = draw(8) === 0 ? name.toUpperCase() : name
    send(
      client,
      resolver,
      udp({ sourcePort: clientPort, destinationPort: 53 }, dnsQuery([queryName], type, id)),
      'dnsQuery',
      [{ method: 'dns', client, clientPort, server: resolver, serverPort: 53, name }],
    )
    if (type === 'HTTPS') continue
    const answer = type === 'AAAA' ? `2001:db8:443::${server.toString(16)}` : `203.0.113.${server}`
    send(
      resolver,
      client,
      udp({ sourcePort: 53, destinationPort: clientPort }, dnsResponse(name, answer, id)),
      'dnsResponse',
    )
  }

  const clientPort = 49_152 + draw(16_000)
  let sent = draw(2 ** 31)
  let received = draw(2 ** 31)
  const up = (
    flags: number,
    packetClass: PacketClassName,
    payload: Buffer = Buffer.alloc(0),
    names?: GeneratedPacket['names'],
  ) => {
    const fields = { sourcePort: clientPort, destinationPort: 443, sequence: sent, acknowledgement: received, flags }
    send(client, host, tcp(fields, payload), packetClass, names)
    sent += sequenceLength(flags, payload)
  }
  const down = (flags: number, packetClass: PacketClassName, payload: Buffer = Buffer.alloc(0)) => {
    const fields = { sourcePort: 443, destinationPort: clientPort, sequence: received, acknowledgement: sent, flags }
    send(host, client, tcp(fields, payload), packetClass)
    received += sequenceLength(flags, payload)
  }
  up(TcpFlags.syn, 'tcpNoPayload')
  down(TcpFlags.syn | TcpFlags.ack, 'tcpNoPayload')
  up(TcpFlags.ack, 'tcpNoPayload')
  const postQuantum = draw(2) === 0
  const hello = tlsRecords(clientHello({ serverName: name, grease: true, postQuantum, seed: draw(2 ** 31) }))
  if (hello.length > MSS) up(TcpFlags.ack, 'clientHelloPart', hello.subarray(0, MSS))
  up(TcpFlags.psh | TcpFlags.ack, 'clientHello', hello.subarray(hello.length > MSS ? MSS : 0), [
    { method: 'tls', client, clientPort, server: host, serverPort: 443, name },
  ])
  const segments = 1 + draw(3)
  for (let segment = 0; segment < segments; segment++) {
    down(TcpFlags.ack, 'tcpOther', applicationData(bytes(200 + draw(1200))))
  }
  up(TcpFlags.fin | TcpFlags.ack, 'tcpNoPayload')
  return packets
}

/** RFC 9293 §3.4: SYN and FIN take one sequence number each. */
function sequenceLength(flags: number, payload: Buffer): number {
  return payload.length + ((flags & (TcpFlags.syn | TcpFlags.fin)) === 0 ? 0 : 1)
}

/** Background traffic of an office network: ARP, ping, mDNS. */
function background(draw: Draw): GeneratedPacket[] {
  const packets: GeneratedPacket[] = []
  const at = () => START_MS + draw(HOUR_MS)
  for (let person = 0; person < 6; person++) {
    const who = addressBytes(`10.20.1.${20 + person}`)
    const request = Buffer.concat([
      Buffer.from('0001080006040001020000000002', 'hex'),
      who,
      Buffer.alloc(6),
      addressBytes('10.20.0.1'),
    ])
    packets.push({
      bytes: ethernet({}, { etherType: EtherType.arp, bytes: request }),
      timeMs: at(),
      packetClass: 'notIp',
    })
    const echo = { protocol: 1, bytes: Buffer.from('0800f7ff00000000', 'hex'), checksumAt: -1 }
    packets.push({
      bytes: ipFrame({ source: `10.20.1.${20 + person}`, destination: '10.20.0.1' }, echo),
      timeMs: at(),
      packetClass: 'otherTransport',
    })
    const mdns = udp({ sourcePort: 5353, destinationPort: 5353 }, dnsQuery(['printer.local'], 'PTR', 0))
    packets.push({
      bytes: ipFrame({ source: `10.20.1.${20 + person}`, destination: '224.0.0.251' }, mdns),
      timeMs: at(),
      packetClass: 'udpOther',
    })
  }
  return packets
}

function packetOf(source: string, destination: string, transport: Transport): NetworkPacket {
  return source.includes(':') ? ipv6({ source, destination }, transport) : ipv4({ source, destination }, transport)
}

const ABOUT = `The capture that \`npm start\` reads: an hour of a small office, generated by test/captures/office-hour.ts from a seed.

A dozen clients (10.20.1.x, 2001:db8:20:1::x) look up names at a resolver and open TLS connections, some of them to AI
platforms, some to other sites, two to names that only resemble a platform's. Half of the ClientHellos carry a post-quantum
key share and take two segments, with server_name in the first. Between them: answers, application data, ARP, ping, mDNS.
Server addresses are from the documentation blocks (RFC 5737, RFC 3849), no packet was captured on a real network.

tshark shows the same names (test/captures/tshark.full.test.ts). For post-quantum hellos it shows them one frame later, because it waits
for the complete hello.
`
