import t from 'tap'
import { type AcceptCounters, EventAcceptor } from '../../../engine/ingest/accept.ts'
import { BUFFERED_EVENTS_MAX, PENDING_EVENTS_MAX } from '../../../engine/limits.ts'
import { DAY_MS } from '../../../engine/process/clock.ts'
import { makeOrganization, matcher, NOON, openStore, quietLog, Sender, type TestStore } from '../../support/store.ts'

function acceptorOf({ store, clock }: TestStore, onBuffered: (id: string) => void = () => {}): EventAcceptor {
  return new EventAcceptor(store, matcher, clock, quietLog, onBuffered)
}

function balanced({ messages, accepted, duplicates, rejected, deferred }: AcceptCounters): boolean {
  return messages === accepted + duplicates + rejected + deferred
}

t.test('each event once: within a batch, over batches of one turn, and after reopening', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const told: string[] = []
  const acceptor = acceptorOf(opened, (organizationId) => told.push(organizationId))
  const sender = new Sender()
  const [a, b] = [sender.event('claude.ai', NOON), sender.event('chatgpt.com', NOON)]
  const both = await Promise.all([acceptor.accept(id, [a, a, b]), acceptor.accept(id, [b])])
  t.same(both, [
    { kind: 'stored', accepted: 2, duplicates: 1, rejected: [] },
    { kind: 'stored', accepted: 0, duplicates: 1, rejected: [] },
  ])
  t.same(told, [id], 'told once a transaction')
  t.same(await acceptorOf(opened).accept(id, [a, b]), { kind: 'stored', accepted: 0, duplicates: 2, rejected: [] })
  t.equal(opened.store.buffer.count(id), 2)
  t.ok(balanced(acceptor.counters))
})

t.test('the same id of another organization is another event', async (t) => {
  const opened = openStore(t)
  const [a, b] = [makeOrganization(opened, 'A').id, makeOrganization(opened, 'B').id]
  const acceptor = acceptorOf(opened)
  const event = new Sender().event('claude.ai', NOON)
  t.match(await acceptor.accept(a, [event]), { accepted: 1 })
  t.match(await acceptor.accept(b, [event]), { accepted: 1 })
})

t.test('what cannot be taken is rejected by its place, the rest is stored', async (t) => {
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
    accepted: 3,
    rejected: [
      { index: 0, error: 'id: expected something else' },
      { index: 2, error: /nobody\.example belongs to no platform/ },
    ],
  })
  t.ok(balanced(acceptor.counters))
})

t.test('clocks that are wrong lose nothing', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const acceptor = acceptorOf(opened)
  const sender = new Sender()
  const ahead = sender.event('claude.ai', NOON - 5, { lastSeenMs: NOON + 40 * DAY_MS })
  t.match(await acceptor.accept(id, [ahead]), { accepted: 1 })
  t.match(opened.store.buffer.read(id, 0, 9), [{ event: { firstSeenMs: NOON - 5, lastSeenMs: NOON } }])
  t.equal(acceptor.counters.ahead, 1)
  opened.clock.set(1000)
  t.match(await acceptor.accept(id, [sender.event('claude.ai', NOON)]), { kind: 'retry', why: /never set/ })
  t.ok(balanced(acceptor.counters))
})

t.test('at a bound the sender is asked to come back, and nothing is stored', async (t) => {
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
  t.match(await acceptor.accept(id, [event]), { kind: 'stored', accepted: 1 }, 'it was not remembered as seen')
  t.ok(balanced(acceptor.counters))
})
