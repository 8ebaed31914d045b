import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { type AcceptCounters, EventAcceptor } from '../../../engine/ingest/accept.ts'
import type { CoverageReport } from '../../../engine/kernel/event/coverage-report.ts'
import { type Event, eventFromJson, eventToJson, packBatch } from '../../../engine/kernel/event/event.ts'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import {
  BATCH_EVENTS_MAX,
  BUFFERED_EVENTS_MAX,
  COVERAGE_PER_SECOND_MAX,
  PENDING_EVENTS_MAX,
} from '../../../engine/limits.ts'
import { clientsOf } from '../../../engine/store/candidates.ts'
import { SeenEvents } from '../../../engine/store/seen-events.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { INSTANCE, report } from '../../support/coverage.ts'
import * as fc from '../../support/property.ts'
import { makeOrganization, NOON, openStore, quietLog, Sender, type TestStore } from '../../support/store.ts'

function acceptorOf({ store, clock }: TestStore, onBuffered: (id: string) => void = () => {}): EventAcceptor {
  return new EventAcceptor(store, clock, quietLog, onBuffered)
}

function balanced({
  messages,
  accepted,
  duplicates,
  outsideDedupWindow,
  rejected,
  deferred,
  removed,
}: AcceptCounters): boolean {
  return messages === accepted + duplicates + outsideDedupWindow + rejected + deferred + removed
}

t.test('each event counts once: within a batch, across concurrent batches, and after reopening', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const reported: string[] = []
  const acceptor = acceptorOf(opened, (organizationId) => reported.push(organizationId))
  const sender = new Sender()
  const [a, b] = [sender.event('claude.ai', NOON), sender.event('chatgpt.com', NOON)]
  const both = await Promise.all([acceptor.accept(id, [a, a, b]), acceptor.accept(id, [b])])
  t.same(both, [
    {
      kind: 'stored',
      accepted: 2,
      duplicates: 1,
      outsideDedupWindow: 0,
      rejected: [],
      repeated: [1],
      late: [],
      coverage: [],
    },
    {
      kind: 'stored',
      accepted: 0,
      duplicates: 1,
      outsideDedupWindow: 0,
      rejected: [],
      repeated: [0],
      late: [],
      coverage: [],
    },
  ])
  t.same(reported, [id], 'reported once per transaction')
  t.same(await acceptorOf(opened).accept(id, [a, b]), {
    kind: 'stored',
    accepted: 0,
    duplicates: 2,
    outsideDedupWindow: 0,
    rejected: [],
    repeated: [0, 1],
    late: [],
    coverage: [],
  })
  t.equal(opened.store.buffer.count(id), 2)
  t.ok(balanced(acceptor.counters))
})

t.test('rejected events are reported by their index, and the others are stored', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const sender = new Sender()
  const outcome = await acceptor.accept(id, [
    'id: expected something else',
    sender.event('claude.ai', NOON),
    sender.event('nobody.example', NOON),
    sender.event('claude.ai', NOON + DAY_MS + 1),
    sender.event('claude.ai', NOON + DAY_MS),
  ])
  t.match(outcome, {
    kind: 'stored',
    accepted: 4,
    rejected: [{ index: 0, error: 'id: expected something else' }],
  })
  t.ok(balanced(acceptor.counters))
})

t.test('one name in any spelling is one name, by JSON and by msgpack', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const sender = new Sender()
  const spellings = ['claude.ai', 'CLAUDE.AI', 'claude.ai.', 'Claude.Ai.', 'ｃｌａｕｄｅ.ai', 'claude。ai']
  const asJson = (name: string) => eventFromJson({ ...eventToJson(sender.event('claude.ai', NOON)), name })
  const byJson = await acceptor.accept(id, spellings.map(asJson))
  t.match(byJson, { accepted: spellings.length, rejected: [] })
  const packed = packBatch(spellings.map((name) => sender.event(name, NOON)))
  const byMsgpack = await acceptor.acceptPacked(id, packed, { deduplicate: true })
  t.match(byMsgpack, { accepted: spellings.length, rejected: [] })
  const names = [...opened.store.buffer.chunks(id)].flatMap(({ slices: { bytes, starts, ends, count } }) =>
    Array.from({ length: count }, (_, at) =>
      Buffer.from(bytes.subarray(starts[at], ends[at])).includes('\xa9claude.ai\xa8', 'latin1'),
    ),
  )
  t.same(names, Array(2 * spellings.length).fill(true), 'the bytes in the store, which scans read in place')
  const wrong = ['claude.ai..', '.claude.ai', 'claude..ai', 'claude ai', '']
  t.match(await acceptor.accept(id, wrong.map(asJson)), { accepted: 0, rejected: { length: wrong.length } })
})

t.test('wrong clocks lose no event', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const sender = new Sender()
  const times = [
    { firstSeenMs: NOON - 5, lastSeenMs: NOON + 40 * DAY_MS, stored: [NOON - 5, NOON] },
    { firstSeenMs: NOON - 5, lastSeenMs: NOON + 1, stored: [NOON - 5, NOON] },
    { firstSeenMs: NOON + 1, lastSeenMs: NOON + 9, stored: [NOON, NOON] },
    { firstSeenMs: NOON - 1, lastSeenMs: NOON, stored: [NOON - 1, NOON] },
  ]
  const events = () => times.map(({ stored: _, ...event }) => sender.event('claude.ai', NOON, event))
  t.match(await acceptor.accept(id, events()), { accepted: 4 })
  t.match(await acceptor.acceptPacked(id, packBatch(events()), { deduplicate: true }), { accepted: 4 })
  t.same(
    opened.store.buffer.read(id, 0, 9).map(({ event }) => [event.firstSeenMs, event.lastSeenMs]),
    [...times, ...times].map(({ stored }) => stored),
    'by both forms, and no time is after the receipt',
  )
  t.equal(acceptor.counters.ahead, 6)
  opened.clock.set(1000)
  t.match(await acceptor.accept(id, [sender.event('claude.ai', NOON)]), { kind: 'retry', why: /not set/ })
  t.ok(balanced(acceptor.counters))
})

t.test('at a limit the response asks the sender to retry, and nothing is stored', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const event = new Sender().event('claude.ai', NOON)
  const many = Array.from({ length: PENDING_EVENTS_MAX + 1 }, () => event)
  t.match(await acceptor.accept(id, many), { kind: 'retry', why: 'the service is busy' })
  const { buffer } = opened.store
  const count = buffer.count.bind(buffer)
  buffer.count = () => BUFFERED_EVENTS_MAX
  t.match(await acceptor.accept(id, [event]), { kind: 'retry', why: /buffer is full/ })
  buffer.count = count
  t.match(await acceptor.accept(id, [event]), { kind: 'stored', accepted: 1 }, 'the event was not recorded as seen')
  t.ok(balanced(acceptor.counters))
})

t.test('batches from a log are never asked to come again because there are many', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const sender = new Sender()
  const events = Array.from({ length: BATCH_EVENTS_MAX }, () => sender.event('claude.ai', NOON))
  const batch = packBatch(events)
  const count = Math.floor(PENDING_EVENTS_MAX / BATCH_EVENTS_MAX) + 1
  const all = (options: object) =>
    Promise.all(Array.from({ length: count }, () => acceptor.acceptPacked(id, batch, { ...DEDUPLICATE, ...options })))
  const kinds = (outcomes: readonly { kind: string }[]) => new Set(outcomes.map(({ kind }) => kind))
  t.same(kinds(await all({})), new Set(['stored', 'retry']), 'of senders')
  const stored = await all({ receivedMs: NOON })
  t.same(kinds(stored), new Set(['stored']))
  t.equal(opened.store.buffer.count(id), events.length)
  t.ok(balanced(acceptor.counters))
})

t.test('a batch from a log is stored although the buffer is full: its sender has its answer', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = new EventAcceptor(opened.store, opened.clock, quietLog, () => {}, 1)
  const sender = new Sender()
  const [first, second] = [1, 2].map(() => packBatch([sender.event('claude.ai', NOON)])) as [Buffer, Buffer]
  t.match(await acceptor.acceptPacked(id, first, DEDUPLICATE), { accepted: 1 })
  t.match(await acceptor.acceptPacked(id, second, DEDUPLICATE), { kind: 'retry', why: /buffer is full/ })
  t.match(await acceptor.acceptPacked(id, second, { ...DEDUPLICATE, receivedMs: NOON }), { accepted: 1 })
})

t.test('a damaged record of one organization does not hold up the others', async (t) => {
  const opened = openStore(t, { unchecked: true })
  const { environment } = opened.store
  const [acme, other] = [makeOrganization(opened, 'Acme').id, makeOrganization(opened, 'Other').id]
  const acceptor = acceptorOf(opened)
  const sender = new Sender()
  await acceptor.accept(acme, [sender.event('claude.ai', NOON)])
  const seen = environment.table('seen')
  const [key] = [...seen.getKeys()]
  environment.write(() => seen.putSync(key as Buffer, Buffer.from('not what was written')))
  const outcomes = await Promise.all(
    [other, acme, other].map((id) => acceptor.accept(id, [sender.event('claude.ai', NOON)])),
  )
  const damaged = { kind: 'retry', why: 'the store cannot be written', isDamaged: true }
  t.match(outcomes, [{ accepted: 1 }, damaged, { accepted: 1 }])
  t.equal(opened.store.buffer.count(other), 2)
  t.ok(balanced(acceptor.counters))
})

t.test('batches in msgpack are accepted like single events, with any repetitions', async (t) => {
  const opened = openStore(t)
  const senders = [new Sender(), new Sender()]
  // Events sent earlier, any of which may be sent again in any order.
  const pool = senders.flatMap((sender) =>
    Array.from({ length: 12 }, (_, index) =>
      sender.event(index === 5 ? 'no name' : 'claude.ai', NOON - index, index === 7 ? { blocked: 1 } : {}),
    ),
  )
  const batch = fc.oneof(
    fc.tuple(fc.nat(pool.length), fc.nat(pool.length)).map(([from, count]) => pool.slice(from, from + count)),
    fc.array(fc.constantFrom(...pool), { maxLength: 20 }),
  )
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { maxLength: 6 }), async (batches) => {
      run++
      const [one, other] = ['A', 'B'].map((name) => makeOrganization(opened, `${name}${run}`).id) as [string, string]
      const acceptor = acceptorOf(opened)
      const seen = new Set<string>()
      for (const events of batches) {
        const accepted = events.filter(({ id, name }) => {
          const isNew = name === 'claude.ai' && !seen.has(id)
          if (isNew) seen.add(id)
          return isNew
        })
        const outcome = await acceptor.acceptPacked(one, packBatch(events), { deduplicate: true })
        t.match(outcome, { accepted: accepted.length })
        t.strictSame(await acceptor.accept(other, events.map(eventToJson).map(eventFromJson)), outcome)
      }
      const buffered = (id: string) => opened.store.buffer.read(id, 0, 1000)
      t.strictSame(buffered(one), buffered(other))
      t.equal(buffered(one).length, seen.size)
      return balanced(acceptor.counters)
    }),
    { numRuns: 60 },
  )
})

t.test('a batch can be larger than a chunk of the buffer, with some events sent before', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const sender = new Sender()
  const events = Array.from({ length: 1000 }, (_, index) => sender.event('claude.ai', NOON - index))
  const early = events.filter((_, index) => index % 100 === 50)
  await acceptor.acceptPacked(id, packBatch(early), { deduplicate: true })
  t.match(await acceptor.acceptPacked(id, packBatch(events), { deduplicate: true }), { accepted: 990, duplicates: 10 })
  const buffered = opened.store.buffer.read(id, 0, 2000).map(({ event }) => event)
  t.strictSame(buffered, [...early, ...events.filter((event) => !early.includes(event))])
})

t.test('a batch from this service leaves no IDs, and its side effects commit with it or not at all', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const bytes = packBatch([new Sender().event('claude.ai', NOON)])
  let ran = 0
  const options = { deduplicate: false, alongside: () => ran++ }
  t.match(await acceptor.acceptPacked(id, bytes, options), { kind: 'stored', accepted: 1 })
  t.match(
    await acceptor.acceptPacked(id, bytes, options),
    { kind: 'stored', accepted: 1 },
    'the store is not read to check whether it is new',
  )
  t.match(await acceptor.acceptPacked(id, bytes, { deduplicate: true }), { accepted: 1 })
  t.equal(ran, 2)
  const { buffer } = opened.store
  const count = buffer.count.bind(buffer)
  buffer.count = () => BUFFERED_EVENTS_MAX
  t.match(await acceptor.acceptPacked(id, bytes, options), { kind: 'retry' })
  buffer.count = count
  t.equal(ran, 2, 'not for a batch that was not stored')
  t.match(await acceptor.acceptPacked(id, Buffer.from('hello'), options), { kind: 'malformed' })
  t.ok(balanced(acceptor.counters))
})

t.test('an event older than what is remembered of its sender is too late, and not a duplicate', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const sender = new Sender()
  // One page for all: the gaps need two more.
  const { store } = opened
  const seen = new SeenEvents(store.environment, 10, 1)
  store.seenEvents.keepUnseen = seen.keepUnseen.bind(seen)
  const events = Array.from({ length: 6000 }, () => sender.event('claude.ai', NOON))
  const everyOther = events.filter((_, at) => at % 2 === 0)
  t.match(await acceptor.accept(id, everyOther), { accepted: 3000, outsideDedupWindow: 0 })
  const batch = [events[1], 'unreadable', events[3], events[5998], events[5999], events[5997]] as const
  t.match(await acceptor.accept(id, batch as readonly (Event | string)[]), {
    accepted: 2,
    duplicates: 1,
    outsideDedupWindow: 2,
    rejected: [{ index: 1 }],
    late: [0, 2],
    repeated: [3],
  })
  t.equal(acceptor.counters.outsideDedupWindow, 2)
  t.ok(balanced(acceptor.counters))
})

t.test('the indexes of duplicates refer to the whole batch', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const sender = new Sender()
  const make = () => sender.event('claude.ai', NOON)
  const [a, b, c, d] = [make(), make(), make(), make()]
  const [e, f, g, h] = [make(), make(), make(), make()]
  await acceptor.accept(id, [b, e, f, h])
  const batch = ['unreadable', a, b, 'unreadable', c, 'unreadable', d, e, f, g, h, 'unreadable']
  t.match(await acceptor.accept(id, batch), { accepted: 4, duplicates: 4, repeated: [2, 7, 8, 10] })
  t.match(await acceptor.accept(id, ['unreadable', a]), { repeated: [1] })
})

const DEDUPLICATE = { deduplicate: true }
const instance = (number: number): string => number.toString(16).padStart(16, '0')
const reportOf = (number: number, packets: number, madeMs = NOON): CoverageReport =>
  report({ instance: instance(number), madeMs, counters: { packets } })

t.test("a sensor's candidates are stored without clients, if their names look like AI services", async (t) => {
  const opened = acmeSite(t)
  const { store, id } = opened
  const acceptor = acceptorOf(opened)
  const candidates = [
    ['api.unknown.ai', 3],
    ['www.example.com', 5],
    ['not a name', 1],
    ['UNKNOWN.ai', 1],
  ] as const
  const batch = packBatch([], report({ madeMs: NOON, candidates }))
  t.match(await acceptor.acceptPacked(id, batch, DEDUPLICATE), { coverage: ['added'] })
  t.match(await acceptor.acceptPacked(id, batch, DEDUPLICATE), { coverage: ['known'] })
  const [found, ...others] = store.candidates.ofOrganization(id)
  t.match(found, { name: 'unknown.ai', requests: 4, withAi: 0 })
  t.equal(found && clientsOf(found), undefined)
  t.same(others, [])
})

t.test('coverage reports are stored once, in the same transaction as the events', async (t) => {
  const opened = openStore(t)
  const { store } = opened
  const [acme, other] = [makeOrganization(opened, 'Acme').id, makeOrganization(opened, 'Other').id]
  const acceptor = acceptorOf(opened)
  const { environment } = store
  const write = environment.write.bind(environment)
  let writes = 0
  environment.write = (work) => {
    writes++
    return write(work)
  }
  const event = new Sender().event('claude.ai', NOON)
  const empty = packBatch([])
  t.match(
    await Promise.all([
      acceptor.acceptPacked(acme, packBatch([event], reportOf(1, 1)), DEDUPLICATE),
      acceptor.acceptPacked(other, packBatch([], reportOf(1, 2)), DEDUPLICATE),
      acceptor.acceptPacked(acme, empty, { ...DEDUPLICATE, reports: [reportOf(2, 3), reportOf(2, 9, NOON + 1)] }),
      acceptor.acceptPacked(acme, packBatch([event], reportOf(1, 1)), DEDUPLICATE),
    ]),
    [
      { kind: 'stored', accepted: 1, coverage: ['added'] },
      { kind: 'stored', accepted: 0, coverage: ['added'] },
      { kind: 'stored', accepted: 0, coverage: ['added', 'tooSoon'] },
      { kind: 'stored', duplicates: 1, coverage: ['known'] },
    ],
  )
  t.equal(writes, 1)
  t.match(store.coverage.sumSince(acme, 0), { sensors: 2, counters: { packets: 4 } })
  t.match(store.coverage.sumSince(other, 0), { sensors: 1, counters: { packets: 2 } })
  t.same(acceptor.coverage, { accepted: 3, repeated: 1, tooOften: 1, deferred: 0, removed: 0, malformed: 0 })
})

t.test('a bad report costs no event, and a bad event no report', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const sender = new Sender()
  t.match(await acceptor.accept(id, [sender.event('claude.ai', NOON)], { instance: 7 }), {
    accepted: 1,
    coverage: [{ error: /^coverage\.instance: / }],
  })
  const good = packBatch([sender.event('no name', NOON)], reportOf(1, 1))
  t.match(await acceptor.acceptPacked(id, good, DEDUPLICATE), {
    accepted: 0,
    rejected: [{ index: 0 }],
    coverage: ['added'],
  })
  t.same(acceptor.coverage, { accepted: 1, repeated: 0, tooOften: 0, deferred: 0, removed: 0, malformed: 1 })
})

t.test('a damaged record of a sensor costs no event', async (t) => {
  const opened = openStore(t, { unchecked: true })
  const { environment } = opened.store
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  await acceptor.acceptPacked(id, packBatch([], report({ madeMs: NOON })), DEDUPLICATE)
  const sensors = environment.table('coverage-sensors')
  const [key] = [...sensors.getKeys()]
  environment.write(() => sensors.putSync(key as Buffer, Buffer.from('not what was written')))
  const next = packBatch([new Sender().event('claude.ai', NOON)], report({ instance: INSTANCE, madeMs: NOON + 60_000 }))
  t.match(await acceptor.acceptPacked(id, next, DEDUPLICATE), { accepted: 1, coverage: ['damaged'] })
  t.match(acceptor.coverage, { accepted: 1, deferred: 1 })
})

t.test('a sender with many instances is rate-limited, and others are not', async (t) => {
  const opened = openStore(t)
  const { clock } = opened
  const [acme, other] = [makeOrganization(opened, 'Acme').id, makeOrganization(opened, 'Other').id]
  const acceptor = acceptorOf(opened)
  const flood = async (from: number): Promise<number> => {
    const reports = Array.from({ length: COVERAGE_PER_SECOND_MAX + 50 }, (_, index) => reportOf(from + index, 1))
    const outcome = await acceptor.acceptPacked(acme, packBatch([]), { ...DEDUPLICATE, reports })
    return outcome.kind === 'stored' ? outcome.coverage.filter((each) => each === 'added').length : 0
  }
  t.equal(await flood(0), COVERAGE_PER_SECOND_MAX)
  t.match(await acceptor.acceptPacked(other, packBatch([], reportOf(1, 1)), DEDUPLICATE), { coverage: ['added'] })
  clock.add(1000)
  t.equal(await flood(10_000), COVERAGE_PER_SECOND_MAX)
})

t.test('reports that waited in a log are limited by when they were received', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const fates: string[] = []
  for (let second = 0; second < 3; second++) {
    const reports = Array.from({ length: COVERAGE_PER_SECOND_MAX }, (_, index) => reportOf(second * 1000 + index, 1))
    const receivedMs = NOON - (3 - second) * 1000
    const outcome = await acceptor.acceptPacked(id, packBatch([]), { ...DEDUPLICATE, reports, receivedMs })
    if (outcome.kind === 'stored') fates.push(...outcome.coverage.map(String))
  }
  t.same(new Set(fates), new Set(['added']))
  t.equal(fates.length, 3 * COVERAGE_PER_SECOND_MAX)
})

t.test('a batch that must be retried does not consume its report', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const batch = packBatch([], reportOf(1, 1))
  opened.clock.set(1000)
  t.match(await acceptor.acceptPacked(id, batch, DEDUPLICATE), { kind: 'retry', why: /clock/ })
  opened.clock.set(NOON)
  const { environment } = opened.store
  const write = environment.write.bind(environment)
  environment.write = () => {
    throw new Error('no')
  }
  t.match(await acceptor.acceptPacked(id, batch, DEDUPLICATE), { kind: 'retry', why: /cannot be written/ })
  environment.write = write
  t.match(await acceptor.acceptPacked(id, batch, DEDUPLICATE), { kind: 'stored', coverage: ['added'] })
  t.match(acceptor.coverage, { deferred: 2, accepted: 1 })
})

t.test('a batch of a removed organization is refused finally, and counted', async (t) => {
  const opened = openStore(t)
  const acme = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const accepting = acceptor.accept(acme.id, [new Sender().event('claude.ai', NOON), 'id: none'])
  new Administration(opened.store, opened.clock).organizations.remove(acme, () => {})
  t.same(await accepting, { kind: 'removed' })
  t.match(acceptor.counters, { messages: 2, removed: 2, deferred: 0 })
})
