import t from 'tap'
import { COVERAGE_COUNTER_NAMES, type CoverageCounters } from '../../../engine/kernel/event/coverage-report.ts'
import { Environment } from '../../../engine/kernel/lmdb/environment.ts'
import { DAY_MS, dayOf } from '../../../engine/kernel/process/clock.ts'
import { COVERAGE_INTERVAL_MS } from '../../../engine/limits.ts'
import { CoverageStore, recentCoverage } from '../../../engine/store/coverage.ts'
import { counters, INSTANCE, report } from '../../support/coverage.ts'
import * as fc from '../../support/property.ts'
import { NOON } from '../../support/store.ts'

const COUNTERS = COVERAGE_COUNTER_NAMES.length

const OPTIONS = { setting: '--data-dir', schemaVersion: 1, freeBytesMin: 0 }
const ACME = '00000000-0000-4000-8000-000000000001'
const OTHER = '00000000-0000-4000-8000-000000000002'
const TODAY = dayOf(NOON)
const instance = (number: number): string => number.toString(16).padStart(16, '0')

interface Teardown {
  testdir(): string
  teardown(work: () => unknown): void
}

function open(t: Teardown, instancesMax?: number) {
  const environment = new Environment(t.testdir(), OPTIONS)
  t.teardown(() => environment.close())
  const store = new CoverageStore(environment, instancesMax)
  const add = (words: Parameters<typeof report>[0], nowMs: number, organizationId = ACME): string =>
    environment.write(() => store.add(organizationId, report(words), nowMs))
  return { environment, store, add }
}

t.test('a report adds what is new in it', async (t) => {
  const { store, add } = open(t)
  t.equal(add({ madeMs: NOON, counters: { packets: 100, names: 7 } }, NOON), 'added')
  t.same(store.sumSince(ACME, TODAY), { sensors: 1, days: 1, counters: counters({ packets: 100, names: 7 }) })
  t.equal(add({ madeMs: NOON + 60_000, counters: { packets: 150, names: 7, hellos_ech: 2 } }, NOON + 60_000), 'added')
  t.same(store.sumSince(ACME, TODAY).counters, counters({ packets: 150, names: 7, hellos_ech: 2 }))
})

t.test('the recent coverage of a sensor is what today and yesterday added', async (t) => {
  const { store, add } = open(t)
  const recent = (day: number): number => {
    const [only] = store.sensors(ACME)
    return only === undefined ? -1 : recentCoverage(only.sensor, day).counters.packets
  }
  const at = (days: number, packets: number): string => {
    return add({ madeMs: NOON + days * DAY_MS, counters: { packets } }, NOON + days * DAY_MS)
  }
  at(0, 100)
  t.same([TODAY - 1, TODAY, TODAY + 1, TODAY + 2].map(recent), [0, 100, 100, 0])
  at(1, 130)
  t.same([TODAY + 1, TODAY + 2, TODAY + 3].map(recent), [130, 30, 0])
  at(4, 137)
  t.same([TODAY + 4, TODAY + 5, TODAY + 6].map(recent), [7, 7, 0])
})

t.test('a repeated report, an older one and smaller counters change nothing', async (t) => {
  const { store, add } = open(t)
  const words = { madeMs: NOON, counters: { packets: 100, names: 7 } }
  add(words, NOON)
  t.equal(add(words, NOON + 60_000), 'known')
  t.equal(add({ madeMs: NOON - 1, counters: { packets: 900 } }, NOON + 60_000), 'known')
  t.same(store.sumSince(ACME, 0).counters, counters({ packets: 100, names: 7 }))
  t.equal(add({ madeMs: NOON + 1, counters: { packets: 40, names: 8 } }, NOON + 60_000), 'added')
  t.same(
    store.sumSince(ACME, 0).counters,
    counters({ packets: 100, names: 8 }),
    'a counter that decreased adds nothing',
  )
  add({ madeMs: NOON + 2, counters: { packets: 110, names: 8 } }, NOON + 120_000)
  t.same(store.sumSince(ACME, 0).counters, counters({ packets: 110, names: 8 }), 'the old value adds nothing again')
})

t.test('an instance has one report per ten seconds, and the last one of its run', async (t) => {
  const { environment, store, add } = open(t)
  const at = (ms: number, ended = false) => add({ madeMs: NOON + ms, ended, counters: { packets: 1 + ms } }, NOON + ms)
  t.equal(at(0), 'added')
  t.equal(at(COVERAGE_INTERVAL_MS - 1), 'tooSoon')
  t.equal(at(COVERAGE_INTERVAL_MS), 'added')
  const soon = report({ madeMs: NOON + COVERAGE_INTERVAL_MS + 4000 })
  t.equal(
    environment.read(() => store.preview(ACME, soon, soon.madeMs)),
    'tooSoon',
  )
  t.equal(at(COVERAGE_INTERVAL_MS + 1, true), 'added', 'no later report would replace the last one')
  t.equal(at(COVERAGE_INTERVAL_MS + 2, true), 'tooSoon', 'only once')
  t.equal(at(COVERAGE_INTERVAL_MS + 2), 'tooSoon')
  t.equal(add({ instance: instance(1), madeMs: NOON }, NOON + 1), 'added', 'another instance has its own')
  t.equal(add({ madeMs: NOON + 60_000 }, NOON - DAY_MS), 'added', 'a clock that was set back does not block reports')
  t.equal(store.sumSince(ACME, 0).counters.packets, 1 + COVERAGE_INTERVAL_MS + 1)
})

t.test("days follow the service's clock, and each instance counts once per day", async (t) => {
  const { environment, store, add } = open(t)
  for (const [sensor, hours] of [
    [1, 0],
    [2, 1],
    [1, 2],
    [1, 24],
    [3, 25],
    [1, 26],
    [2, 72],
  ] as const) {
    const ms = hours * 3_600_000
    add({ instance: instance(sensor), madeMs: NOON - 40 * DAY_MS + ms, counters: { packets: 10 + hours } }, NOON + ms)
  }
  t.match(store.sumSince(ACME, TODAY), { sensors: 3, days: 3, counters: { packets: 36 + 82 + 35 } })
  t.match(store.sumSince(ACME, TODAY + 1), { sensors: 3, days: 2 })
  t.match(store.sumSince(ACME, TODAY + 2), { sensors: 1, days: 1, counters: { packets: 82 - 11 } })
  t.match(store.sumSince(ACME, TODAY + 4), { sensors: 0, days: 0, counters: counters() })
  environment.write(() => store.removeBefore(ACME, TODAY + 1))
  t.match(store.sumSince(ACME, 0), { sensors: 3, days: 2 })
})

t.test('organizations do not share instances', async (t) => {
  const { environment, store, add } = open(t)
  add({ madeMs: NOON, counters: { packets: 5 } }, NOON)
  t.same(store.sumSince(OTHER, 0), { sensors: 0, days: 0, counters: counters() })
  t.equal(add({ madeMs: NOON, counters: { packets: 3 } }, NOON, OTHER), 'added')
  t.match(store.sumSince(ACME, 0), { sensors: 1, counters: { packets: 5 } })
  t.match(store.sumSince(OTHER, 0), { sensors: 1, counters: { packets: 3 } })
  environment.write(() => store.removeBefore(ACME, TODAY + 1))
  t.match(store.sumSince(ACME, 0), { days: 0 })
  t.match(store.sumSince(OTHER, 0), { days: 1, counters: { packets: 3 } })
})

t.test('the number of instances is limited; those silent the longest are removed, and their counts stay', async (t) => {
  const { store, add } = open(t, 20)
  for (let number = 0; number < 50; number++) {
    const nowMs = NOON + number * COVERAGE_INTERVAL_MS
    t.equal(add({ instance: instance(number), madeMs: NOON, counters: { packets: 1 } }, nowMs), 'added')
    add({ instance: INSTANCE, madeMs: nowMs, counters: { packets: 1000 + number } }, nowMs)
  }
  const nowMs = NOON + 60 * COVERAGE_INTERVAL_MS
  t.ok(store.sumSince(ACME, 0).sensors <= 20)
  t.equal(store.sumSince(ACME, 0).counters.packets, 1049 + 50)
  t.equal(add({ instance: instance(49), madeMs: NOON, counters: { packets: 1 } }, nowMs), 'known', 'the latest')
  t.equal(add({ instance: INSTANCE, madeMs: nowMs, counters: { packets: 1050 } }, nowMs), 'added', 'one always in use')
  t.equal(store.sumSince(ACME, 0).counters.packets, 1050 + 50)
})

t.test('sums stop at the largest exact number', async (t) => {
  const { store, add } = open(t)
  for (let number = 0; number < 20; number++) {
    add({ instance: instance(number), madeMs: NOON, counters: { packets: 2 ** 50 } }, NOON)
  }
  t.equal(store.sumSince(ACME, 0).counters.packets, Number.MAX_SAFE_INTEGER)
})

/**
 * Reports of several instances with growing counters; and which of them arrive, how often and in
 * which order.
 */
const growth = fc.array(fc.array(fc.nat(1000), { minLength: COUNTERS, maxLength: COUNTERS }), {
  minLength: 1,
  maxLength: 6,
})
const arrivals = fc.array(fc.tuple(fc.nat(100), fc.nat(100), fc.nat(2 * COVERAGE_INTERVAL_MS)), { maxLength: 30 })

t.test('sums never exceed the true counts, and equal them after the last report of each instance', async (t) => {
  const directory = t.testdir()
  let runs = 0
  fc.assert(
    fc.property(fc.array(growth, { minLength: 1, maxLength: 4 }), arrivals, (sensors, some) => {
      const environment = new Environment(`${directory}/${runs++}`, OPTIONS)
      const store = new CoverageStore(environment)
      try {
        const made = sensors.map((steps, number) => {
          const sum = new Array<number>(COUNTERS).fill(0)
          return steps.map((step, index) => {
            for (const [counter, count] of step.entries()) sum[counter] = (sum[counter] ?? 0) + count
            const words = Object.fromEntries(COVERAGE_COUNTER_NAMES.map((name, at) => [name, sum[at]]))
            const ended = index === steps.length - 1
            return report({ instance: instance(number), madeMs: NOON + index * 60_000, ended, counters: words })
          })
        })
        const truth = sumOf(made.map((reports) => reports.at(-1)?.counters ?? counters()))
        let nowMs = NOON
        const arrive = (sensor: number, index: number): void => {
          const reports = made[sensor % made.length] ?? []
          const each = reports[index % reports.length]
          if (each !== undefined) environment.write(() => store.add(ACME, each, nowMs))
        }
        for (const [sensor, index, laterMs] of some) {
          arrive(sensor, index)
          nowMs += laterMs
          const { counters: found } = store.sumSince(ACME, 0)
          if (COVERAGE_COUNTER_NAMES.some((name) => found[name] > truth[name])) return false
        }
        for (const [sensor, reports] of made.entries()) arrive(sensor, reports.length - 1)
        const { sensors: sensorCount, counters: found } = store.sumSince(ACME, 0)
        return sensorCount === made.length && COVERAGE_COUNTER_NAMES.every((name) => found[name] === truth[name])
      } finally {
        void environment.close()
      }
    }),
    { numRuns: 100 },
  )
  t.pass()
})

function sumOf(all: readonly CoverageCounters[]): CoverageCounters {
  return counters(
    Object.fromEntries(
      COVERAGE_COUNTER_NAMES.map((name) => [name, all.reduce((sum, each) => sum + each[name], 0)] as const),
    ),
  )
}
