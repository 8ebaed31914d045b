import { ethernet, ipv4, ipv6, udp } from '../support/packets.ts'
import {
  ack,
  cryptoFrame,
  initialDatagrams,
  padding,
  ping,
  QUIC_V2,
  quicInitial,
  quicLongOther,
  quicRetry,
} from '../support/packets-quic.ts'
import { clientHello, encryptedClientHello, fill } from '../support/packets-tls.ts'
import type { ExpectedName, GeneratedCapture } from './generated-capture.ts'
import { CLIENT, CLIENT6, everyMillisecond, SERVER, SERVER6, type UntimedPacket } from './parties.ts'

const DRAFT_29 = 0xff00_001d
const PORT = 443
/** RFC 9000 §15: a reserved version, which makes a server answer with its supported versions. */
const RESERVED = 0x1a2a_3a4a
const GOOGLE_Q046 = 0x5130_3436

/** The packets of one connection: `up` from the client, `down` from the server. */
class Connection {
  readonly dcid: Buffer
  readonly scid: Buffer
  readonly #clientPort: number
  readonly #serverPort: number
  readonly #v6: boolean

  constructor(seed: number, options: { serverPort?: number; v6?: boolean } = {}) {
    const bytes = fill(seed)
    this.dcid = bytes(8)
    this.scid = bytes(6)
    this.#clientPort = 51_000 + seed
    this.#serverPort = options.serverPort ?? PORT
    this.#v6 = options.v6 === true
  }

  up(datagram: Buffer, name?: string, more: Partial<ExpectedName> = {}): UntimedPacket {
    const bytes = this.#frame(datagram, true)
    return name === undefined ? { bytes } : { bytes, names: [{ ...this.reported(name), ...more }] }
  }

  down(datagram: Buffer): UntimedPacket {
    return { bytes: this.#frame(datagram, false) }
  }

  reported(name: string): Omit<ExpectedName, 'frame'> {
    const [client, server] = this.#v6 ? [CLIENT6, SERVER6] : [CLIENT, SERVER]
    return { method: 'quic', client, clientPort: this.#clientPort, server, serverPort: this.#serverPort, name }
  }

  #frame(payload: Buffer, up: boolean): Buffer {
    const ports = up
      ? { sourcePort: this.#clientPort, destinationPort: this.#serverPort }
      : { sourcePort: this.#serverPort, destinationPort: this.#clientPort }
    const [near, far] = this.#v6 ? [CLIENT6, SERVER6] : [CLIENT, SERVER]
    const addresses = up ? { source: near, destination: far } : { source: far, destination: near }
    return ethernet({}, this.#v6 ? ipv6(addresses, udp(ports, payload)) : ipv4(addresses, udp(ports, payload)))
  }
}

const short = (serverName: string) => clientHello({ serverName, grease: true })
const long = (serverName: string, serverNameLast = false) =>
  clientHello({ serverName, serverNameLast, postQuantum: true, grease: true })

function capture(
  about: string,
  packets: readonly UntimedPacket[],
  more: Partial<GeneratedCapture> = {},
): GeneratedCapture {
  return { about: `${about}\n`, packets: everyMillisecond(packets), ...more }
}

export function quicCases(): Record<string, GeneratedCapture> {
  return {
    'quic-versions': versions(),
    'quic-post-quantum': postQuantum(),
    'quic-out-of-order': outOfOrder(),
    'quic-coalesced': coalesced(),
    'quic-connection-id': connectionId(),
    'quic-retry': retry(),
    'quic-many-small-frames': manySmallFrames(),
    'quic-unknown-version': unknownVersion(),
    'quic-never-complete': neverComplete(),
  }
}

function versions(): GeneratedCapture {
  const whole = (seed: number, name: string, version: number, options = {}, hello = short(name), more = {}) => {
    const connection = new Connection(seed, options)
    const [datagram] = initialDatagrams(hello, { ...connection, version, datagrams: 1 })
    return connection.up(datagram as Buffer, name, more)
  }
  const server = new Connection(8)
  return capture(
    `A ClientHello in one Initial: version 1 (RFC 9001), version 2 (RFC 9369), draft 29, over IPv6, to an unusual port,
and with Encrypted Client Hello. Also a server's Initial, which has no name.`,
    [
      whole(1, 'v1.example.org', 1),
      whole(2, 'v2.example.org', QUIC_V2),
      whole(3, 'draft.example.org', DRAFT_29),
      whole(4, 'v6.example.org', 1, { v6: true }),
      whole(5, 'port.example.org', 1, { serverPort: 8853 }),
      whole(
        7,
        'outer.example.org',
        1,
        {},
        clientHello({ serverName: 'outer.example.org', moreExtensions: [encryptedClientHello()] }),
        { ech: true },
      ),
      server.down(quicInitial({ dcid: server.scid, scid: server.dcid, frames: ack({ largest: 0 }), padTo: 1200 })),
    ],
  )
}

function postQuantum(): GeneratedCapture {
  const packets: UntimedPacket[] = []
  for (const [seed, last] of [false, true].entries()) {
    const connection = new Connection(20 + seed)
    const name = `pq-${last ? 'second' : 'first'}.example.org`
    const [one, two] = initialDatagrams(long(name, last), { ...connection, datagrams: 2 }) as [Buffer, Buffer]
    packets.push(connection.up(one), connection.up(two, name))
  }
  const v2 = new Connection(22)
  const [one, two] = initialDatagrams(long('pq-v2.example.org', true), {
    ...v2,
    version: QUIC_V2,
    datagrams: 2,
  }) as [Buffer, Buffer]
  packets.push(v2.up(one), v2.up(two, 'pq-v2.example.org'))
  return capture(
    'Post-quantum ClientHellos over two datagrams, with server_name in the first or in the second.',
    packets,
  )
}

function outOfOrder(): GeneratedCapture {
  const packets: UntimedPacket[] = []
  for (const [seed, version] of [1, QUIC_V2].entries()) {
    const reversed = new Connection(30 + seed)
    const name = `reversed-${seed}.example.org`
    const [one, two] = initialDatagrams(long(name), { ...reversed, version, datagrams: 2 }) as [Buffer, Buffer]
    packets.push(reversed.up(two), reversed.up(one, name))

    // 15 CRYPTO frames in three datagrams, out of order, and so small that the name is split.
    const sliced = new Connection(40 + seed)
    const slicedName = `a-name-that-is-cut-into-several-pieces-${seed}.example.org`
    const pieces = initialDatagrams(short(slicedName), {
      ...sliced,
      version,
      datagrams: 3,
      pieces: 15,
      order: [14, 3, 8, 1, 10, 5, 12, 7, 0, 9, 2, 11, 4, 13, 6],
    })
    packets.push(sliced.up(pieces[2] as Buffer), sliced.up(pieces[0] as Buffer))
    packets.push(sliced.up(pieces[1] as Buffer, slicedName))
  }
  return capture(
    'CRYPTO frames out of order over two and three datagrams, versions 1 and 2, with the name itself split.',
    packets,
  )
}

function coalesced(): GeneratedCapture {
  const one = new Connection(50)
  const hello = short('coalesced.example.org')
  const initial = (frames: Buffer, packetNumber: number, connection: Connection, token?: Buffer) =>
    quicInitial({ ...connection, frames, packetNumber, ...(token === undefined ? {} : { token }) })
  const datagram = Buffer.concat([
    initial(cryptoFrame(0, hello.subarray(0, 100)), 0, one),
    quicLongOther({ type: 'zeroRtt', ...one, bytes: 200 }),
    initial(cryptoFrame(100, hello.subarray(100)), 1, one),
  ])
  const two = new Connection(51)
  const token = fill(3)(300)
  const name = 'token.example.org'
  const withToken = initial(Buffer.concat([cryptoFrame(0, short(name)), padding(600)]), 0, two, token)
  return capture('Two Initials and 0-RTT in one datagram; an Initial with a token of 300 bytes.', [
    one.up(datagram, 'coalesced.example.org'),
    two.up(withToken, name),
  ])
}

function connectionId(): GeneratedCapture {
  const connection = new Connection(60)
  const name = 'later-id.example.org'
  const [one] = initialDatagrams(long(name, true), { ...connection, datagrams: 2 }) as [Buffer]
  const [, two] = initialDatagrams(long(name, true), {
    ...connection,
    dcid: fill(61)(8),
    keyDcid: connection.dcid,
    datagrams: 2,
  }) as [Buffer, Buffer]
  return capture("The second Initial has the server's connection ID and keeps the keys of the first (RFC 9001 §5.2).", [
    connection.up(one),
    connection.down(
      quicInitial({ dcid: connection.scid, scid: fill(61)(8), frames: ack({ largest: 0 }), padTo: 1200 }),
    ),
    connection.up(two, name),
  ])
}

function retry(): GeneratedCapture {
  const connection = new Connection(70)
  const name = 'retry.example.org'
  const hello = short(name)
  const chosen = fill(71)(8)
  const token = fill(72)(60)
  const [first] = initialDatagrams(hello, { ...connection, datagrams: 1 }) as [Buffer]
  const [again] = initialDatagrams(hello, {
    ...connection,
    dcid: chosen,
    token,
    packetNumber: 1,
    datagrams: 1,
  }) as [Buffer]
  return capture(
    'A Retry: the client repeats the hello, encrypted with keys from the new connection ID. The name is reported once.',
    [
      connection.up(first, name),
      connection.down(quicRetry({ dcid: connection.scid, scid: chosen, token })),
      connection.up(again),
    ],
  )
}

function manySmallFrames(): GeneratedCapture {
  const connection = new Connection(80)
  const name = 'chaos.example.org'
  const hello = short(name)
  const pieces: Buffer[] = []
  for (let at = 0; at < hello.length; at += 11) pieces.push(cryptoFrame(at, hello.subarray(at, at + 11)))
  const shuffled = pieces
    .map((piece, index) => ({ piece, rank: (index * 7) % pieces.length }))
    .sort((a, b) => a.rank - b.rank)
  const frames = shuffled.flatMap(({ piece }, index) => [piece, index % 3 === 0 ? ping() : padding(index % 5)])
  const datagram = quicInitial({ ...connection, frames: Buffer.concat(frames), padTo: 1200 })
  return capture(
    'Many small CRYPTO frames out of order, with PING and PADDING between them, as some browsers send them.',
    [connection.up(datagram, name)],
  )
}

function unknownVersion(): GeneratedCapture {
  const google = new Connection(90)
  const reserved = new Connection(91)
  const name = 'reserved.example.org'
  // Encrypted as version 1 with a reserved version in the header. The header is authenticated, so
  // the builder must write that version itself.
  const [sealed] = initialDatagrams(short(name), { ...reserved, version: RESERVED, datagrams: 1 }) as [Buffer]
  const [other] = initialDatagrams(short('unseen.example.org'), { ...google, version: GOOGLE_Q046, datagrams: 1 }) as [
    Buffer,
  ]
  return capture(
    'An unsupported version, which is counted, and a reserved version (RFC 9000 §15) encrypted as version 1.',
    [google.up(other), google.up(other), reserved.up(sealed, name)],
    { tsharkDiffers: 'tshark reads a reserved version as draft 29.' },
  )
}

function neverComplete(): GeneratedCapture {
  const named = new Connection(100)
  const [one] = initialDatagrams(long('part.example.org'), { ...named, datagrams: 2 }) as [Buffer]
  const nameless = new Connection(101)
  const [first] = initialDatagrams(long('unseen.example.org', true), { ...nameless, datagrams: 2 }) as [Buffer]
  return capture(
    'Two hellos whose second datagram is missing. The server_name in the first datagram of one of them is reported at the end of the file.',
    [named.up(one), nameless.up(first)],
    {
      namesAtEnd: [named.reported('part.example.org')],
      tsharkDiffers: 'tshark shows only complete ClientHellos.',
    },
  )
}
