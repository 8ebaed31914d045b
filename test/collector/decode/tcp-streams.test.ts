import t from 'tap'
import {
  SHORT_BUFFERS,
  STREAM_IDLE_SECONDS,
  STREAM_REMEMBERED_SECONDS,
  STREAMS_MAX,
} from '../../../collector/limits.ts'
import { ipFrame, TcpFlags, tcp } from '../../support/packets.ts'
import { dnsOverTcp, dnsQuery } from '../../support/packets-dns.ts'
import { clientHello, tlsRecords } from '../../support/packets-tls.ts'
import * as fc from '../../support/property.ts'
import { cpuMsOf } from '../../support/wait.ts'
import { FrameDecoder } from '../decode-frames.ts'

/** A distinct address for each number up to 2^24. */
const hostOf = (number: number) => `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`

interface Sent {
  readonly connection: number
  readonly sequence: number
  readonly payload?: Buffer
  readonly flags?: number
  readonly port?: number
}

function frameOf({ connection, sequence, payload, flags, port }: Sent): Buffer {
  const fields = {
    sourcePort: 50_001,
    destinationPort: port ?? 443,
    sequence: sequence >>> 0,
    flags: flags ?? TcpFlags.ack,
  }
  return ipFrame({ source: hostOf(connection), destination: '203.0.113.9' }, tcp(fields, payload))
}

const syn = (connection: number, sequence: number, port?: number) =>
  frameOf({ connection, sequence: sequence - 1, flags: TcpFlags.syn, ...(port === undefined ? {} : { port }) })

/** Pieces that cover `length` bytes, with arbitrary overlaps and order. */
function pieces(length: number) {
  return fc
    .tuple(
      fc.array(fc.integer({ min: 1, max: length - 1 }), { maxLength: 12 }),
      fc.array(fc.tuple(fc.nat(length - 1), fc.integer({ min: 1, max: 400 })), { maxLength: 6 }),
      fc.infiniteStream(fc.nat(1_000_000)),
    )
    .map(([cuts, more, order]) => {
      const borders = [0, ...new Set(cuts), length].sort((a, b) => a - b)
      const all = [
        ...borders.slice(1).map((end, index) => [borders[index] as number, end] as const),
        ...more.map(([start, bytes]) => [start, Math.min(length, start + bytes)] as const),
      ]
      return all
        .map((piece) => ({ piece, rank: order.next().value as number }))
        .sort((a, b) => a.rank - b.rank)
        .map(({ piece }) => piece)
    })
}

const hello = tlsRecords(clientHello({ serverName: 'api.openai.com', postQuantum: true, grease: true }), 700)
const messages = Buffer.concat(
  ['one.example.org', 'two.example.org', 'claude.ai', 'four.example.org'].map((name) => dnsOverTcp(dnsQuery([name]))),
)

t.test('after a SYN, pieces in any order and with repetitions report the name once', async () => {
  const decoder = new FrameDecoder()
  let connection = 0
  fc.assert(
    fc.property(pieces(hello.length), fc.integer({ min: 0, max: 0xffff_ffff }), (sent, base) => {
      connection++
      const frames = [
        syn(connection, base),
        ...sent.map(([start, end]) =>
          frameOf({ connection, sequence: base + start, payload: hello.subarray(start, end) }),
        ),
      ]
      const { names } = decoder.decode(frames)
      return names.length === 1 && names[0]?.name === 'api.openai.com' && names[0].client === hostOf(connection)
    }),
    { numRuns: 1500 },
  )
})

t.test('DNS over TCP after a SYN, in pieces of any order, reports every name once, in order', async () => {
  const decoder = new FrameDecoder()
  let connection = 0
  fc.assert(
    fc.property(pieces(messages.length), fc.integer({ min: 0, max: 0xffff_ffff }), (sent, base) => {
      connection++
      const frames = [
        syn(connection, base, 53),
        ...sent.map(([start, end]) =>
          frameOf({ connection, sequence: base + start, payload: messages.subarray(start, end), port: 53 }),
        ),
      ]
      const { names } = decoder.decode(frames)
      const found = names.map(({ name }) => name).join()
      return found === 'one.example.org,two.example.org,claude.ai,four.example.org'
    }),
    { numRuns: 1500 },
  )
})

t.test('without a SYN, two segments in either order report the name', async (t) => {
  for (const [index, order] of [
    [0, 1],
    [1, 0],
  ].entries()) {
    for (let cut = 6; cut < hello.length; cut += 37) {
      const decoder = new FrameDecoder()
      const parts = [
        { sequence: 1000, payload: hello.subarray(0, cut) },
        { sequence: 1000 + cut, payload: hello.subarray(cut) },
      ]
      const frames = order.map((part) => frameOf({ connection: 1, ...(parts[part] as (typeof parts)[0]) }))
      const { names } = decoder.decode(frames)
      t.same(
        names.map(({ name }) => name),
        ['api.openai.com'],
        `order ${index}, split at byte ${cut}`,
      )
    }
  }
})

t.test('bytes that contradict earlier ones change nothing', async (t) => {
  const decoder = new FrameDecoder()
  const forged = tlsRecords(clientHello({ serverName: 'api.forged.com', postQuantum: true, grease: true }), 700)
  const { names } = decoder.decode([
    syn(1, 1),
    frameOf({ connection: 1, sequence: 1 + 200, payload: hello.subarray(200) }),
    frameOf({ connection: 1, sequence: 1 + 100, payload: hello.subarray(100, 200) }),
    frameOf({ connection: 1, sequence: 1 + 100, payload: forged.subarray(100) }),
    frameOf({
      connection: 1,
      sequence: 1,
      payload: Buffer.concat([hello.subarray(0, 100), forged.subarray(100, 300)]),
    }),
  ])
  t.same(
    names.map(({ name }) => name),
    ['api.openai.com'],
  )
})

t.test('a second ClientHello on the connection, as after a HelloRetryRequest, reports another name', async (t) => {
  const decoder = new FrameDecoder()
  const { names, classes } = decoder.decode([
    syn(1, 1),
    frameOf({ connection: 1, sequence: 1, payload: hello }),
    frameOf({ connection: 1, sequence: 1, payload: hello }),
    frameOf({ connection: 1, sequence: 1 + hello.length, payload: Buffer.from('140303000101', 'hex') }),
    frameOf({ connection: 1, sequence: 1 + hello.length + 6, payload: hello.subarray(0, 900) }),
    frameOf({ connection: 1, sequence: 1 + hello.length + 6 + 900, payload: hello.subarray(900) }),
  ])
  t.equal(names.length, 2)
  t.same(classes, ['tcpNoPayload', 'clientHello', 'tcpRetransmission', 'tcpOther', 'clientHelloPart', 'clientHello'])
})

t.test('a hello that goes silent is reported after the timeout, with its own time', async (t) => {
  const decoder = new FrameDecoder()
  decoder.decode([syn(1, 1), frameOf({ connection: 1, sequence: 1, payload: hello.subarray(0, 900) })], 1, {
    seconds: 1000,
  })
  t.same(decoder.pass({ seconds: 1000 + STREAM_IDLE_SECONDS }), [])
  t.match(decoder.pass({ seconds: 1001 + STREAM_IDLE_SECONDS }), [
    { name: 'api.openai.com', timeMs: 1_000_005, client: hostOf(1), clientPort: 50_001, serverPort: 443 },
  ])
  t.equal(decoder.counters.streamsTimedOut, 1)
  t.equal(decoder.counters.helloName, 1)
  t.same(decoder.pass({ last: true }), [])
})

t.test('a flood of SYNs stays within the table and evicts no waiting hello', async (t) => {
  const decoder = new FrameDecoder()
  decoder.decode([syn(0, 1), frameOf({ connection: 0, sequence: 1, payload: hello.subarray(0, 900) })])
  const flood = STREAMS_MAX + 5000
  for (let connection = 1; connection <= flood; connection++) decoder.decode([syn(connection, 1)])
  t.equal(decoder.counters.streamsFollowed, flood + 1)
  t.equal(decoder.counters.streamsEvicted, flood + 1 - STREAMS_MAX)
  const { names } = decoder.decode([frameOf({ connection: 0, sequence: 901, payload: hello.subarray(900) })])
  t.equal(names.length, 1)
  const remembered = { seconds: 1001 + STREAM_REMEMBERED_SECONDS }
  t.same(decoder.pass(remembered), [])
})

t.test(
  'a flood of incomplete hellos evicts the one that has been silent the longest, and reports its name',
  async (t) => {
    const decoder = new FrameDecoder()
    const part = hello.subarray(0, 900)
    const names: string[] = []
    for (let connection = 0; connection < SHORT_BUFFERS + 100; connection++) {
      const found = decoder.decode([syn(connection, 1), frameOf({ connection, sequence: 1, payload: part })])
      names.push(...found.names.map(({ client }) => client))
    }
    t.same(
      names,
      Array.from({ length: 100 }, (_, connection) => hostOf(connection)),
      'the oldest first',
    )
    t.equal(decoder.counters.streamsEvicted, 100)
    const rest = decoder.pass({ last: true })
    t.equal(rest.length, SHORT_BUFFERS)
    t.equal(decoder.counters.helloName, SHORT_BUFFERS + 100, 'every hello has exactly one outcome')
  },
)

t.test("a stream evicted during another hello's reassembly does not pass on its address, name or bytes", async (t) => {
  const part = hello.subarray(0, 900)
  const several = tlsRecords(clientHello({ serverName: 'several.example.org' }), 50)
  const second = tlsRecords(clientHello({ serverName: 'second.example.org', postQuantum: true, serverNameLast: true }))
  const full = () => {
    const decoder = new FrameDecoder()
    for (let connection = 0; connection < SHORT_BUFFERS; connection++) {
      decoder.decode([syn(connection, 1), frameOf({ connection, sequence: 1, payload: part })])
    }
    return decoder
  }
  // The second segment arrives first, so it takes a buffer before the hello is read. Then comes
  // the start of the hello.
  const reversed = full().decode([
    syn(60_000, 1),
    frameOf({ connection: 60_000, sequence: 1 + 1460, payload: second.subarray(1460) }),
    frameOf({ connection: 60_000, sequence: 1, payload: second.subarray(0, 1460) }),
  ])
  t.match(reversed.names, [
    { name: 'api.openai.com', client: hostOf(0) },
    { name: 'second.example.org', client: hostOf(60_000) },
  ])
  // The table fills up with buffering streams only if there are as many buffers as slots. So this
  // case is built by hand.
  const decoder = full()
  const started = decoder.decode([frameOf({ connection: 60_001, sequence: 1, payload: second.subarray(0, 1460) })])
  t.match(started.names, [{ name: 'api.openai.com', client: hostOf(0) }])
  const ended = decoder.decode([
    frameOf({ connection: 60_001, sequence: 1461, payload: second.subarray(1460) }),
    frameOf({ connection: 60_002, sequence: 1, payload: several }),
  ])
  t.match(ended.names, [
    { name: 'second.example.org', client: hostOf(60_001) },
    { name: 'several.example.org', client: hostOf(60_002) },
  ])
})

t.test('a buffer can be evicted by the packet that completes a hello', async (t) => {
  // With its last segment, a long hello needs a longer buffer while another waiting stream has been
  // silent the longest.
  const decoder = new FrameDecoder()
  const large = tlsRecords(
    clientHello({
      serverName: 'large.example.org',
      moreExtensions: [Buffer.concat([Buffer.from([0xfe, 0xfe, 0x0b, 0xb8]), Buffer.alloc(3000)])],
    }),
  )
  for (let connection = 0; connection < SHORT_BUFFERS - 1; connection++) {
    decoder.decode([syn(connection, 1), frameOf({ connection, sequence: 1, payload: hello.subarray(0, 900) })])
  }
  const found = decoder.decode([
    syn(60_000, 1),
    frameOf({ connection: 60_000, sequence: 1, payload: large.subarray(0, 200) }),
    frameOf({ connection: 60_000, sequence: 201, payload: large.subarray(200) }),
  ])
  t.match(found.names, [{ name: 'large.example.org', client: hostOf(60_000) }])
  t.equal(found.names.length, 1)
})

t.test('bytes far ahead are dropped eventually, and one connection cannot buffer many', async (t) => {
  const decoder = new FrameDecoder()
  const { classes } = decoder.decode([
    syn(1, 1),
    frameOf({ connection: 1, sequence: 1, payload: hello.subarray(0, 900) }),
    frameOf({ connection: 1, sequence: 1 + 100_000, payload: hello.subarray(900) }),
  ])
  t.same(classes, ['tcpNoPayload', 'clientHelloPart', 'tcpOther'])
  t.equal(decoder.counters.streamsOverLimit, 1)
  t.equal(decoder.counters.helloName, 1, 'the name in the buffered bytes is reported')
})

t.test('a hello of 60 kB in many records and segments is read', async (t) => {
  const decoder = new FrameDecoder()
  const large = tlsRecords(
    clientHello({
      serverName: 'large.example.org',
      moreExtensions: [Buffer.concat([Buffer.from([0xfe, 0xfe, 0xea, 0x60]), Buffer.alloc(60_000)])],
    }),
    4000,
  )
  const frames = [syn(1, 1)]
  for (let at = 0; at < large.length; at += 1460) {
    frames.push(frameOf({ connection: 1, sequence: 1 + at, payload: large.subarray(at, at + 1460) }))
  }
  t.same(
    decoder.decode(frames).names.map(({ name }) => name),
    ['large.example.org'],
  )
})

t.test('a lost DNS segment loses only the names in it', async (t) => {
  const decoder = new FrameDecoder()
  const message = (name: string) => dnsOverTcp(dnsQuery([name]))
  const filler = Array.from({ length: 300 }, (_, index) => message(`lost${index}.example.org`))
  const lost = Buffer.concat(filler)
  const first = message('first.example.org')
  const { names } = decoder.decode([
    syn(1, 1, 53),
    frameOf({ connection: 1, sequence: 1, payload: first, port: 53 }),
    frameOf({
      connection: 1,
      sequence: 1 + first.length + lost.length,
      payload: message('next.example.org'),
      port: 53,
    }),
  ])
  t.same(
    names.map(({ name }) => name),
    ['first.example.org', 'next.example.org'],
  )
})

t.test('sessions of DNS over TLS and of known DNS over HTTPS resolvers are counted', async (t) => {
  const decoder = new FrameDecoder()
  const to = (connection: number, serverName: string, port: number) =>
    decoder.decode([
      syn(connection, 1, port),
      frameOf({ connection, sequence: 1, payload: tlsRecords(clientHello({ serverName })), port }),
    ])
  to(1, 'resolver.example.org', 853)
  to(2, 'dns.google', 443)
  to(3, 'mozilla.cloudflare-dns.com', 443)
  to(4, 'cloudflare.com', 443)
  t.match(decoder.counters, { dotSessions: 1, dohSessions: 2, helloName: 4 })
})

t.test('the work for a hello in one-byte segments is linear in its length', async (t) => {
  const time = (bytes: number) => {
    const large = tlsRecords(
      clientHello({
        serverName: 'a.example.org',
        moreExtensions: [Buffer.concat([Buffer.from([0xfe, 0xfe, bytes >> 8, bytes & 255]), Buffer.alloc(bytes)])],
      }),
      1,
    )
    const decoder = new FrameDecoder()
    const frames = [syn(1, 1)]
    for (let at = 0; at < large.length; at++) {
      frames.push(frameOf({ connection: 1, sequence: 1 + at, payload: large.subarray(at, at + 1) }))
    }
    return cpuMsOf(() => t.equal(decoder.decode(frames).names.length, 1)) / large.length
  }
  time(500)
  const small = Math.min(time(600), time(600), time(600))
  const large = Math.min(time(6000), time(6000), time(6000))
  t.ok(large < small * 3, `${(small * 1000).toFixed(1)} us a byte of 4 kB, ${(large * 1000).toFixed(1)} of 38 kB`)
})
