import t from 'tap'
import { testFolder } from '../support/test-folder.ts'
import { crashRun } from './crash-run.ts'

/** A small version of `npm run crash`. The seed changes daily; the test's title contains it. */
const SEED = Number(process.env['CRASH_SEED'] ?? Math.floor(Date.now() / 86_400_000))

t.test(`every match is in a scan exactly once despite kills and network faults, seed ${SEED}`, async (t) => {
  const report = await crashRun({ directory: testFolder(t), kills: 20, seed: SEED, queriesPerCapture: 200_000 })
  t.same(report.differences, [])
  t.ok(report.matches > 50_000, `${report.matches} matches`)
  t.ok(report.kills.collector > 0 && report.kills.service > 0, JSON.stringify(report.kills))
  t.comment(JSON.stringify(report))
})
