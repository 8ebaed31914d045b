import { TcpFlags } from '../support/packets.ts'
import { TcpTalk } from '../support/packets-tcp-stream.ts'
import { clientHello, encryptedClientHello, fill, sslv2Hello, tlsRecords } from '../support/packets-tls.ts'
import type { MadeCapture } from './made-capture.ts'
import { everyMillisecond, frames, reported, type Unplaced } from './parties.ts'

const MSS = 1460

/** A post-quantum hello, which takes two segments. */
const long = (serverName: string, serverNameLast = false) =>
  tlsRecords(clientHello({ serverName, serverNameLast, postQuantum: true, grease: true }))
const short = (serverName: string) => tlsRecords(clientHello({ serverName, grease: true }))

function capture(about: string, packets: readonly Unplaced[], more: Partial<MadeCapture> = {}): MadeCapture {
  return { about: `${about}\n`, packets: everyMillisecond(packets), ...more }
}

export function tlsCases(): Record<string, MadeCapture> {
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
    'tls-behind-http-connect': behindConnect(),
    'tls-behind-http-connect-reversed': behindConnectReversed(),
    'tls-behind-starttls': behindStarttls(),
    'tls-encrypted-client-hello': encrypted(),
    'tls-without-name': withoutName(),
    'tls-interleaved': interleaved(),
    'tls-never-complete': neverComplete(),
  }
}

function twoSegments(): MadeCapture {
  const first = long('first.example.org')
  const second = long('second.example.org', true)
  const cut = long('middle.example.org')
  const rows = [
    { hello: first, name: 'first.example.org', at: MSS },
    { hello: second, name: 'second.example.org', at: MSS },
    { hello: cut, name: 'middle.example.org', at: cut.indexOf('middle.') + 3 },
    // Between the type of the extension and its length.
    { hello: cut, name: 'middle.example.org', at: cut.indexOf('middle.') - 7 },
    // In the header of the record, and behind it.
    { hello: first, name: 'first.example.org', at: 3 },
    { hello: first, name: 'first.example.org', at: 5 },
  ]
  return capture(
    'Post-quantum ClientHellos in two segments: server_name in the first, in the second, cut in the middle of the name, of its extension and of the record header.',
    rows.flatMap(({ hello, name, at }, index) => {
      const talk = new TcpTalk({ clientPort: 50_001 + index }, hello)
      return [
        ...frames(talk.open()),
        ...frames(talk.sayCut([at]), [reported('tls', talk, name)]),
        ...frames(talk.close()),
      ]
    }),
  )
}

function reversed(): MadeCapture {
  const rows = [
    { name: 'two.example.org', cuts: [MSS], order: [1, 0], last: false },
    { name: 'two-name-last.example.org', cuts: [MSS], order: [1, 0], last: true },
    { name: 'three.example.org', cuts: [600, 1200], order: [2, 1, 0], last: false },
    { name: 'mixed.example.org', cuts: [600, 1200], order: [1, 2, 0], last: false },
    { name: 'gap.example.org', cuts: [600, 1200], order: [0, 2, 1], last: true },
  ]
  return capture(
    'ClientHellos whose segments come out of order, on connections whose SYN was seen.',
    rows.flatMap(({ name, cuts, order, last }, index) => {
      const talk = new TcpTalk({ clientPort: 50_001 + index }, long(name, last))
      return [...frames(talk.open()), ...frames(talk.sayCut(cuts, order), [reported('tls', talk, name)])]
    }),
  )
}

function reversedWithoutSyn(): MadeCapture {
  const rows = [
    { name: 'two.example.org', cuts: [MSS], order: [1, 0], last: false },
    { name: 'two-name-last.example.org', cuts: [MSS], order: [1, 0], last: true },
  ]
  return capture(
    'The same when the capture began behind the SYN: the segment that begins the ClientHello says where the stream starts.',
    rows.flatMap(({ name, cuts, order, last }, index) => {
      const talk = new TcpTalk({ clientPort: 50_001 + index }, long(name, last))
      return frames(talk.sayCut(cuts, order), [reported('tls', talk, name)])
    }),
    { tsharkDiffers: 'The first segment that it sees is the beginning of the stream for it.' },
  )
}

function retransmitted(): MadeCapture {
  const packets: Unplaced[] = []
  let clientPort = 50_001
  const connection = (
    name: string,
    hello: Buffer,
    segments: (talk: TcpTalk) => readonly Buffer[],
    complete: number,
  ) => {
    const talk = new TcpTalk({ clientPort: clientPort++ }, hello)
    packets.push(...frames(talk.open()), ...frames(segments(talk), [reported('tls', talk, name)], complete))
  }
  connection('whole-twice.example.org', short('whole-twice.example.org'), (talk) => [talk.say(), talk.say()], 0)
  const name = 'parts.example.org'
  const hello = long(name)
  connection(
    name,
    hello,
    (talk) => [talk.say(0, MSS), talk.say(0, MSS), talk.say(MSS), talk.say(MSS), talk.say(0, MSS)],
    2,
  )
  connection(name, hello, (talk) => [talk.say(0, 800), talk.say(500, 1200), talk.say(1000)], 2)
  // A longer segment that begins where one began, and one that covers all that was there.
  connection(name, hello, (talk) => [talk.say(0, 300), talk.say(0, 900), talk.say(900, 1000), talk.say()], 3)
  // The overlap waits behind a gap.
  connection(name, hello, (talk) => [talk.say(900), talk.say(700, 1100), talk.say(0, 800)], 2)
  return capture(
    'Retransmissions and overlaps with equal bytes: each connection tells its name once, with the segment that first completes the ClientHello.',
    packets,
  )
}

function oneByteSegments(): MadeCapture {
  const name = 'bytes.example.org'
  const talk = new TcpTalk({}, short(name))
  return capture('A ClientHello in segments of one byte.', [
    ...frames(talk.open()),
    ...frames(talk.sayInPieces(1), [reported('tls', talk, name)]),
  ])
}

function recordsAndSegments(): MadeCapture {
  const rows = [
    { name: 'records-100.example.org', record: 100, segment: 333 },
    { name: 'records-333.example.org', record: 333, segment: 100 },
    { name: 'records-1.example.org', record: 1, segment: 1000 },
  ]
  return capture(
    'A ClientHello in several TLS records (RFC 8446 §5.1) and several segments, whose borders are not the same.',
    rows.flatMap(({ name, record, segment }, index) => {
      const hello = clientHello({ serverName: name, grease: true, postQuantum: record > 1 })
      const talk = new TcpTalk({ clientPort: 50_001 + index }, tlsRecords(hello, record))
      return [...frames(talk.open()), ...frames(talk.sayInPieces(segment), [reported('tls', talk, name)])]
    }),
  )
}

function sequenceWraps(): MadeCapture {
  const rows = [
    { name: 'in-order.example.org', order: [0, 1, 2] },
    { name: 'reversed.example.org', order: [2, 1, 0] },
  ]
  return capture(
    'Sequence numbers pass 2^32 within the ClientHello, in order and reversed.',
    rows.flatMap(({ name, order }, index) => {
      const talk = new TcpTalk({ clientPort: 50_001 + index, clientSequence: 2 ** 32 - 700 }, long(name))
      return [...frames(talk.open()), ...frames(talk.sayCut([600, 1200], order), [reported('tls', talk, name)])]
    }),
  )
}

function portUsedAgain(): MadeCapture {
  const talks = ['one.example.org', 'two.example.org', 'three.example.org'].map((name, index) => ({
    name,
    talk: new TcpTalk({ clientSequence: 1_000_000 + index * 77_777 }, short(name)),
  }))
  return capture(
    'Three connections, one after another, with the same addresses and ports: behind FIN, and behind a reset.',
    talks.flatMap(({ name, talk }, index) => [
      ...frames(talk.open()),
      ...frames([talk.say()], [reported('tls', talk, name)]),
      ...frames(index === 1 ? [talk.reset()] : talk.close()),
    ]),
  )
}

function helloInSyn(): MadeCapture {
  const name = 'fast-open.example.org'
  const talk = new TcpTalk({}, short(name))
  return capture('TCP Fast Open (RFC 7413): the SYN carries the ClientHello.', [
    ...frames([talk.up(TcpFlags.syn, -1, talk.said)], [reported('tls', talk, name)]),
    ...frames([talk.down(TcpFlags.syn | TcpFlags.ack, -1, 0, talk.said)]),
  ])
}

function sslv2(): MadeCapture {
  const talk = new TcpTalk({}, sslv2Hello())
  return capture('The hello of SSL 2.0, which has no place for a name (RFC 5246 appendix E.2).', [
    ...frames(talk.open()),
    ...frames([talk.say()]),
  ])
}

const CONNECT = 'CONNECT tunnelled.example.org:443 HTTP/1.1\r\nHost: tunnelled.example.org:443\r\n\r\n'
const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n'

/** A connection to a proxy; the client's bytes are its request and the hello behind it. */
function proxied(clientPort: number, name: string): { talk: TcpTalk; request: number } {
  const said = Buffer.concat([Buffer.from(CONNECT), long(name)])
  const server = '203.0.113.80'
  return {
    talk: new TcpTalk({ clientPort, server, serverPort: 8080 }, said, Buffer.from(ESTABLISHED)),
    request: CONNECT.length,
  }
}

function behindConnect(): MadeCapture {
  const name = 'tunnelled.example.org'
  const { talk, request } = proxied(50_001, name)
  return capture(
    'A ClientHello through an HTTP proxy: the CONNECT request has a segment of its own, the hello takes two behind the answer.',
    [
      ...frames(talk.open()),
      ...frames([talk.say(0, request), talk.answer(0, undefined, request)]),
      ...frames(talk.sayCut([request + MSS], undefined, request, ESTABLISHED.length), [reported('tls', talk, name)]),
    ],
  )
}

function behindConnectReversed(): MadeCapture {
  const name = 'tunnelled.example.org'
  const { talk, request } = proxied(50_001, name)
  return capture('The same with the two segments of the hello out of order.', [
    ...frames(talk.open()),
    ...frames([talk.say(0, request), talk.answer(0, undefined, request)]),
    ...frames(talk.sayCut([request + MSS], [1, 0], request, ESTABLISHED.length), [reported('tls', talk, name)]),
  ])
}

/** Turns of two sides before the hello; the last word is the server's. */
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

function behindStarttls(): MadeCapture {
  const packets: Unplaced[] = []
  for (const [name, { serverPort, turns }] of Object.entries(GREETINGS)) {
    const texts = (who: string) =>
      turns.filter(([speaker]) => speaker === who).map(([, text]) => Buffer.from(text, 'latin1'))
    const said = Buffer.concat([...texts('client'), short(name)])
    const talk = new TcpTalk({ clientPort: 50_001 + packets.length, serverPort }, said, Buffer.concat(texts('server')))
    packets.push(...frames(talk.open()))
    let saidBytes = 0
    let answeredBytes = 0
    for (const [who, text] of turns) {
      if (who === 'client') {
        packets.push(...frames([talk.say(saidBytes, saidBytes + text.length, answeredBytes)]))
        saidBytes += text.length
      } else {
        packets.push(...frames([talk.answer(answeredBytes, answeredBytes + text.length, saidBytes)]))
        answeredBytes += text.length
      }
    }
    packets.push(...frames([talk.say(saidBytes, undefined, answeredBytes)], [reported('tls', talk, name)]))
  }
  return capture(
    'A ClientHello behind some words in plain text: SMTP and IMAP with STARTTLS, PostgreSQL with SSLRequest.',
    packets,
  )
}

function encrypted(): MadeCapture {
  const name = 'public.example.org'
  const hello = tlsRecords(clientHello({ serverName: name, grease: true, moreExtensions: [encryptedClientHello()] }))
  const talk = new TcpTalk({}, hello)
  return capture(
    'Encrypted Client Hello (RFC 9849): the outer server_name is what the wire tells, the public name of the client-facing server.',
    [...frames(talk.open()), ...frames([talk.say()], [{ ...reported('tls', talk, name), ech: true }])],
  )
}

function withoutName(): MadeCapture {
  const one = new TcpTalk({}, tlsRecords(clientHello({})))
  const two = new TcpTalk({ clientPort: 50_002 }, tlsRecords(clientHello({ postQuantum: true, grease: true })))
  return capture('ClientHellos without server_name, in one segment and in two.', [
    ...frames([...one.open(), one.say()]),
    ...frames([...two.open(), ...two.sayCut([MSS])]),
  ])
}

function interleaved(): MadeCapture {
  const talks = Array.from({ length: 6 }, (_, index) => {
    const name = `connection-${index}.example.org`
    return { name, talk: new TcpTalk({ clientPort: 50_001 + index }, long(name, index % 2 === 1)) }
  })
  const turns = [0, 1, 2].map((part) =>
    talks.flatMap(({ name, talk }, index) =>
      // Every third connection sends its middle part last.
      frames(
        [talk.sayCut([600, 1200], index % 3 === 2 ? [0, 2, 1] : [0, 1, 2])[part] as Buffer],
        part === 2 ? [reported('tls', talk, name)] : [],
      ),
    ),
  )
  return capture('Six connections that send the parts of their ClientHellos in turns.', [
    ...talks.flatMap(({ talk }) => frames(talk.open())),
    ...turns.flat(),
  ])
}

function neverComplete(): MadeCapture {
  const name = 'started.example.org'
  const first = new TcpTalk({ clientPort: 50_001 }, long(name))
  const last = new TcpTalk({ clientPort: 50_002 }, long('hidden.example.org', true))
  const gap = new TcpTalk({ clientPort: 50_003 }, long('lost.example.org'))
  const noise = new TcpTalk({ clientPort: 50_004 }, fill(9)(1000))
  return capture(
    `ClientHellos whose rest never comes: server_name was in the first part, and comes out at the end; it was in the rest; the first part
is what was lost. And a connection of random bytes.`,
    [
      ...frames([...first.open(), first.say(0, MSS)]),
      ...frames([...last.open(), last.say(0, MSS)]),
      ...frames([...gap.open(), gap.say(MSS)]),
      ...frames([...noise.open(), noise.say()]),
    ],
    {
      namesAtEnd: [reported('tls', first, name)],
      tsharkDiffers: 'It shows a ClientHello only when it is whole.',
    },
  )
}
