import t from 'tap'
import { DNSTAP_FRAME_BYTES_MAX, DnstapCounts, DnstapReader } from '../../../../engine/ingest/dnstap/dnstap-reader.ts'
import { Origin } from '../../../../engine/ingest/origin.ts'
import {
  bytesField,
  CLIENT_RESPONSE,
  Control,
  controlFrame,
  dataFrame,
  dnstapMessage,
  numberField,
} from '../../../support/dnstap.ts'
import { u16 } from '../../../support/packets.ts'
import { dnsMessage, labels, pointer, ROOT, TYPE_A_IN } from '../../../support/packets-dns.ts'
import { openPipeline } from '../../../support/pipeline.ts'
import * as fc from '../../../support/property.ts'

const SECONDS = Date.parse('2026-11-23T09:15:02Z') / 1000
const START = [controlFrame(Control.ready), controlFrame(Control.start)]
const STARTED = '<134>1 - - dnstap - - - dnstap: START'

/** What a connection with these chunks gives. */
function read(chunks: readonly Buffer[]) {
  const texts: string[] = []
  const answers: Buffer[] = []
  const events: string[] = []
  const counts = new DnstapCounts()
  const reader = new DnstapReader(
    {
      write: (bytes) => void answers.push(Buffer.from(bytes)),
      end: (bytes) => {
        answers.push(Buffer.from(bytes))
        events.push('ended')
      },
      refuse: () => void events.push('refused'),
    },
    {
      data: (chunk) => void texts.push(Buffer.from(chunk).toString('latin1')),
      end: () => void events.push('end'),
      close: () => {},
    },
    counts,
  )
  for (const chunk of chunks) reader.data(chunk)
  return { lines: texts.join('').split('\n').slice(0, -1), answers, events, frames: counts.frames }
}

const common = { seconds: SECONDS, nanoseconds: 123_456_789 }
const query = (...question: readonly Buffer[]) => dnsMessage({ questions: 1 }, ...question)

const MESSAGES: readonly { name: string; message: Buffer; line?: string; frames?: object }[] = [
  {
    name: 'a query over IPv4',
    message: dnstapMessage('claude.ai', { ...common, identity: 'ns1.corp.example', server: '10.0.0.53' }),
    line: '<134>1 2026-11-23T09:15:02.123Z ns1.corp.example dnstap - - - CQ 10.0.0.7:53211 -> 10.0.0.53:53 - - claude.ai/IN/-',
  },
  {
    name: 'a query over IPv6, without the address of the server',
    message: dnstapMessage('Claude.AI', { ...common, client: '2001:db8::7' }),
    line: '<134>1 2026-11-23T09:15:02.123Z - dnstap - - - CQ [2001:db8:0:0:0:0:0:7]:53211 - - "Claude.AI" IN -',
  },
  {
    name: 'bytes that no name has',
    message: dnstapMessage('', {
      ...{ ...common, identity: 'a b\n<1>', nanoseconds: 9_000_000 },
      query: query(labels('a.b c\n', 'ai'), ROOT, TYPE_A_IN),
    }),
    line: '<134>1 2026-11-23T09:15:02.009Z a_b__1_ dnstap - - - CQ 10.0.0.7:53211 - - "a?b?c?.ai" IN -',
  },
  { name: 'an answer', message: dnstapMessage('claude.ai', { type: CLIENT_RESPONSE }), frames: { other: 1 } },
  { name: 'a message of another kind', message: numberField(15, 2), frames: { other: 1 } },
  ...Object.entries({
    'a client address of three bytes': Buffer.concat([
      bytesField(14, Buffer.concat([numberField(1, 5), bytesField(4, Buffer.alloc(3)), bytesField(10, query(ROOT))])),
      numberField(15, 1),
    ]),
    'no query': Buffer.concat([
      bytesField(14, Buffer.concat([numberField(1, 5), bytesField(4, Buffer.alloc(4))])),
      numberField(15, 1),
    ]),
    'the root': dnstapMessage('', { query: query(ROOT, TYPE_A_IN) }),
    'no question': dnstapMessage('', { query: dnsMessage({ questions: 0 }) }),
    'another class': dnstapMessage('', { query: query(labels('claude', 'ai'), ROOT, u16(1), u16(3)) }),
    'a pointer to itself': dnstapMessage('', { query: query(pointer(12), TYPE_A_IN) }),
    'a name that is cut': dnstapMessage('', { query: query(labels('claude')) }),
    'a name of 255 bytes': dnstapMessage('', {
      query: query(...Array.from({ length: 4 }, () => labels('a'.repeat(63))), ROOT, TYPE_A_IN),
    }),
    'a time after the year 9999': dnstapMessage('claude.ai', { seconds: 1e12 }),
    'a field longer than the message': Buffer.from([14 * 8 + 2, 100, 1]),
    'a number of eleven bytes': Buffer.from([15 * 8, ...Array.from({ length: 10 }, () => 0xff), 1]),
    'a wire type of groups': Buffer.from([14 * 8 + 3]),
  }).map(([name, message]) => ({ name, message, frames: { malformed: 1 } })),
]

for (const { name, message, line, frames = { client_query: 1 } } of MESSAGES) {
  t.test(name, async (t) => {
    const found = read([...START, dataFrame(message)])
    t.same(found.lines, line === undefined ? [STARTED] : [STARTED, line])
    t.same(found.frames, { client_query: 0, other: 0, oversized: 0, malformed: 0, ...frames })
    t.same(found.events, [])
  })
}

t.test('the handshake of Frame Streams', async (t) => {
  const both = read([...START, controlFrame(Control.stop)])
  t.same(both.answers, [controlFrame(Control.accept), controlFrame(Control.finish)])
  t.same(both.events, ['ended'])
  const oneWay = read([controlFrame(Control.start), dataFrame(dnstapMessage('claude.ai')), controlFrame(Control.stop)])
  t.equal(oneWay.lines.length, 2)
  t.same(oneWay.answers, [Buffer.alloc(0)])
  t.equal(read([controlFrame(Control.start, '')]).lines.length, 1, 'without a content type')
  const refused: Readonly<Record<string, readonly Buffer[]>> = {
    'data before the start': [dataFrame(dnstapMessage('claude.ai'))],
    syslog: [Buffer.from('<134>1 - host app - - - text\n')],
    TLS: [Buffer.from('16030100c8010000c4', 'hex')],
    'another content type': [controlFrame(Control.ready, 'protobuf:other')],
    'another content type at the start': [controlFrame(Control.start, 'protobuf:other')],
    'two starts': [...START, controlFrame(Control.start)],
    'a stop before the start': [controlFrame(Control.stop)],
    'an answer from the sender': [controlFrame(Control.accept)],
    'a control frame that is too long': [Buffer.from('0000000000000400', 'hex')],
    'a control frame without a type': [Buffer.from('0000000000000000', 'hex')],
  }
  for (const [name, chunks] of Object.entries(refused)) {
    const { events, lines } = read([...chunks, ...START, dataFrame(dnstapMessage('claude.ai'))])
    t.same(events, ['refused'], name)
    t.same(lines, lines.includes(STARTED) ? [STARTED] : [], name)
  }
})

t.test('a frame that is too long is skipped, and the next one is read', async (t) => {
  const stream = Buffer.concat([
    ...START,
    dataFrame(Buffer.alloc(DNSTAP_FRAME_BYTES_MAX + 1)),
    dataFrame(dnstapMessage('claude.ai', common)),
  ])
  for (const size of [1, 7, 4096, stream.length]) {
    const chunks = Array.from({ length: Math.ceil(stream.length / size) }, (_, index) =>
      stream.subarray(index * size, (index + 1) * size),
    )
    const { lines, frames } = read(chunks)
    t.equal(lines.length, 2)
    t.match(frames, { client_query: 1, oversized: 1 })
  }
})

t.test('chunks of any length and changed bytes: the same lines, nothing invented, no error', async (t) => {
  const names = ['claude.ai', 'chatgpt.com', 'www.example.org']
  const stream = Buffer.concat([...START, ...names.map((name) => dataFrame(dnstapMessage(name, common)))])
  const whole = read([stream])
  t.equal(whole.lines.length, 4)
  fc.assert(
    fc.property(
      fc.array(fc.nat(stream.length), { maxLength: 8 }),
      fc.array(fc.tuple(fc.nat(stream.length - 1), fc.nat(255)), { maxLength: 3 }),
      (cuts, changes) => {
        const changed = Buffer.from(stream)
        for (const [at, byte] of changes) changed[at] = byte
        const ends = [...cuts.toSorted((a, b) => a - b), stream.length]
        const chunks = ends.map((end, index) => changed.subarray(ends[index - 1] ?? 0, end))
        const cut = read(chunks)
        if (changes.length === 0) t.same(cut.lines, whole.lines)
        t.same({ ...cut, answers: [] }, { ...read([changed]), answers: [] })
        return cut.lines.every((line) => line.startsWith('<134>1 ') && line.length < 1024)
      },
    ),
    { numRuns: 500 },
  )
})

t.test('the service understands the lines', async (t) => {
  const opened = openPipeline(t)
  const { administration, token, organization, pipeline } = opened
  administration.tokens.bind(organization, token.record.id, [{ network: '192.0.2.53/32', port: 0 }])
  const origin = () => new Origin('tls', '192.0.2.53', 6000)
  const take = (message: Buffer) => {
    const { lines } = read([...START, dataFrame(message)])
    return lines.map((line) => opened.take(line, origin()))
  }
  pipeline.line.referenceMs = SECONDS * 1000
  t.same(take(dnstapMessage('claude.ai', { ...common, client: '2001:db8::7' })), ['skipped', 'stored'])
  t.same(take(dnstapMessage('www.example.org', common)), ['skipped', 'unmatched'])
  t.same(take(dnstapMessage('claude.ai', { ...common, client: '198.51.100.7', server: '10.0.0.53' })), [
    'skipped',
    'noDomain',
  ])
})
