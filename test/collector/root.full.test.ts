import { chownSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FilesOfRoot, giveTo, SERVICE_USER, TRAPS } from '../support/hostile-store.ts'
import { skipUnlessRoot } from '../support/other-user.ts'
import { REPOSITORY, run, start } from '../support/programs.ts'
import { copyDirectory } from '../support/store.ts'

/*
 * posture-collector as root, on an outbox of the collector's user. What the user has put there must
 * not lead root to other files.
 */
const CAPTURE = join(REPOSITORY, 'test/captures/demo/input.pcap')
const USER = `${SERVICE_USER.uid}:${SERVICE_USER.gid}`
const KEPT = {
  SVC_TOKEN: `svc_mt_${'4'.repeat(48)}`,
  HTTPS_ENABLED: 'false',
  HEALTH_PORT: '0',
}
/** With HTTPS_ENABLED=false: nothing is forwarded. */
const OFF = ['--syslog', 'off']

t.test('no command of root follows a link in the outbox', { skip: skipUnlessRoot }, async (t) => {
  const directory = t.testdir()
  const made = join(directory, 'made')
  const ofRoot = join(directory, 'of-root')
  mkdirSync(ofRoot, { mode: 0o700 })
  const capture = join(ofRoot, 'capture.pcap')
  writeFileSync(capture, readFileSync(CAPTURE), { mode: 0o600 })
  t.match(await run('collector', ['--read', capture, '--outbox', made, ...OFF], KEPT), { status: 0 })
  const root = new FilesOfRoot(join(directory, 'victims'))
  const rows = [
    ['outbox', 'stats'],
    ['outbox', 'peek'],
    ['outbox', 'export'],
    ['--read', capture, ...OFF],
    ['check', '--interface', 'lo', '--run-as', USER, ...OFF],
    ['run', '--interface', 'lo', '--run-as', USER, ...OFF],
  ]
  for (const [index, words] of rows.entries()) {
    for (const [trap, { name, set }] of [{ name: 'no trap', set: () => {} }, ...TRAPS].entries()) {
      const outbox = join(directory, `outbox-${index}-${trap}`)
      copyDirectory(made, outbox)
      giveTo(SERVICE_USER, outbox)
      set(outbox, root)
      const collector = start('collector', [...words, '--outbox', outbox], KEPT)
      collector.child.stderr?.on('data', () => {
        if (collector.output.stderr.includes('"watching"') && !collector.child.killed) collector.child.kill('SIGTERM')
      })
      const { status, signal, stderr } = await collector.ended
      const what = `${words.join(' ')}: ${name}`
      t.equal(root.damage, '', what)
      t.equal(signal, null, what)
      t.notMatch(stderr, /INTERNAL/, what)
      if (trap > 0) continue
      // What check finds is that nothing is forwarded.
      t.equal(status, 0, `${what}: ${stderr}`)
      const names = readdirSync(outbox)
      t.same(
        names.filter((each) => statSync(join(outbox, each)).uid !== SERVICE_USER.uid),
        [],
        what,
      )
    }
  }
})

t.test('root opens no outbox before it has dropped root', { skip: skipUnlessRoot }, async (t) => {
  const outbox = join(t.testdir(), 'outbox')
  mkdirSync(outbox)
  writeFileSync(join(outbox, 'data.mdb'), 'hostile '.repeat(2000))
  giveTo(SERVICE_USER, outbox)
  for (const source of [
    ['--interface', 'lo'],
    ['--read', CAPTURE],
  ]) {
    const words = [...source, '--outbox', outbox, '--run-as', USER, '--log-level', 'DEBUG', ...OFF]
    const { status, stderr } = await run('collector', words, KEPT)
    t.equal(status, 4, stderr)
    t.match(stderr, /root privileges are dropped[\s\S]*posture-collector: STORE_/, source.join(' '))
  }
})

t.test('no input of root is a link of another user to a file of root', { skip: skipUnlessRoot }, async (t) => {
  const directory = t.testdir()
  const theirs = join(directory, 'theirs')
  mkdirSync(theirs)
  const inputs = {
    capture: readFileSync(CAPTURE),
    settings: 'LOG_LEVEL=info\n',
    registry: 'disable: [claude]\n',
    token: KEPT.SVC_TOKEN,
    ca: '-----BEGIN CERTIFICATE-----',
  }
  const link = (name: keyof typeof inputs): string => {
    writeFileSync(join(directory, name), inputs[name], { mode: 0o600 })
    symlinkSync(join(directory, name), join(theirs, name))
    return join(theirs, name)
  }
  const links = Object.fromEntries(Object.keys(inputs).map((name) => [name, link(name as keyof typeof inputs)]))
  giveTo(SERVICE_USER, theirs)
  const refused = /controls this path and may not read it|is not readable by/
  const reading = ['--read', CAPTURE, '--outbox', 'memory', ...OFF]
  const rows: readonly (readonly string[])[] = [
    ['read', `${links['capture']}`],
    ['--read', `${links['capture']}`, '--outbox', 'memory', ...OFF],
    [...reading, '--settings-file', `${links['settings']}`],
    [...reading, '--registry-file', `${links['registry']}`],
    [...reading, '--token-file', `${links['token']}`],
    [...reading, '--service-ca-file', `${links['ca']}`, '--endpoint', '127.0.0.1'],
  ]
  for (const words of rows) {
    const { SVC_TOKEN: _token, ...kept } = KEPT
    const environment = words.includes('--token-file') ? kept : KEPT
    const ca = words.includes('--service-ca-file') ? { HTTPS_ENABLED: 'true' } : {}
    t.match((await run('collector', [...words], { ...environment, ...ca })).stderr, refused, words.join(' '))
  }
})

t.test(
  'an outbox in a directory of root is given to the user of the collector',
  { skip: skipUnlessRoot },
  async (t) => {
    const directory = t.testdir()
    for (const outbox of ['new', 'of-root'].map((name) => join(directory, name))) {
      if (outbox.endsWith('of-root')) await run('collector', ['--read', CAPTURE, '--outbox', outbox, ...OFF], KEPT)
      const collector = start('collector', ['--interface', 'lo', '--outbox', outbox, '--run-as', USER, ...OFF], KEPT)
      collector.child.stderr?.on('data', () => {
        if (collector.output.stderr.includes('"watching"') && !collector.child.killed) collector.child.kill('SIGTERM')
      })
      t.match(await collector.ended, { status: 0, stderr: /root privileges are dropped/ })
      t.match(statSync(outbox), SERVICE_USER)
      for (const name of readdirSync(outbox)) t.match(statSync(join(outbox, name)), SERVICE_USER, name)
    }
    const foreign = join(directory, 'foreign')
    mkdirSync(foreign)
    chownSync(foreign, 4321, 4321)
    t.match(await run('collector', ['--interface', 'lo', '--outbox', foreign, '--run-as', USER, ...OFF], KEPT), {
      status: 4,
      stderr: /STORE_UNWRITABLE --outbox \S+foreign: user 1234:1234 cannot write there/,
    })
    t.match(await run('collector', ['--interface', 'lo', '--outbox', foreign, '--run-as', 'root', ...OFF], KEPT), {
      status: 4,
      stderr: /belongs to uid 4321, whose files root must not use/,
    })
  },
)
