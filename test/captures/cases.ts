import {
  EtherType,
  ethernet,
  ipFrame,
  type NetworkPacket,
  otherTransport,
  tcp,
  u16,
  udp,
  vlan,
} from '../support/packets.ts'
import { dnsMessage, dnsQuery, labels, pointer, ROOT, TYPE_A_IN } from '../support/packets-dns.ts'
import { clientHello, tlsRecords } from '../support/packets-tls.ts'
import { dnsCases } from './cases-dns.ts'
import { fileCases } from './cases-files.ts'
import { linkCases } from './cases-link.ts'
import { proxyCases } from './cases-proxy.ts'
import { quicCases } from './cases-quic.ts'
import { tlsCases } from './cases-tls.ts'
import { tunnelCases } from './cases-tunnels.ts'
import type { GeneratedCapture } from './generated-capture.ts'
import { officeHour } from './office-hour.ts'
import {
  CLIENT,
  everyMillisecond,
  helloName,
  query,
  queryName,
  RESOLVER,
  segment,
  toResolver,
  toServer,
  type UntimedPacket,
} from './parties.ts'

/** All generated captures. build.ts writes them, and tests iterate over them. */
export function generatedCaptures(): Record<string, GeneratedCapture> {
  return {
    demo: officeHour(),
    'dns-over-vlan': dnsOverVlan(),
    ipv6: overIpv6(),
    'several-questions': severalQuestions(),
    'hello-over-two-records': helloOverTwoRecords(),
    'truncated-file': truncatedFile(),
    hostile: hostile(),
    ...fileCases(),
    ...linkCases(),
    ...tunnelCases(),
    ...dnsCases(),
    ...tlsCases(),
    ...quicCases(),
    ...proxyCases(),
  }
}

function dnsOverVlan(): GeneratedCapture {
  const payload = toResolver(query(dnsQuery(['claude.ai'])))
  return {
    about:
      'A query without a tag, after one 802.1Q tag, after two tags (802.1ad outside), and after more tags than the collector follows.\n',
    tsharkDiffers: 'tshark follows all 15 tags.',
    packets: everyMillisecond([
      { bytes: ethernet({}, payload), packetClass: 'dnsQuery', names: [queryName('claude.ai')] },
      { bytes: ethernet({}, vlan(7, payload)), packetClass: 'dnsQuery', names: [queryName('claude.ai')] },
      {
        bytes: ethernet({}, vlan(100, vlan(7, payload), EtherType.qinq)),
        packetClass: 'dnsQuery',
        names: [queryName('claude.ai')],
      },
      { bytes: ethernet({}, tagged(14, payload)), packetClass: 'dnsQuery', names: [queryName('claude.ai')] },
      { bytes: ethernet({}, tagged(15, payload)), packetClass: 'nestedTooDeep' },
    ]),
  }
}

function tagged(tags: number, payload: NetworkPacket): NetworkPacket {
  return tags === 0 ? payload : vlan(tags, tagged(tags - 1, payload))
}

function overIpv6(): GeneratedCapture {
  const source = '2001:db8::7'
  const resolver = '2001:db8:53::1'
  const server = '2001:db8:0:1::9'
  const hopByHop = { number: 0, bytes: Buffer.from('00010400000000', 'hex') }
  const destinationOptions = { number: 60, bytes: Buffer.concat([Buffer.from([1, 1, 12]), Buffer.alloc(12)]) }
  const atomic = { number: 44, bytes: Buffer.from('00000000000001', 'hex') }
  const firstFragment = { number: 44, bytes: Buffer.from('00000100000001', 'hex') }
  const dns = query(dnsQuery(['chatgpt.com'], 'AAAA'))
  const hello = segment(tlsRecords(clientHello({ serverName: 'chatgpt.com', grease: true })))
  const name = queryName('chatgpt.com', source, resolver)
  return {
    about:
      'IPv6: a plain query and hello, a query after extension headers, a query after an atomic fragment header (RFC 6946), and a real fragment.\n',
    packets: everyMillisecond([
      { bytes: ipFrame({ source, destination: resolver }, dns), packetClass: 'dnsQuery', names: [name] },
      {
        bytes: ipFrame({ source, destination: server }, hello),
        packetClass: 'clientHello',
        names: [helloName('chatgpt.com', source, server)],
      },
      {
        bytes: ipFrame({ source, destination: resolver, extensions: [hopByHop, destinationOptions] }, dns),
        packetClass: 'dnsQuery',
        names: [name],
      },
      {
        bytes: ipFrame({ source, destination: resolver, extensions: [atomic] }, dns),
        packetClass: 'dnsQuery',
        names: [name],
      },
      {
        bytes: ipFrame({ source, destination: resolver, extensions: [firstFragment] }, dns),
        packetClass: 'ipFragment',
      },
    ]),
  }
}

function severalQuestions(): GeneratedCapture {
  const frame = (message: Buffer) => ethernet({}, toResolver(query(message)))
  // The second name ends in a pointer to "ai" in the first name. The first name starts at 12, and
  // "claude" takes 7 bytes.
  const compressed = dnsMessage(
    { questions: 3 },
    Buffer.concat([labels('claude', 'ai'), ROOT, TYPE_A_IN]),
    Buffer.concat([labels('www', 'perplexity'), pointer(19), TYPE_A_IN]),
    Buffer.concat([pointer(12), TYPE_A_IN]),
  )
  return {
    about:
      'Queries with more than one question: uncompressed, and with compression pointers (RFC 1035 §4.1.4). Also a query for the root, and one without a question.\n',
    packets: everyMillisecond([
      {
        bytes: frame(dnsQuery(['chatgpt.com', 'example.org', 'api.openai.com'])),
        packetClass: 'dnsQuery',
        names: [queryName('chatgpt.com'), queryName('example.org'), queryName('api.openai.com')],
      },
      {
        bytes: frame(compressed),
        packetClass: 'dnsQuery',
        names: [queryName('claude.ai'), queryName('www.perplexity.ai'), queryName('claude.ai')],
      },
      { bytes: frame(dnsQuery(['.'], 'NS')), packetClass: 'dnsQuery', names: [queryName('.')] },
      { bytes: frame(dnsMessage({ questions: 0 })), packetClass: 'dnsNoQuestion' },
    ]),
  }
}

function helloOverTwoRecords(): GeneratedCapture {
  const hello = clientHello({ serverName: 'api.anthropic.com' })
  // Each on its own connection, because the decoder reassembles streams.
  let clientPort = 50_001
  const frame = (payload: Buffer, sourcePort = clientPort) =>
    ethernet({}, toServer(tcp({ sourcePort, destinationPort: 443 }, payload)))
  const named = (payload: Buffer, name: string): UntimedPacket => {
    const packet: UntimedPacket = {
      bytes: frame(payload),
      packetClass: 'clientHello',
      names: [{ ...helloName(name), clientPort }],
    }
    clientPort++
    return packet
  }
  const whole = tlsRecords(hello)
  const first = tlsRecords(clientHello({ serverName: 'claude.ai', postQuantum: true })).subarray(0, 1460)
  const last = tlsRecords(clientHello({ serverName: 'claude.ai', postQuantum: true, serverNameLast: true })).subarray(
    0,
    1460,
  )
  return {
    about: `A ClientHello in one TLS record, in two, in records of seven bytes and of one byte (RFC 8446 §5.1), a ClientHello without
server_name, and the first segments of two incomplete hellos: one with server_name in that segment, one without.\n`,
    tsharkDiffers: 'tshark shows only complete ClientHellos.',
    packets: everyMillisecond([
      named(whole, 'api.anthropic.com'),
      ...[200, 7, 1].map((fragment) => named(tlsRecords(hello, fragment), 'api.anthropic.com')),
      { bytes: frame(first, 50_100), packetClass: 'clientHelloPart' },
      { bytes: frame(tlsRecords(clientHello({})), 50_101), packetClass: 'clientHelloNoName' },
      { bytes: frame(last, 50_102), packetClass: 'clientHelloPart' },
    ]),
    namesAtEnd: [{ ...helloName('claude.ai'), clientPort: 50_100 }],
  }
}

function truncatedFile(): GeneratedCapture {
  const packets = everyMillisecond(
    ['chatgpt.com', 'claude.ai', 'example.org'].map((name) => ({
      bytes: ethernet({}, toResolver(query(dnsQuery([name])))),
      packetClass: 'dnsQuery' as const,
      names: [queryName(name)],
    })),
  )
  const record = (index: number) => 16 + (packets[index]?.bytes.length ?? 0)
  const third = 24 + record(0) + record(1)
  return {
    about:
      'The file ends eleven bytes into the third record header. Two packets are read; the damage is reported with its offset.\n',
    packets,
    cut: {
      bytes: third + 11,
      damage: `byte ${third}: found 11 bytes, expected a record header of 16`,
      wholePackets: 2,
    },
  }
}

function hostile(): GeneratedCapture {
  const dns = (message: Buffer) => ethernet({}, toResolver(query(message)))
  // Each on its own connection.
  let clientPort = 50_001
  const tls = (payload: Buffer) =>
    ethernet({}, toServer(tcp({ sourcePort: clientPort++, destinationPort: 443 }, payload)))
  const good = dns(dnsQuery(['claude.ai']))
  const hello = tlsRecords(clientHello({ serverName: 'claude.ai' }))
  const long = labels(...Array.from({ length: 4 }, () => 'a'.repeat(63)))
  const many = Buffer.concat([
    labels('claude', 'ai'),
    ROOT,
    TYPE_A_IN,
    ...Array.from({ length: 299 }, () => Buffer.concat([pointer(12), TYPE_A_IN])),
  ])
  const manyNames = Array.from({ length: 256 }, () => queryName('claude.ai'))
  // A single label "chatgpt.com", which a decoder that does not escape dots reads as two labels.
  const forged = Buffer.concat([labels('chatgpt.com', 'example'), ROOT, TYPE_A_IN])
  const lengthLie = Buffer.from(hello)
  lengthLie.writeUInt16BE(0xffff, hello.indexOf('claude.ai') - 2)
  return {
    about: `Malicious packets: pointers forward, to themselves, into the header and in a chain; reserved label types, a name that is
too long, a dot inside a label, bytes that are not text; contradictory headers and lengths; fragments; truncated packets.
None may cause an exception, a hang or a forged name.\n`,
    tsharkDiffers: `tshark follows a pointer into the header, shows a message for loops and for names that are
too long, does not escape a dot inside a label, reads all 300 questions, and omits a server_name with a line feed.`,
    packets: everyMillisecond([
      { bytes: good, packetClass: 'dnsQuery', names: [queryName('claude.ai')] },
      { bytes: dns(dnsMessage({ questions: 1 }, pointer(12), TYPE_A_IN)), packetClass: 'dnsMalformed' },
      {
        bytes: dns(dnsMessage({ questions: 1 }, pointer(18), TYPE_A_IN, labels('ai'), ROOT)),
        packetClass: 'dnsQuery',
        names: [queryName('ai')],
      },
      { bytes: dns(dnsMessage({ questions: 1 }, pointer(2), TYPE_A_IN)), packetClass: 'dnsMalformed' },
      { bytes: dns(dnsMessage({ questions: 1 }, labels('a'), pointer(12), TYPE_A_IN)), packetClass: 'dnsMalformed' },
      {
        bytes: dns(dnsMessage({ questions: 1 }, Buffer.from([0x41, 1]), ROOT, TYPE_A_IN)),
        packetClass: 'dnsMalformed',
      },
      { bytes: dns(dnsMessage({ questions: 1 }, long, ROOT, TYPE_A_IN)), packetClass: 'dnsMalformed' },
      { bytes: dns(dnsMessage({ questions: 1 }, labels('claude', 'ai'))), packetClass: 'truncated' },
      { bytes: dns(dnsMessage({ questions: 1 }, labels('claude', 'ai'), ROOT)), packetClass: 'truncated' },
      {
        bytes: dns(dnsMessage({ questions: 2 }, labels('claude', 'ai'), ROOT, TYPE_A_IN)),
        packetClass: 'truncated',
        names: [queryName('claude.ai')],
      },
      { bytes: dns(dnsMessage({ questions: 300 }, many)), packetClass: 'dnsQuestionsOverLimit', names: manyNames },
      {
        bytes: dns(dnsMessage({ questions: 1 }, forged)),
        packetClass: 'dnsQuery',
        names: [queryName('chatgpt\\046com.example')],
      },
      {
        bytes: dns(dnsMessage({ questions: 1 }, labels(Buffer.from([0, 0x41, 0xff, 0x5c]), 'ai'), ROOT, TYPE_A_IN)),
        packetClass: 'dnsQuery',
        names: [queryName('\\000a\\255\\092.ai')],
      },
      {
        bytes: dns(dnsMessage({ flags: 0x2800, questions: 1 }, labels('claude', 'ai'), ROOT, TYPE_A_IN)),
        packetClass: 'dnsOther',
      },
      { bytes: dns(Buffer.alloc(5)), packetClass: 'truncated' },
      {
        bytes: ethernet(
          {},
          toResolver(udp({ sourcePort: 50_000, destinationPort: 53, length: 7 }, dnsQuery(['claude.ai']))),
        ),
        packetClass: 'udpMalformed',
      },
      {
        bytes: ethernet(
          {},
          toResolver(udp({ sourcePort: 50_000, destinationPort: 53, length: 22 }, dnsQuery(['claude.ai']))),
        ),
        packetClass: 'truncated',
      },
      {
        bytes: ipFrame({ source: CLIENT, destination: RESOLVER, fragment: 0x2000 }, query(dnsQuery(['claude.ai']))),
        packetClass: 'ipFragment',
      },
      {
        bytes: ipFrame({ source: CLIENT, destination: RESOLVER, fragment: 0x0010 }, query(dnsQuery(['claude.ai']))),
        packetClass: 'ipFragment',
      },
      { bytes: changed(good, 14, 0x44), packetClass: 'ipMalformed' },
      { bytes: changed(good, 14, 0x65), packetClass: 'ipMalformed' },
      { bytes: good.subarray(0, 13), packetClass: 'truncated' },
      { bytes: good.subarray(0, 14), packetClass: 'truncated' },
      { bytes: good.subarray(0, 30), packetClass: 'truncated' },
      { bytes: good.subarray(0, 60), packetClass: 'truncated', originalBytes: good.length },
      { bytes: ethernet({}, toServer(otherTransport(50, Buffer.alloc(40)))), packetClass: 'otherTransport' },
      { bytes: changed(tls(hello), 46, 0x10), packetClass: 'tcpMalformed' },
      { bytes: tls(hello).subarray(0, 54), packetClass: 'truncated', originalBytes: tls(hello).length },
      { bytes: tls(lengthLie), packetClass: 'clientHelloMalformed' },
      { bytes: tls(Buffer.concat([Buffer.from([22, 3, 1]), u16(0xffff), hello.subarray(5)])), packetClass: 'tcpOther' },
      {
        bytes: tls(
          Buffer.concat([tlsRecords(hello.subarray(5), 100).subarray(0, 105), Buffer.from([23, 3, 3, 0, 1, 0])]),
        ),
        packetClass: 'clientHelloMalformed',
      },
      { bytes: tls(tlsRecords(clientHello({ serverName: '' }))), packetClass: 'clientHelloMalformed' },
      { bytes: tls(tlsRecords(clientHello({ serverName: 'a'.repeat(256) }))), packetClass: 'clientHelloMalformed' },
      {
        bytes: tls(tlsRecords(clientHello({ serverName: 'Claude.AI\n' }))),
        packetClass: 'clientHello',
        names: [{ ...helloName('claude.ai\\010'), clientPort: clientPort - 1 }],
      },
      { bytes: Buffer.alloc(0), packetClass: 'truncated' },
    ]),
  }
}

/** A copy with one byte changed. */
function changed(bytes: Buffer, at: number, value: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[at] = value
  return copy
}
