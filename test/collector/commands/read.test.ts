import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { interruptAndWait, PROGRAMS, REPOSITORY } from '../../support/programs.ts'

/** Tests `posture-collector read` with every kind of standard input. */
const CAPTURE = `${REPOSITORY}/test/captures/demo/input.pcap`
const NAMES = 129
const bytes = readFileSync(CAPTURE)

interface Reading {
  readonly child: ChildProcess
  readonly ended: Promise<{ status: number | null; names: number; stderr: string }>
}

function read(parameters: readonly string[], input: 'pipe' | number): Reading {
  const child = spawn(process.execPath, [PROGRAMS.collector, 'read', '--names', ...parameters], {
    stdio: [input, 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'] },
  })
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk
  })
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk
  })
  const ended = once(child, 'close').then(([status]) => ({
    status: status as number | null,
    names: stdout.split('\n').filter((line) => line !== '').length,
    stderr,
  }))
  return { child, ended }
}

for (const { name, input } of [
  { name: 'pcap', input: bytes },
  { name: 'gzip', input: gzipSync(bytes) },
  {
    name: 'gzip in gzip, two members',
    input: Buffer.concat([gzipSync(bytes.subarray(0, 9999)), gzipSync(bytes.subarray(9999))]),
  },
  { name: 'zstd', input: execFileSync('zstd', ['-qc', CAPTURE]) },
  {
    name: 'zstd, two frames and a skippable one',
    input: Buffer.concat([
      Buffer.from('502a4d1804000000deadbeef', 'hex'),
      execFileSync('zstd', ['-qc'], { input: bytes.subarray(0, 9999) }),
      execFileSync('zstd', ['-qc'], { input: bytes.subarray(9999) }),
    ]),
  },
]) {
  t.test(`${name} is read from a pipe, in pieces`, async (t) => {
    const { child, ended } = read(['-'], 'pipe')
    for (const border of [3, 30, 5000]) {
      child.stdin?.write(input.subarray(border === 3 ? 0 : border === 30 ? 3 : 30, border))
      await sleep(20)
    }
    child.stdin?.end(input.subarray(5000))
    t.same(await ended, { status: 0, names: NAMES, stderr: '' })
  })
}

t.test('a redirected file, a named pipe and an empty input are read', async (t) => {
  const file = openSync(CAPTURE, 'r')
  t.match(await read(['-'], file).ended, { status: 0, names: NAMES })
  closeSync(file)
  const pipe = `${t.testdir()}/pipe`
  execFileSync('mkfifo', [pipe])
  const { ended } = read([pipe], 'pipe')
  const written = once(spawn('sh', ['-c', `cat "${CAPTURE}" > "${pipe}"`]), 'close')
  t.match(await ended, { status: 0, names: NAMES })
  await written
  const nothing = openSync('/dev/null', 'r')
  t.match(await read(['-'], nothing).ended, {
    status: 4,
    names: 0,
    stderr: /^posture-collector: CAPTURE_FORMAT -: the file is empty/,
  })
  closeSync(nothing)
})

t.test('names from a pipe are printed at once, and Ctrl-C ends the wait for more', async (t) => {
  const { child, ended } = read(['-'], 'pipe')
  child.stdin?.write(bytes.subarray(0, 60_000))
  await once(child.stdout as NodeJS.ReadableStream, 'data')
  child.kill('SIGINT')
  const { status, names, stderr } = await ended
  t.equal(status, 130)
  t.ok(names > 10, `${names} names`)
  t.equal(stderr, '')
})

t.test('Ctrl-C ends the wait for the first byte', async (t) => {
  const how = await interruptAndWait(() => {
    const { child, ended } = read(['-'], 'pipe')
    return { child, ended: ended.then((end) => ({ ...end, signal: child.signalCode })) }
  })
  t.same(how, { status: 130, signal: null, names: 0, stderr: '' })
})

for (const [name, packed] of [
  ['gzip', gzipSync(bytes)],
  [
    'gzip of more than is looked at first',
    gzipSync(Buffer.concat([bytes, ...Array.from({ length: 9 }, () => bytes.subarray(24))])),
  ],
] as const) {
  t.test(`${name}, truncated in the middle, is read up to there, and one line reports the offset`, async (t) => {
    const path = `${t.testdir()}/cut.pcap.gz`
    writeFileSync(path, packed.subarray(0, packed.length / 2))
    const { status, names, stderr } = await read([path], 'pipe').ended
    t.equal(status, 3)
    t.ok(names > 20, `${names} names`)
    t.match(stderr, /^posture-collector: CAPTURE_DAMAGED .*cut\.pcap\.gz: byte \d+: gzip: unexpected end of file\n$/)
  })
}
