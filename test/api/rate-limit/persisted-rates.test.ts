import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { persistRates, resumeRates, type Times } from '../../../api/rate-limit/persisted-rates.ts'
import { makeRateTable, RateLimit, type RateVerdict } from '../../../api/rate-limit/rate-limit.ts'
import { capturedLog } from '../../support/captured-log.ts'
import { quietLog } from '../../support/store.ts'

const BOOT = '6d0c3a5e-9f0b-4e53-8f14-2f6c3c1f8c11'
const OTHER_BOOT = '0d0c3a5e-9f0b-4e53-8f14-2f6c3c1f8c11'
const AT: Times = { boot: BOOT, monotonicMs: 500_000, wallMs: 1_795_000_000_000 }

/**
 * 40 requests of a key 30 s before the service stops and 20 at its end; then it starts at `start`.
 */
function restarted(directory: string, start: Times) {
  const key = randomBytes(32)
  const tables = [makeRateTable(), makeRateTable()]
  const [keys, addresses] = tables as [SharedArrayBuffer, SharedArrayBuffer]
  const take = (table: SharedArrayBuffer, nowMs: number): RateVerdict => new RateLimit(table, () => nowMs).take(key)
  for (let each = 0; each < 40; each++) take(keys, AT.monotonicMs - 30_000)
  for (let each = 0; each < 20; each++) take(keys, AT.monotonicMs)
  take(addresses, AT.monotonicMs)
  persistRates(directory, tables, quietLog, AT)
  const next = [makeRateTable(), makeRateTable()]
  resumeRates(directory, next, quietLog, start)
  return (table: 0 | 1, nowMs: number) => take(next[table] as SharedArrayBuffer, nowMs)
}

const cases: { name: string; start: Times; elapsedMs: number }[] = [
  { name: 'at once', start: AT, elapsedMs: 0 },
  { name: 'after ten seconds', start: { ...AT, monotonicMs: 510_000, wallMs: AT.wallMs + 10_000 }, elapsedMs: 10_000 },
  {
    name: 'after ten seconds, and the clock was set a day ahead',
    start: { ...AT, monotonicMs: 510_000, wallMs: AT.wallMs + 86_400_000 },
    elapsedMs: 10_000,
  },
  {
    name: 'after a reboot of 20 s, when the clock of the boot is younger than the requests',
    start: { boot: OTHER_BOOT, monotonicMs: 5_000, wallMs: AT.wallMs + 20_000 },
    elapsedMs: 20_000,
  },
  {
    name: 'after a reboot that set the clock back',
    start: { boot: OTHER_BOOT, monotonicMs: 5_000, wallMs: AT.wallMs - 86_400_000 },
    elapsedMs: 0,
  },
]

for (const { name, start, elapsedMs } of cases) {
  t.test(`counting continues: ${name}`, async (t) => {
    const directory = t.testdir()
    const take = restarted(directory, start)
    t.same(take(0, start.monotonicMs), { allowed: false, remaining: 0, resetSeconds: (30_000 - elapsedMs) / 1000 })
    t.match(take(1, start.monotonicMs), { allowed: true, remaining: 58 }, 'each table has its own counts')
    const thirty = start.monotonicMs + 30_000 - elapsedMs
    t.match(take(0, thirty), { allowed: true, remaining: 39 })
    t.match(take(0, thirty + 30_000), { allowed: true, remaining: 58 })
    t.notOk(existsSync(join(directory, 'rate-limits')), 'read once')
  })
}

t.test('no count is left after a window', async (t) => {
  const start = { ...AT, monotonicMs: AT.monotonicMs + 60_000 }
  t.match(restarted(t.testdir(), start)(0, start.monotonicMs), { allowed: true, remaining: 59 })
})

t.test('100,000 keys are kept in a small file of its owner', async (t) => {
  const directory = t.testdir()
  const table = makeRateTable()
  const limit = new RateLimit(table, () => AT.monotonicMs)
  const keys = Array.from({ length: 100_000 }, () => randomBytes(32))
  for (const key of keys) limit.take(key)
  persistRates(directory, [table], quietLog, AT)
  const { size, mode } = statSync(join(directory, 'rate-limits'))
  t.ok(size < 2 * 1024 * 1024, `${size} bytes`)
  t.equal(mode & 0o777, 0o600)
  const next = makeRateTable()
  resumeRates(directory, [next], quietLog, AT)
  const after = new RateLimit(next, () => AT.monotonicMs)
  t.ok(keys.every((key) => after.take(key).remaining === 58))
})

t.test('a file that is damaged at any byte, truncated, or too long is removed, and the service starts', async (t) => {
  const directory = t.testdir()
  const file = join(directory, 'rate-limits')
  const table = makeRateTable()
  new RateLimit(table, () => AT.monotonicMs).take(randomBytes(32))
  persistRates(directory, [table], quietLog, AT)
  const whole = readFileSync(file)
  const warnings: unknown[] = []
  const log = Object.assign(Object.create(quietLog), { warn: (line: unknown) => warnings.push(line) })
  const next = makeRateTable()
  for (let at = 0; at <= whole.length; at++) {
    const damaged = Buffer.from(whole)
    if (at < whole.length) damaged[at] = (damaged[at] ?? 0) ^ 1
    writeFileSync(file, damaged)
    if (at === whole.length) truncateSync(file, 1e9)
    resumeRates(directory, [next], log, AT)
    writeFileSync(file, whole.subarray(0, at === whole.length ? 0 : at))
    resumeRates(directory, [next], log, AT)
    t.notOk(existsSync(file))
  }
  t.equal([...new RateLimit(next, () => AT.monotonicMs).rows()].length, 0)
  t.ok(warnings.length > 0)
})

t.test('a file that cannot be written does not keep the service from ending', async (t) => {
  persistRates(join(t.testdir(), 'nowhere'), [makeRateTable()], quietLog, AT)
  t.pass('it does not throw')
})

t.test('an error in the code is logged with its stack, a missing directory with its reason', async (t) => {
  const { log, entries } = capturedLog()
  const directory = t.testdir()
  persistRates(join(directory, 'nowhere'), [makeRateTable()], log, AT)
  persistRates(directory, undefined as never, log, AT)
  persistRates(directory, [makeRateTable()], quietLog, AT)
  resumeRates(directory, undefined as never, log, AT)
  t.match(entries, [
    { level: 40, reason: /^ENOENT/ },
    { level: 50, err: { type: 'TypeError', stack: /persisted-rates/ } },
    { level: 50, err: { type: 'TypeError', stack: /persisted-rates/ } },
  ])
})
