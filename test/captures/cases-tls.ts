import { TcpFlags } from '../support/packets.ts'
import { TcpStream } from '../support/packets-tcp-stream.ts'
import { clientHello, encryptedClientHello, fill, sslv2Hello, tlsRecords } from '../support/packets-tls.ts'
import type { GeneratedCapture } from './generated-capture.ts'
import { everyMillisecond, frames, reported, type UntimedPacket } from './parties.ts'

const MSS = 1460

/** A post-quantum hello, which takes two segments. */
const long = (serverName: string, serverNameLast = false) =>
  tlsRecords(clientHello({ serverName, serverNameLast, postQuantum: true, grease: true }))
const short = (serverName: string) => tlsRecords(clientHello({ serverName, grease: true }))

function capture(
  about: string,
  packets: readonly UntimedPacket[],
  more: Partial<GeneratedCapture> = {},
): GeneratedCapture {
  return { about: `${about}\n`, packets: everyMillisecond(packets), ...more }
}

export function tlsCases(): Record<string, GeneratedCapture> {
  return {
    'tls-two-segments': twoSegments(),
    'tls-reversed': reversed(),
    'tls-reversed-without-syn': reversedWithoutSyn(),
    'tls-retransmitted': retransmitted(),
    'tls-one-byte-segments': oneByteSegments(),
    'tls-records-and-segments': recordsAndSegments(),
    'tls-sequence-wraps': sequenceWraps(),
    'tls-port-used-again': portUsedAgain(),
    'tls-hello-in-syn': helloInSyn(),
    'tls-sslv2-hello': sslv2(),
    'tls-behind-http-connect': afterConnect(),
    'tls-behind-http-connect-reversed': afterConnectReversed(),
    'tls-behind-starttls': afterStarttls(),
    'tls-encrypted-client-hello': encrypted(),
    'tls-without-name': withoutName(),
    'tls-interleaved': interleaved(),
    'tls-never-complete': neverComplete(),
  }
}

function twoSegments(): GeneratedCapture {
  const first = long('first.example.org')
  const second = long('second.example.org', true)
  const cut = long('middle.example.org')
  const rows = [
    { hello: first, name: 'first.example.org', at: MSS },
    { hello: second, name: 'second.example.org', at: MSS },
    { hello: cut, name: 'middle.example.org', at: cut.indexOf('middle.') + 3 },
    // Between the type of the extension and its length.
    { hello: cut, name: 'middle.example.org', at: cut.indexOf('middle.') - 7 },
    // In the record header, and after it.
    { hello: first, name: 'first.example.org', at: 3 },
    { hello: first, name: 'first.example.org', at: 5 },
  ]
  return capture(
    'Post-quantum ClientHellos in two segments: server_name in the first or second segment, or split in the name, the extension header or the record header.',
    rows.flatMap(({ hello, name, at }, index) => {
      const stream = new TcpStream({ clientPort: 50_001 + index }, hello)
      return [
        ...frames(stream.open()),
        ...frames(stream.sendSplit([at]), [reported('tls', stream, name)]),
        ...frames(stream.close()),
      ]
    }),
  )
}

function reversed(): GeneratedCapture {
  const rows = [
    { name: 'two.example.org', cuts: [MSS], order: [1, 0], last: false },
    { name: 'two-name-last.example.org', cuts: [MSS], order: [1, 0], last: true },
    { name: 'three.example.org', cuts: [600, 1200], order: [2, 1, 0], last: false },
    { name: 'mixed.example.org', cuts: [600, 1200], order: [1, 2, 0], last: false },
    { name: 'gap.example.org', cuts: [600, 1200], order: [0, 2, 1], last: true },
  ]
  return capture(
    'ClientHellos whose segments arrive out of order, on connections whose SYN was captured.',
    rows.flatMap(({ name, cuts, order, last }, index) => {
      const stream = new TcpStream({ clientPort: 50_001 + index }, long(name, last))
      return [...frames(stream.open()), ...frames(stream.sendSplit(cuts, order), [reported('tls', stream, name)])]
    }),
  )
}

function reversedWithoutSyn(): GeneratedCapture {
  const rows = [
    { name: 'two.example.org', cuts: [MSS], order: [1, 0], last: false },
    { name: 'two-name-last.example.org', cuts: [MSS], order: [1, 0], last: true },
  ]
  return capture(
    'ClientHellos whose segments arrive out of order, on connections that began before the capture. The start of the ClientHello marks the start of the stream.',
    rows.flatMap(({ name, cuts, order, last }, index) => {
      const stream = new TcpStream({ clientPort: 50_001 + index }, long(name, last))
      return frames(stream.sendSplit(cuts, order), [reported('tls', stream, name)])
    }),
    { tsharkDiffers: 'tshark takes the first captured segment as the start of the stream.' },
  )
}

function retransmitted(): GeneratedCapture {
  const packets: UntimedPacket[] = []
  let clientPort = 50_001
  const add = (name: string, hello: Buffer, segments: (stream: TcpStream) => readonly Buffer[], complete: number) => {
    const stream = new TcpStream({ clientPort: clientPort++ }, hello)
    packets.push(...frames(stream.open()), ...frames(segments(stream), [reported('tls', stream, name)], complete))
  }
  add('whole-twice.example.org', short('whole-twice.example.org'), (stream) => [stream.send(), stream.send()], 0)
  const name = 'parts.example.org'
  const hello = long(name)
  add(
    name,
    hello,
    (stream) => [stream.send(0, MSS), stream.send(0, MSS), stream.send(MSS), stream.send(MSS), stream.send(0, MSS)],
    2,
  )
  add(name, hello, (stream) => [stream.send(0, 800), stream.send(500, 1200), stream.send(1000)], 2)
  // A longer segment with the same start as an earlier one, and a segment that covers all earlier
  // ones.
  add(name, hello, (stream) => [stream.send(0, 300), stream.send(0, 900), stream.send(900, 1000), stream.send()], 3)
  // The overlapping segments wait for the missing start.
  add(name, hello, (stream) => [stream.send(900), stream.send(700, 1100), stream.send(0, 800)], 2)
  return capture(
    'Retransmissions and overlaps with equal bytes: the name of each connection is reported once, with the segment that first completes the ClientHello.',
    packets,
  )
}

function oneByteSegments(): GeneratedCapture {
  const name = 'bytes.example.org'
  const stream = new TcpStream({}, short(name))
  return capture('A ClientHello in segments of one byte.', [
    ...frames(stream.open()),
    ...frames(stream.sendSegments(1), [reported('tls', stream, name)]),
  ])
}

function recordsAndSegments(): GeneratedCapture {
  const rows = [
    { name: 'records-100.example.org', record: 100, segment: 333 },
    { name: 'records-333.example.org', record: 333, segment: 100 },
    { name: 'records-1.example.org', record: 1, segment: 1000 },
  ]
  return capture(
    'A ClientHello in several TLS records (RFC 8446 §5.1) and several segments, with different boundaries.',
    rows.flatMap(({ name, record, segment }, index) => {
      const hello = clientHello({ serverName: name, grease: true, postQuantum: record > 1 })
      const stream = new TcpStream({ clientPort: 50_001 + index }, tlsRecords(hello, record))
      return [...frames(stream.open()), ...frames(stream.sendSegments(segment), [reported('tls', stream, name)])]
    }),
  )
}

function sequenceWraps(): GeneratedCapture {
  const rows = [
    { name: 'in-order.example.org', order: [0, 1, 2] },
    { name: 'reversed.example.org', order: [2, 1, 0] },
  ]
  return capture(
    'Sequence numbers that wrap at 2^32 within the ClientHello, in order and reversed.',
    rows.flatMap(({ name, order }, index) => {
      const stream = new TcpStream({ clientPort: 50_001 + index, clientSequence: 2 ** 32 - 700 }, long(name))
      return [
        ...frames(stream.open()),
        ...frames(stream.sendSplit([600, 1200], order), [reported('tls', stream, name)]),
      ]
    }),
  )
}

function portUsedAgain(): GeneratedCapture {
  const streams = ['one.example.org', 'two.example.org', 'three.example.org'].map((name, index) => ({
    name,
    stream: new TcpStream({ clientSequence: 1_000_000 + index * 77_777 }, short(name)),
  }))
  return capture(
    'Three successive connections with the same addresses and ports: after a FIN, and after a reset.',
    streams.flatMap(({ name, stream }, index) => [
      ...frames(stream.open()),
      ...frames([stream.send()], [reported('tls', stream, name)]),
      ...frames(index === 1 ? [stream.reset()] : stream.close()),
    ]),
  )
}

function helloInSyn(): GeneratedCapture {
  const name = 'fast-open.example.org'
  const stream = new TcpStream({}, short(name))
  return capture('TCP Fast Open (RFC 7413): the SYN carries the ClientHello.', [
    ...frames([stream.up(TcpFlags.syn, -1, stream.clientLength)], [reported('tls', stream, name)]),
    ...frames([stream.down(TcpFlags.syn | TcpFlags.ack, -1, 0, stream.clientLength)]),
  ])
}

function sslv2(): GeneratedCapture {
  const stream = new TcpStream({}, sslv2Hello())
  return capture('The SSL 2.0 hello, which has no field for a name (RFC 5246 appendix E.2).', [
    ...frames(stream.open()),
    ...frames([stream.send()]),
  ])
}

const CONNECT = 'CONNECT tunnelled.example.org:443 HTTP/1.1\r\nHost: tunnelled.example.org:443\r\n\r\n'
const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n'

/** A connection to a proxy. The client sends a request, then the hello. */
function proxied(clientPort: number, name: string): { stream: TcpStream; request: number } {
  const clientBytes = Buffer.concat([Buffer.from(CONNECT), long(name)])
  const server = '203.0.113.80'
  return {
    stream: new TcpStream({ clientPort, server, serverPort: 8080 }, clientBytes, Buffer.from(ESTABLISHED)),
    request: CONNECT.length,
  }
}

function afterConnect(): GeneratedCapture {
  const name = 'tunnelled.example.org'
  const { stream, request } = proxied(50_001, name)
  return capture(
    'A ClientHello through an HTTP proxy: the CONNECT request is one segment; after the answer, the hello takes two.',
    [
      ...frames(stream.open()),
      ...frames(
        [stream.send(0, request), stream.reply(0, undefined, request)],
        [{ ...reported('tls', stream, name), via: 'connect' }],
        0,
      ),
      ...frames(stream.sendSplit([request + MSS], undefined, request, ESTABLISHED.length)),
    ],
  )
}

function afterConnectReversed(): GeneratedCapture {
  const name = 'tunnelled.example.org'
  const { stream, request } = proxied(50_001, name)
  return capture('A ClientHello through an HTTP proxy, with its two segments out of order.', [
    ...frames(stream.open()),
    ...frames(
      [stream.send(0, request), stream.reply(0, undefined, request)],
      [{ ...reported('tls', stream, name), via: 'connect' }],
      0,
    ),
    ...frames(stream.sendSplit([request + MSS], [1, 0], request, ESTABLISHED.length)),
  ])
}

/** Lines that both sides send before the hello. The server's line is the last. */
interface Greeting {
  readonly serverPort: number
  readonly turns: readonly (readonly [who: 'client' | 'server', text: string])[]
}

const GREETINGS: Readonly<Record<string, Greeting>> = {
  // RFC 3207
  'smtp.example.org': {
    serverPort: 587,
    turns: [
      ['server', '220 smtp.example.org ESMTP\r\n'],
      ['client', 'EHLO client.example.net\r\n'],
      ['server', '250-smtp.example.org\r\n250 STARTTLS\r\n'],
      ['client', 'STARTTLS\r\n'],
      ['server', '220 Ready to start TLS\r\n'],
    ],
  },
  // RFC 9051 §6.2.1
  'imap.example.org': {
    serverPort: 143,
    turns: [
      ['server', '* OK [CAPABILITY IMAP4rev1 STARTTLS] ready\r\n'],
      ['client', 'a1 STARTTLS\r\n'],
      ['server', 'a1 OK begin TLS\r\n'],
    ],
  },
  // PostgreSQL's SSLRequest: a length of 8 and the number 80877103.
  'postgresql.example.org': {
    serverPort: 5432,
    turns: [
      ['client', '\0\0\0\x08\x04\xd2\x16\x2f'],
      ['server', 'S'],
    ],
  },
}

function afterStarttls(): GeneratedCapture {
  const packets: UntimedPacket[] = []
  for (const [name, { serverPort, turns }] of Object.entries(GREETINGS)) {
    const texts = (who: string) =>
      turns.filter(([speaker]) => speaker === who).map(([, text]) => Buffer.from(text, 'latin1'))
    const clientBytes = Buffer.concat([...texts('client'), short(name)])
    const stream = new TcpStream(
      { clientPort: 50_001 + packets.length, serverPort },
      clientBytes,
      Buffer.concat(texts('server')),
    )
    packets.push(...frames(stream.open()))
    let sentBytes = 0
    let repliedBytes = 0
    for (const [who, text] of turns) {
      if (who === 'client') {
        packets.push(...frames([stream.send(sentBytes, sentBytes + text.length, repliedBytes)]))
        sentBytes += text.length
      } else {
        packets.push(...frames([stream.reply(repliedBytes, repliedBytes + text.length, sentBytes)]))
        repliedBytes += text.length
      }
    }
    packets.push(...frames([stream.send(sentBytes, undefined, repliedBytes)], [reported('tls', stream, name)]))
  }
  return capture('A ClientHello after plain text: SMTP and IMAP with STARTTLS, PostgreSQL with SSLRequest.', packets)
}

function encrypted(): GeneratedCapture {
  const name = 'public.example.org'
  const hello = tlsRecords(clientHello({ serverName: name, grease: true, moreExtensions: [encryptedClientHello()] }))
  const stream = new TcpStream({}, hello)
  return capture(
    'Encrypted Client Hello (RFC 9849): only the outer server_name is visible, the public name of the client-facing server.',
    [...frames(stream.open()), ...frames([stream.send()], [{ ...reported('tls', stream, name), ech: true }])],
  )
}

function withoutName(): GeneratedCapture {
  const one = new TcpStream({}, tlsRecords(clientHello({})))
  const two = new TcpStream({ clientPort: 50_002 }, tlsRecords(clientHello({ postQuantum: true, grease: true })))
  return capture('ClientHellos without server_name, in one segment and in two.', [
    ...frames([...one.open(), one.send()]),
    ...frames([...two.open(), ...two.sendSplit([MSS])]),
  ])
}

function interleaved(): GeneratedCapture {
  const streams = Array.from({ length: 6 }, (_, index) => {
    const name = `connection-${index}.example.org`
    return { name, stream: new TcpStream({ clientPort: 50_001 + index }, long(name, index % 2 === 1)) }
  })
  const turns = [0, 1, 2].map((part) =>
    streams.flatMap(({ name, stream }, index) =>
      // Every third connection sends its middle part last.
      frames(
        [stream.sendSplit([600, 1200], index % 3 === 2 ? [0, 2, 1] : [0, 1, 2])[part] as Buffer],
        part === 2 ? [reported('tls', stream, name)] : [],
      ),
    ),
  )
  return capture('Six connections that send the parts of their ClientHellos interleaved.', [
    ...streams.flatMap(({ stream }) => frames(stream.open())),
    ...turns.flat(),
  ])
}

function neverComplete(): GeneratedCapture {
  const name = 'started.example.org'
  const first = new TcpStream({ clientPort: 50_001 }, long(name))
  const last = new TcpStream({ clientPort: 50_002 }, long('hidden.example.org', true))
  const gap = new TcpStream({ clientPort: 50_003 }, long('lost.example.org'))
  const noise = new TcpStream({ clientPort: 50_004 }, fill(9)(1000))
  return capture(
    `Incomplete ClientHellos: with server_name in the first part, which is reported at the end of the file; with server_name in
the missing rest; without the first part. Also a connection with random bytes.`,
    [
      ...frames([...first.open(), first.send(0, MSS)]),
      ...frames([...last.open(), last.send(0, MSS)]),
      ...frames([...gap.open(), gap.send(MSS)]),
      ...frames([...noise.open(), noise.send()]),
    ],
    {
      namesAtEnd: [reported('tls', first, name)],
      tsharkDiffers: 'tshark shows only complete ClientHellos.',
    },
  )
}
