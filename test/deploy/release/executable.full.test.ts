import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import t from 'tap'
import { ExitStatus } from '../../../engine/kernel/process/error-codes.ts'
import { admin, type Ended, forwardArgs, jsonLines, startCommand, startService } from '../../support/programs.ts'
import {
  DEMO_CAPTURE,
  demoMatches,
  EMULATED,
  type Machine,
  released,
  scannedMatches,
  THIS_MACHINE,
} from '../../support/released.ts'

const MACHINES: readonly Machine[] = ['x86_64', 'arm64']

/** Runs the single-file collector with an empty home directory. */
function collector(
  t: { testdirName: string },
  machine: Machine,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<Ended> {
  const through = machine === THIS_MACHINE ? [] : EMULATED[machine]
  return startCommand([...through, released('posture-collector', machine), ...args], {
    XDG_CACHE_HOME: join(t.testdirName, 'cache'),
    ...environment,
  }).ended
}

for (const machine of MACHINES) {
  t.test(`${machine}: the checksum file matches`, async (t) => {
    const file = released('posture-collector', machine)
    const [sum, name] = readFileSync(`${file}.sha256`, 'utf8').trim().split('  ')
    t.equal(name, basename(file))
    t.equal(sum, createHash('sha256').update(readFileSync(file)).digest('hex'))
    execFileSync('sha256sum', ['--check', '--status', basename(`${file}.sha256`)], { cwd: dirname(file) })
  })

  t.test(`${machine}: the self-test passes`, async (t) => {
    const { status, stderr } = await collector(t, machine, ['selftest'])
    t.equal(status, 0, stderr)
    t.match(stderr, /^(\d+) of \1 seen$/m)
  })

  t.test(`${machine}: the executable reads a capture, matches, and forwards to a service`, async (t) => {
    const data = join(t.testdir(), 'service')
    const service = await startService(data)
    t.teardown(() => service.child.kill('SIGKILL'))
    await admin('organization', 'create', 'Acme', '--domain', 'acme.example', '--data-dir', data)
    const [token] = await admin('token', 'generate', 'sensor', '--org', 'Acme', '--data-dir', data)
    const outbox = join(t.testdirName, 'outbox')
    const args = ['--read', DEMO_CAPTURE, '--shift-to-now', '--event-window-seconds', '0', '--outbox', outbox]
    const { status, stderr } = await collector(t, machine, [...args, ...forwardArgs(service)], {
      SVC_TOKEN: String(token?.['token']),
    })
    t.equal(status, 0, stderr)
    t.same(await scannedMatches('Acme', data), demoMatches())
    const unpacked = join(t.testdirName, `cache/posture-${process.getuid?.()}`)
    t.equal(statSync(unpacked).mode & 0o777, 0o700)
    t.match(readdirSync(unpacked).join(' '), /^[0-9a-f]{16}-lmdb\.node$/)
  })
}

t.test('the executable opens an interface, or says which permission is missing', async (t) => {
  const check = await collector(t, THIS_MACHINE, [
    ...['check', '--json', '--interface', 'lo', '--endpoint', 'localhost', '--outbox', join(t.testdir(), 'outbox')],
    ...['--token', `svc_mt_${'0'.repeat(48)}`],
  ])
  const rows = jsonLines<{ check: string; result: string; found: string }>(check.stdout)
  const steps = new Map(rows.map((step) => [step.check, step]))
  const opened = steps.get('interface')
  if (process.getuid?.() === 0) t.equal(opened?.result, 'ok', String(opened?.found))
  else t.match(opened?.found, /no permission to capture.*setcap cap_net_raw=ep .*posture-collector/)
  t.equal(steps.get('outbox')?.result, 'ok', 'each step is a process of the same file')
})

t.test('a file system that allows no execution is one error line with a fix', async (t) => {
  const { status, stdout, stderr } = await collector(t, THIS_MACHINE, ['selftest'], {
    POSTURE_UNPACK_DIR: '/proc/none',
  })
  t.equal(status, ExitStatus.unavailable)
  t.equal(stdout, '')
  t.match(
    stderr,
    /^posture-collector: UNPACK_DENIED [^\n]*: no directory for the program's addons: .*POSTURE_UNPACK_DIR[^\n]*\n$/,
  )
})

t.test('the executable works from any folder, under any name, and through a link', async (t) => {
  const folder = join(t.testdir(), 'a folder')
  mkdirSync(folder)
  const file = join(folder, 'sensor')
  copyFileSync(released('posture-collector', THIS_MACHINE), file)
  const { status, stdout } = await startCommand([file, '--version'], { HOME: folder }).ended
  t.equal(status, 0)
  t.match(stdout, /^\d+\.\d+\.\d+\n$/)
})
