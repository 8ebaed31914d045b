import { join } from 'node:path'
import t from 'tap'
import { Brokers } from '../support/brokers.ts'
import { ClusterRun } from './cluster-run.ts'

/** A small version of `npm run crash -- --cluster`. The seed changes daily. */
const SEED = Number(process.env['CRASH_SEED'] ?? Math.floor(Date.now() / 86_400_000))
const FAULTS = Number(process.env['CRASH_FAULTS'] ?? 2)

t.test(`no event and no change is lost or doubled although nodes and brokers fail, seed ${SEED}`, async (t) => {
  const directory = t.testdir()
  const brokers = await Brokers.start(t, { directory: join(directory, 'brokers') })
  const report = await new ClusterRun({ directory, brokers, seed: SEED, faults: FAULTS }).report()
  t.same(report.differences, [])
  t.ok(report.acknowledged > 0 && report.confirmed > 0 && report.generations > 1, JSON.stringify(report))
  t.comment(JSON.stringify(report))
})
