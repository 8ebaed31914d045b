import t from 'tap'
import { Environment } from '../../../engine/kernel/lmdb/environment.ts'
import { Family } from '../../../engine/store/family.ts'
import { uuidBytes } from '../../../engine/store/keys.ts'
import { type IdRun, SeenEvents } from '../../../engine/store/seen-events.ts'
import { acmeSite } from '../../support/acme-site.ts'
import * as fc from '../../support/property.ts'
import { findingsOf } from '../../support/store.ts'

const OPTIONS = { setting: '--data-dir', schemaVersion: 1, freeBytesMin: 0 }
const ACME = '00000000-0000-4000-8000-000000000001'
const instance = (number: number): string => number.toString(16).padStart(16, '0')

t.test('remembered instances are limited, and those silent the longest are removed', async (t) => {
  const environment = new Environment(t.testdir(), OPTIONS)
  t.teardown(() => environment.close())
  const seen = new SeenEvents(environment, 20)
  const unseen = (number: number, nowMs: number): boolean =>
    environment.write(() => seen.keepUnseen(ACME, [{ instance: instance(number), first: 1, count: 1 }], nowMs)).unseen
      .length === 1
  for (let number = 0; number < 50; number++) {
    t.equal(unseen(number, 1000 + number), true)
    // An instance that is always in use, with a new sequence each time.
    environment.write(() =>
      seen.keepUnseen(ACME, [{ instance: instance(999), first: number + 1, count: 1 }], 1000 + number),
    )
  }
  const kept = [...new Family(environment.table('seen'), 'seen events').range(uuidBytes(ACME))]
  t.ok(kept.length <= 20, `${kept.length}`)
  t.equal(unseen(49, 2000), false, 'the latest')
  t.equal(
    environment.write(() => seen.keepUnseen(ACME, [{ instance: instance(999), first: 1, count: 1 }], 2000)).unseen
      .length,
    0,
  )
  t.equal(unseen(0, 2000), true, 'the first is forgotten')
})

/** What is decided about each event of a batch, in order. */
function verdicts(seen: SeenEvents, runs: readonly IdRun[]): string[] {
  const { unseen, late } = seen.keepUnseen(ACME, runs, 1000)
  const all = Array<string>(runs.reduce((sum, { count }) => sum + count, 0)).fill('duplicate')
  for (const { from, to } of unseen) all.fill('new', from, to)
  for (const { from, to } of late) all.fill('late', from, to)
  return all
}

const only = (found: readonly string[]): string[] => [...new Set(found)]
const run = (number: number, first: number, count = 1): IdRun => ({ instance: instance(number), first, count })

t.test('100,000 gaps of one instance stay open, each is filled once, and the oldest beyond them is late', async (t) => {
  const { store, id } = acmeSite(t)
  const GAPS = 100_000
  const send = (runs: readonly IdRun[]) => store.environment.write(() => store.seenEvents.keepUnseen(id, runs, 1000))
  /** The odd sequences from `from` on, one run each, in batches. */
  const odd = (from: number, gaps: number): number => {
    let fresh = 0
    for (let done = 0; done < gaps; done += 10_000) {
      const count = Math.min(10_000, gaps - done)
      const { unseen } = send(Array.from({ length: count }, (_, at) => run(1, from + 2 * (done + at))))
      fresh += unseen.reduce((sum, { from, to }) => sum + to - from, 0)
    }
    return fresh
  }
  t.equal(odd(1, GAPS + 1), GAPS + 1)
  t.same(findingsOf(store), [], 'the check of the store finds nothing')
  for (const sequence of [2, 4, 50_000, 2 * GAPS]) {
    t.match(send([run(1, sequence)]), { unseen: [{ from: 0, to: 1 }] }, `${sequence} was never seen`)
    t.match(send([run(1, sequence)]), { unseen: [], late: [] }, `${sequence} was seen`)
  }
  const bytes = store.environment.tableBytes('seen') + store.environment.tableBytes('seen-pages')
  t.ok(bytes < 4 * 1024 * 1024, `${bytes} bytes`)
  t.same(store.seenEvents.forgotten, { instances: 0, pages: 0 })

  odd(2 * GAPS + 3, 2 * GAPS)
  t.ok(store.seenEvents.forgotten.pages > 0, 'counted')
  t.match(send([run(1, 6, 3)]), { unseen: [], late: [{ from: 0, to: 3 }] }, 'whether they were seen is not known')
  t.match(send([run(1, 6 * GAPS)]), { unseen: [{ from: 0, to: 1 }] }, 'newer gaps are still open')
  t.same(findingsOf(store), [])

  // All gaps are filled: one range is left.
  const { unseen } = send([run(2, 1)])
  t.equal(unseen.length, 1)
  for (let at = 1; at <= 6 * GAPS + 3; at += 10_000) send([run(1, at, 10_000)])
  const pages = [...new Family(store.environment.table('seen-pages'), 'page').range(uuidBytes(id))]
  t.equal(pages.length, 0)
  t.match(send([run(1, 6 * GAPS)]), { unseen: [], late: [] })
  t.same(findingsOf(store), [])
})

t.test('batches in any order are counted as a Set counts them', async (t) => {
  const { store, id } = acmeSite(t)
  const SPAN = 40_000
  let number = 0
  // Gaps of one or two, in an order that repeatedly returns to old pages.
  const stride = fc.record({ first: fc.integer({ min: 1, max: SPAN }), step: fc.integer({ min: 1, max: 3 }) })
  const batch = fc.record({ stride, count: fc.integer({ min: 1, max: 6000 }), length: fc.integer({ min: 1, max: 2 }) })
  fc.assert(
    fc.property(fc.array(batch, { minLength: 3, maxLength: 12 }), (batches) => {
      number++
      const model = new Set<number>()
      for (const { stride, count, length } of batches) {
        const runs = Array.from({ length: count }, (_, at) => run(number, stride.first + at * stride.step, length))
        const expected: number[] = []
        let place = 0
        for (const { first, count } of runs) {
          for (let at = 0; at < count; at++, place++) {
            if (!model.has(first + at)) expected.push(place)
            model.add(first + at)
          }
        }
        const { unseen, late } = store.environment.write(() => store.seenEvents.keepUnseen(id, runs, 1000))
        const found = unseen.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, at) => from + at))
        if (late.length > 0 || found.join() !== expected.join()) return false
      }
      return true
    }),
    { numRuns: 40 },
  )
  t.same(findingsOf(store), [])
})

t.test('the pages of an organization are bounded: an organization at the limit loses its own oldest', async (t) => {
  const environment = new Environment(t.testdir(), OPTIONS)
  t.teardown(() => environment.close())
  const seen = new SeenEvents(environment, 20, 4)
  const gaps = (number: number, count: number): string[] =>
    environment.write(() =>
      verdicts(
        seen,
        Array.from({ length: count }, (_, at) => run(number, 1 + 2 * at)),
      ),
    )
  t.same(only(gaps(1, 3000)), ['new'])
  t.same(only(gaps(2, 3000)), ['new'])
  t.same(
    environment.write(() => verdicts(seen, [run(1, 2)])),
    ['new'],
    'the first has what it had',
  )
  t.same(
    environment.write(() => verdicts(seen, [run(2, 2)])),
    ['late'],
  )
  const pages = new Family(environment.table('seen-pages'), 'page')
  const kept = [...pages.keys(uuidBytes(ACME))].length
  t.ok(kept <= 4, `${kept}`)
  t.ok(seen.forgotten.pages > 0)
  // An instance that goes takes its pages along.
  for (let number = 100; number < 125; number++) environment.write(() => verdicts(seen, [run(number, 1)]))
  t.equal([...pages.keys(uuidBytes(ACME))].length, 0)
  t.ok(seen.forgotten.instances > 0)
})
