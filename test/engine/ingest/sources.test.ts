import t from 'tap'
import { LISTENERS, OTHER, type SourceOwner, SourceTable, UNATTRIBUTED } from '../../../engine/ingest/sources.ts'
import { Outcome, totalOf } from '../../../engine/store/outcomes.ts'
import { NO_ORGANIZATION, type SourceDelta, Sources, type StoredSource } from '../../../engine/store/sources.ts'
import * as fc from '../../support/property.ts'
import { openStore } from '../../support/store.ts'

const ORGANIZATION = '11111111-1111-4111-8111-111111111111'
const owner = (token: number, label = `token ${token}`): SourceOwner => {
  return { organizationId: ORGANIZATION, tokenId: `22222222-2222-4222-8222-${String(token).padStart(12, '0')}`, label }
}
const NOW = Date.parse('2026-11-20T12:00:00Z')
const NEVER = 0

function deltaSums(deltas: readonly SourceDelta[]): { received: number; known: number } {
  return {
    received: deltas.reduce((sum, { received }) => sum + received, 0),
    known: deltas.reduce((sum, { counts }) => sum + totalOf(counts), 0),
  }
}

t.test('a source is identified by listener, address, host and token', async (t) => {
  const table = new SourceTable()
  const one = table.get(owner(1), 'tcp', '192.0.2.1', 'a')
  t.equal(table.get(owner(1), 'tcp', '192.0.2.1', 'a'), one)
  const others = [
    table.get(owner(2), 'tcp', '192.0.2.1', 'a'),
    table.get(owner(1), 'udp', '192.0.2.1', 'a'),
    table.get(owner(1), 'tcp', '192.0.2.2', 'a'),
    table.get(owner(1), 'tcp', '192.0.2.1', ''),
    table.get(UNATTRIBUTED, 'tcp', '192.0.2.1', 'a'),
  ]
  t.equal(new Set([one, ...others]).size, 6)
})

t.test('above the limit, new sources of a token share a row, and no count is lost', async (t) => {
  const table = new SourceTable(3)
  for (let index = 0; index < 10; index++) {
    const source = table.get(owner(index % 2), 'tcp', `192.0.2.${index}`, `host ${index}`)
    source.receive(NOW)
    source.count(Outcome.unmatched, NOW)
  }
  const deltas = table.takeDeltas(NEVER)
  t.same(
    deltas.map(({ address, host, received }) => `${address} ${host} ${received}`),
    ['192.0.2.0 host 0 1', '192.0.2.1 host 1 1', '192.0.2.2 host 2 1', `${OTHER}  4`, `${OTHER}  3`],
  )
  t.equal(table.overflowed, 7)
  t.same(deltaSums(deltas), { received: 10, known: 10 })
})

t.test('unauthenticated senders do not displace authenticated sources', async (t) => {
  const table = new SourceTable(40)
  for (let index = 0; index < 100; index++) table.get(UNATTRIBUTED, 'udp', `192.0.2.${index}`, '').receive(NOW)
  for (let index = 0; index < 25; index++) table.get(owner(1), 'udp', `198.51.100.${index}`, '').receive(NOW)
  const known = table.takeDeltas(NEVER).filter(({ tokenId }) => tokenId !== NO_ORGANIZATION)
  t.equal(known.length, 25)
  t.ok(known.every(({ address }) => address !== OTHER))
  table.takeDeltas(NOW + 1)
  table.get(UNATTRIBUTED, 'udp', '192.0.2.200', '').receive(NOW)
  t.match(table.takeDeltas(NEVER), [{ address: '192.0.2.200' }], 'there is space again after they are removed')
})

t.test("no organization displaces another's sources", async (t) => {
  const table = new SourceTable(100, 10)
  const second = { ...owner(2), organizationId: '33333333-3333-4333-8333-333333333333' }
  for (let index = 0; index < 50; index++) table.get(owner(1), 'udp', `192.0.2.${index}`, '').receive(NOW)
  for (let index = 0; index < 10; index++) table.get(second, 'udp', `192.0.2.${index}`, '').receive(NOW)
  const deltas = table.takeDeltas(NEVER)
  t.equal(deltas.filter(({ tokenId }) => tokenId === owner(1).tokenId).length, 11)
  const own = deltas.filter(({ tokenId }) => tokenId === second.tokenId)
  t.equal(own.length, 10)
  t.ok(own.every(({ address }) => address !== OTHER))
  table.takeDeltas(NOW + 1)
  table.get(owner(1), 'udp', '198.51.100.1', '').receive(NOW)
  t.match(table.takeDeltas(NEVER), [{ address: '198.51.100.1' }], 'there is space again after they are removed')
})

t.test('deltas are the counts since the last time', async (t) => {
  const table = new SourceTable()
  const source = table.get(owner(1), 'tcp', '192.0.2.1', 'a')
  t.same(table.takeDeltas(NEVER), [], 'nothing was counted')
  source.receive(NOW, 3)
  source.count(Outcome.stored, NOW, 2)
  source.sample = 'x'
  t.match(table.takeDeltas(NEVER), [{ received: 3, counts: [2, 0, 0, 0, 0, 0, 0, 0], sample: 'x', lastSeenMs: NOW }])
  t.same(table.takeDeltas(NEVER), [])
  source.count(Outcome.stored, NOW + 1)
  t.match(table.takeDeltas(NEVER), [{ received: 0, counts: [1, 0, 0, 0, 0, 0, 0, 0], sample: '' }])
  t.match(table.received, { tcp: 3 })
  t.match(table.listeners.tcp, { [Outcome.stored]: 3 }, 'sums stay')
})

t.test('a source that was forgotten while its connection or batch was open is reported', async (t) => {
  const table = new SourceTable()
  const source = table.get(owner(1), 'tcp', '192.0.2.1', 'a')
  source.receive(NOW)
  table.takeDeltas(NEVER)
  t.same(table.takeDeltas(NOW + 1), [], 'forgotten')
  source.count(Outcome.stored, NOW)
  const again = table.get(owner(1), 'tcp', '192.0.2.1', 'a')
  again.receive(NOW + 5)
  t.same(deltaSums(table.takeDeltas(NEVER)), { received: 1, known: 1 })
})

t.test('a token with a changed label keeps its counts under the new label', async (t) => {
  const table = new SourceTable()
  const before = table.get(owner(1, 'old'), 'tcp', '192.0.2.1', 'a')
  before.count(Outcome.stored, NOW)
  table.get(owner(1, 'new'), 'tcp', '192.0.2.1', 'a').count(Outcome.stored, NOW)
  const [counts] = table.tokens.values()
  t.match(counts, { label: 'new', counts: { [Outcome.stored]: 2 } })
  t.equal(table.tokens.size, 1)
})

t.test('deltas add up to the counts, at any order of counting, reporting and forgetting', async () => {
  const step = fc.record({
    token: fc.nat(2),
    listener: fc.constantFrom(...LISTENERS),
    address: fc.nat(6),
    outcome: fc.nat(7),
    times: fc.integer({ min: 1, max: 5 }),
    notify: fc.boolean(),
    forget: fc.boolean(),
    held: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const table = new SourceTable(5)
      const held = new Map<string, ReturnType<SourceTable['get']>>()
      let expected = 0
      const reported = { received: 0, known: 0 }
      const notify = (silentSinceMs: number): void => {
        const { received, known } = deltaSums(table.takeDeltas(silentSinceMs))
        reported.received += received
        reported.known += known
      }
      for (const [index, { token, listener, address, outcome, times, ...what }] of steps.entries()) {
        const key = `${token} ${listener} ${address}`
        const source =
          (what.held ? held.get(key) : undefined) ?? table.get(owner(token), listener, `192.0.2.${address}`, '')
        held.set(key, source)
        source.receive(NOW + index, times)
        source.count(outcome, NOW + index, times)
        expected += times
        if (what.notify) notify(what.forget ? NOW + index + 1 : NEVER)
      }
      notify(NEVER)
      return reported.received === expected && reported.known === expected
    }),
  )
})

function delta(index: number, more: Partial<SourceDelta> = {}): SourceDelta {
  return {
    ...owner(1),
    listener: 'tcp',
    address: `192.0.2.${index}`,
    host: 'h',
    lastSeenMs: NOW + index,
    received: 2,
    counts: [1, 0, 1, 0, 0, 0, 0, 0],
    formats: { 'proxy-native': 2 },
    sample: '',
    zoneMinutes: 0,
    timesUnread: 0,
    hasUnknownToken: false,
    ...more,
  }
}

t.test('stored sources add up and are limited; removed ones stay in the sums', async (t) => {
  const { store } = openStore(t, { unchecked: true })
  const sources = new Sources(store.environment, 20, 5)
  const add = (...deltas: SourceDelta[]): void => store.environment.write(() => sources.add(deltas))
  add(
    delta(1),
    delta(1, { sample: 'x', formats: { other: 1 }, timesUnread: 3 }),
    delta(1, { received: 0, counts: [0, 0, 0, 0, 0, 0, 0, 0], formats: {}, timesUnread: 2 }),
  )
  t.match(sources.ofOrganization(ORGANIZATION), [
    {
      received: 4,
      counts: [2, 0, 2, 0, 0, 0, 0, 0],
      formats: { 'proxy-native': 2, other: 1 },
      sample: 'x',
      timesUnread: 5,
      hasUnknownToken: false,
      firstSeenMs: NOW + 1,
    },
  ])
  for (let index = 2; index <= 120; index++) add(delta(index))
  const rows = sources.ofOrganization(ORGANIZATION)
  t.ok(rows.length <= 22, `${rows.length} rows`)
  const sum = (of: (row: StoredSource) => number): number => rows.reduce((total, row) => total + of(row), 0)
  t.equal(
    sum(({ received }) => received),
    4 + 119 * 2,
  )
  t.equal(
    sum(({ counts }) => totalOf(counts)),
    4 + 119 * 2,
  )
  t.ok(
    rows.some(({ address }) => address === '192.0.2.120'),
    'the last source has a row',
  )
  t.ok(
    rows.some(({ address }) => address === 'other'),
    'removed sources share a row',
  )
  t.same(sources.ofOrganization(NO_ORGANIZATION), [])
})

t.test('rows are limited even within one transaction, including those of unauthenticated senders', async (t) => {
  const { store } = openStore(t, { unchecked: true })
  const LIMIT = 2000
  const PER_TRANSACTION = LIMIT / 10
  for (const organizationId of [ORGANIZATION, NO_ORGANIZATION]) {
    const sources = new Sources(store.environment, LIMIT)
    const tokenId = organizationId === NO_ORGANIZATION ? NO_ORGANIZATION : owner(1).tokenId
    for (let step = 0; step < 30; step++) {
      const deltas = Array.from({ length: PER_TRANSACTION }, (_, index) => {
        return delta(1, {
          organizationId,
          tokenId,
          address: `10.0.${step}.1`,
          host: `h${step * PER_TRANSACTION + index}`,
        })
      })
      store.environment.write(() => sources.add(deltas))
      const rows = sources.ofOrganization(organizationId).length
      if (rows > LIMIT) t.fail(`${rows} rows after ${(step + 1) * PER_TRANSACTION}`)
    }
    const received = sources.ofOrganization(organizationId).reduce((total, row) => total + row.received, 0)
    t.equal(received, 30 * PER_TRANSACTION * 2, 'all are in the sums')
  }
})

t.test('the last messages of unknown format are kept for each organization', async (t) => {
  const { store } = openStore(t, { unchecked: true })
  const sources = new Sources(store.environment, 20, 5)
  const reject = (index: number) => {
    const { organizationId, tokenId } = owner(1)
    const where = { organizationId, tokenId, listener: 'tcp', address: '192.0.2.1', host: '' }
    return { ...where, timeMs: NOW, format: '', reason: 'no format recognized', sample: `message ${index}` }
  }
  store.environment.write(() => sources.addRejects([1, 2, 3].map(reject)))
  store.environment.write(() => sources.addRejects([4, 5, 6, 7].map(reject)))
  t.same(
    sources.rejectsOf(ORGANIZATION).map(({ sample }) => sample),
    [3, 4, 5, 6, 7].map((index) => `message ${index}`),
  )
})

t.test('a source of a cluster names the node that received its last message', async (t) => {
  const { store } = openStore(t, { unchecked: true })
  const { sources, environment } = store
  const rows = [
    { node: undefined, seenMs: NOW, stored: undefined },
    { node: undefined, seenMs: NOW, stored: '' },
    { node: 'one', seenMs: NOW, stored: 'one' },
    { node: 'two', seenMs: NOW + 1, stored: 'two' },
    { node: 'one', seenMs: NOW, stored: 'two' },
    { node: undefined, seenMs: NOW + 2, stored: '' },
    { node: 'three', seenMs: NOW + 3, stored: 'three' },
  ]
  for (const { node, seenMs, stored } of rows) {
    const table = new SourceTable()
    table.get(owner(1), 'tcp', '192.0.2.1', 'a').receive(seenMs)
    const deltas = table.takeDeltas(NEVER).map((delta) => (node === undefined ? delta : { ...delta, node }))
    environment.write(() => sources.add(deltas))
    t.equal(sources.ofOrganization(ORGANIZATION)[0]?.node, stored)
  }
  environment.write(() => sources.removeSilent(ORGANIZATION, NOW + 4, 10))
  t.match(sources.ofOrganization(ORGANIZATION), [{ address: 'other', node: '' }])
})
