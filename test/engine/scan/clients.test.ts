import t from 'tap'
import { NO_CLIENT } from '../../../engine/kernel/event/client.ts'
import { type Event, METHODS, READ_METHOD } from '../../../engine/kernel/event/event.ts'
import { DAY_MS, dayOf, HOUR_MS } from '../../../engine/kernel/process/clock.ts'
import { CLIENT_ROWS_MAX, CLIENTS_PER_DAY_MAX } from '../../../engine/limits.ts'
import { ClientTable } from '../../../engine/scan/client-table.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { ClientReader, ClientWriter } from '../../../engine/store/client-records.ts'
import { acmeSite } from '../../support/acme-site.ts'
import * as fc from '../../support/property.ts'
import { makeOrganization, matcher, NOON, openStore, registries, Sender, type TestStore } from '../../support/store.ts'

const DAY = dayOf(NOON)

function scan({ store, clock }: TestStore, id: string, events: readonly Event[]): void {
  store.environment.write(() => store.buffer.append(id, events))
  runScan(store, registries, id, 'schedule', clock)
}

/** The stored clients of an organization by day, platform and client. */
function stored({ store }: TestStore, id: string): Map<string, Record<string, number>> {
  const clients = new Map<string, Record<string, number>>()
  for (const { day, platformId, bytes } of store.clientDays.since(id, 0)) {
    const reader = new ClientReader(bytes, day)
    while (reader.next()) {
      const { methods, matches, firstSeenMs, lastSeenMs, bytesSent } = reader
      const key = `${day} ${platformId} ${reader.client} ${reader.user}`
      clients.set(key, { methods, matches, firstSeenMs, lastSeenMs, bytesSent })
    }
  }
  return clients
}

/** The same from the events, computed without optimization. */
function plainly(events: readonly Event[]): Map<string, Record<string, number>> {
  const clients = new Map<string, Record<string, number>>()
  for (const { name, client, user = '', method, firstSeenMs, lastSeenMs, count, bytesSent = 0 } of events) {
    const platform = matcher.match(name)?.platform.id
    if (platform === undefined || (client === NO_CLIENT && user === '')) continue
    const key = `${dayOf(lastSeenMs)} ${platform} ${client} ${user}`
    const before = clients.get(key)
    clients.set(key, {
      methods: (before?.['methods'] ?? 0) | (1 << METHODS.indexOf(READ_METHOD[method] ?? method)),
      matches: (before?.['matches'] ?? 0) + count,
      firstSeenMs: Math.min(before?.['firstSeenMs'] ?? firstSeenMs, firstSeenMs),
      lastSeenMs: Math.max(before?.['lastSeenMs'] ?? 0, lastSeenMs),
      bytesSent: (before?.['bytesSent'] ?? 0) + bytesSent,
    })
  }
  return clients
}

const anyEvent = fc.record({
  name: fc.constantFrom('claude.ai', 'api.anthropic.com', 'chatgpt.com', 'cdn.oaistatic.com', 'nobody.example'),
  client: fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.11', '2001:db8::1', NO_CLIENT),
  method: fc.constantFrom(...METHODS),
  ageMs: fc.nat(3 * DAY_MS),
  spanMs: fc.constantFrom(0, 1, HOUR_MS, 2 * DAY_MS),
  count: fc.constantFrom(1, 127, 128, 70_000, 0xffff_ffff),
  optional: fc.constantFrom({}, {}, { user: 'jdoe' }, { user: 'Jürgen', bytesSent: 2 ** 40 }, { bytesSent: 5 }),
})
type AnyEvent = typeof anyEvent extends fc.Arbitrary<infer T> ? T : never

const sent = (events: readonly AnyEvent[]): Event[] =>
  events.map(({ name, client, method, ageMs, spanMs, count, optional }) =>
    new Sender().event(name, NOON - ageMs, {
      ...{ client, method, firstSeenMs: NOON - ageMs - spanMs, count, ...optional },
    }),
  )

t.test('clients add up over scans, and no organization has the clients of another', async (t) => {
  const opened = openStore(t)
  let organizations = 0
  const scans = fc.array(fc.array(anyEvent, { maxLength: 20 }), { maxLength: 3 })
  fc.assert(
    fc.property(scans, scans, (first, second) => {
      const made = [first, second].map((each) => {
        const { id } = makeOrganization(opened, `O${organizations++}`)
        return { id, scans: each.map(sent) }
      })
      for (let round = 0; round < 3; round++) {
        for (const { id, scans: each } of made) if (each[round] !== undefined) scan(opened, id, each[round] ?? [])
      }
      for (const { id, scans: each } of made) {
        const found = Object.fromEntries([...stored(opened, id)].sort())
        t.same(found, Object.fromEntries([...plainly(each.flat())].sort()))
      }
      return true
    }),
    { numRuns: 25 },
  )
})

t.test('of many clients, those with the most matches are kept, and the others are summed', async (t) => {
  const opened = acmeSite(t)
  const { id, sender } = opened
  const events = (from: number, to: number, count: (client: number) => number): Event[] =>
    Array.from({ length: to - from }, (_, at) => {
      const client = from + at
      return sender.event('claude.ai', NOON, { client: `10.0.${client >> 8}.${client & 255}`, count: count(client) })
    })
  scan(
    opened,
    id,
    events(0, 700, () => 5),
  )
  scan(
    opened,
    id,
    events(600, 1400, (client) => (client < 1300 ? 10 : 2)),
  )
  const found = stored(opened, id)
  t.equal(found.size, CLIENTS_PER_DAY_MAX)
  const matches = [...found.values()].map((client) => client['matches'] ?? 0)
  const of = (count: number): number => matches.filter((each) => each === count).length
  t.same([of(15), of(10), of(5), of(2)], [100, 600, 300, 0])
  const [day] = [...opened.store.clientDays.since(id, 0)]
  const { otherMatches } = new ClientReader(day?.bytes ?? Buffer.alloc(0), DAY)
  t.equal(otherMatches, 300 * 5 + 100 * 2)
  const evidence = opened.store.evidence.day(id, DAY, 'claude')
  t.equal(
    matches.reduce((sum, each) => sum + each, otherMatches),
    evidence?.matches,
  )
})

t.test('client records leave with the evidence window, and the oldest at the size limit', async (t) => {
  const opened = acmeSite(t)
  const { store, clock, id, sender } = opened
  scan(opened, id, [sender.event('claude.ai', NOON), sender.event('claude.ai', NOON - DAY_MS)])
  const days = (): number[] => Array.from(store.clientDays.since(id, 0), ({ day }) => day)
  t.same(days(), [DAY - 1, DAY])
  clock.add(29 * DAY_MS)
  scan(opened, id, [])
  clock.add(DAY_MS)
  scan(opened, id, [sender.event('claude.ai', clock.nowMs())])
  t.same(days(), [DAY, DAY + 30], 'the horizon is that of the scheduled scan before')
  const { bytes, records } = store.clientDays.totals(id)
  t.equal(records, 2)
  t.equal(
    store.environment.write(() => store.clientDays.write(id, [], 0, bytes - 1)),
    1,
  )
  t.same(days(), [DAY + 30], 'the oldest day went')
  t.match(store.clientDays.totals(id), { records: 1, removed: 1 })
  t.equal(
    store.environment.write(() => store.clientDays.write(id, [], 0, bytes, 2)),
    2,
    'records that a full disk took are counted with them',
  )
  t.match(store.clientDays.totals(id), { records: 1, removed: 3 })
})

t.test('a scan of more clients than fit its memory leaves the others to the next scan', async (t) => {
  const table = new ClientTable()
  const view = new DataView(new ArrayBuffer(16))
  for (let client = 0; client < CLIENT_ROWS_MAX; client++) {
    if (table.full) t.fail(`full with ${client} clients`)
    view.setUint32(0, client)
    table.rowOf(client & 7, view, 0, 4, 4, 4)
  }
  t.ok(table.full)
  t.equal(table.count, CLIENT_ROWS_MAX)
  table.clear()
  t.notOk(table.full)
  t.equal(table.rowOf(0, view, 0, 4, 4, 4), 0)
})

t.test('a record returns what was written, users and byte counts included', async (t) => {
  const anyClient = fc.record({
    client: fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 60 }),
    user: fc.string({ unit: 'grapheme', maxLength: 30 }),
    methods: fc.integer({ min: 1, max: 15 }),
    access: fc.integer({ min: 0, max: 15 }),
    matches: fc.maxSafeNat(),
    ageMs: fc.nat(DAY_MS - 1),
    spanMs: fc.maxSafeNat().map((ms) => ms % 1e12),
    bytesSent: fc.maxSafeNat(),
    bytesReceived: fc.maxSafeNat(),
    blocked: fc.oneof(fc.nat(), fc.constant(Number.NaN)),
    touched: fc.nat(),
  })
  const writer = new ClientWriter()
  fc.assert(
    fc.property(fc.array(anyClient, { maxLength: 20 }), fc.maxSafeNat(), (clients, others) => {
      writer.begin(DAY)
      const expected = clients.map(({ client, user, ageMs, spanMs, ...rest }) => {
        const name = Buffer.from(user).subarray(0, 255)
        const text = Buffer.concat([Buffer.from(client), name])
        const lastSeenMs = DAY * DAY_MS + ageMs
        const touched = Number.isNaN(rest.blocked) ? Number.NaN : rest.touched
        const numbers = { ...rest, touched, lastSeenMs, firstSeenMs: lastSeenMs - spanMs }
        writer.add(text, 0, client.length, text.length, numbers)
        return { client, user: name.toString(), ...numbers }
      })
      const reader = new ClientReader(writer.end(others), DAY)
      t.equal(reader.otherMatches, others)
      const read: unknown[] = []
      while (reader.next()) {
        const { client, user, methods, access, matches, firstSeenMs, lastSeenMs } = reader
        const { bytesSent, bytesReceived, blocked, touched } = reader
        const numbers = { methods, access, matches, firstSeenMs, lastSeenMs, bytesSent, bytesReceived }
        read.push({ client, user, ...numbers, blocked, touched })
      }
      t.same(read, expected)
      return true
    }),
    { numRuns: 200 },
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
      try {
        const reader = new ClientReader(noise, DAY)
        let clients = 0
        while (reader.next()) clients++
        return clients <= noise.length
      } catch (error) {
        return (error as { code?: string }).code === 'STORE_DAMAGED'
      }
    }),
    { numRuns: 2000 },
  )
})
