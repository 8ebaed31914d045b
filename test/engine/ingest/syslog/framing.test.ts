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

/** What is found in addition to the messages. Unless it says otherwise, no fault and no message over the limit. */
type Row = readonly [
  stream: string,
  messages: readonly string[],
  others?: { readonly kind?: string; readonly faults?: Readonly<Record<string, number>>; readonly oversized?: number },
]

const rows: Readonly<Record<string, Row>> = {
  LF: ['<1>a\n<2>b\n', ['<1>a', '<2>b'], { kind: 'lf' }],
  'CR LF': ['<1>a\r\n<2>b\r\n', ['<1>a', '<2>b'], { kind: 'lf' }],
  'the end adds the last LF': ['<1>a\n<2>b', ['<1>a', '<2>b'], { kind: 'lf' }],
  'empty lines are no messages': ['\n\n<1>a\n\r\n\n<2>b\n', ['<1>a', '<2>b'], { kind: 'lf' }],
  'a LF before the first NUL': ['<1>a\nb\0c\n', ['<1>a', 'b\0c'], { kind: 'lf' }],
  NUL: ['<1>a\0<2>b\nc\0', ['<1>a', '<2>b\nc'], { kind: 'nul' }],
  'NUL LF is LF': ['<1>a\0\n<2>b\0\n', ['<1>a', '<2>b'], { kind: 'lf' }],
  'octet counting': ['4 <1>a6 <2>bcd', ['<1>a', '<2>bcd'], { kind: 'octetCounting' }],
  'LF within a counted message': ['5 <1>a\n6 <2>b\nc', ['<1>a', '<2>b\nc'], { kind: 'octetCounting' }],
  'LF between the frames': ['4 <1>a\n4 <2>b\n', ['<1>a', '<2>b'], { kind: 'octetCounting' }],
  'PAN-OS without header is LF': [
    '1,2026/11/20 a\n1,2026/11/20 b\n',
    ['1,2026/11/20 a', '1,2026/11/20 b'],
    { kind: 'lf' },
  ],
  'Squid without header is LF': ['1795162502.119 318 x\n', ['1795162502.119 318 x'], { kind: 'lf' }],
  'RFC 5424 without PRI is LF': ['1 2026-11-20T0 x\n', ['1 2026-11-20T0 x'], { kind: 'lf' }],
  'a long number is LF': ['1234567 <1>a\n', ['1234567 <1>a'], { kind: 'lf' }],
  'a number and no PRI is LF': ['54 <1 minute\n<2>b\n', ['54 <1 minute', '<2>b'], { kind: 'lf' }],
  'a leading zero is LF': ['04 <1>a\n', ['04 <1>a'], { kind: 'lf' }],
  'a count of zero': ['4 <1>a0 <2>b', ['<1>a'], { faults: { lost: 1 } }],
  'a count with a leading zero, or one too small': ['4 <1>a04 <2>b', [], { faults: { lost: 2 } }],
  'a count with seven digits': ['4 <1>a1000000 <2>b', ['<1>a'], { faults: { lost: 1 } }],
  'no count': ['4 <1>a<2>b', ['<1>a'], { faults: { lost: 1 } }],
  'lines after counted messages': [
    '4 <1>a<2>Nov 20 b\n<3>c\n',
    ['<1>a', '<2>Nov 20 b', '<3>c'],
    { faults: { noCount: 1 }, kind: 'lf' },
  ],
  'a line that begins like a counted message': [
    '54 <1>a\n<2>b\n<3>c\n',
    ['<2>b', '<3>c'],
    { faults: { noCount: 1, lost: 1 }, kind: 'lf' },
  ],
  'a NUL in the first line': ['<1>a\0b\n<2>c\n<3>d\n', ['<1>a', 'b', '<2>c', '<3>d'], { kind: 'lf' }],
  'a NUL before the first line': ['\0<1>a\n<2>c\n', ['<1>a', '<2>c'], { kind: 'lf' }],
  'a counted message over the limit is dropped entirely': [
    `104 <1>${'a'.repeat(101)}4 <2>b`,
    ['<2>b'],
    { oversized: 1 },
  ],
  'a line over the limit is truncated': [
    `<1>${'a'.repeat(150)}\n<2>b\n`,
    [`<1>${'a'.repeat(97)}`, '<2>b'],
    { oversized: 1 },
  ],
  nothing: ['', []],
  'delimiters only': ['\n\0\r\n', []],
  'an unfinished count': ['4 <1>a12', ['<1>a'], { faults: { lost: 1 } }],
}

for (const [name, [stream, messages, { kind, faults = {}, oversized = 0 } = {}]] of Object.entries(rows)) {
  t.test(name, async (t) => {
    const bytes = Buffer.from(stream, 'latin1')
    const whole = feed([bytes])
    t.same(whole.messages, messages)
    if (kind !== undefined) t.equal(whole.kind, kind)
    t.same(whole.faults, faults)
    t.equal(whole.oversized, oversized)
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
