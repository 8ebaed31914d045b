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

t.test(
  'the reader and unpacking agree on batches truncated at each byte, and after another batch in memory',
  async () => {
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
  },
)

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

const UNCOMMON: readonly { name: string; column: number; bytes: Buffer; good: boolean }[] = [
  {
    name: 'an id with a length of 16 bits',
    column: 0,
    bytes: Buffer.concat([hex('c5 0010'), hex(common.id)]),
    good: true,
  },
  { name: 'an id as text', column: 0, bytes: text(common.id), good: true },
  { name: 'an id that is too short', column: 0, bytes: hex('c4 01 00'), good: false },
  { name: 'a sequence of 0', column: 0, bytes: Buffer.concat([hex('c4 10'), Buffer.alloc(16)]), good: false },
  { name: 'a sequence of 2^53', column: 0, bytes: hex(`c4 10 0000000000000000 0020000000000000`), good: false },
  {
    name: 'a name with a length of 16 bits',
    column: 1,
    bytes: Buffer.concat([hex('da 0009'), Buffer.from('claude.ai')]),
    good: true,
  },
  {
    name: 'a name with a length of 8 bits',
    column: 1,
    bytes: Buffer.concat([hex('d9 09'), Buffer.from('claude.ai')]),
    good: true,
  },
  { name: 'an empty name', column: 1, bytes: hex('a0'), good: false },
  {
    name: 'a name that is not UTF-8',
    column: 1,
    bytes: Buffer.concat([hex('ab ff 2e'), Buffer.from('claude.ai')]),
    good: false,
  },
  {
    name: 'a name of 254 characters',
    column: 1,
    bytes: text(`${'a.'.repeat(123)}claude.a`),
    good: false,
  },
  { name: 'no name', column: 1, bytes: hex('c0'), good: false },
  { name: 'an invalid client', column: 2, bytes: text('localhost'), good: false },
  { name: 'a client with a zone', column: 2, bytes: text('fe80::1%eth0'), good: true },
  { name: 'an unknown method', column: 3, bytes: Buffer.from([METHODS.length]), good: false },
  { name: 'a method as float', column: 3, bytes: hex('cb 3ff0000000000000'), good: true },
  { name: 'a time as u64', column: 4, bytes: hex('cf 00000000000003e8'), good: true },
  { name: 'a time as i16', column: 4, bytes: hex('d1 03e8'), good: true },
  { name: 'a time as float of 32 bits', column: 4, bytes: hex('ca 447a0000'), good: true },
  { name: 'a time with a part of a millisecond', column: 4, bytes: hex('cb 408f420000000000'), good: false },
  { name: 'a time that is not a number', column: 4, bytes: hex('cb 7ff8000000000000'), good: false },
  { name: 'a time before 1970', column: 4, bytes: hex('ff'), good: false },
  { name: 'a time of minus zero', column: 4, bytes: hex('cb 8000000000000000'), good: true },
  { name: 'a negative span', column: 5, bytes: hex('ff'), good: false },
  { name: 'a count of 0', column: 6, bytes: hex('00'), good: false },
  { name: 'a count of 2^32', column: 6, bytes: hex('cb 41f0000000000000'), good: false },
  { name: 'blocked is 0', column: 7, bytes: hex('00'), good: true },
  { name: 'more blocked than matched', column: 7, bytes: hex('04'), good: false },
  { name: 'blocked, all of them', column: 7, bytes: hex('03'), good: true },
  { name: 'blocked is nil', column: 7, bytes: hex('c0'), good: false },
  { name: 'a map', column: 7, bytes: hex('81 a1 61 01'), good: false },
  { name: 'a user with a length of 8 bits', column: 8, bytes: hex('d9 04 6a646f65'), good: true },
  { name: 'a user with a length of 16 bits', column: 8, bytes: hex('da 0004 6a646f65'), good: true },
  { name: 'an empty user', column: 8, bytes: hex('a0'), good: true },
  { name: 'a user in UTF-8', column: 8, bytes: text('Jürgen 山田'), good: true },
  { name: 'a user of 128 bytes', column: 8, bytes: text('u'.repeat(128)), good: true },
  { name: 'a user of 129 bytes', column: 8, bytes: text('u'.repeat(129)), good: false },
  { name: 'a user that is not UTF-8', column: 8, bytes: hex('a4 6aff6f65'), good: false },
  { name: 'a user with a line feed', column: 8, bytes: text('j\ndoe'), good: false },
  { name: 'a user with DEL', column: 8, bytes: text('j\x7fdoe'), good: false },
  { name: 'a user as bytes', column: 8, bytes: hex('c4 04 6a646f65'), good: false },
  { name: 'a user that is nil', column: 8, bytes: hex('c0'), good: false },
  { name: 'a user that is a number', column: 8, bytes: hex('05'), good: false },
  { name: 'bytes sent as u64', column: 9, bytes: hex('cf 0000000000000005'), good: true },
  { name: 'the most bytes sent', column: 9, bytes: packr.pack(10 ** 15 - 1), good: true },
  { name: 'more bytes sent', column: 9, bytes: packr.pack(10 ** 15), good: false },
  { name: 'half a byte sent', column: 9, bytes: hex('cb 3fe0000000000000'), good: false },
  { name: 'a negative number of bytes sent', column: 9, bytes: hex('ff'), good: false },
  { name: 'bytes received as float of 32 bits', column: 10, bytes: hex('ca 447a0000'), good: true },
  { name: 'bytes received as text', column: 10, bytes: text('5'), good: false },
]

for (const { name, column, bytes, good } of UNCOMMON) {
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
const COVERAGE: readonly { name: string; bytes: Buffer; found: RegExp | CoverageReport | undefined }[] = [
  { name: 'a report', bytes: RAW_REPORT, found: report() },
  { name: 'nil', bytes: hex('c0'), found: undefined },
  { name: 'a number', bytes: hex('07'), found: /^coverage: / },
  { name: 'an event', bytes: packEvent(common), found: /^coverage/ },
  {
    name: 'a negative counter',
    bytes: packr.pack({ ...coverageReportToJson(report()), counters: { ...report().counters, names: -1 } }),
    found: /^coverage\.counters\.names: /,
  },
  { name: 'an unknown extension', bytes: hex('d4 55 00'), found: /^coverage: / },
  {
    name: 'more bytes than a report may have',
    bytes: packr.pack({ ...coverageReportToJson(report()), more: 'x'.repeat(COVERAGE_BYTES_MAX) }),
    found: /^coverage: expected at most 16384 bytes$/,
  },
]
for (const { name, bytes, found } of COVERAGE) {
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
