import t from 'tap'
import { Follows, namedFaults } from '../../../../engine/ingest/syslog/counted.ts'
import { type FrameSink, Framing, FramingKind } from '../../../../engine/ingest/syslog/framing.ts'
import * as fc from '../../../support/property.ts'

const BYTES_MAX = 100

interface Cut {
  readonly messages: string[]
  readonly kind: string
  /** Messages with a wrong count, by fault. */
  readonly faults: Readonly<Record<string, number>>
  readonly oversized: number
}

/**
 * Feeds chunks as a connection does: leftover bytes precede the next chunk. `room` false: the sink
 * accepts each message at the second attempt.
 */
function feed(chunks: readonly Uint8Array[], options: { end?: boolean; room?: boolean; bytesMax?: number } = {}): Cut {
  const framing = new Framing(options.bytesMax ?? BYTES_MAX)
  const work = new Uint8Array(4096)
  const view = new DataView(work.buffer)
  const messages: string[] = []
  let refuse = options.room === false
  const sink: FrameSink = {
    frame(start, end) {
      if (options.room === false) {
        refuse = !refuse
        if (!refuse) return false
      }
      messages.push(Buffer.from(work.subarray(start, end)).toString('latin1'))
      return true
    },
  }
  let waiting = Buffer.alloc(0)
  const kind = () => Object.entries(FramingKind).find(([, value]) => value === framing.kind)?.[0] ?? ''
  for (const chunk of chunks) {
    const mayComplete = waiting.length === 0 || framing.mayComplete(waiting.length, chunk)
    waiting = Buffer.concat([waiting, chunk])
    if (!mayComplete) continue
    do {
      work.set(waiting)
      waiting = Buffer.from(waiting.subarray(framing.split(work, view, 0, waiting.length, sink)))
    } while (framing.stalled)
  }
  if (options.end !== false) {
    do {
      work.set(waiting)
      waiting = Buffer.from(waiting.subarray(framing.split(work, view, 0, waiting.length, sink, Follows.nothing)))
    } while (framing.stalled)
  }
  const faults = framing.takeFaults()
  return {
    messages,
    kind: kind(),
    faults: faults === undefined ? {} : namedFaults(faults),
    oversized: framing.oversized,
  }
}

const rows: {
  name: string
  stream: string
  messages: string[]
  kind?: string
  faults?: Record<string, number>
  oversized?: number
}[] = [
  { name: 'LF', stream: '<1>a\n<2>b\n', messages: ['<1>a', '<2>b'], kind: 'lf' },
  { name: 'CR LF', stream: '<1>a\r\n<2>b\r\n', messages: ['<1>a', '<2>b'], kind: 'lf' },
  { name: 'the end adds the last LF', stream: '<1>a\n<2>b', messages: ['<1>a', '<2>b'], kind: 'lf' },
  { name: 'empty lines are no messages', stream: '\n\n<1>a\n\r\n\n<2>b\n', messages: ['<1>a', '<2>b'], kind: 'lf' },
  { name: 'a LF before the first NUL', stream: '<1>a\nb\0c\n', messages: ['<1>a', 'b\0c'], kind: 'lf' },
  { name: 'NUL', stream: '<1>a\0<2>b\nc\0', messages: ['<1>a', '<2>b\nc'], kind: 'nul' },
  { name: 'NUL LF is LF', stream: '<1>a\0\n<2>b\0\n', messages: ['<1>a', '<2>b'], kind: 'lf' },
  { name: 'octet counting', stream: '4 <1>a6 <2>bcd', messages: ['<1>a', '<2>bcd'], kind: 'octetCounting' },
  {
    name: 'LF within a counted message',
    stream: '5 <1>a\n6 <2>b\nc',
    messages: ['<1>a', '<2>b\nc'],
    kind: 'octetCounting',
  },
  { name: 'LF between the frames', stream: '4 <1>a\n4 <2>b\n', messages: ['<1>a', '<2>b'], kind: 'octetCounting' },
  {
    name: 'PAN-OS without header is LF',
    stream: '1,2026/11/20 a\n1,2026/11/20 b\n',
    messages: ['1,2026/11/20 a', '1,2026/11/20 b'],
    kind: 'lf',
  },
  {
    name: 'Squid without header is LF',
    stream: '1795162502.119 318 x\n',
    messages: ['1795162502.119 318 x'],
    kind: 'lf',
  },
  { name: 'RFC 5424 without PRI is LF', stream: '1 2026-11-20T0 x\n', messages: ['1 2026-11-20T0 x'], kind: 'lf' },
  { name: 'a long number is LF', stream: '1234567 <1>a\n', messages: ['1234567 <1>a'], kind: 'lf' },
  { name: 'a number and no PRI is LF', stream: '54 <1 minute\n<2>b\n', messages: ['54 <1 minute', '<2>b'], kind: 'lf' },
  { name: 'a leading zero is LF', stream: '04 <1>a\n', messages: ['04 <1>a'], kind: 'lf' },
  { name: 'a count of zero', stream: '4 <1>a0 <2>b', messages: ['<1>a'], faults: { lost: 1 } },
  { name: 'a count with a leading zero, or one too small', stream: '4 <1>a04 <2>b', messages: [], faults: { lost: 2 } },
  { name: 'a count with seven digits', stream: '4 <1>a1000000 <2>b', messages: ['<1>a'], faults: { lost: 1 } },
  { name: 'no count', stream: '4 <1>a<2>b', messages: ['<1>a'], faults: { lost: 1 } },
  {
    name: 'lines after counted messages',
    stream: '4 <1>a<2>Nov 20 b\n<3>c\n',
    messages: ['<1>a', '<2>Nov 20 b', '<3>c'],
    faults: { noCount: 1 },
    kind: 'lf',
  },
  {
    name: 'a line that begins like a counted message',
    stream: '54 <1>a\n<2>b\n<3>c\n',
    messages: ['<2>b', '<3>c'],
    faults: { noCount: 1, lost: 1 },
    kind: 'lf',
  },
  {
    name: 'a NUL in the first line',
    stream: '<1>a\0b\n<2>c\n<3>d\n',
    messages: ['<1>a', 'b', '<2>c', '<3>d'],
    kind: 'lf',
  },
  { name: 'a NUL before the first line', stream: '\0<1>a\n<2>c\n', messages: ['<1>a', '<2>c'], kind: 'lf' },
  {
    name: 'a counted message over the limit is dropped entirely',
    stream: `104 <1>${'a'.repeat(101)}4 <2>b`,
    messages: ['<2>b'],
    oversized: 1,
  },
  {
    name: 'a line over the limit is truncated',
    stream: `<1>${'a'.repeat(150)}\n<2>b\n`,
    messages: [`<1>${'a'.repeat(97)}`, '<2>b'],
    oversized: 1,
  },
  { name: 'nothing', stream: '', messages: [] },
  { name: 'delimiters only', stream: '\n\0\r\n', messages: [] },
  { name: 'an unfinished count', stream: '4 <1>a12', messages: ['<1>a'], faults: { lost: 1 } },
]

for (const { name, stream, messages, kind, faults, oversized } of rows) {
  t.test(name, async (t) => {
    const bytes = Buffer.from(stream, 'latin1')
    const whole = feed([bytes])
    t.same(whole.messages, messages)
    if (kind !== undefined) t.equal(whole.kind, kind)
    t.same(whole.faults, faults ?? {})
    t.equal(whole.oversized, oversized ?? 0)
    for (let at = 0; at <= bytes.length; at++) {
      const split = feed([bytes.subarray(0, at), bytes.subarray(at)])
      t.same(split.messages, whole.messages, `split at ${at}`)
      t.same(split.faults, whole.faults)
    }
    const single = feed(Array.from(bytes, (byte) => Uint8Array.of(byte)))
    t.same(single.messages, whole.messages, 'byte by byte')
    t.same(feed([bytes], { room: false }).messages, whole.messages, 'a sink that has no space at first')
  })
}

t.test('messages of any bytes are returned, with any framing and chunks', async () => {
  const message = fc.uint8Array({ minLength: 1, maxLength: 60 }).map((bytes) => {
    const text = Buffer.concat([Buffer.from('<13>'), bytes, Buffer.from('.')])
    return text
  })
  fc.assert(
    fc.property(fc.array(message, { minLength: 1, maxLength: 8 }), fc.array(fc.nat(600)), (messages, cuts) => {
      const stream = Buffer.concat(messages.flatMap((one) => [Buffer.from(`${one.length} `), one]))
      const places = [0, ...cuts.map((cut) => cut % stream.length).sort((a, b) => a - b), stream.length]
      const chunks = places.slice(1).map((to, index) => stream.subarray(places[index] ?? 0, to))
      const { messages: found } = feed(chunks)
      return found.join('|') === messages.map((one) => one.toString('latin1')).join('|')
    }),
  )
})

t.test('no bytes cause an exception, or a message above the limit', async () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 6 }), (chunks) => {
      return feed(chunks).messages.every((message) => message.length > 0 && message.length <= BYTES_MAX)
    }),
    { numRuns: 3000 },
  )
})

t.test('single bytes take time linear in their number', async (t) => {
  const framing = new Framing(60_000)
  const sink: FrameSink = { frame: () => true }
  const work = new Uint8Array(200_000)
  const view = new DataView(work.buffer)
  let examined = 0
  let waiting = 0
  const one = Uint8Array.of(0x61)
  work.fill(0x61)
  work[0] = 0x3c
  framing.kind = FramingKind.lf
  for (let sent = 0; sent < 120_000; sent++) {
    if (waiting > 0 && !framing.mayComplete(waiting, one)) {
      waiting++
      continue
    }
    waiting++
    examined += waiting
    waiting -= framing.split(work, view, 0, waiting, sink)
  }
  t.ok(examined < 10 * 120_000, `${examined} bytes read`)
})

t.test('a truncated message that had no space at first is counted once', async (t) => {
  const long = 'x'.repeat(BYTES_MAX + 5)
  for (const [name, text] of [
    ['with its delimiter', `${long}\n`],
    ['without one', long],
  ] as const) {
    for (const room of [true, false]) {
      t.equal(feed([Buffer.from(text)], { room }).oversized, 1, `${name}, ${room}`)
    }
  }
})
