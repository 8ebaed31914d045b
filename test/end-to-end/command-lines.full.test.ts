import { spawn, spawnSync } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { jsonLines, PROGRAMS, REPOSITORY, run, start } from '../support/programs.ts'

const TOKEN = `svc_mt_${'a'.repeat(48)}`
const CAPTURE = join(REPOSITORY, 'test/captures/demo/input.pcap')
const TRUNCATED = join(REPOSITORY, 'test/captures/truncated-file/input.pcap')

for (const program of ['service', 'collector', 'admin'] as const) {
  t.test(`posture-${program} prints its name and version`, async (t) => {
    const { version } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as { version: string }
    t.match(await run(program, ['--version']), { status: 0, stdout: `${version}\n`, stderr: '' })
    t.match(await run(program, ['--help']), {
      status: 0,
      stdout: new RegExp(`^Usage: posture-${program} `),
      stderr: '',
    })
    t.match(await run(program, ['--no-such-flag']), {
      status: 2,
      stdout: '',
      stderr: new RegExp(
        `^posture-${program}: USAGE unknown option '--no-such-flag'; see posture-${program}${program === 'collector' ? ' run' : ''} --help\n$`,
      ),
    })
  })
}

/** Command lines that end with one error line. Values replace TOKEN, FILE and FOLDER. */
const MISUSES: readonly {
  readonly program: keyof typeof PROGRAMS
  readonly words: string
  readonly environment?: NodeJS.ProcessEnv
  readonly status?: number
  readonly line: RegExp
}[] = [
  { program: 'collector', words: '', line: /USAGE a monitoring token is required: give it by SVC_TOKEN or --token, / },
  {
    program: 'collector',
    words: 'chek --interface eth0',
    line: /USAGE unknown command 'chek' \(Did you mean check\?\); see posture-collector --help$/,
  },
  { program: 'collector', words: 'run eth0', line: /USAGE unknown command 'eth0'; see posture-collector --help$/ },
  { program: 'collector', words: '--token hunter2', line: /USAGE --token: expected svc_mt_ and 48 hex digits$/ },
  { program: 'collector', words: '', environment: { SVC_TOKEN: 'hunter2' }, line: /USAGE SVC_TOKEN: expected/ },
  {
    program: 'collector',
    words: '--token TOKEN --https-port 70000',
    line: /USAGE --https-port: expected a whole number from 1 to 65535, found "70000"$/,
  },
  {
    program: 'collector',
    words: '--token TOKEN',
    environment: { LOG_LEVEL: 'loud' },
    line: /USAGE LOG_LEVEL: expected one of DEBUG, INFO, WARNING, ERROR, found "loud"$/,
  },
  { program: 'collector', words: '--tokn TOKEN', line: /Did you mean --token\?/ },
  {
    program: 'collector',
    words: 'read /nowhere.pcap',
    status: 4,
    line: /CAPTURE_UNREADABLE \/nowhere\.pcap: no such file$/,
  },
  { program: 'collector', words: 'read FILE', status: 4, line: /CAPTURE_FORMAT \S+package\.json: / },
  { program: 'collector', words: 'read FOLDER', status: 4, line: /CAPTURE_UNREADABLE .*directory/ },
  { program: 'collector', words: 'read', line: /USAGE missing required argument 'file'/ },
  {
    program: 'collector',
    words: '--token TOKEN --outbox /proc/outbox',
    status: 4,
    line: /STORE_UNWRITABLE --outbox \/proc\/outbox/,
  },
  {
    program: 'collector',
    words: '--token TOKEN --service-ca-file /nowhere.pem --outbox memory',
    line: /USAGE --service-ca-file /,
  },
  { program: 'service', words: '--tls-key x', line: /--tls-key and --tls-certificate: set both or neither/ },
  {
    program: 'service',
    words: '--plain-http --api-address 192.0.2.1',
    line: /--plain-http serves loopback only, found --api-address 192\.0\.2\.1/,
  },
  { program: 'service', words: '--data-dir FILE', status: 4, line: /STORE_UNWRITABLE --data-dir .*not a directory/ },
  {
    program: 'admin',
    words: 'key list --org x --data-dir /srv',
    status: 5,
    line: /NOT_FOUND --data-dir: no store in \/srv\/store/,
  },
  { program: 'admin', words: 'frobnicate', line: /USAGE unknown command 'frobnicate'/ },
  { program: 'admin', words: 'key create x --org x --scope all', line: /expected one of scores:read/ },
]
for (const { program, words, environment = {}, status = 2, line } of MISUSES) {
  t.test(`${program} ${words} ${JSON.stringify(environment)}`, async (t) => {
    const values: Readonly<Record<string, string>> = {
      TOKEN,
      FOLDER: REPOSITORY,
      FILE: join(REPOSITORY, 'package.json'),
    }
    const parameters = words.split(' ').flatMap((word) => (word === '' ? [] : (values[word] ?? word)))
    const ended = await run(program, parameters, { LOG_LEVEL: 'ERROR', ...environment })
    t.equal(ended.status, status, ended.stderr)
    t.match(ended.stderr.trimEnd(), line)
    t.equal(ended.stderr.trimEnd().split('\n').length, 1, 'one line')
    t.notOk(ended.stderr.includes('hunter2') || ended.stderr.includes(TOKEN), 'no secret is repeated')
  })
}

t.test('a port in use is one error line', async (t) => {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  t.teardown(() => taken.close())
  const { port } = taken.address() as { port: number }
  for (const [flag, other] of [
    ['--api-port', '--ingest-port'],
    ['--ingest-port', '--api-port'],
  ] as const) {
    const addresses = ['--api-address', '127.0.0.1', '--ingest-address', '127.0.0.1']
    const parameters = ['--data-dir', t.testdir(), ...addresses, flag, String(port), other, '0', '--log-level', 'ERROR']
    t.match(await run('service', parameters), {
      status: 4,
      stderr: `posture-service: PORT_TAKEN ${flag} ${port} on 127.0.0.1: another program uses this port. Stop it or choose another port\n`,
    })
  }
})

t.test('read continues after a missing and a truncated file', async (t) => {
  const { status, stdout, stderr } = await run('collector', ['read', CAPTURE, '/nowhere.pcap', TRUNCATED])
  t.equal(status, 3)
  t.match(
    stderr,
    /^posture-collector: CAPTURE_UNREADABLE \/nowhere\.pcap: no such file\nposture-collector: CAPTURE_DAMAGED \S+: byte \d+: found \d+ bytes, expected .*\n$/,
  )
  const rows = jsonLines(stdout)
  t.equal(rows.length, 92, 'the readable part is read')
  t.match(rows[0], {
    time: /^2026-/,
    client: String,
    method: 'dns',
    name: 'chatgpt.com',
    platform_name: 'ChatGPT',
    rule: 'chatgpt.com',
  })
})

t.test('read prints every name, and counters whose sums match', async (t) => {
  const names = await run('collector', ['read', '--names', CAPTURE])
  t.equal(names.stdout.trim().split('\n').length, 129)
  const stats = await run('collector', ['read', '--stats', CAPTURE])
  const rows = jsonLines<{ counter: string; count: number }>(stats.stdout)
  const counts = new Map(rows.map(({ counter, count }) => [counter, count]))
  const classes = [...counts].filter(([counter]) => counter.startsWith('class '))
  t.equal(
    classes.reduce((sum, [, count]) => sum + count, 0),
    counts.get('frames'),
  )
  t.equal((counts.get('matched') ?? 0) + (counts.get('unmatched') ?? 0), counts.get('names'))
})

t.test('a pipe closed by head is not an error', async (t) => {
  const big = join(t.testdir(), 'big.pcap')
  const bytes = readFileSync(CAPTURE)
  writeFileSync(big, Buffer.concat([bytes, ...Array.from({ length: 100 }, () => bytes.subarray(24))]))
  const command = `"${process.execPath}" "${PROGRAMS.collector}" read "${big}" | head -n 1; echo "status \${PIPESTATUS[0]}"`
  const { stdout, stderr } = spawnSync('bash', ['-c', command], { encoding: 'utf8' })
  t.match(stdout, /^\{"time".*\nstatus 0\n$/)
  t.equal(stderr, '')
})

t.test('a damaged file is forwarded up to the damage; Ctrl-C while events cannot be sent keeps them', async (t) => {
  const directory = t.testdir()
  const file = join(directory, 'copy.pcap')
  copyFileSync(TRUNCATED, file)
  const outbox = join(directory, 'outbox')
  const environment = { SVC_TOKEN: TOKEN, LOG_LEVEL: 'INFO' }
  const parameters = ['--read', file, '--outbox', outbox, '--https-port', '1']
  const collector = start('collector', parameters, environment)
  await new Promise<void>((resolve) => {
    collector.child.stderr?.on('data', () => {
      if (collector.output.stderr.includes('cannot forward')) resolve()
    })
  })
  const before = performance.now()
  collector.child.kill('SIGINT')
  const { status, stderr } = await collector.ended
  t.equal(status, 130, stderr)
  t.ok(performance.now() - before < 5000, 'within five seconds')
  t.match(stderr, /"waiting":2/)
  t.notOk(stderr.includes(TOKEN))
})

t.test('closed output and a full disk are reported', async (t) => {
  const child = spawn(process.execPath, [PROGRAMS.collector, 'read', CAPTURE], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  const status = await new Promise((resolve) => child.once('close', resolve))
  t.equal(status, 0)
  const full = spawnSync(
    'bash',
    ['-c', `"${process.execPath}" "${PROGRAMS.collector}" read "${CAPTURE}" > /dev/full`],
    { encoding: 'utf8' },
  )
  t.equal(full.status, 1)
  t.match(full.stderr, /^posture-collector: standard output: no space left on the disk$/m)
})
