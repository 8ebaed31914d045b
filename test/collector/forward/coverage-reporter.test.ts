import t from 'tap'
import { Candidates } from '../../../collector/candidates.ts'
import {
  CoverageReporter,
  type CoverageReporterOptions,
  coverageInstance,
} from '../../../collector/forward/coverage-reporter.ts'
import type { Outcome } from '../../../collector/forward/forwarder.ts'
import { CANDIDATES_MAX } from '../../../collector/limits.ts'
import {
  CANDIDATES_PER_REPORT,
  type CoverageCounters,
  type CoverageReport,
} from '../../../engine/kernel/event/coverage-report.ts'
import { COVERAGE_BYTES_MAX } from '../../../engine/limits.ts'
import { counters, coverageMessage, INSTANCE, report } from '../../support/coverage.ts'
import { quietLog } from '../../support/store.ts'

const ACCEPTED: Outcome = { kind: 'accepted', duplicates: 0, outsideDedupWindow: 0, rejected: [] }
const FAILED: Outcome = { kind: 'retry', why: 'nothing listens' }

/** A reporter whose reports are due at once, and its counters. */
function reporter(options: Partial<CoverageReporterOptions> = {}) {
  const state = { counted: { packets: 1 } as Partial<CoverageCounters> }
  const count = () => counters(state.counted)
  const made = new CoverageReporter({
    instance: INSTANCE,
    counters: count,
    log: quietLog,
    firstMs: 0,
    everyMs: 0,
    ...options,
  })
  /** Takes the report that is due and settles it with this outcome. */
  const send = (outcome: Outcome): CoverageReport | undefined => {
    const report = made.take()
    if (report !== undefined) made.settle(report, outcome)
    return report
  }
  return { made, state, send }
}

t.test('a report is made when something has changed, and a last one at the end', async (t) => {
  const { made, state, send } = reporter()
  const sent = [send(ACCEPTED)]
  t.equal(send(ACCEPTED), undefined, 'nothing has changed')
  t.equal(made.takeLast(), undefined, 'the run continues')
  state.counted = { packets: 2 }
  sent.push(send(ACCEPTED))
  state.counted = { packets: 3 }
  made.finish()
  sent.push(send(ACCEPTED))
  t.equal(made.takeLast(), undefined, 'the service has it')
  t.same(
    sent.map((report) => [report?.instance, report?.ended, report?.counters.packets]),
    [1, 2, 3].map((packets) => [INSTANCE, packets === 3, packets]),
  )
  const times = sent.map((report) => report?.madeMs ?? Number.NaN)
  t.same(
    times,
    times.toSorted((a, b) => a - b),
  )
  t.ok(sent.every((report) => report && report.sinceMs === sent[0]?.sinceMs && report.madeMs >= report.sinceMs))
  t.same(made.counts, { sent: 3, failed: 0 })
})

t.test('the first report has its own delay, later ones the interval, and the last one none', async (t) => {
  const startMs = performance.now()
  const { made } = reporter({ firstMs: 60_000, everyMs: 600_000 })
  t.equal(made.take(), undefined)
  t.ok(made.dueMs >= startMs + 60_000)
  made.finish()
  const report = made.take()
  t.match(report, { ended: true, counters: { packets: 1 } })
  if (report !== undefined) made.settle(report, FAILED)
  t.equal(made.take(), undefined, 'after a failure, a batch is tried without a report')
  t.ok(made.dueMs >= startMs + 540_000 && made.dueMs <= performance.now() + 660_000)
  t.same(made.takeLast(), report, 'the last one is the same however often it is sent')
})

t.test('the next report replaces a failed one even if nothing has changed', async (t) => {
  const { made, send } = reporter()
  for (let times = 0; times < 3; times++) t.match(send(FAILED), { counters: { packets: 1 } })
  t.match(send(ACCEPTED), { counters: { packets: 1 } })
  t.equal(send(ACCEPTED), undefined)
  t.same(made.counts, { sent: 1, failed: 3 })
})

t.test('candidates wait until the service has them, and are reported once', async (t) => {
  const candidates = new Candidates()
  const { send } = reporter({ candidates })
  for (const name of ['b.ai', 'a.ai', 'a.ai']) candidates.count(name)
  const expected = [
    ['a.ai', 2],
    ['b.ai', 1],
  ]
  t.same(send(FAILED)?.candidates, expected)
  candidates.count('a.ai')
  t.same(send(ACCEPTED)?.candidates, [
    ['a.ai', 3],
    ['b.ai', 1],
  ])
  t.equal(send(ACCEPTED), undefined, 'nothing is new')
  candidates.count('b.ai')
  t.same(send(ACCEPTED)?.candidates, [['b.ai', 1]])
})

t.test('candidates are bounded', async (t) => {
  const candidates = new Candidates()
  for (let at = 0; at < CANDIDATES_MAX + 5; at++) candidates.count(`${'x'.repeat(200)}${at}.ai`)
  candidates.count(`${'x'.repeat(200)}7.ai`)
  t.equal(candidates.dropped, 5)
  const next = candidates.next()
  t.same(next[0], [`${'x'.repeat(200)}7.ai`, 2])
  t.ok(next.length > 30 && next.length <= CANDIDATES_PER_REPORT)
  const text = coverageMessage(report({ candidates: next }))
  t.ok(text.length < COVERAGE_BYTES_MAX / 1.4, `${text.length} bytes fit`)
  candidates.reported(next)
  candidates.count('new.ai')
  t.equal(candidates.dropped, 5, 'there is space again')
})

t.test("the service's answer to a report is logged once; a missing connection is logged by the loop", async (t) => {
  const warnings: unknown[] = []
  const log = Object.assign(Object.create(quietLog), { warn: (fields: unknown) => warnings.push(fields) })
  const { made, send } = reporter({ log })
  send(FAILED)
  send({ ...ACCEPTED, coverageError: 'coverage: reports are sent too often' })
  send({ ...ACCEPTED, coverageError: 'coverage: reports are sent too often' })
  send({ kind: 'refused', why: 'answered 400' })
  t.same(warnings, [{ why: 'coverage: reports are sent too often' }, { why: 'answered 400' }])
  t.same(made.counts, { sent: 0, failed: 4 })
})

t.test('an instance identifies one run of a live capture, or one capture file', async (t) => {
  t.match(coverageInstance(undefined), /^[0-9a-f]{16}$/)
  t.not(coverageInstance(undefined), coverageInstance(undefined))
  t.match(coverageInstance('4096 9f86d0'), /^[0-9a-f]{16}$/)
  t.equal(coverageInstance('4096 9f86d0'), coverageInstance('4096 9f86d0'))
  t.not(coverageInstance('4096 9f86d0'), coverageInstance('4096 9f86d1'))
})
