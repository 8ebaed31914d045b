import { randomBytes } from 'node:crypto'
import t from 'tap'
import { type Event, packEvent } from '../../../engine/kernel/event/event.ts'
import { slicesOf } from '../../../engine/kernel/lmdb/queue-chunk.ts'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import { EVIDENCE_CELLS_MAX, UNMATCHED_EVENTS_MAX } from '../../../engine/limits.ts'
import { UnmatchedCopies } from '../../../engine/scan/event-tables.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { ScanSchedule } from '../../../engine/scan/schedule.ts'
import { RegistryInForce } from '../../../engine/store/registry-in-force.ts'
import type { Scan, ScanTrigger } from '../../../engine/store/scans.ts'
import { type AcmeSite, acmeSite } from '../../support/acme-site.ts'
import { platform } from '../../support/own-platforms.ts'
import * as fc from '../../support/property.ts'
import { inlineScans, makeOrganization, NOON, type openStore, quietLog, Sender } from '../../support/store.ts'

const NAME = 'llm.corp.example'

interface Site extends Omit<AcmeSite, 'scan'> {
  add(...names: readonly string[]): void
  remove(): void
  scan(trigger?: ScanTrigger): Scan
  matches(): number
}

function site(t: Parameters<typeof openStore>[0]): Site {
  const opened = acmeSite(t)
  const { store, clock, id } = opened
  const registry = new RegistryInForce(store)
  return {
    ...opened,
    add: (...names) =>
      store.environment.write(() => {
        const entry = platform('corp-llm', ...names)
        store.ownPlatforms.put(id, { entry, disabled: false, addedAtMs: clock.nowMs(), provisioned: false })
      }),
    remove: () => store.environment.write(() => store.ownPlatforms.remove(id, 'corp-llm')),
    scan: (trigger = 'schedule') => runScan(store, registry, id, trigger, clock),
    matches: () => [...store.evidence.since(id, 0)].reduce((sum, { evidence }) => sum + evidence.matches, 0),
  }
}

t.test('events without a platform wait, and become findings when the registry has the platform', async (t) => {
  const { buffer, add, scan, sender, clock, matches, store, id } = site(t)
  buffer([sender.event(NAME, NOON, { count: 3 }), sender.event('claude.ai', NOON), sender.event('x.example', NOON)])
  t.match(scan(), { eventsAdded: 3, eventsUnmatched: 2, waiting: { count: 2, rematched: 0, expired: 0, dropped: 0 } })
  t.match(scan(), { eventsAdded: 0, waiting: { count: 2 } })
  clock.add(1)
  add(NAME)
  buffer([sender.event(NAME, NOON), sender.event('y.example', NOON)])
  const found = scan()
  t.match(found, { eventsAdded: 2, eventsUnmatched: 1, waiting: { count: 2, rematched: 1 } })
  t.match(found.summary, { platformsDiscovered: 2 })
  t.equal(matches(), 5)
  t.equal(store.unmatched.count(id), 2)
  t.match(scan(), { waiting: { count: 2, rematched: 0 } }, 'each counts once')
  t.equal(matches(), 5)
})

t.test('events of a custom platform that was removed wait for its return', async (t) => {
  const { buffer, add, remove, scan, sender, matches } = site(t)
  add(NAME)
  buffer([sender.event(NAME, NOON)])
  remove()
  t.match(scan(), { eventsUnmatched: 1, waiting: { count: 1 }, summary: { platformsDiscovered: 0 } })
  add(NAME)
  t.match(scan(), { waiting: { count: 0, rematched: 1 }, summary: { platformsDiscovered: 1 } })
  t.equal(matches(), 1)
})

t.test('they wait as long as evidence is kept', async (t) => {
  const opened = site(t)
  const { buffer, scan, sender, clock, store, id } = opened
  buffer([sender.event(NAME, NOON - 2 * DAY_MS), sender.event(NAME, NOON)])
  t.match(scan(), { waiting: { count: 2 } })
  const schedule = new ScanSchedule(store, new RegistryInForce(store), clock, quietLog, inlineScans(opened))
  let days = 0
  for (; store.unmatched.count(id) > 0 && days < 100; days++) {
    clock.add(DAY_MS)
    schedule.check()
    await schedule.idle()
    // Evidence leaves after two scheduled scans that did not count it.
    const expected = days + 1 <= 28 ? 2 : days + 1 <= 30 ? 1 : 0
    t.equal(store.unmatched.count(id), expected, `after ${days + 1} days`)
  }
  t.equal(schedule.counters.unmatchedRemoved.expired, 2)
})

t.test('above the limit, the oldest are removed and counted', async (t) => {
  const { buffer, scan, sender, store, id, add } = site(t)
  const many = (name: string, count: number): Event[] => Array.from({ length: count }, () => sender.event(name, NOON))
  buffer(many(NAME, 10))
  buffer(many('x.example', UNMATCHED_EVENTS_MAX - 5))
  t.match(scan(), { waiting: { count: UNMATCHED_EVENTS_MAX, dropped: 5 } })
  buffer(many('y.example', 3))
  t.match(scan(), { waiting: { count: UNMATCHED_EVENTS_MAX, dropped: 3 } })
  add(NAME)
  t.match(scan(), { waiting: { count: UNMATCHED_EVENTS_MAX - 2, rematched: 2, dropped: 0 } })
  t.equal(store.unmatched.count(id), UNMATCHED_EVENTS_MAX - 2)
})

t.test('more days of a platform than a scan adds are left to the next one, and none is lost', async (t) => {
  const { buffer, add, scan, sender, store, id, matches } = site(t)
  const organization = store.organizations.get(id)
  if (organization !== undefined)
    store.environment.write(() => store.organizations.update({ ...organization, createdAtMs: 0 }))
  const first = NOON - (EVIDENCE_CELLS_MAX + 5) * DAY_MS
  const events = Array.from({ length: EVIDENCE_CELLS_MAX + 5 }, (_, day) => sender.event(NAME, first + day * DAY_MS))
  buffer(events)
  t.match(scan('buffer'), { eventsUnmatched: events.length })
  add(NAME)
  t.match(scan('buffer'), { waiting: { count: 0, rematched: 5 } }, 'the second of two')
  t.equal(matches(), events.length)
})

t.test('after any changes in any order, every event is in the evidence once or waits', async () => {
  const names = ['a.example', 'b.example', 'claude.ai'] as const
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('send' as const),
      name: fc.constantFrom(...names),
      count: fc.integer({ min: 1, max: 4 }),
    }),
    fc.record({ kind: fc.constant('registry' as const), has: fc.subarray(['a.example', 'b.example']) }),
    fc.record({ kind: fc.constant('scan' as const) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      const opened = { ...shared, id: makeOrganization(shared, `O${randomBytes(6).toString('hex')}`).id }
      const { store, id, clock } = opened
      const registry = new RegistryInForce(store)
      let sent = 0
      for (const one of steps) {
        if (one.kind === 'send') {
          sent += one.count
          const events = Array.from({ length: one.count }, () => shared.sender.event(one.name, NOON))
          store.environment.write(() => store.buffer.append(id, events))
        } else if (one.kind === 'registry') {
          store.environment.write(() => {
            if (one.has.length === 0) return store.ownPlatforms.remove(id, 'corp-llm')
            const entry = platform('corp-llm', ...one.has)
            return store.ownPlatforms.put(id, { entry, disabled: false, addedAtMs: 0, provisioned: false })
          })
        } else runScan(store, registry, id, 'buffer', clock)
      }
      const scan = runScan(store, registry, id, 'buffer', clock)
      const matches = [...store.evidence.since(id, 0)].reduce((sum, { evidence }) => sum + evidence.matches, 0)
      const isMatched = (name: string): boolean => registry.matcherOf(id).match(name) !== undefined
      for (const { slices } of store.unmatched.chunks(id)) {
        for (let at = 0; at < slices.count; at++) {
          const bytes = Buffer.from(slices.bytes.subarray(slices.starts[at], slices.ends[at])).toString('latin1')
          if (names.some((name) => bytes.includes(name) && isMatched(name))) return false
        }
      }
      return matches + store.unmatched.count(id) === sent && scan.waiting?.count === store.unmatched.count(id)
    }),
    { numRuns: 60 },
  )
})
const shared = site(t)

t.test('copies keep the newest, whole and in their order', async (t) => {
  const copies = new UnmatchedCopies()
  const sender = new Sender()
  const events = Array.from({ length: 20 }, (_, index) => packEvent(sender.event(`${'x'.repeat(index)}.example`, NOON)))
  const slices = slicesOf(events)
  const view = new DataView(slices.bytes.buffer, slices.bytes.byteOffset, slices.bytes.byteLength)
  const add = (at: number): void => copies.add(view, slices.starts[at] ?? 0, slices.ends[at] ?? 0)
  const count = 2 * UNMATCHED_EVENTS_MAX + 7
  for (let at = 0; at < count; at++) add(at % events.length)
  const taken = copies.take()
  t.equal(taken.events.count, UNMATCHED_EVENTS_MAX)
  t.equal(taken.dropped, count - UNMATCHED_EVENTS_MAX)
  const { bytes, starts, ends } = taken.events
  let wrong = 0
  for (let at = 0; at < UNMATCHED_EVENTS_MAX; at++) {
    const event = events[(taken.dropped + at) % events.length]
    if (!Buffer.from(bytes.subarray(starts[at], ends[at])).equals(event ?? Buffer.of())) wrong++
  }
  t.equal(wrong, 0)
  t.equal(copies.take().events.count, 0)
})
