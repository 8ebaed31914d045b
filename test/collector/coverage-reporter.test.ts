import t, { type Test } from 'tap'
import { CoverageReporter, type CoverageReporterOptions, coverageInstance } from '../../collector/coverage-reporter.ts'
import type { CoverageOutcome } from '../../collector/forward/coverage-way.ts'
import type { CoverageCounters, CoverageReport } from '../../engine/event/coverage-report.ts'
import { counters, INSTANCE } from '../support/coverage.ts'
import { quietLog } from '../support/store.ts'

const EVERY_MS = 20

/** A reporter in a hurry, what it sent, and what it is answered. */
function reporter(t: Test, options: Partial<CoverageReporterOptions> = {}) {
  const state = {
    sent: [] as CoverageReport[],
    outcome: { kind: 'sent' } as CoverageOutcome,
    counted: { packets: 1 } as Partial<CoverageCounters>,
  }
  const made = new CoverageReporter({
    instance: INSTANCE,
    counters: () => counters(state.counted),
    send: async (report) => {
      state.sent.push(report)
      return state.outcome
    },
    log: quietLog,
    firstMs: EVERY_MS,
    everyMs: EVERY_MS,
    ...options,
  })
  t.teardown(() => made.finish())
  return { made, state }
}

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await later(5)
}

t.test('one soon, another when something has changed, and the last one at the end', async (t) => {
  const { made, state } = reporter(t)
  made.start()
  await until(() => state.sent.length === 1)
  await later(5 * EVERY_MS)
  t.equal(state.sent.length, 1, 'nothing has changed')
  state.counted = { packets: 2 }
  await until(() => state.sent.length === 2)
  state.counted = { packets: 3 }
  await made.finish()
  await made.finish()
  await later(3 * EVERY_MS)
  t.same(
    state.sent.map(({ instance, ended, counters: { packets } }) => ({ instance, ended, packets })),
    [1, 2, 3].map((packets) => ({ instance: INSTANCE, ended: packets === 3, packets })),
  )
  const times = state.sent.map(({ madeMs }) => madeMs)
  t.same(
    times,
    times.toSorted((a, b) => a - b),
  )
  t.ok(state.sent.every(({ sinceMs, madeMs }) => sinceMs === state.sent[0]?.sinceMs && madeMs >= sinceMs))
  t.same(made.counts, { sent: 3, failed: 0 })
})

t.test('a run that ends before its first report sends the last one', async (t) => {
  const { made, state } = reporter(t, { firstMs: 60_000 })
  made.start()
  await made.finish()
  t.match(state.sent, [{ ended: true, counters: { packets: 1 } }])
})

t.test('one that failed is made up for by the next, though nothing has changed', async (t) => {
  const { made, state } = reporter(t)
  state.outcome = { kind: 'failed', why: 'nothing listens' }
  made.start()
  await until(() => state.sent.length === 3)
  state.outcome = { kind: 'sent' }
  await until(() => made.counts.sent === 1)
  await later(3 * EVERY_MS)
  t.match(made.counts, { sent: 1, failed: state.sent.length - 1 })
})

t.test('a service that takes no reports is told once, and not asked again for an hour', async (t) => {
  const warnings: unknown[] = []
  const log = Object.assign(Object.create(quietLog), { warn: (fields: unknown) => warnings.push(fields) })
  const { made, state } = reporter(t, { log })
  state.outcome = { kind: 'refused', why: 'answered 404' }
  made.start()
  await until(() => state.sent.length === 1)
  state.counted = { packets: 9 }
  await later(5 * EVERY_MS)
  await made.finish()
  t.equal(state.sent.length, 1, 'nor at the end')
  t.same(warnings, [{ why: 'answered 404' }])
  t.same(made.counts, { sent: 0, failed: 1 })
})

t.test('the end waits for the report that is under way, and for a service that hangs only so long', async (t) => {
  let answer: (outcome: CoverageOutcome) => void = () => {}
  const sent: CoverageReport[] = []
  const { made } = reporter(t, {
    send: (report) => {
      sent.push(report)
      return new Promise((resolve) => {
        answer = resolve
      })
    },
  })
  made.start()
  await until(() => sent.length === 1)
  const finished = made.finish()
  answer({ kind: 'failed', why: 'late' })
  await until(() => sent.length === 2)
  t.same(
    sent.map(({ ended }) => ended),
    [false, true],
  )
  const startMs = performance.now()
  await finished
  t.ok(performance.now() - startMs < 6000)
})

t.test('an instance is of one run of a live capture, and of one capture file', async (t) => {
  t.match(coverageInstance(undefined), /^[0-9a-f]{16}$/)
  t.not(coverageInstance(undefined), coverageInstance(undefined))
  t.match(coverageInstance('4096 9f86d0'), /^[0-9a-f]{16}$/)
  t.equal(coverageInstance('4096 9f86d0'), coverageInstance('4096 9f86d0'))
  t.not(coverageInstance('4096 9f86d0'), coverageInstance('4096 9f86d1'))
})
