import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FileProcess, type FileProcessOptions, type Reading } from '../../../console/try-file/file-process.ts'
import type { Order } from '../../../dry-run/report.ts'
import { newPlatform } from '../../support/registry-updates.ts'
import { quietLog } from '../../support/store.ts'
import { squid } from '../../support/syslog-service.ts'
import { until } from '../../support/wait.ts'

const ORDER: Order = {
  serviceWide: { platforms: [], disable: [] },
  own: { platforms: [], disable: [] },
  windowStartMs: 0,
}

/** A program in place of the one that reads files. */
function start(
  t: { testdir(): string },
  program: string,
  options: Partial<FileProcessOptions> = {},
): { readonly process: FileProcess; readonly logged: object[] } {
  const file = join(t.testdir(), 'program.mjs')
  writeFileSync(file, program)
  const logged: object[] = []
  const log = Object.assign(Object.create(quietLog), { error: (fields: object) => logged.push(fields) })
  return { process: new FileProcess(ORDER, { log, isCanceled: () => false, program: file, ...options }), logged }
}

const REFUSED = JSON.stringify({ kind: 'refused', reason: 'no' })
const REPORT = `process.stdout.write(${JSON.stringify(REFUSED)})`

const ROWS: readonly { name: string; program: string; reading: Reading; logged?: object }[] = [
  { name: 'a report', program: REPORT, reading: { kind: 'report', report: { kind: 'refused', reason: 'no' } } },
  {
    name: 'an exception',
    program: "throw new Error('quotes the file')",
    reading: { kind: 'failed', why: 'crash' },
    logged: { reason: 'ended by status 1', stack: [/^ {4}at file:/] },
  },
  { name: 'a signal', program: "process.kill(process.pid, 'SIGSEGV')", reading: { kind: 'failed', why: 'crash' } },
  { name: 'no report', program: '', reading: { kind: 'failed', why: 'crash' } },
  { name: 'no JSON', program: "process.stdout.write('{')", reading: { kind: 'failed', why: 'crash' } },
  { name: 'another report', program: "process.stdout.write('{}')", reading: { kind: 'failed', why: 'crash' } },
  {
    name: 'a report without an end',
    program: "const more = () => process.stdout.write('x'.repeat(65536), more); more()",
    reading: { kind: 'failed', why: 'crash' },
  },
  {
    name: 'objects without an end',
    program: 'const all = []; for (;;) all.push({ all: new Array(1000).fill(all.length) })',
    reading: { kind: 'failed', why: 'memory' },
  },
  {
    name: 'buffers without an end',
    program: 'const all = []; setInterval(() => all.push(Buffer.alloc(1 << 24, 1)), 30)',
    reading: { kind: 'failed', why: 'memory' },
  },
  {
    name: 'shared memory without an end',
    program: 'const all = []; setInterval(() => all.push(new Uint8Array(new SharedArrayBuffer(1 << 24)).fill(1)), 30)',
    reading: { kind: 'failed', why: 'memory' },
  },
]

for (const { name, program, reading, logged: entry } of ROWS) {
  t.test(`the program returns ${name}`, async (t) => {
    const { process, logged } = start(t, program)
    process.end()
    t.same(await process.result, reading)
    t.notMatch(JSON.stringify(logged), 'quotes the file')
    if (entry !== undefined) t.match(logged[0], entry)
  })
}

t.test('a file is matched with the platforms of an installed release', async (t) => {
  const release = [newPlatform('new-llm', 'llm.example.net')]
  const found = async (order: Order) => {
    const reading = new FileProcess(order, { log: quietLog, isCanceled: () => false })
    await reading.write(Buffer.from(`${squid('llm.example.net')}\n${squid('claude.ai')}\n`))
    reading.end()
    const { report } = (await reading.result) as { report: { platforms: { name: string }[] } }
    return report.platforms.map(({ name }) => name)
  }
  t.same(await found(ORDER), ['Claude'])
  t.same(await found({ ...ORDER, platforms: release }), ['new-llm'])
})

t.test('a program that uses the processor without an end is killed', async (t) => {
  const { process } = start(t, 'for (;;);', { timeMsMax: 500 })
  t.same(await process.result, { kind: 'failed', why: 'time' })
})

t.test('a program that waits without an end is killed, from the end of the file on', async (t) => {
  const { process } = start(t, 'setInterval(() => {}, 1000)', { timeMsMax: 500 })
  process.end()
  t.same(await process.result, { kind: 'failed', why: 'time' })
})

t.test('a program is killed when its report is no longer needed', async (t) => {
  const { process } = start(t, 'setInterval(() => {}, 1000)', { isCanceled: () => true })
  t.same(await process.result, { kind: 'failed', why: 'canceled' })
})

t.test('writing ends when the program has ended or is canceled', async (t) => {
  const { process } = start(t, REPORT)
  for (let written = 0; written < 4 << 20; written += 1 << 16) await process.write(Buffer.alloc(1 << 16))
  t.match(await process.result, { kind: 'report' })
  const idle = start(t, 'setInterval(() => {}, 1000)').process
  let isWritten = false
  const writing = idle.write(Buffer.alloc(8 << 20)).then(() => {
    isWritten = true
  })
  await until('the program runs', () => true)
  t.notOk(isWritten, 'the pipe has less space')
  idle.cancel()
  await writing
})

/** Each tries what it must not. `done` means that it could. */
const FORBIDDEN: readonly (readonly [name: string, program: string])[] = [
  ['reads a file', "import { readFileSync } from 'node:fs'; readFileSync('/etc/passwd')"],
  ['lists a directory', "import { readdirSync } from 'node:fs'; readdirSync('/')"],
  ['writes a file', "import { writeFileSync } from 'node:fs'; writeFileSync('/tmp/posture-try-file-test', 'x')"],
  ['starts a process', "import { execFileSync } from 'node:child_process'; execFileSync('/bin/true')"],
  ['starts a thread', "import { Worker } from 'node:worker_threads'; new Worker('', { eval: true })"],
  ['loads a native library', "process.dlopen({ exports: {} }, '/lib/x86_64-linux-gnu/libc.so.6')"],
]
for (const [name, program] of FORBIDDEN) {
  t.test(`a program that ${name} fails`, async (t) => {
    const { process, logged } = start(t, `${program}\n${REPORT}`)
    process.end()
    t.same(await process.result, { kind: 'failed', why: 'crash' })
    t.match(logged[0], { reason: 'ended by status 1' })
    t.notOk(existsSync('/tmp/posture-try-file-test'))
  })
}

t.test('the program gets the request, but no environment, arguments or directory of the service', async (t) => {
  process.env['POSTURE_TEST_SECRET'] = 'hunter2'
  t.teardown(() => delete process.env['POSTURE_TEST_SECRET'])
  const program = `
    const chunks = []
    for await (const chunk of process.stdin) chunks.push(chunk)
    const input = Buffer.concat(chunks)
    const order = input.subarray(4, 4 + input.readUInt32LE()).toString()
    const env = Object.keys(process.env).filter((name) => !['PWD', 'SHLVL', '_', 'OLDPWD'].includes(name))
    const seen = { env, args: process.argv.length, directory: process.cwd(), order, rest: input.length - 4 - order.length }
    process.stdout.write(JSON.stringify({ kind: 'refused', reason: JSON.stringify(seen) }))`
  const running = start(t, program).process
  await running.write(Buffer.from('hello'))
  running.end()
  const reading = await running.result
  if (reading.kind !== 'report' || reading.report.kind !== 'refused') throw new Error(JSON.stringify(reading))
  const seen = JSON.parse(reading.report.reason) as Record<string, unknown>
  t.same(seen, { env: [], args: 2, directory: '/', order: JSON.stringify(ORDER), rest: 5 })
})
