import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Preparations, preparationsOf } from './support/preparations.ts'
import { REPOSITORY } from './support/programs.ts'
import { type FileResult, runFiles, runScript } from './support/run-file.ts'
import { testFile } from './support/test-files.ts'
import { until } from './support/wait.ts'

/** Tests the runner with test files that pass, fail, crash and hang. */
const TAP = JSON.stringify(join(REPOSITORY, 'node_modules/tap/dist/esm/index.js'))
const PROCESS = `import { spawn } from 'node:child_process'; const child = spawn('sleep', ['1000'], { stdio: 'ignore' })`

const ROWS: readonly {
  name: string
  code: string
  result: Partial<FileResult>
  failure?: RegExp
  timeoutSeconds?: number
}[] = [
  {
    name: 'a failed assertion of a subtest',
    code: `import t from ${TAP}; t.ok(1); t.test('a', async (t) => { t.test('b', async (t) => t.equal(1, 2, 'same')) })`,
    result: { passed: 1, failed: 1 },
    failure: /^a > b > same\n[\s\S]*-2\n\+1/,
  },
  {
    name: 'a skipped test, with its reason',
    code: `import t from ${TAP}; t.test('a', { skip: 'needs root' }, async () => {}); t.ok(1)`,
    result: { passed: 1, failed: 0, skipped: ['a: needs root'] },
  },
  { name: 'an error outside of tests', code: `throw new Error('broken')`, result: { failed: 1 }, failure: /broken/ },
  { name: 'no test at all', code: '', result: { failed: 1 } },
  {
    name: 'a process that ends in the middle',
    code: `import t from ${TAP}; t.plan(2); t.ok(1); process.exit(0)`,
    result: { passed: 1, failed: 1 },
  },
  {
    name: 'a process that is killed',
    code: `import t from ${TAP}; t.ok(1); process.kill(process.pid, 'SIGKILL')`,
    result: { failed: 1 },
    failure: /SIGKILL|plan/,
  },
  {
    name: 'a test that hangs',
    code: `import t from ${TAP}; t.ok(1); t.test('a', () => new Promise(() => setInterval(() => {}, 1000)))`,
    timeoutSeconds: 2,
    result: {},
    failure: /timeout/,
  },
]

for (const { name, code, result, failure, timeoutSeconds = 300 } of ROWS) {
  t.test(name, async (t) => {
    const directory = t.testdir({ 'one.mjs': code })
    const logFile = join(directory, 'one.tap')
    const found = await runFiles([join(directory, 'one.mjs')], { timeoutSeconds, logFile, environment: {} })
    t.match(found, result)
    t.equal(found.failed > 0, result.failed !== 0, JSON.stringify(found))
    if (failure !== undefined) t.match(found.failures.join('\n'), failure)
    t.ok(existsSync(logFile))
    t.ok(found.cpuSeconds > 0)
  })
}

t.test('files that share a process are counted together, and have fixtures', async (t) => {
  const code = (name: string, assertion: string): string =>
    `import t from ${TAP}; t.test('${name} '.repeat(20), async (t) => { t.testdir({ file: '' }); ${assertion} })`
  const files = Array.from({ length: 8 }, (_, at) => `${'long-name-'.repeat(5)}${at}.mjs`)
  const directory = t.testdir(Object.fromEntries(files.map((file, at) => [file, code(`t${at}`, `t.not(${at}, 6)`)])))
  const options = { timeoutSeconds: 300, logFile: join(directory, 'all.tap'), environment: {} }
  const found = await runFiles(
    files.map((file) => join(directory, file)),
    options,
  )
  t.match(found, { passed: 7, failed: 1, failures: [/^t6 /] })
})

t.test('a file of the full suite waits for what its imports need', async (t) => {
  const needs = (source: string): string[] => preparationsOf(testFile(source)).map(({ name }) => name)
  t.same(needs('test/deploy/release/contents.full.test.ts'), ['release'])
  t.same(needs('test/deploy/container/image.full.test.ts'), ['release', 'debian'])
  t.same(needs('test/engine/http/uws.full.test.ts'), ['debian-13'])
  t.same(needs('test/api/contract.test.ts'), [], 'npm test prepares nothing')
  t.same(needs('test/api/proxies.full.test.ts'), [])
  const [file, other] = ['test/deploy/debian/packages.full.test.ts', 'test/api/proxies.full.test.ts'].map(testFile)
  if (file === undefined || other === undefined) return
  const preparations = new Preparations([file, other])
  t.same([preparations.isReady(file), preparations.isReady(other)], [false, true])
})

t.test('a preparation that fails is reported with its output', async (t) => {
  t.equal(await runScript(['-e', '']), undefined)
  t.match(await runScript(['-e', 'console.error("no space"); process.exit(3)']), /no space\nended with status 3/)
})

t.test('programs that a test file leaves running end with the file', async (t) => {
  const directory = t.testdir()
  const file = join(directory, 'one.mjs')
  const pidFile = join(directory, 'pid')
  const note = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(pidFile)}, String(child.pid))`
  writeFileSync(file, `import t from ${TAP}; ${PROCESS}; ${note}; t.ok(1); child.unref()`)
  const options = { timeoutSeconds: 300, logFile: join(directory, 'one.tap'), environment: {} }
  t.match(await runFiles([file], options), { passed: 1, failed: 0 })
  const status = `/proc/${readFileSync(pidFile, 'utf8')}/status`
  // A zombie counts as ended: it only waits for init.
  const hasEnded = (): boolean => !existsSync(status) || /^State:\s+[ZX]/m.test(readFileSync(status, 'utf8'))
  await until('it has ended', hasEnded)
  t.ok(hasEnded())
})
