import t from 'tap'
import { crashRun } from './crash-run.ts'

/** A bounded part of `npm run crash`, with a seed of the day so that every day tries others; a failure names it. */
const SEED = Number(process.env['CRASH_SEED'] ?? Math.floor(Date.now() / 86_400_000))

t.test(`every match is in a scan exactly once, through kills and a network in trouble, seed ${SEED}`, async (t) => {
  const report = await crashRun({ directory: t.testdir(), kills: 20, seed: SEED, queriesPerCapture: 200_000 })
  t.same(report.differences, [])
  t.ok(report.matches > 50_000, `${report.matches} matches`)
  t.ok(report.kills.collector > 0 && report.kills.service > 0, JSON.stringify(report.kills))
  t.comment(JSON.stringify(report))
})
