import { ethernet } from '../support/packets.ts'
import { dnsOverTcp, dnsQuery, dnsResponse } from '../support/packets-dns.ts'
import { ipv4Fragment, ipv4Fragments, ipv6Fragment, ipv6Fragments } from '../support/packets-fragments.ts'
import { TcpStream } from '../support/packets-tcp-stream.ts'
import type { GeneratedCapture } from './generated-capture.ts'
import {
  CLIENT,
  CLIENT6,
  everyMillisecond,
  frames,
  query,
  queryName,
  RESOLVER,
  reported,
  type UntimedPacket,
} from './parties.ts'

const RESOLVER6 = '2001:db8:53::1'
/** Bytes of payload in a fragment. The queries below take three fragments. */
const SIZE = 24

function capture(
  about: string,
  packets: readonly UntimedPacket[],
  more: Partial<GeneratedCapture> = {},
): GeneratedCapture {
  return { about: `${about}\n`, packets: everyMillisecond(packets), ...more }
}

export function dnsCases(): Record<string, GeneratedCapture> {
  return {
    'fragments-ipv4': fragmentsIpv4(),
    'fragments-ipv4-overlapping': overlappingIpv4(),
    'fragments-ipv6': fragmentsIpv6(),
    'fragments-ipv6-overlapping': overlappingIpv6(),
    'fragments-never-complete': neverComplete(),
    'dns-over-tcp': overTcp(),
    'dns-over-tcp-one-byte-segments': oneByteSegments(),
    'dns-over-tcp-reversed': reversedTcp(),
    'dns-over-tcp-without-syn': withoutSyn(),
  }
}

const ipv4Fields = (identification: number) => ({ source: CLIENT, destination: RESOLVER, identification })
const ipv6Fields = (identification: number) => ({ source: CLIENT6, destination: RESOLVER6, identification })
const question = (name: string) => query(dnsQuery([name]))
const queryName6 = (name: string) => queryName(name, CLIENT6, RESOLVER6)
const frameOf = (packet: Parameters<typeof ethernet>[1]) => ethernet({}, packet)

function fragmentsIpv4(): GeneratedCapture {
  const rows = [
    { name: 'in-order.fragments.example.org', order: [0, 1, 2] },
    { name: 'reversed.fragments.example.org', order: [2, 1, 0] },
    { name: 'last-first.fragments.example.org', order: [2, 0, 1] },
    { name: 'some-twice.fragments.example.org', order: [0, 0, 2, 2, 1] },
  ]
  const one = ipv4Fragments(ipv4Fields(50), question('one.interleaved.example.org'), SIZE)
  const two = ipv4Fragments(ipv4Fields(51), question('two.interleaved.example.org'), SIZE)
  const turns = one.flatMap((fragment, index) => [fragment, two[index] as (typeof two)[0]]).map(frameOf)
  return capture(
    'DNS queries in IPv4 fragments (RFC 791 §3.2): in order, reversed, duplicated, and interleaved with those of another packet.',
    [
      ...rows.flatMap(({ name, order }, index) =>
        frames(ipv4Fragments(ipv4Fields(10 + index), question(name), SIZE, order).map(frameOf), [queryName(name)]),
      ),
      ...frames(turns.slice(0, -1), [queryName('one.interleaved.example.org')]),
      ...frames(turns.slice(-1), [queryName('two.interleaved.example.org')]),
    ],
  )
}

function overlappingIpv4(): GeneratedCapture {
  const rows = [
    {
      name: 'middle.overlap.example.org',
      pieces: [
        [0, 32],
        [24, 48],
        [40, -1],
      ],
    },
    {
      name: 'behind-gap.overlap.example.org',
      pieces: [
        [32, -1],
        [24, 40],
        [0, 24],
      ],
    },
    {
      name: 'covered.overlap.example.org',
      pieces: [
        [8, 16],
        [0, 40],
        [32, -1],
      ],
    },
  ] as const
  return capture(
    'IPv4 fragments that overlap with equal bytes (RFC 791 §3.2).',
    rows.flatMap(({ name, pieces }, index) => {
      const payload = question(name)
      const bytes = pieces.map(([start, end]) =>
        frameOf(ipv4Fragment(ipv4Fields(20 + index), payload, start, end < 0 ? payload.bytes.length : end)),
      )
      return frames(bytes, [queryName(name)])
    }),
  )
}

function fragmentsIpv6(): GeneratedCapture {
  const rows = [
    { name: 'in-order.fragments.example.org', order: [0, 1, 2] },
    { name: 'reversed.fragments.example.org', order: [2, 1, 0] },
  ]
  const name = 'options.fragments.example.org'
  const destinationOptions = { number: 60, bytes: Buffer.from('00010400000000', 'hex') }
  const withOptions = { ...ipv6Fields(0xdead_beef), extensions: [destinationOptions] }
  return capture('DNS queries in IPv6 fragments (RFC 8200 §4.5): in order, reversed, after another extension header.', [
    ...rows.flatMap(({ name, order }, index) =>
      frames(ipv6Fragments(ipv6Fields(10 + index), question(name), SIZE, order).map(frameOf), [queryName6(name)]),
    ),
    ...frames(ipv6Fragments(withOptions, question(name), SIZE).map(frameOf), [queryName6(name)]),
  ])
}

function overlappingIpv6(): GeneratedCapture {
  const payload = question('hidden.overlap.example.org')
  const end = payload.bytes.length
  const fields = ipv6Fields(30)
  const name = 'next.overlap.example.org'
  return capture(
    'IPv6 fragments that overlap: the whole packet is dropped (RFC 5722 §4, RFC 8200 §4.5), including later fragments. The next packet is read.',
    [
      ...frames([
        frameOf(ipv6Fragment(fields, payload, 0, 32)),
        frameOf(ipv6Fragment(fields, payload, 24, 48)),
        frameOf(ipv6Fragment(fields, payload, 48, end)),
      ]),
      ...frames(ipv6Fragments(ipv6Fields(31), question(name), SIZE).map(frameOf), [queryName6(name)]),
    ],
    { tsharkDiffers: 'tshark reassembles overlapping fragments and adds a note.' },
  )
}

function neverComplete(): GeneratedCapture {
  const payload = question('hidden.never.example.org')
  const last = payload.bytes.length
  return capture(
    'Fragments of packets that are never completed: without the last, the middle or the first fragment, over IPv4 and IPv6.',
    [
      ...frames([
        frameOf(ipv4Fragment(ipv4Fields(40), payload, 0, 24)),
        frameOf(ipv4Fragment(ipv4Fields(40), payload, 24, 48)),
        frameOf(ipv4Fragment(ipv4Fields(41), payload, 0, 24)),
        frameOf(ipv4Fragment(ipv4Fields(41), payload, 48, last)),
        frameOf(ipv4Fragment(ipv4Fields(42), payload, 24, 48)),
        frameOf(ipv4Fragment(ipv4Fields(42), payload, 48, last)),
        frameOf(ipv6Fragment(ipv6Fields(40), payload, 0, 48)),
        frameOf(ipv6Fragment(ipv6Fields(41), payload, 24, last)),
      ]),
      // The same identification between other addresses belongs to another packet.
      ...frames([
        frameOf(ipv4Fragment({ source: '10.0.0.8', destination: RESOLVER, identification: 40 }, payload, 48, last)),
      ]),
    ],
  )
}

const tcpFields = (clientPort: number) => ({ clientPort, server: RESOLVER, serverPort: 53 })

function overTcp(): GeneratedCapture {
  const single = new TcpStream(
    tcpFields(50_001),
    dnsOverTcp(dnsQuery(['single.example.org'])),
    dnsOverTcp(dnsResponse('single.example.org', '203.0.113.9')),
  )
  const first = dnsOverTcp(dnsQuery(['pipelined-1.example.org'], 'A', 1))
  const second = dnsOverTcp(dnsQuery(['pipelined-2.example.org'], 'AAAA', 2))
  const pipelined = new TcpStream(tcpFields(50_002), Buffer.concat([first, second]))
  const glued = new TcpStream(
    tcpFields(50_003),
    dnsOverTcp(dnsQuery(['glued-1.example.org'], 'A', 1), dnsQuery(['glued-2.example.org'], 'A', 2)),
  )
  const cut = new TcpStream(
    tcpFields(50_004),
    dnsOverTcp(dnsQuery(['cut-1.example.org'], 'A', 1), dnsQuery(['cut-2.example.org'], 'A', 2)),
  )
  const border = dnsOverTcp(dnsQuery(['cut-1.example.org'])).length
  const again = new TcpStream(tcpFields(50_005), dnsOverTcp(dnsQuery(['again.example.org'])))
  return capture(
    `DNS over TCP (RFC 1035 §4.2.2, RFC 7766): one query and its answer, two pipelined queries, two in one segment,
two whose boundary is in the middle of a segment, one that is retransmitted.`,
    [
      ...frames(single.open()),
      ...frames([single.send()], [reported('dns', single, 'single.example.org')]),
      ...frames([single.reply(0, undefined, single.clientLength), ...single.close()]),
      ...frames(pipelined.open()),
      ...frames([pipelined.send(0, first.length)], [reported('dns', pipelined, 'pipelined-1.example.org')]),
      ...frames([pipelined.send(first.length)], [reported('dns', pipelined, 'pipelined-2.example.org')]),
      ...frames(glued.open()),
      ...frames(
        [glued.send()],
        [reported('dns', glued, 'glued-1.example.org'), reported('dns', glued, 'glued-2.example.org')],
      ),
      ...frames(cut.open()),
      ...frames([cut.send(0, border + 9)], [reported('dns', cut, 'cut-1.example.org')]),
      ...frames([cut.send(border + 9)], [reported('dns', cut, 'cut-2.example.org')]),
      ...frames(again.open()),
      ...frames([again.send(), again.send()], [reported('dns', again, 'again.example.org')], 0),
    ],
  )
}

function oneByteSegments(): GeneratedCapture {
  const first = dnsOverTcp(dnsQuery(['bytes-1.example.org'], 'A', 1))
  const stream = new TcpStream(
    tcpFields(50_001),
    Buffer.concat([first, dnsOverTcp(dnsQuery(['bytes-2.example.org'], 'A', 2))]),
  )
  return capture('Two queries over TCP in segments of one byte.', [
    ...frames(stream.open()),
    ...frames(stream.sendSegments(1, 0, first.length), [reported('dns', stream, 'bytes-1.example.org')]),
    ...frames(stream.sendSegments(1, first.length), [reported('dns', stream, 'bytes-2.example.org')]),
  ])
}

function reversedTcp(): GeneratedCapture {
  const one = new TcpStream(tcpFields(50_001), dnsOverTcp(dnsQuery(['one.example.org'])))
  const first = dnsOverTcp(dnsQuery(['two-1.example.org'], 'A', 1))
  const two = new TcpStream(
    tcpFields(50_002),
    Buffer.concat([first, dnsOverTcp(dnsQuery(['two-2.example.org'], 'A', 2))]),
  )
  return capture('Queries over TCP whose segments arrive in reverse order, on connections whose SYN was captured.', [
    ...frames(one.open()),
    ...frames(one.sendSplit([1, 10, 20], [3, 2, 1, 0]), [reported('dns', one, 'one.example.org')]),
    ...frames(two.open()),
    ...frames(two.sendSplit([first.length], [1, 0]), [
      reported('dns', two, 'two-1.example.org'),
      reported('dns', two, 'two-2.example.org'),
    ]),
  ])
}

function withoutSyn(): GeneratedCapture {
  const one = new TcpStream(tcpFields(50_001), dnsOverTcp(dnsQuery(['one.example.org'])))
  const two = new TcpStream(tcpFields(50_002), dnsOverTcp(dnsQuery(['two.example.org'])))
  return capture('Queries over TCP on connections that began before the capture: whole, and in two segments.', [
    ...frames([one.send()], [reported('dns', one, 'one.example.org')]),
    ...frames(two.sendSplit([16]), [reported('dns', two, 'two.example.org')]),
  ])
}
