import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { OUTBOX_SCHEMA_VERSION, Outbox } from '../../../collector/outbox/outbox.ts'
import { Environment } from '../../../engine/kernel/lmdb/environment.ts'
import { type Ended, jsonLines, PROGRAMS, REPOSITORY, run, start } from '../../support/programs.ts'
import { type ReceivedMessage, syslogNg } from '../../support/syslog-ng.ts'

const CAPTURE = join(REPOSITORY, 'test/captures/demo/input.pcap')
const TOKEN = `svc_mt_${'4'.repeat(48)}`
const KEPT = { SVC_TOKEN: TOKEN, HTTPS_ENABLED: 'false' }

async function outbox(...args: string[]): Promise<Ended & { rows: Record<string, unknown>[] }> {
  const ended = await run('collector', ['outbox', ...args])
  return { ...ended, rows: jsonLines(ended.stdout) }
}

t.test('outbox shows waiting events, even while a collector uses the outbox', async (t) => {
  const directory = join(t.testdir(), 'outbox')
  const filled = await run('collector', ['--read', CAPTURE, '--outbox', directory, '--syslog', 'off'], KEPT)
  t.equal(filled.status, 0, filled.stderr)
  const [, waiting = ''] = /"waiting":(\d+)/.exec(filled.stderr) ?? []

  // A collector that reads the whole file and cannot forward.
  const other = start('collector', ['--read', CAPTURE, '--outbox', directory, '--https-port', '1'], {
    SVC_TOKEN: TOKEN,
  })
  while (!other.output.stderr.includes('cannot forward')) await new Promise((resolve) => setTimeout(resolve, 20))
  const stats = await outbox('stats', '--outbox', directory)
  t.match(stats, { status: 0, stderr: '' })
  t.match(stats.rows, [
    {
      waiting: Number(waiting),
      oldest: /^\d{4}-\d\d-\d\dT/,
      instance: /^[0-9a-f]{16}$/,
      first_sequence: 1,
      last_sequence: Number(waiting),
    },
  ])
  const peek = await outbox('peek', '-n', '3', '--outbox', directory)
  t.equal(peek.rows.length, 3)
  t.match(peek.rows[0], { id: /^[0-9a-f]{32}$/, method: 'dns', count: 1, first_seen: /Z$/ })
  const all = await outbox('export', '--outbox', directory)
  t.equal(all.rows.length, Number(waiting))
  t.same(all.rows.slice(0, 3), peek.rows)
  other.child.kill('SIGINT')
  t.equal((await other.ended).status, 130)
  t.match((await outbox('stats', '--outbox', directory)).rows, [{ waiting: Number(waiting) }], 'nothing was changed')

  const pipe = `"${process.execPath}" "${PROGRAMS.collector}" outbox export --outbox "${directory}" | head -n 1`
  const { stdout, stderr } = spawnSync('bash', ['-o', 'pipefail', '-c', pipe], { encoding: 'utf8' })
  t.equal(stderr, '')
  t.same(jsonLines(stdout), peek.rows.slice(0, 1))
})

t.test('an outbox without events is shown as empty', async (t) => {
  const directory = t.testdir({ opened: {}, made: {} })
  await new Outbox(join(directory, 'opened')).close()
  // The outbox of a collector that was killed before it created its tables.
  await new Environment(join(directory, 'made'), {
    setting: '--outbox',
    schemaVersion: OUTBOX_SCHEMA_VERSION,
    freeBytesMin: 0,
  }).close()
  for (const name of ['opened', 'made']) {
    const where = ['--outbox', join(directory, name)]
    const rows = [{ waiting: 0, oldest: null, instance: null, first_sequence: 0, last_sequence: 0 }]
    t.match(await outbox('stats', ...where), { status: 0, stderr: '', rows }, name)
    for (const poll of ['peek', 'export'])
      t.match(await outbox(poll, ...where), { status: 0, stderr: '', stdout: '' }, name)
  }
})

t.test('an outbox that cannot be read is one error line', async (t) => {
  const rows: readonly (readonly [args: readonly string[], status: number, expected: RegExp])[] = [
    [['stats', '--outbox', '/nowhere'], 5, /^posture-collector: NOT_FOUND --outbox: no store in \/nowhere/],
    [['stats', '--outbox', 'memory'], 2, /USAGE --outbox memory: events in the memory of a collector/],
    [['peek', '-n', '0', '--outbox', t.testdir()], 2, /USAGE --count: expected a whole number from 1 to 10000/],
    [['stat'], 2, /USAGE unknown command 'stat' \(Did you mean stats\?\)/],
  ]
  for (const [args, status, expected] of rows) {
    const ended = await outbox(...args)
    t.equal(ended.status, status, ended.stderr)
    t.match(ended.stderr, expected)
    t.equal(ended.stderr.trim().split('\n').length, 1)
  }
})

t.test('a second collector on an outbox is rejected, even when it reads a file', async (t) => {
  const directory = join(t.testdir(), 'outbox')
  const args = ['--read', CAPTURE, '--outbox', directory, '--https-port', '1']
  const first = start('collector', args, { SVC_TOKEN: TOKEN })
  while (!first.output.stderr.includes('cannot forward')) await new Promise((resolve) => setTimeout(resolve, 20))
  const second = await run('collector', args, { SVC_TOKEN: TOKEN })
  t.equal(second.status, 4)
  t.match(second.stderr, /^posture-collector: STORE_IN_USE --outbox \S+: another collector runs on it/m)
  first.child.kill('SIGKILL')
  await first.ended
  const third = await run('collector', ['--read', CAPTURE, '--outbox', directory, '--syslog', 'off'], KEPT)
  t.equal(third.status, 0, third.stderr)
})

t.test('every event arrives by syslog alone, and the outbox is empty afterwards', async (t) => {
  const receiver = await syslogNg(t)
  const directory = join(receiver.directory, 'outbox')
  const events = new Map<string, ReceivedMessage[]>()
  for (const protocol of ['tls', 'udp'] as const) {
    const before = receiver.received().length
    const args = [
      '--read',
      CAPTURE,
      '--outbox',
      `${directory}-${protocol}`,
      '--no-https',
      '--syslog-protocol',
      protocol,
    ]
    const where = [
      '--syslog-port',
      String(receiver.ports[protocol]),
      '--service-ca-file',
      receiver.certificate.certificateFile,
    ]
    const { status, stderr } = await run('collector', [...args, ...where], { SVC_TOKEN: TOKEN })
    t.equal(status, 0, stderr)
    const [, made = ''] = /"events":(\d+),"acknowledged":\1,.*"waiting":0/.exec(stderr) ?? []
    t.ok(Number(made) > 50, stderr)
    t.equal(stderr.includes('in plain text') || stderr.includes('go in plain text'), protocol === 'udp')
    t.notOk(stderr.includes(TOKEN))
    events.set(protocol, (await receiver.receivedAtLeast(before + Number(made))).slice(before))
  }
  t.equal(events.get('tls')?.length, events.get('udp')?.length)
  const processes = execFileSync('ps', ['-e', '-o', 'args'], { encoding: 'utf8' })
  t.notOk(processes.includes(TOKEN), 'no command line contains the token')
})
