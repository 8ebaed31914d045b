import assert from 'node:assert/strict'
import { Packr } from 'msgpackr'
import t from 'tap'
import { BatchReader, type ReadBatch } from '../../../engine/ingest/batch-reader.ts'
import { coverageFromPacked } from '../../../engine/ingest/read-coverage.ts'
import { type CoverageReport, coverageReportToJson } from '../../../engine/kernel/event/coverage-report.ts'
import {
  type Event,
  eventId,
  METHODS,
  packBatch,
  packEvent,
  unpackBatch,
  unpackEvent,
} from '../../../engine/kernel/event/event.ts'
import { COVERAGE_BYTES_MAX } from '../../../engine/limits.ts'
import { report } from '../../support/coverage.ts'
import * as fc from '../../support/property.ts'
import { NOON, Sender } from '../../support/store.ts'

const EVENTS_MAX = 50
const reader = new BatchReader()

const names = [
  'claude.ai',
  'API.OpenAI.com',
  'chatgpt.com.',
  'chatgpt.com..',
  'ｃｌａｕｄｅ.ai',
  'nobody.example',
  'x',
  `${'a.'.repeat(122)}claude.ai`,
]
const anyEvent: fc.Arbitrary<Event> = fc
  .record({
    instance: fc.constantFrom('0011223344556677', 'ffffffffffffffff', '0000000000000000'),
    sequence: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
    name: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...names) }, { weight: 1, arbitrary: fc.domain() }),
    client: fc.oneof(fc.ipV4(), fc.ipV6()),
    method: fc.constantFrom(...METHODS),
    firstSeenMs: fc.constantFrom(
      0,
      1,
      127,
      128,
      255,
      256,
      65_535,
      65_536,
      2 ** 32,
      NOON - 300,
      NOON - 1,
      NOON,
      NOON + 1,
    ),
    span: fc.constantFrom(0, 1, 127, 128, 300, 301, 70_000, 2 ** 32),
    count: fc.constantFrom(1, 127, 128, 65_536, 0xffff_ffff),
    blocked: fc.constantFrom(0, 0, 1),
    optional: fc.constantFrom(
      {},
      {},
      { user: 'jdoe' },
      { user: 'é'.repeat(64), bytesSent: 1 },
      { bytesReceived: 10 ** 15 - 1 },
    ),
  })
  .map(({ instance, sequence, firstSeenMs, span, blocked, optional, ...rest }) => ({
    ...rest,
    id: eventId(instance, sequence),
    firstSeenMs,
    lastSeenMs: firstSeenMs + span,
    ...(blocked === 0 ? {} : { blocked }),
    ...optional,
  }))

const anyReport = fc.option(fc.constantFrom(report(), report({ counters: { packets: 2 ** 50 } })), { nil: undefined })

/**
 * The result for a batch: an error; or the report, and for each event what is stored or an error.
 */
type Verdict = string | (Pick<ReadBatch, 'ahead' | 'coverage'> & { readonly events: readonly (Event | string)[] })

/** The expected result, computed by unpacking the batch. */
function expected(bytes: Uint8Array): Verdict {
  const batch = unpackBatch(bytes, EVENTS_MAX)
  if (typeof batch === 'string') return batch
  let ahead = 0
  const events = batch.events.map((event) => {
    if (typeof event === 'string') return event
    if (event.lastSeenMs <= NOON) return event
    ahead++
    return { ...event, firstSeenMs: Math.min(event.firstSeenMs, NOON), lastSeenMs: NOON }
  })
  return { events, ahead, coverage: batch.coverage && coverageFromPacked(batch.coverage) }
}

function verdictOf(read: ReadBatch | string): Verdict {
  if (typeof read === 'string') return read
  const { events, rejected, runs, ahead, coverage } = read
  const errors = new Map(rejected.map(({ index, error }) => [index, error]))
  const stored = Array.from({ length: events.count }, (_, index) =>
    unpackEvent(events.bytes.subarray(events.starts[index], events.ends[index])),
  )
  const ids = runs.flatMap(({ instance, first, count }) =>
    Array.from({ length: count }, (_, index) => eventId(instance, first + index)),
  )
  // The runs cover the IDs of the events.
  assert.deepEqual(
    stored.map((event) => (event as Event).id),
    ids,
  )
  const total = stored.length + rejected.length
  const all = Array.from({ length: total }, (_, index) => errors.get(index) ?? (stored.shift() as Event))
  return { events: all, ahead, coverage }
}

function sameAsReference(bytes: Uint8Array): boolean {
  const before = Buffer.from(bytes)
  assert.deepEqual(verdictOf(reader.read(bytes, EVENTS_MAX, NOON)), expected(bytes))
  assert.deepEqual(Buffer.from(bytes), before, 'the bytes that came are not changed')
  return true
}

t.test('the reader returns what unpacking returns', async () => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 20 }), anyReport, (events, coverage) =>
      sameAsReference(packBatch(events, coverage)),
    ),
    { numRuns: 500 },
  )
})

t.test('good events are stored with their original bytes', async (t) => {
  const sender = new Sender()
  const events = Array.from({ length: 40 }, (_, index) =>
    sender.event('claude.ai', NOON, {
      blocked: index % 2,
      user: index % 3 === 0 ? 'jane doe' : '',
      bytesSent: index % 4 === 0 ? 10 ** 15 - 1 : 0,
      bytesReceived: index % 5,
    }),
  )
  const bytes = packBatch(events)
  const read = reader.read(bytes, EVENTS_MAX, NOON)
  t.ok(typeof read !== 'string' && read.events.bytes === bytes)
  t.match(read, { runs: [{ instance: sender.instance, first: 1, count: 40 }], rejected: [], ahead: 0 })
})

t.test('the reader and unpacking agree on batches with changed bytes', async () => {
  const change = fc.record({ at: fc.nat(2000), removed: fc.nat(3), inserted: fc.uint8Array({ maxLength: 3 }) })
  fc.assert(
    fc.property(
      fc.array(anyEvent, { minLength: 1, maxLength: 4 }),
      fc.array(change, { minLength: 1, maxLength: 2 }),
      anyReport,
      (events, changes, coverage) => {
        let bytes = packBatch(events, coverage)
        for (const { at, removed, inserted } of changes) {
          const from = at % (bytes.length + 1)
          bytes = Buffer.concat([bytes.subarray(0, from), inserted, bytes.subarray(from + removed)])
        }
        return sameAsReference(bytes)
      },
    ),
    { numRuns: 10_000 },
  )
})

t.test('the reader and unpacking agree on batches truncated at each byte, and after another batch', async () => {
  const sender = new Sender()
  const events = [
    sender.event('claude.ai', NOON),
    sender.event('claude.ai', NOON, { blocked: 1 }),
    sender.event('claude.ai', NOON, { user: 'CORP\\jdoe', bytesSent: 70_000, bytesReceived: 2 ** 40 }),
  ]
  const build = packBatch(events, report())
  for (let at = 0; at <= build.length; at++) sameAsReference(Buffer.concat([build, build]).subarray(0, at))
  for (let at = 0; at <= build.length; at++)
    sameAsReference(Buffer.concat([build, build]).subarray(at, at + build.length))
})

/**
 * Other msgpack encodings of an event's columns, which are accepted and stored in the standard
 * encoding.
 */
const packr = new Packr({ useRecords: false, moreTypes: false, variableMapSize: true })
const common = new Sender().event('claude.ai', 1000, { lastSeenMs: 1300, count: 3, client: '10.0.0.1' })
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')
const id = Buffer.concat([hex('c4 10'), hex(common.id)])
const text = (value: string): Buffer => packr.pack(value)
const COLUMNS: readonly Buffer[] = [
  id,
  text(common.name),
  text(common.client),
  hex('00'),
  hex('cd 03e8'),
  hex('cd 012c'),
  hex('03'),
]
/** Blocked, user, bytes sent and bytes received. */
const OPTIONAL: readonly Buffer[] = [hex('00'), text('jdoe'), hex('05'), hex('00')]

const UNCOMMON: Readonly<Record<string, readonly [column: number, bytes: Buffer, good: boolean]>> = {
  'an id with a length of 16 bits': [0, Buffer.concat([hex('c5 0010'), hex(common.id)]), true],
  'an id as text': [0, text(common.id), true],
  'an id that is too short': [0, hex('c4 01 00'), false],
  'a sequence of 0': [0, Buffer.concat([hex('c4 10'), Buffer.alloc(16)]), false],
  'a sequence of 2^53': [0, hex(`c4 10 0000000000000000 0020000000000000`), false],
  'a name with a length of 16 bits': [1, Buffer.concat([hex('da 0009'), Buffer.from('claude.ai')]), true],
  'a name with a length of 8 bits': [1, Buffer.concat([hex('d9 09'), Buffer.from('claude.ai')]), true],
  'an empty name': [1, hex('a0'), false],
  'a name that is not UTF-8': [1, Buffer.concat([hex('ab ff 2e'), Buffer.from('claude.ai')]), false],
  'a name of 254 characters': [1, text(`${'a.'.repeat(123)}claude.a`), false],
  'no name': [1, hex('c0'), false],
  'an invalid client': [2, text('localhost'), false],
  'a client with a zone': [2, text('fe80::1%eth0'), true],
  'an unknown method': [3, Buffer.from([METHODS.length]), false],
  'a method as float': [3, hex('cb 3ff0000000000000'), true],
  'a time as u64': [4, hex('cf 00000000000003e8'), true],
  'a time as i16': [4, hex('d1 03e8'), true],
  'a time as float of 32 bits': [4, hex('ca 447a0000'), true],
  'a time with a part of a millisecond': [4, hex('cb 408f420000000000'), false],
  'a time that is not a number': [4, hex('cb 7ff8000000000000'), false],
  'a time before 1970': [4, hex('ff'), false],
  'a time of minus zero': [4, hex('cb 8000000000000000'), true],
  'a negative span': [5, hex('ff'), false],
  'a count of 0': [6, hex('00'), false],
  'a count of 2^32': [6, hex('cb 41f0000000000000'), false],
  'blocked is 0': [7, hex('00'), true],
  'more blocked than matched': [7, hex('04'), false],
  'blocked, all of them': [7, hex('03'), true],
  'blocked is nil': [7, hex('c0'), false],
  'a map': [7, hex('81 a1 61 01'), false],
  'a user with a length of 8 bits': [8, hex('d9 04 6a646f65'), true],
  'a user with a length of 16 bits': [8, hex('da 0004 6a646f65'), true],
  'an empty user': [8, hex('a0'), true],
  'a user in UTF-8': [8, text('Jürgen 山田'), true],
  'a user of 128 bytes': [8, text('u'.repeat(128)), true],
  'a user of 129 bytes': [8, text('u'.repeat(129)), false],
  'a user that is not UTF-8': [8, hex('a4 6aff6f65'), false],
  'a user with a line feed': [8, text('j\ndoe'), false],
  'a user with DEL': [8, text('j\x7fdoe'), false],
  'a user as bytes': [8, hex('c4 04 6a646f65'), false],
  'a user that is nil': [8, hex('c0'), false],
  'a user that is a number': [8, hex('05'), false],
  'bytes sent as u64': [9, hex('cf 0000000000000005'), true],
  'the most bytes sent': [9, packr.pack(10 ** 15 - 1), true],
  'more bytes sent': [9, packr.pack(10 ** 15), false],
  'half a byte sent': [9, hex('cb 3fe0000000000000'), false],
  'a negative number of bytes sent': [9, hex('ff'), false],
  'bytes received as float of 32 bits': [10, hex('ca 447a0000'), true],
  'bytes received as text': [10, text('5'), false],
}

for (const [name, [column, bytes, good]] of Object.entries(UNCOMMON)) {
  t.test(`${good ? 'accepted' : 'rejected'}: ${name}`, async (t) => {
    const columns = column > 7 ? [...COLUMNS, ...OPTIONAL] : [...COLUMNS]
    columns[column] = bytes
    const event = Buffer.concat([Buffer.from([0x90 + columns.length]), ...columns])
    const neighbor = packEvent(common)
    const batch = Buffer.concat([hex('92 01 93'), neighbor, event, neighbor])
    sameAsReference(batch)
    const read = reader.read(batch, EVENTS_MAX, NOON)
    t.match(read, good ? { rejected: [], events: { count: 3 } } : { rejected: [{ index: 1 }], events: { count: 2 } })
  })
}

t.test('an event may end after any optional column, and is stored without columns that say nothing', async (t) => {
  const plain = packEvent(common)
  for (const [optional, stored] of [
    [[hex('00'), text('')], plain],
    [[hex('00'), text(''), hex('00')], plain],
    [[hex('00'), text(''), hex('00'), hex('00')], plain],
    [[hex('02'), text(''), hex('00'), hex('00')], packEvent({ ...common, blocked: 2 })],
    [[hex('00'), text('jdoe')], packEvent({ ...common, user: 'jdoe' })],
    [[hex('00'), text(''), hex('05')], packEvent({ ...common, bytesSent: 5 })],
  ] as const) {
    const columns = [...COLUMNS, ...optional]
    const batch = Buffer.concat([hex('92 01 91'), Buffer.from([0x90 + columns.length]), ...columns])
    sameAsReference(batch)
    const read = reader.read(batch, EVENTS_MAX, NOON)
    if (typeof read === 'string') throw new Error(read)
    const { bytes, starts, ends } = read.events
    t.same(Buffer.from(bytes.subarray(starts[0], ends[0])), stored)
  }
  const tooMany = Buffer.concat([hex('92 01 91 9c'), ...COLUMNS, ...OPTIONAL, hex('00')])
  sameAsReference(tooMany)
  t.match(reader.read(tooMany, EVENTS_MAX, NOON), { rejected: [{ error: 'expected an array of 7 to 11, found 12' }] })
})

t.test("msgpackr's own extensions, which span events of a batch, are handled", async () => {
  // One event defines a record, and the next event uses it.
  const definition = hex('92 01 92 98 c0 c0 c0 c0 c0 c0 c0 d4 72 40 91 a1 61 01 40 02')
  sameAsReference(definition)
  sameAsReference(Buffer.concat([hex('92 01 92'), packEvent(common), hex('98'), ...COLUMNS, hex('d4 01 00')]))
  sameAsReference(Buffer.concat([hex('92 01 92'), packEvent(common), hex('d4 72 40 91 a1 61 01')]))
})

t.test('too many events and rare headers are handled', async () => {
  sameAsReference(packBatch(Array.from({ length: EVENTS_MAX + 1 }, () => common)))
  const event = packEvent(common)
  for (const header of [
    '92 01 91',
    '92 01 dc 0001',
    '92 01 dd 00000001',
    '92 cc 01 91',
    'dc 0002 01 91',
    '92 02 91',
    '93 01 91',
  ]) {
    sameAsReference(Buffer.concat([hex(header), event]))
  }
  for (const header of ['92 01 dd ffffffff', '92 01 dc ffff', '92 01 92', '92 01 90'])
    sameAsReference(Buffer.concat([hex(header), event]))
})

const RAW_REPORT = packr.pack({ ...coverageReportToJson(report()) })
const COVERAGE: Readonly<Record<string, readonly [bytes: Buffer, found: RegExp | CoverageReport | undefined]>> = {
  'a report': [RAW_REPORT, report()],
  nil: [hex('c0'), undefined],
  'a number': [hex('07'), /^coverage: /],
  'an event': [packEvent(common), /^coverage/],
  'a negative counter': [
    packr.pack({ ...coverageReportToJson(report()), counters: { ...report().counters, names: -1 } }),
    /^coverage\.counters\.names: /,
  ],
  'an unknown extension': [hex('d4 55 00'), /^coverage: /],
  'more bytes than a report may have': [
    packr.pack({ ...coverageReportToJson(report()), more: 'x'.repeat(COVERAGE_BYTES_MAX) }),
    /^coverage: expected at most 16384 bytes$/,
  ],
}
for (const [name, [bytes, found]] of Object.entries(COVERAGE)) {
  t.test(`as coverage, ${name} costs no event`, async (t) => {
    const event = packEvent(common)
    // The header as packBatch writes it, and another encoding, which selects the slow path.
    for (const header of ['93 01 91', '93 01 dd 00000001']) {
      const batch = Buffer.concat([hex(header), event, bytes])
      sameAsReference(batch)
      const read = reader.read(batch, EVENTS_MAX, NOON)
      t.match(read, { events: { count: 1 }, rejected: [] })
      t.match(typeof read === 'string' ? read : read.coverage, found, header)
    }
  })
}

t.test('data after the coverage report is rejected', async (t) => {
  for (const header of ['93 01 91', '94 01 91', '93 01 dd 00000001']) {
    const batch = Buffer.concat([hex(header), packEvent(common), RAW_REPORT, hex('c0')])
    sameAsReference(batch)
    t.type(reader.read(batch, EVENTS_MAX, NOON), 'string', header)
  }
})
