import t from 'tap'
import { SHORT_BUFFERS, STREAMS_MAX } from '../../../collector/limits.ts'
import { ipFrame, TcpFlags, tcp, udp } from '../../support/packets.ts'
import { cryptoFrame, initialDatagrams, QUIC_V1, quicInitial } from '../../support/packets-quic.ts'
import { clientHello, fill, tlsRecords } from '../../support/packets-tls.ts'
import { FrameDecoder } from '../decode-frames.ts'

const CLIENT = '10.9.0.7'
const SERVER = '203.0.113.9'
const DCID = fill(1)(8)
const hello = clientHello({ serverName: 'chatgpt.com', grease: true })

function datagram(payload: Buffer, client = CLIENT, ports = { sourcePort: 50_000, destinationPort: 443 }): Buffer {
  return ipFrame({ source: client, destination: SERVER }, udp(ports, payload))
}

function backwards(bytes: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += 50) pieces.push(cryptoFrame(at, bytes.subarray(at, at + 50)))
  return quicInitial({ dcid: DCID, frames: Buffer.concat(pieces.reverse()), padTo: 1200 })
}

t.test("a stream evicted during another hello's reassembly does not pass on its address", async (t) => {
  const decoder = new FrameDecoder()
  const part = tlsRecords(clientHello({ serverName: 'api.openai.com', postQuantum: true })).subarray(0, 900)
  for (let connection = 0; connection < SHORT_BUFFERS; connection++) {
    const source = `10.1.${connection >> 8}.${connection & 255}`
    const segment = (sequence: number, flags: number, bytes?: Buffer) =>
      ipFrame(
        { source, destination: SERVER },
        tcp({ sourcePort: 50_001, destinationPort: 443, sequence, flags }, bytes),
      )
    decoder.decode([segment(0, TcpFlags.syn), segment(1, TcpFlags.ack, part)])
  }
  const { names } = decoder.decode([datagram(backwards(hello))], 1, { seconds: 1007 })
  t.match(names, [
    { name: 'api.openai.com', method: 'tls', client: '10.1.0.0', clientPort: 50_001, timeMs: 1_000_005 },
    { name: 'chatgpt.com', method: 'quic', client: CLIENT, clientPort: 50_000, timeMs: 1_007_005 },
  ])
})

t.test('any order of three datagrams, with repetitions, reports the name once', async (t) => {
  const [one, two, three] = initialDatagrams(hello, { dcid: DCID, datagrams: 3, pieces: 12 }) as [
    Buffer,
    Buffer,
    Buffer,
  ]
  const all = [one, two, three]
  for (const [a, b, c] of [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ] as const) {
    const decoder = new FrameDecoder()
    const { names } = decoder.decode([a, a, b, a, c, b, c].map((index) => datagram(all[index] as Buffer)))
    t.same(
      names.map(({ name }) => name),
      ['chatgpt.com'],
    )
  }
})

t.test("a datagram that cannot be decrypted starts no stream, and neither does a server's", async (t) => {
  const decoder = new FrameDecoder()
  const sealed = quicInitial({ dcid: DCID, keyDcid: fill(9)(8), frames: cryptoFrame(0, hello), padTo: 1200 })
  t.same(decoder.decode([datagram(sealed)]).classes, ['quicUndecodable'])
  t.equal(decoder.counters.streamsFollowed, 0)
  const good = quicInitial({ dcid: DCID, frames: cryptoFrame(0, hello), padTo: 1200 })
  const fromServer = datagram(good, CLIENT, { sourcePort: 443, destinationPort: 50_000 })
  t.same(decoder.decode([fromServer]).classes, ['quicOther'])
  t.equal(decoder.counters.quicOpened, 0)
  t.same(decoder.decode([datagram(good)]).classes, ['clientHello'])
})

t.test('offsets beyond the buffer are dropped, and so is a hello of excessive length', async (t) => {
  const far = new FrameDecoder()
  const frames = Buffer.concat([cryptoFrame(0, hello.subarray(0, 200)), cryptoFrame(2 ** 40, Buffer.alloc(10))])
  far.decode([datagram(quicInitial({ dcid: DCID, frames, padTo: 1200 }))])
  t.equal(far.counters.streamsOverLimit, 1)
  const long = new FrameDecoder()
  const claim = Buffer.concat([Buffer.from([1, 0xff, 0xff, 0xff]), Buffer.alloc(300)])
  const { classes } = long.decode([datagram(quicInitial({ dcid: DCID, frames: cryptoFrame(0, claim), padTo: 1200 }))])
  t.same(classes, ['clientHelloMalformed'])
})

t.test('a later connection between the same ports is a new connection', async (t) => {
  const decoder = new FrameDecoder()
  const other = clientHello({ serverName: 'claude.ai', seed: 77 })
  const { names } = decoder.decode([
    datagram(quicInitial({ version: QUIC_V1, dcid: DCID, frames: cryptoFrame(0, hello), padTo: 1200 })),
    datagram(quicInitial({ version: QUIC_V1, dcid: fill(5)(8), frames: cryptoFrame(0, other), padTo: 1200 })),
  ])
  t.same(
    names.map(({ name }) => name),
    ['chatgpt.com', 'claude.ai'],
  )
})

t.test('a hello that lost a datagram before a Retry is reported once', async (t) => {
  const decoder = new FrameDecoder()
  const long = clientHello({ serverName: 'claude.ai', postQuantum: true })
  const [first] = initialDatagrams(long, { dcid: DCID, datagrams: 2 }) as [Buffer]
  const again = initialDatagrams(long, { dcid: fill(5)(8), token: fill(6)(40), packetNumber: 2, datagrams: 2 })
  const { names } = decoder.decode([first, ...again].map((bytes) => datagram(bytes)))
  t.same(
    names.map(({ name }) => name),
    ['claude.ai'],
  )
  t.same(decoder.pass({ last: true }), [])
})

t.test('a flood of valid Initials takes no more memory than the connection table', async (t) => {
  const decoder = new FrameDecoder()
  const frame = datagram(quicInitial({ dcid: DCID, frames: cryptoFrame(0, hello), padTo: 1200 }))
  const flood = (first: number, connections: number) => {
    for (let connection = first; connection < first + connections; connection++) {
      frame.writeUInt32BE(0x0a00_0000 + connection, 26)
      decoder.decode([frame])
    }
  }
  flood(0, 2000)
  const before = process.memoryUsage().rss
  flood(2000, STREAMS_MAX + 5000)
  const grown = Math.round((process.memoryUsage().rss - before) / 1e6)
  t.equal(decoder.counters.streamsFollowed, STREAMS_MAX + 7000)
  t.equal(decoder.counters.streamsEvicted, 7000)
  t.ok(grown < 60, `${grown} MB more`)
})
