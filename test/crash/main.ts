import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { SingleBar } from 'cli-progress'
import { crashRun } from './crash-run.ts'

/**
 * npm run crash: kills collector and service a thousand times, with a faulty network between them.
 * Then every match must be in a scan exactly once. CRASH_SEED repeats the choices, CRASH_KILLS sets
 * the number of kills, and so does --kills. After a failure the stores stay on disk.
 *
 * npm run crash -- --log: keeps the events in the log of three brokers, and kills them, too.
 *
 * npm run crash -- --cluster: kills the primary, a node that only ingests, and a broker of a
 * cluster, 100 times each. Power, network and a disk fail 20 times each, nodes are paused, and
 * everything is killed at once. Clocks step.
 * Then the stores of all nodes must be the same. As root.
 *
 * npm run crash -- --machines: causes 20 power failures of the brokers' machines, 20 partitions of
 * their network and a full disk. As root.
 *
 * npm run crash -- --alerts: kills the sender of alerts 500 times instead, with real receivers.
 */
const { kills, ...chosen } = parseArgs({
  options: {
    alerts: { type: 'boolean' },
    cluster: { type: 'boolean' },
    log: { type: 'boolean' },
    machines: { type: 'boolean' },
    kills: { type: 'string' },
  },
}).values
const TESTS = {
  alerts: { file: './alerts.full.test.js', kills: 500 },
  cluster: { file: './cluster.full.test.js', kills: 100 },
  log: { file: './event-log.full.test.js', kills: 1000 },
  machines: { file: './broker-machines.full.test.js', kills: 20 },
} as const
const test = Object.entries(TESTS).find(([name]) => chosen[name as keyof typeof TESTS])?.[1]
const KILLS = Number(kills ?? process.env['CRASH_KILLS'] ?? test?.kills ?? 1000)
const SEED = Number(process.env['CRASH_SEED'] ?? Math.floor(Date.now() / 1000))
const QUERIES_PER_CAPTURE = 400_000

if (!Number.isInteger(KILLS) || KILLS < 1) throw new Error(`--kills: expected a whole number from 1, found ${kills}`)
if (test !== undefined) {
  const [count, seed] = [String(KILLS), String(SEED)]
  const numbers = { CRASH_KILLS: count, CRASH_FAULTS: count, CRASH_SEED: seed, ALERT_KILLS: count, ALERT_SEED: seed }
  // The default, 30 seconds, is too short for this many kills.
  const env = { ...process.env, TAP_TIMEOUT: '0', ...numbers }
  const file = fileURLToPath(new URL(test.file, import.meta.url))
  const { status } = spawnSync(process.execPath, [file], { env, stdio: 'inherit' })
  process.exit(status ?? 1)
}

const directory = mkdtempSync(join(tmpdir(), 'crash-'))
const bar = new SingleBar({ format: 'crash {bar} {percentage}% {value} kills', noTTYOutput: false, hideCursor: true })
if (process.stderr.isTTY) bar.start(KILLS, 0)
const startMs = performance.now()
const report = await crashRun({
  directory,
  kills: KILLS,
  seed: SEED,
  queriesPerCapture: QUERIES_PER_CAPTURE,
  onKill: (killed) => {
    if (process.stderr.isTTY) bar.update(killed)
  },
}).finally(() => bar.stop())

const { collector, service, scan } = report.kills
const what = [
  `seed ${SEED}`,
  `${collector + service + scan} kills (collector ${collector}, service ${service}, scan ${scan}; ${report.atFaultPoints} at fault points)`,
  `${report.faults} network faults, ${report.rogueAnswers} rogue answers`,
  `${report.captures} captures of ${report.queries} queries`,
  `${report.matches} matches in ${report.events} events in ${report.scans} scans`,
  `${Math.round((performance.now() - startMs) / 1000)} s`,
].join('; ')
if (report.differences.length === 0) {
  process.stdout.write(`crash: every match is in a scan exactly once; ${what}\n`)
  rmSync(directory, { recursive: true })
} else {
  process.stdout.write(`crash: FAILED; ${what}\n`)
  for (const difference of report.differences) process.stdout.write(`  ${difference}\n`)
  process.stdout.write(`  the stores are in ${directory}\n`)
  process.exitCode = 1
}
