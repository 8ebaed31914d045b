import t from 'tap'
import { METHOD_NAMES, Method } from '../../../collector/decode/name-rows.ts'
import { Aggregate } from '../../../collector/outbox/aggregate.ts'
import type { NewEvent } from '../../../collector/outbox/waiting-event.ts'
import { type Match, rowOf } from '../../support/match-rows.ts'
import * as fc from '../../support/property.ts'

const keyOf = ({ method, client, name }: { method: string; client: string; name: string }) =>
  `${method} ${client} ${name}`

/** An outbox that records pending() and written(): events by sequence. */
class RecordingOutbox {
  readonly events = new Map<number, NewEvent>()
  #next = 1

  write(aggregate: Aggregate, openToo: boolean): { changed: number[] } {
    const { added, changed } = aggregate.pending(openToo)
    const first = this.#next
    for (const event of added) this.events.set(this.#next++, event)
    for (const { sequence, event } of changed) this.events.set(sequence, event)
    aggregate.written(first, openToo)
    return { changed: changed.map(({ sequence }) => sequence) }
  }
}

const CLIENTS = ['10.0.0.1', '10.0.0.2', '2001:db8::1']
const arbitraryMatch = fc.record({
  name: fc.integer({ min: 1, max: 253 }).map((length) => 'abcdefghi.'.repeat(26).slice(0, length).replace(/\.$/, 'x')),
  client: fc.constantFrom(...CLIENTS),
  method: fc.constantFrom(Method.dns, Method.tls, Method.quic),
  laterMs: fc.integer({ min: 0, max: 3000 }),
})
const arbitraryStep = fc.oneof(
  { weight: 8, arbitrary: arbitraryMatch.map((match) => ({ kind: 'match' as const, ...match })) },
  { weight: 2, arbitrary: fc.boolean().map((openToo) => ({ kind: 'write' as const, openToo })) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 20_000 }).map((laterMs) => ({ kind: 'close' as const, laterMs })) },
)

t.test('every match is counted in exactly one event, at any order of writes', async () => {
  fc.assert(
    fc.property(
      fc.array(arbitraryStep, { maxLength: 120 }),
      fc.constantFrom(0, 1000, 10_000),
      fc.constantFrom({ events: 4, keyBytes: 1024 }, { events: 8, keyBytes: 320 }, { events: 1024, keyBytes: 1 << 16 }),
      (steps, windowMs, sizes) => {
        const aggregate = new Aggregate(windowMs, 0, sizes)
        const outbox = new RecordingOutbox()
        const taken = new Map<string, number>()
        const frozen = new Map<number, NewEvent>()
        let nowMs = 1_700_000_000_000
        let matches = 0
        const write = (openToo: boolean): boolean => {
          const { changed } = outbox.write(aggregate, openToo)
          if (changed.some((sequence) => frozen.has(sequence))) return false
          for (const [sequence, event] of outbox.events) {
            if (sequence < aggregate.openSequence) frozen.set(sequence, event)
          }
          return true
        }
        for (const step of steps) {
          if (step.kind === 'match') {
            nowMs += step.laterMs
            aggregate.take(rowOf({ ...step, timeMs: nowMs }), 0)
            matches++
            const key = keyOf({ ...step, method: METHOD_NAMES[step.method] as string })
            taken.set(key, (taken.get(key) ?? 0) + 1)
          } else if (step.kind === 'write') {
            if (!write(step.openToo)) return false
          } else {
            nowMs += step.laterMs
            aggregate.closeUntil(nowMs)
          }
        }
        aggregate.closeAll()
        if (!write(false) || aggregate.openSequence !== Number.POSITIVE_INFINITY || aggregate.unwritten !== 0)
          return false
        const counted = new Map<string, number>()
        for (const event of outbox.events.values()) {
          if (event.lastSeenMs - event.firstSeenMs >= Math.max(windowMs, 1)) return false
          counted.set(keyOf(event), (counted.get(keyOf(event)) ?? 0) + event.count)
        }
        if (windowMs === 0 && outbox.events.size !== matches) return false
        if (aggregate.matches !== matches || aggregate.events !== outbox.events.size) return false
        return taken.size === counted.size && [...taken].every(([key, count]) => counted.get(key) === count)
      },
    ),
    { numRuns: 2000 },
  )
})

const match = (over: Partial<Match> = {}): Match => ({
  name: 'claude.ai',
  client: '10.0.0.1',
  method: Method.dns,
  timeMs: 5000,
  ...over,
})

t.test('a window begins with its first match', async (t) => {
  const aggregate = new Aggregate(10_000)
  for (const timeMs of [5000, 6000, 14_999, 15_000]) aggregate.take(rowOf(match({ timeMs })), 0)
  aggregate.closeAll()
  t.same(aggregate.pending(false).added, [
    { name: 'claude.ai', client: '10.0.0.1', method: 'dns', firstSeenMs: 5000, lastSeenMs: 14_999, count: 3 },
    { name: 'claude.ai', client: '10.0.0.1', method: 'dns', firstSeenMs: 15_000, lastSeenMs: 15_000, count: 1 },
  ])
})

t.test('client, name and method determine the event; the order of times does not matter', async (t) => {
  const aggregate = new Aggregate(10_000, 1_000_000)
  const rows = [
    match(),
    match({ client: '10.0.0.2' }),
    match({ method: Method.tls }),
    match({ name: 'claude.ai.x' }),
    match({ timeMs: 4000 }),
  ]
  for (const row of rows) aggregate.take(rowOf(row), 0)
  const { added } = aggregate.pending(true)
  t.equal(added.length, 4)
  t.match(added[0], { firstSeenMs: 1_004_000, lastSeenMs: 1_005_000, count: 2 }, 'shifted, and first before last')
})

t.test('an event is rewritten when its count has grown, or not before its window closes', async (t) => {
  const aggregate = new Aggregate(10_000)
  const outbox = new RecordingOutbox()
  aggregate.take(rowOf(match()), 0)
  outbox.write(aggregate, true)
  t.equal(aggregate.openSequence, 1)
  aggregate.take(rowOf(match({ timeMs: 6000 })), 0)
  t.same(outbox.write(aggregate, false).changed, [])
  t.same(outbox.write(aggregate, true).changed, [1])
  t.same(outbox.write(aggregate, true).changed, [], 'once')
  aggregate.take(rowOf(match({ timeMs: 7000 })), 0)
  aggregate.closeUntil(15_000)
  t.equal(aggregate.openSequence, Number.POSITIVE_INFINITY)
  t.same(outbox.write(aggregate, false).changed, [1])
  t.match(outbox.events.get(1), { count: 3, lastSeenMs: 7000 })
})

t.test('at the limit the oldest windows are closed, and no match is lost', async (t) => {
  const aggregate = new Aggregate(10_000, 0, { events: 8, keyBytes: 4096 })
  const outbox = new RecordingOutbox()
  for (let index = 0; index < 100; index++) {
    aggregate.take(rowOf(match({ name: `n${index}.claude.ai` })), 0)
    if (index % 5 === 0) outbox.write(aggregate, false)
  }
  aggregate.closeAll()
  outbox.write(aggregate, false)
  t.equal(outbox.events.size, 100)
  t.ok(aggregate.closedEarly > 0)
})
