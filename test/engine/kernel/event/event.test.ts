import t from 'tap'
import { coverageReportToJson } from '../../../../engine/kernel/event/coverage-report.ts'
import {
  batchFromJson,
  type Event,
  eventFromJson,
  eventId,
  eventIdParts,
  eventToJson,
  isUserName,
  METHODS,
  packBatch,
  packEvent,
  TRANSFERRED_BYTES_MAX,
  USER_BYTES_MAX,
  unpackBatch,
  unpackEvent,
} from '../../../../engine/kernel/event/event.ts'
import { unpack } from '../../../../engine/kernel/event/msgpack.ts'
import { report } from '../../../support/coverage.ts'
import * as fc from '../../../support/property.ts'

/** Any of the columns that only events of logs have. */
const anyOptional: fc.Arbitrary<Pick<Event, 'user' | 'bytesSent' | 'bytesReceived'>> = fc.record(
  {
    user: fc.oneof(
      fc.constantFrom('jdoe', 'CORP\\jdoe', 'CN=Jane Doe,DC=example', '山田', 'u'.repeat(USER_BYTES_MAX)),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: USER_BYTES_MAX }).filter(isUserName),
    ),
    bytesSent: fc.integer({ min: 1, max: TRANSFERRED_BYTES_MAX }),
    bytesReceived: fc.integer({ min: 1, max: TRANSFERRED_BYTES_MAX }),
  },
  { requiredKeys: [] },
)

const anyEvent: fc.Arbitrary<Event> = fc
  .record({
    instance: fc.bigInt({ min: 0n, max: 0xffff_ffff_ffff_ffffn }),
    sequence: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    name: fc.domain(),
    client: fc.oneof(fc.ipV4(), fc.ipV6()),
    method: fc.constantFrom(...METHODS),
    firstSeenMs: fc.integer({ min: 0, max: 4e12 }),
    span: fc.integer({ min: 0, max: 1e9 }),
    count: fc.integer({ min: 1, max: 0xffff_ffff }),
    blocked: fc.oneof(fc.constant(0), fc.nat(0xffff_ffff)),
    optional: anyOptional,
  })
  .map(({ instance, sequence, firstSeenMs, span, blocked, optional, ...rest }) => ({
    ...rest,
    id: eventId(instance.toString(16).padStart(16, '0'), sequence),
    firstSeenMs,
    lastSeenMs: firstSeenMs + span,
    ...(blocked === 0 ? {} : { blocked: Math.min(blocked, rest.count) }),
    ...optional,
  }))

const good: Event = {
  id: '00112233445566770000000000000001',
  name: 'claude.ai',
  client: '192.0.2.45',
  method: 'dns',
  firstSeenMs: 1000,
  lastSeenMs: 2000,
  count: 3,
}

const REPORT = report({ counters: { packets: 2 ** 50, names: 7 } })

t.test('an event is unchanged after encoding in the store, in a batch and as JSON', async (t) => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 20 }), (events) => {
      t.strictSame(unpackBatch(packBatch(events), 20), { events, coverage: undefined })
      const json = { events: events.map(eventToJson) }
      t.strictSame(batchFromJson(JSON.stringify(json), 20), { events, coverage: undefined })
      const coverage = coverageReportToJson(REPORT)
      t.strictSame(batchFromJson(JSON.stringify({ ...json, coverage }), 20), { events, coverage })
      const packed = unpackBatch(packBatch(events, REPORT), 20)
      if (typeof packed === 'string' || packed.coverage === undefined) throw new Error('a batch with a report')
      t.strictSame(packed.events, events)
      t.strictSame(unpack(packed.coverage, { valuesMax: 1000, depthMax: 8 }), coverage)
      for (const event of events) t.strictSame(unpackEvent(packEvent(event)), event)
    }),
    { numRuns: 100 },
  )
  t.same(eventIdParts(good.id), { instance: '0011223344556677', sequence: 1 })
})

const WRONG = [
  { field: 'id', value: 'x', found: /^id: expected 32 lower-case hex digits, found "x"$/ },
  { field: 'id', value: 'A'.repeat(32), found: /^id: expected/ },
  { field: 'id', value: '0'.repeat(32), found: /sequence from 1/ },
  { field: 'id', value: undefined, found: /found nothing$/ },
  { field: 'name', value: '', found: /^name: expected a host name of 1 to 253/ },
  { field: 'name', value: 'a'.repeat(254), found: /^name: .{1,200}$/ },
  { field: 'name', value: 'claude..ai', found: /^name/ },
  { field: 'name', value: 'claude.ai..', found: /^name/ },
  { field: 'name', value: 'claude ai', found: /^name/ },
  { field: 'name', value: 7, found: /^name: .*found 7$/ },
  { field: 'client', value: '10.0.0.256', found: /^client: expected an IP address/ },
  { field: 'client', value: 'localhost', found: /^client/ },
  { field: 'method', value: 'smtp', found: /^method: expected one of dns, tls, quic, log/ },
  { field: 'first_seen', value: 'yesterday', found: /^first_seen: expected a time/ },
  { field: 'first_seen', value: '2026-11-20', found: /^first_seen/ },
  { field: 'first_seen', value: '2026-11-20T09:15:02', found: /^first_seen/ },
  ...['02-30', '02-29', '04-31', '13-01', '00-10', '01-00'].map((day) => ({
    field: 'first_seen',
    value: `2026-${day}T09:15:02Z`,
    found: /^first_seen: expected a time/,
  })),
  { field: 'first_seen', value: '2026-11-20T24:00:00Z', found: /^first_seen/ },
  { field: 'first_seen', value: '2026-11-20T09:15:02+19:00', found: /^first_seen/ },
  { field: 'last_seen', value: '1969-12-31T23:59:59Z', found: /^last_seen/ },
  { field: 'last_seen', value: '1970-01-01T00:00:00Z', found: /^last_seen: expected a time not before first_seen$/ },
  { field: 'count', value: 0, found: /^count: expected a whole number from 1/ },
  { field: 'count', value: 1.5, found: /^count/ },
  { field: 'count', value: 2 ** 32, found: /^count/ },
  { field: 'blocked', value: -1, found: /^blocked: expected a whole number from 0 to count, found -1$/ },
  { field: 'blocked', value: 0.5, found: /^blocked/ },
  { field: 'blocked', value: 4, found: /^blocked/ },
  { field: 'blocked', value: '1', found: /^blocked/ },
  { field: 'user', value: 7, found: /^user: expected text of at most 128 bytes of UTF-8 without control characters$/ },
  { field: 'user', value: 'u'.repeat(USER_BYTES_MAX + 1), found: /^user: [^u]/ },
  { field: 'user', value: 'ü'.repeat(USER_BYTES_MAX / 2 + 1), found: /^user/ },
  { field: 'user', value: 'j\ndoe', found: /^user: .{1,90}$/ },
  { field: 'user', value: 'j\x00doe', found: /^user/ },
  { field: 'user', value: 'j\x85doe', found: /^user/ },
  { field: 'user', value: 'a\u202eeod', found: /^user/ },
  { field: 'user', value: 'a\u2028b', found: /^user/ },
  { field: 'user', value: 'j\ufffddoe', found: /^user/ },
  { field: 'user', value: 'j\ud800doe', found: /^user/ },
  { field: 'bytes_sent', value: -1, found: /^bytes_sent: expected a whole number from 0 to 9{15}, found -1$/ },
  { field: 'bytes_sent', value: TRANSFERRED_BYTES_MAX + 1, found: /^bytes_sent/ },
  { field: 'bytes_sent', value: 0.5, found: /^bytes_sent/ },
  { field: 'bytes_received', value: '1', found: /^bytes_received: expected .*found "1"$/ },
]
/** In printable ASCII, because a line separator would end the line of the test's result. */
const escaped = (text: string): string => text.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16)}`)
for (const { field, value, found } of WRONG) {
  t.test(`rejected: ${field} is ${escaped(String(value)).slice(0, 30)}`, async (t) => {
    t.match(eventFromJson({ ...eventToJson(good), [field]: value }), found)
  })
}

t.test('times are read with their zone, on every existing day', async (t) => {
  for (const [text, expected] of [
    ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
    ['2026-12-31T23:59:60.5Z', Date.UTC(2026, 11, 31, 23, 59, 59, 500)],
    ['2026-03-01T00:30+0100', Date.UTC(2026, 1, 28, 23, 30)],
    ['2026-11-20T09:15:02.123456-11:30', Date.UTC(2026, 10, 20, 20, 45, 2, 123)],
  ] as const) {
    t.match(eventFromJson({ ...eventToJson(good), first_seen: text, last_seen: text }), { lastSeenMs: expected }, text)
  }
})

t.test('blocked matches are encoded only if there are any, so that other encodings do not change', async (t) => {
  t.equal(packEvent({ ...good, blocked: 0 })[0], 0x97)
  t.equal(packEvent({ ...good, blocked: 3 })[0], 0x98)
  t.notOk('blocked' in eventToJson({ ...good, blocked: 0 }))
  t.match(eventToJson({ ...good, blocked: 3 }), { blocked: 3 })
  t.strictSame(eventFromJson({ ...eventToJson(good), blocked: 0 }), good)
})

t.test('a user and byte counts are encoded only if there are any, and an event without them as before', async (t) => {
  const empty = { user: '', bytesSent: 0, bytesReceived: 0 }
  t.same(packEvent({ ...good, ...empty }), packEvent(good))
  t.same(packEvent({ ...good, ...empty, blocked: 3 }), packEvent({ ...good, blocked: 3 }))
  t.same(eventToJson({ ...good, ...empty }), eventToJson(good))
  for (const more of [
    { user: 'jdoe' },
    { bytesSent: 1 },
    { bytesReceived: TRANSFERRED_BYTES_MAX },
    { user: 'jdoe', blocked: 2 },
  ]) {
    const event = { ...good, ...more }
    t.equal(packEvent(event)[0], 0x9b)
    t.strictSame(unpackEvent(packEvent(event)), event)
    t.strictSame(eventFromJson(eventToJson(event)), event)
  }
  t.strictSame(eventFromJson({ ...eventToJson(good), user: '', bytes_sent: 0, bytes_received: null }), good)
  t.match(eventToJson({ ...good, user: 'CORP\\jdoe', bytesSent: 5, bytesReceived: 7 }), {
    user: 'CORP\\jdoe',
    bytes_sent: 5,
    bytes_received: 7,
  })
})

t.test('the error of a wrong user does not contain the name', async (t) => {
  t.notMatch(eventFromJson({ ...eventToJson(good), user: 'jane\tdoe' }), /jane/)
})

t.test('an invalid event or batch is rejected with one line', async (t) => {
  for (const value of [null, 1, 'x', [], [1], undefined]) t.type(eventFromJson(value), 'string')
  for (const text of ['', '{', '[]', '{"events":1}', 'null']) t.type(batchFromJson(text, 10), 'string')
  t.match(batchFromJson(JSON.stringify({ events: [1, 2, 3] }), 2), /at most 2 events, found 3/)
  t.match(unpackBatch(packBatch([good, good]), 1), /at most 1 events, found 2/)
})

t.test('one bad event does not affect the others in its batch', async (t) => {
  const batch = batchFromJson(JSON.stringify({ events: [eventToJson(good), { ...eventToJson(good), count: -1 }] }), 10)
  t.match(batch, { events: [good, /^count/] })
})

t.test('a batch truncated at any byte, and any bytes, are rejected without an exception', async (t) => {
  const whole = packBatch([good, good], REPORT)
  for (let at = 0; at < whole.length; at++) t.type(unpackBatch(whole.subarray(0, at), 10), 'string', `cut at ${at}`)
  t.match(unpackBatch(Buffer.concat([whole, Buffer.from([0])]), 10), /expected the end of the batch/)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const read = unpackBatch(bytes, 10)
      return typeof read === 'string' || Array.isArray(read.events)
    }),
    { numRuns: 5000 },
  )
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
      const bytes = Buffer.from(whole)
      bytes[at] = byte
      const read = unpackBatch(bytes, 10)
      return typeof read === 'string' || Array.isArray(read.events)
    }),
    { numRuns: 3000 },
  )
})

t.test('wrong lengths are rejected before memory is allocated', async (t) => {
  const lie = Buffer.from([0xdd, 0x01, 0xff, 0xff, 0xff])
  const nested = Buffer.concat([Buffer.from([0x92, 0x01, 0x91]), ...Array.from({ length: 1000 }, () => lie)])
  const before = process.memoryUsage().rss
  t.match(unpackBatch(nested, 10_000), /more bytes announced/)
  t.match(
    unpackBatch(Buffer.concat([Buffer.from([0x92, 0x01]), Buffer.alloc(100_000, 0x91)]), 10),
    /longer than the bytes that follow/,
  )
  t.match(unpackBatch(Buffer.from([0x92, 0xdb, 0xff, 0xff, 0xff, 0xff]), 10), /longer than the bytes that follow/)
  t.ok(process.memoryUsage().rss - before < 64e6, 'little memory was allocated')
})
