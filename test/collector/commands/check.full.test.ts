import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ip, namespace, skipNamespaces } from '../../support/namespace.ts'
import { jsonLines, PROGRAMS, REPOSITORY, run, start } from '../../support/programs.ts'
import { startSite } from '../../support/service-site.ts'

const UNKNOWN_TOKEN = `svc_mt_${'8'.repeat(48)}`
const CAPTURE = join(REPOSITORY, 'test/captures/demo/input.pcap')

interface Row {
  readonly check: string
  readonly result: string
  readonly code?: string
  readonly found: string
  readonly fix?: string
}

/** A real service, and the parameters of a check that reaches it. */
async function service(t: Test) {
  const site = await startSite(t)
  const outbox = join(site.directory, 'outbox')
  const reach = ['--https-port', String(site.service.ingestPort)]
  const { fingerprint } = site.service
  return { ...site, fingerprint, parameters: ['check', '--interface', 'lo', '--outbox', outbox, ...reach] }
}

t.test('a successful check stores nothing and leaves no file', { skip: skipNamespaces }, async (t) => {
  const running = await service(t)
  const { token, fingerprint, parameters, directory } = running
  const ended = await run('collector', [...parameters, '--service-fingerprint', fingerprint], {
    SVC_TOKEN: token,
    HEALTH_PORT: '0',
  })
  t.match(ended, { status: 0, stderr: 'all ok\n' })
  t.match(jsonLines<Row>(ended.stdout), [
    { check: 'settings', result: 'ok', found: /^from lo to localhost port \d+; registry: \d+ platforms, \d+ domains$/ },
    { check: 'interface', result: 'ok', found: /^lo: up, link type ethernet \(1\), 127\.0\.0\.1/ },
    { check: 'health', result: 'ok', found: 'the system chooses a port' },
    { check: 'outbox', result: 'ok', found: /outbox: can be created, \d+ MB free$/ },
    { check: 'resolution', result: 'ok', found: /^localhost: .*127\.0\.0\.1/ },
    { check: 'tls', result: 'ok', found: /^TLSv1\.3, certificate valid until .*, sha256-key:[0-9a-f]{64}$/ },
    { check: 'token', result: 'ok', found: 'the service accepts the token' },
    { check: 'syslog', result: 'skipped', found: 'syslog forwarding is off' },
  ])
  t.notOk(existsSync(join(directory, 'outbox')))
  t.notOk((ended.stdout + ended.stderr).includes(token))
  t.match((await running.stop()).stderr, /"messages":0,.*"batches":1,"unauthorized":0,.*"stopped"/)
})

t.test('each failure has a message and an exit status', { skip: skipNamespaces }, async (t) => {
  const { token, fingerprint, parameters, directory } = await service(t)
  const garbage = join(directory, 'garbage')
  writeFileSync(garbage, 'nothing of use')
  const rows: readonly {
    name: string
    more: readonly string[]
    token?: string
    status: number
    stderr: RegExp
    rows: readonly Partial<Record<keyof Row, string | RegExp>>[]
  }[] = [
    {
      name: 'the certificate is not trusted yet',
      more: [],
      status: 4,
      stderr: /^posture-collector: CERTIFICATE 1 of 8 checks failed: tls\n$/,
      rows: [
        {
          check: 'tls',
          result: 'failed',
          code: 'CERTIFICATE',
          fix: /--service-fingerprint sha256-key:[0-9a-f]{64}, or/,
        },
        { check: 'token', result: 'skipped', found: 'tls failed' },
      ],
    },
    {
      name: 'an unknown token',
      more: ['--service-fingerprint', fingerprint],
      token: UNKNOWN_TOKEN,
      status: 5,
      stderr: /^posture-collector: TOKEN_REFUSED 1 of 8 checks failed: token\n$/,
      rows: [{ check: 'token', result: 'failed', code: 'TOKEN_REFUSED', fix: /posture-admin token generate/ }],
    },
    {
      name: 'a mistyped interface: the other checks continue, and the first failure determines the status',
      more: ['--interface', 'loo', '--service-fingerprint', fingerprint],
      token: UNKNOWN_TOKEN,
      status: 4,
      stderr: /CAPTURE_DENIED 2 of 8 checks failed: interface, token\n$/,
      rows: [
        {
          check: 'interface',
          result: 'failed',
          found: 'loo: no such interface',
          fix: /^available: lo,? .*--list-int/,
        },
        { check: 'token', result: 'failed' },
      ],
    },
    {
      name: 'an outbox that cannot be created',
      more: ['--outbox', '/proc/outbox', '--service-fingerprint', fingerprint],
      status: 4,
      stderr: /STORE_UNWRITABLE 1 of 8 checks failed: outbox\n$/,
      rows: [{ check: 'outbox', result: 'failed', code: 'STORE_UNWRITABLE', fix: /^name a directory that/ }],
    },
    {
      name: 'a host name that does not resolve',
      more: ['--endpoint', 'nobody.invalid'],
      status: 4,
      stderr: /SERVICE_UNREACHABLE 1 of 8 checks failed: resolution\n$/,
      rows: [
        { check: 'resolution', result: 'failed', found: /^nobody\.invalid does not resolve \(E\w+\)$/ },
        { check: 'tls', result: 'skipped', found: 'resolution failed' },
        { check: 'token', result: 'skipped', found: 'resolution failed' },
      ],
    },
    {
      name: 'an address that needs no resolution',
      more: ['--endpoint', '127.0.0.1', '--service-fingerprint', fingerprint],
      status: 0,
      stderr: /^all ok\n$/,
      rows: [
        { check: 'resolution', result: 'skipped', found: '127.0.0.1 is an address' },
        { check: 'token', result: 'ok' },
      ],
    },
    {
      name: 'syslog only, with nothing listening',
      more: ['--no-https', '--syslog-port', '1'],
      status: 4,
      stderr: /SERVICE_UNREACHABLE 1 of 8 checks failed: syslog\n$/,
      rows: [
        { check: 'tls', result: 'skipped', found: 'HTTPS forwarding is off' },
        { check: 'syslog', result: 'failed', found: 'nothing listens on tls://localhost:1', fix: /--syslog-port$/ },
      ],
    },
    {
      name: 'syslog over UDP in addition, without a disk',
      more: ['--service-fingerprint', fingerprint, '--syslog', '--syslog-protocol', 'udp', '--outbox', 'memory'],
      status: 0,
      stderr: /^all ok\n$/,
      rows: [
        { check: 'outbox', result: 'ok', found: /^in memory/ },
        { check: 'syslog', result: 'skipped', found: /^udp:\/\/localhost:6514: whether datagrams arrive/ },
      ],
    },
    {
      name: 'a registry file in the wrong format',
      more: ['--registry-file', garbage, '--service-fingerprint', fingerprint],
      status: 2,
      stderr: /REGISTRY_FILE 1 of 8 checks failed: settings\n$/,
      rows: [{ check: 'settings', result: 'failed', fix: /the built-in registry is used$/ }],
    },
    {
      name: 'a CA file without a certificate',
      more: ['--service-ca-file', garbage],
      status: 2,
      stderr: /^posture-collector: USAGE --service-ca-file: \S+garbage holds no certificate; expected a PEM file/,
      rows: [],
    },
    {
      name: 'an invalid setting',
      more: ['--https-port', '0'],
      status: 2,
      stderr: /^posture-collector: USAGE --https-port: expected a whole number from 1 to 65535, found "0"\n$/,
      rows: [],
    },
  ]
  for (const { name, more, token: given = token, status, stderr, rows: expected } of rows) {
    const ended = await run('collector', [...parameters, ...more], { SVC_TOKEN: given, HEALTH_PORT: '0' })
    t.equal(ended.status, status, name)
    t.match(ended.stderr, stderr, name)
    const found = jsonLines<Row>(ended.stdout)
    for (const row of expected)
      t.match(
        found.find(({ check }) => check === row.check),
        row,
        name,
      )
    t.equal(found.length, expected.length === 0 ? 0 : 8, name)
    t.notOk((ended.stdout + ended.stderr).includes(given), 'the token is not printed')
  }
})

t.test('a check started as root runs as the user that the collector becomes', { skip: skipNamespaces }, async (t) => {
  const { token, parameters, directory } = await service(t)
  const ca = join(directory, 'authority.pem')
  const registry = join(directory, 'registry.yaml')
  copyFileSync(join(directory, 'service/tls/certificate.pem'), ca)
  writeFileSync(registry, 'disable: []\n')
  for (const file of [ca, registry]) chmodSync(file, 0o600)
  const check = async (...more: string[]) => {
    const ended = await run('collector', [...parameters, '--service-ca-file', ca, ...more], {
      SVC_TOKEN: token,
      HEALTH_PORT: '0',
    })
    return { ...ended, rows: new Map(jsonLines<Row>(ended.stdout).map((row) => [row.check, row])) }
  }
  const asRoot = await check('--run-as', 'root', '--registry-file', registry)
  t.match(asRoot, { status: 0, stderr: 'all ok\n' }, 'a collector that stays root can read both files')
  const denied = (file: string) => ({
    result: 'failed',
    found: new RegExp(`: ${file} is not readable by uid 1234$`),
    fix: new RegExp(
      `^chgrp 1235 ${file} && chmod g\\+r ${file}, and make its parent directories accessible to that user`,
    ),
  })
  const user = ['--run-as', '1234:1235']
  const other = await check(...user, '--registry-file', registry)
  t.match(other, { status: 2, stderr: /REGISTRY_FILE 2 of 8 checks failed: settings, tls\n$/ })
  t.match(other.rows.get('settings'), { code: 'REGISTRY_FILE', ...denied(registry) })
  t.match(other.rows.get('interface'), { result: 'ok' }, 'root opens the interface')
  t.match(other.rows.get('tls'), { code: 'USAGE', ...denied(ca) })
  const bySyslog = await check(...user, '--no-https', '--syslog')
  t.match(bySyslog.rows.get('syslog'), { code: 'USAGE', ...denied(ca) })
  for (const file of [ca, registry]) {
    chownSync(file, 0, 1235)
    chmodSync(file, 0o640)
  }
  const fixed = await check(...user, '--registry-file', registry)
  t.match(fixed, { status: 0, stderr: 'all ok\n' }, 'the suggested fix works')
})

t.test('without CAP_NET_RAW, the check lists the ways to grant it', { skip: skipNamespaces }, async (t) => {
  const asNobody = ['--reuid=65534', '--regid=65534', '--clear-groups', process.execPath, PROGRAMS.collector]
  const parameters = [...asNobody, 'check', '--interface', 'lo', '--outbox', '/root/outbox', '--https-port', '1']
  const { status, stdout } = spawnSync('setpriv', parameters, {
    encoding: 'utf8',
    env: { SVC_TOKEN: UNKNOWN_TOKEN, HEALTH_PORT: '0' },
  })
  t.equal(status, 4)
  t.match(jsonLines<Row>(stdout)[1], {
    check: 'interface',
    code: 'CAPTURE_DENIED',
    found: 'lo: no permission to capture',
    fix: /CAP_NET_RAW: AmbientCapabilities=CAP_NET_RAW \(\w+\), --cap-add NET_RAW \(\w+\), setcap cap_net_raw=ep \S+/,
  })
  t.match(jsonLines<Row>(stdout)[3], { check: 'outbox', code: 'STORE_UNWRITABLE', found: /no permission to write$/ })
})

t.test(
  'a check covers an interface that is down, one without carrier, and "any"',
  { skip: skipNamespaces },
  async (t) => {
    const inside = namespace(t, `spschk${process.pid}`)
    ip(...inside('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far'))
    ip(...inside('ip', 'link', 'set', 'near', 'up'))
    const rows = [
      {
        name: 'far',
        expected: { result: 'failed', found: 'far: the interface is down', fix: /"ip link set far up"/ },
      },
      {
        name: 'near',
        expected: { result: 'ok', found: /^near: no carrier, so nothing arrives yet, link type ethernet/ },
      },
      { name: 'any', expected: { result: 'ok', found: /^any: up, link type linuxCooked2? \(\d+\)$/ } },
    ]
    const outbox = t.testdir()
    for (const { name, expected } of rows) {
      const command = [process.execPath, PROGRAMS.collector, 'check', '--interface', name, '--outbox', outbox]
      const { stdout } = spawnSync('ip', inside(...command, '--https-port', '1'), {
        encoding: 'utf8',
        env: { SVC_TOKEN: UNKNOWN_TOKEN },
      })
      t.match(jsonLines<Row>(stdout)[1], expected, name)
    }
  },
)

t.test('a check does not disturb a collector on the same outbox', async (t) => {
  const outbox = join(t.testdir(), 'outbox')
  const environment = { SVC_TOKEN: UNKNOWN_TOKEN, OUTBOX: outbox, HTTPS_PORT: '1' }
  const collector = start('collector', ['--read', CAPTURE], environment)
  await new Promise<void>((resolve) => {
    collector.child.stderr?.on('data', () => {
      if (collector.output.stderr.includes('cannot forward')) resolve()
    })
  })
  const ended = await run('collector', ['check', '--interface', 'lo'], environment)
  const waiting = Number(/: (\d+) events wait, /.exec(jsonLines<Row>(ended.stdout)[3]?.found ?? '')?.[1])
  t.ok(waiting > 0, ended.stdout)
  collector.child.kill('SIGINT')
  const { status, stderr } = await collector.ended
  t.equal(status, 130, stderr)
  const after = await run('collector', ['check', '--interface', 'lo'], environment)
  t.match(jsonLines<Row>(after.stdout)[3]?.found, new RegExp(`: ${/"waiting":(\d+)/.exec(stderr)?.[1]} events wait`))
})
