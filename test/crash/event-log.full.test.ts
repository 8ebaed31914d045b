import { join } from 'node:path'
import t from 'tap'
import { Brokers } from '../support/brokers.ts'
import { testFolder } from '../support/test-folder.ts'
import { brokerKills } from './broker-faults.ts'
import { crashRun } from './crash-run.ts'

/** A small version of `npm run crash -- --log`. The seed changes daily. */
const SEED = Number(process.env['CRASH_SEED'] ?? Math.floor(Date.now() / 86_400_000))
const KILLS = Number(process.env['CRASH_KILLS'] ?? 25)

t.test(`every match is in a scan exactly once although brokers are killed, too, seed ${SEED}`, async (t) => {
  const directory = testFolder(t)
  const brokers = await Brokers.start(t, { directory: join(directory, 'brokers') })
  const queriesPerCapture = KILLS > 100 ? 400_000 : 100_000
  const report = await crashRun({
    ...{ directory, kills: KILLS, seed: SEED, queriesPerCapture },
    brokers: brokerKills(brokers, Math.ceil(KILLS / 4)),
  })
  t.same(report.differences, [])
  t.ok(report.matches > 10_000, `${report.matches} matches`)
  t.ok(report.kills.service > 0, JSON.stringify(report.kills))
  t.comment(JSON.stringify(report))
})
