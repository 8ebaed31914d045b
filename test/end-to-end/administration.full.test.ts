import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Agent, request } from 'undici'
import { keyPin } from '../../engine/kernel/process/key-pin.ts'
import { opensslCertificate } from '../support/openssl-certificate.ts'
import {
  ALL_SCOPES,
  admin,
  interruptAndWait,
  jsonLines,
  PROGRAMS,
  run,
  runAdmin,
  start,
  startService,
} from '../support/programs.ts'
import { startSite } from '../support/service-site.ts'
import { organizationWithToken } from '../support/syslog-service.ts'
import { until } from '../support/wait.ts'

/**
 * Runs posture-admin while posture-service runs on the same data. Changes apply to the next request
 * in every thread.
 */
async function site(t: { testdir(): string; teardown(work: () => unknown): void }) {
  const started = await startSite(t, ['--api-threads', '2'])
  const { service, dataDirectory } = started
  const ca = readFileSync(join(dataDirectory, 'tls/certificate.pem'))
  // One connection per request, so that each API thread gets some.
  const dispatcher = new Agent({ connect: { ca }, pipelining: 0, keepAliveTimeout: 1, keepAliveMaxTimeout: 1 })
  t.teardown(() => dispatcher.destroy())
  return {
    ...started,
    /** Flags of commands that name the ports of the service. */
    ports: ['--api-port', `${service.apiPort}`, '--ingest-port', `${service.ingestPort}`],
    async ask(path: string, key = started.key) {
      const url = `https://localhost:${service.apiPort}${path}`
      const answer = await request(url, { dispatcher, headers: { 'x-api-key': key }, reset: true })
      const etag = String(answer.headers['etag'])
      return { status: answer.statusCode, etag, body: (await answer.body.json()) as Record<string, unknown> }
    },
  }
}

t.test('changes to keys, plan and tokens apply to the next request', async (t) => {
  const { data, org, ask, send, tokenId } = await site(t)
  const [made] = await admin('key', 'create', 'reports', '--scope', 'discovery:read', ...org)
  const key = String(made?.['key'])
  /** Statuses over many connections, which both threads answer. */
  const statuses = async (path = '/api/v1/discovery'): Promise<number[]> => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(path, key)))
    return [...new Set(answers.map(({ status }) => status))]
  }
  t.same(await statuses(), [200])
  t.same(await statuses('/api/v1/scores'), [403])
  await admin('organization', 'set', 'Acme', '--plan', 'business', ...data)
  t.same(await statuses(), [403])
  await admin('organization', 'set', 'Acme', '--plan', 'enterprise', ...data)
  t.same(await statuses(), [200])
  await admin('key', 'revoke', String(made?.['prefix']), ...org)
  t.same(await statuses(), [401])

  t.equal(await send(['claude.ai']), 200)
  await admin('token', 'revoke', tokenId, ...org)
  t.equal(await send(['claude.ai']), 401)

  const used = await until('when the key was used last', async () => {
    const row = (await admin('key', 'list', ...org)).find(({ label }) => label === 'reports')
    return row?.['last_used_at'] === null ? undefined : String(row?.['last_used_at'])
  })
  t.ok(Math.abs(Date.parse(used) - Date.now()) < 60_000, used)
})

t.test('a requested scan and approvals are visible at once; the service runs the scan', async (t) => {
  const { org, ask, send } = await site(t)
  const discovery = async () => (await ask('/api/v1/discovery')).body
  t.same(await discovery(), { scan: null, platforms: [] })
  await send(['claude.ai'])
  await send(['chatgpt.com'])
  const [scan] = await admin('scan', 'run', ...org)
  t.match(scan, { status: 'completed', trigger: 'administrator', events: 2, summary: { shadow_ai_count: 2 } })
  t.match(await discovery(), { scan: { id: scan?.['id'], summary: { shadow_ai_count: 2 } } })
  const [approved] = await admin('approval', 'add', 'Claude', ...org)
  t.match(approved, { platform_name: 'Claude', id: 'claude' })
  t.match(await discovery(), { scan: { summary: { platforms_discovered: 2, shadow_ai_count: 1 } } })
  t.same(await admin('approval', 'remove', 'claude', ...org), [])
  t.match(await discovery(), { scan: { summary: { shadow_ai_count: 2 } } })
  t.same(
    (await admin('scan', 'list', ...org)).map(({ status }) => status),
    ['completed', 'completed', 'completed'],
  )
  const actions = (await admin('audit', 'list', ...org)).map(({ action }) => action)
  t.same(actions, [
    ...['organization.create', 'token.generate', 'api-key.create', 'scan.request', 'approval.add', 'approval.remove'],
  ])
})

t.test('decisions have terms, which the list shows, and the API shows the decision', async (t) => {
  const { data, org, ask, send } = await site(t)
  const answer = async () => {
    const { body, etag } = await ask('/api/v1/discovery')
    const { platforms } = body as { platforms: { metadata: { approved: boolean; decision: string } }[] }
    const [{ approved, decision } = { approved: undefined, decision: undefined }] = platforms.map(
      (each) => each.metadata,
    )
    return { approved, decision, etag }
  }
  await send(['claude.ai'])
  await admin('scan', 'run', ...org)
  const waiting = await answer()
  t.match(waiting, { approved: false, decision: 'waiting' })
  const terms = ['--note', 'A pilot', '--owner', 'ada@acme.example', '--expires', '90d']
  const [approved] = await admin('approval', 'add', 'claude', ...terms, ...org)
  t.match(approved, {
    ...{ id: 'claude', platform_name: 'Claude', decision: 'approved', note: 'A pilot', owner: 'ada@acme.example' },
    expires_at: /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/,
    decided_by: /^operator /,
    decided_at: /Z$/,
    risk: { score: Number },
  })
  const during = await answer()
  t.match(during, { approved: true, decision: 'approved' })
  t.not(during.etag, waiting.etag)
  const [rejected] = await admin('approval', 'reject', 'Claude', ...org)
  t.match(rejected, { decision: 'rejected', note: null, owner: null, expires_at: null })
  t.match(await answer(), { approved: false, decision: 'rejected' })
  t.same(await admin('approval', 'list', ...org), [rejected])
  const [shown] = await admin('organization', 'show', 'Acme', ...data)
  t.match(shown, { approved_platforms: 0, rejected_platforms: 1 })
  for (const wrong of [
    ['--expires', '2020-01-01'],
    ['--note', ''],
    ['--owner', 'x'.repeat(300)],
  ]) {
    const { status, stderr } = await run('admin', ['approval', 'add', 'claude', ...wrong, ...org])
    t.equal(status, 2, stderr)
    t.match(stderr, wrong[0])
  }
  t.same(await admin('approval', 'list', ...org), [rejected])
})

t.test('verify shows events of a token: those of the last minutes, and those that arrive', async (t) => {
  const { org, send, tokenId } = await site(t)
  const verify = ['verify', ...org, '--token', tokenId]
  await send(['claude.ai'])
  await send(['claude.ai'])
  const earlier = await run('admin', [...verify, '--timeout', '300'])
  t.equal(earlier.status, 0, earlier.stderr)
  const rows = jsonLines(earlier.stdout)
  t.match(rows, [{ listener: 'https', address: '127.0.0.1', token_label: 'sensor' }])
  t.equal(
    rows.reduce((sum, row) => sum + Number(row['events']), 0),
    2,
    'each once',
  )
  const onlyNew = await run('admin', [...verify, '--since', '0s', '--timeout', '1'])
  t.match(onlyNew, { status: 4, stderr: /^posture-admin: NO_EVENTS no events of .* within 1 s\. Nothing arrived\. / })
  t.match(await runAdmin([...verify, '--since', '2h']), { status: 2, stderr: /a duration from 0s to 1h, such as 90s/ })

  const waits = start('admin', [...verify, '--since', '0s', '--timeout', '300'])
  // verify shows only events received after its start, so events are sent until one is shown.
  const { status } = await until('it has ended', async () => {
    await send(['claude.ai'])
    return waits.child.exitCode === null ? undefined : waits.ended
  })
  t.equal(status, 0)

  // A separate token, because the service may count the first token's last events later.
  const [unused] = await admin('token', 'generate', 'unused', ...org)
  const never = await run('admin', ['verify', ...org, '--token', String(unused?.['id']), '--timeout', '1'])
  t.equal(never.status, 4)
  t.match(never.stderr, /within 1 s\. \d+ events arrived with the token “sensor” of this organization\. /)
  const typo = await runAdmin(['verify', ...org, '--token', 'deadbeef'])
  t.match(typo, { status: 5, stderr: /NOT_FOUND no monitoring token/ })
  t.equal((await interruptAndWait(() => start('admin', [...verify, '--since', '0s']))).status, 130)
})

t.test('an organization is removed while the service runs; another one is not affected', async (t) => {
  const { directory, data, ask, send, key: acme, organizationId } = await site(t)
  const auditFile = join(directory, 'audit.jsonl')
  await admin('organization', 'create', 'Other', '--domain', 'other.example', ...data)
  const [made] = await admin('key', 'create', 'dashboard', ...ALL_SCOPES, '--org', 'Other', ...data)
  const other = String(made?.['key'])
  for (let sequence = 1; sequence <= 20; sequence++) await send(['claude.ai'])
  const remove = ['organization', 'remove', 'Acme', '--audit-file', auditFile, ...data]
  for (const [words, stderr] of [
    [[], /USAGE --confirm is required: the name of the organization, "Acme"/],
    [['--confirm', 'acme'], /USAGE --confirm: expected the name "Acme"; nothing was removed/],
    [['--confirm', 'Acme', '--as', 'bob'], /NOT_ALLOWED/],
  ] as const) {
    t.match(await runAdmin([...remove, ...words]), { stderr })
  }
  t.equal((await ask('/api/v1/scores', acme)).status, 200)
  t.equal(existsSync(auditFile), false, 'no export without a removal')
  writeFileSync(auditFile, '')
  t.match(await runAdmin([...remove, '--confirm', 'Acme']), { status: 4, stderr: /AUDIT_FILE .*the file exists/ })
  rmSync(auditFile)
  const sending = Promise.all(Array.from({ length: 20 }, () => send(['claude.ai'])))
  t.match(await admin(...remove, '--confirm', 'Acme'), [{ name: 'Acme', id: organizationId }])
  for (const status of await sending) t.ok(status === 200 || status === 401 || status === 503, `${status}`)
  t.equal((await ask('/api/v1/scores', acme)).status, 401)
  t.equal((await ask('/api/v1/scores', other)).status, 200)
  t.equal(await send(['claude.ai']), 401)
  const last = readFileSync(auditFile, 'utf8').trimEnd().split('\n').at(-1) ?? ''
  t.match(JSON.parse(last), { action: 'organization.remove', subject: 'Acme' })
  // Senders are counted once a second. No record of the removed organization may return.
  await until('the sender without a token is counted', async () => {
    return (await admin('ingest', 'sources', ...data)).length > 0 ? true : undefined
  })
  await admin('doctor', ...data)
})

t.test('setup prints ready lines, waits for the first event and shows the finding', async (t) => {
  const { data, ports, send } = await site(t)
  const setup = start('admin', ['setup', '--org', 'New', '--domain', 'new.example', ...ports, ...data])
  const made = await until('the secrets are printed', () => {
    const [line = '', rest] = setup.output.stdout.split('\n')
    return rest === undefined ? undefined : (JSON.parse(line) as Record<string, unknown>)
  })
  t.match(made, { created: true, collector: Array, rsyslog: Array, syslog_ng: Array })
  t.match((made['curl'] as string[]).at(-1), /^curl --cacert \S+\.pem --header @api-key\.txt https:/)
  t.equal(await send(['claude.ai'], String(made['token'])), 200)
  const { status, stdout, stderr } = await setup.ended
  t.equal(status, 0, stderr)
  t.match(JSON.parse(stdout.split('\n')[1] ?? ''), { platform_name: 'Claude', metadata: { matches: 1 } })
  t.match(stderr, /127\.0\.0\.1.*1 events/)
  const asked = ['setup', '--org', 'New', ...data]
  const ended = await interruptAndWait(() => start('admin', asked))
  t.match(ended, { status: 130, stderr: /everything is created; continue with posture-admin verify/ })
})

t.test('on a terminal, setup asks for the names of the certificate once, and keeps its key', async (t) => {
  const { data, ports } = await site(t)
  const file = join(data.at(-1) ?? '', 'tls/certificate.pem')
  const certificate = () => new X509Certificate(readFileSync(file))
  const pin = keyPin(certificate())
  const setup = (answer: string, ...words: string[]) => {
    const command = [process.execPath, PROGRAMS.admin, 'setup', '--org', 'New', '--domain', 'new.example', '--no-wait']
    const onTerminal = ['-q', '-e', '-c', [...command, ...ports, ...data, ...words].join(' '), '/dev/null']
    const { status, stdout } = spawnSync('script', onTerminal, { encoding: 'utf8', input: answer })
    t.equal(status, 0, stdout)
    return stdout
  }
  const asked = /Names and addresses of this service, for its self-signed certificate \[\S+\]: /
  const first = setup('not a name\nrelay.example, 192.0.2.7\n')
  t.match(first, asked)
  t.match(first, /expected comma-separated host names or IP addresses/)
  t.match(first, 'the certificate is valid for relay.example, 192.0.2.7')
  t.match(first, `SVC_ENDPOINT=relay.example\r\n  HTTPS_PORT=${ports.at(-1)}\r\n  SERVICE_FINGERPRINT=${pin}\r\n`)
  t.match(first, `sudo install --mode 644 ${file} /etc/posture-ca.pem`)
  t.ok(certificate().checkHost('relay.example') && certificate().checkIP('192.0.2.7'))

  const second = setup('')
  t.notMatch(second, asked)
  t.match(second, `SERVICE_FINGERPRINT=${pin}`, 'recognized before the service has read the file again')
  setup('', '--tls-name', 'other.example')
  t.ok(certificate().checkHost('other.example') && !certificate().checkHost('relay.example'))
  t.equal(keyPin(certificate()), pin)
})

t.test('names for a certificate that the service does not use are refused', async (t) => {
  const directory = join(t.testdir(), 'service')
  const own = opensslCertificate(join(t.testdirName, 'own'), 'ECDSA P-256')
  const files = ['--tls-key', own.keyFile, '--tls-certificate', own.certificateFile]
  const service = await startService(directory, files)
  t.teardown(() => service.child.kill('SIGKILL'))
  const ports = ['--api-port', `${service.apiPort}`, '--ingest-port', `${service.ingestPort}`, '--data-dir', directory]
  const words = ['setup', '--org', 'New', '--domain', 'new.example', '--no-wait', ...ports]
  t.match(await runAdmin([...words, '--tls-name', 'relay.example']), {
    status: 2,
    stderr: /--tls-name: the service does not use the self-signed certificate in .*service\/tls$/m,
  })
  t.same(await admin('organization', 'list', '--data-dir', directory), [], 'nothing is created')
  t.notMatch(JSON.stringify(await admin(...words)), /SERVICE_FINGERPRINT|certificate\.pem/)
})

t.test('an API key expires, and scopes are never granted silently', async (t) => {
  const { data, ask } = await site(t)
  const expires = ['--expires', new Date(Date.now() + 3000).toISOString().replace(/\.\d+/, '')]
  const create = ['key', 'create', 'short', ...data]
  t.match(await runAdmin(create), {
    status: 2,
    stderr: /USAGE --scope is required: one or more of scores:read, recommendations:read/,
  })
  for (const [wrong, stderr] of [
    ['soon', /expected a duration such as 90d, a day such as 2027-03-31, or a time/],
    ['2027-02-30', /expected a duration such as 90d/],
    ['2020-01-01', /expected a time in the future/],
    ['99999d', /expected a time within/],
  ] as const) {
    t.match(await runAdmin([...create, '--expires', wrong]), { status: 2, stderr })
  }
  const [made] = await admin(...create, ...expires, '--scope', 'scores:read')
  t.match(made, { status: 'active', expires_at: expires[1], scopes: ['scores:read'] })
  t.equal((await ask('/api/v1/scores', String(made?.['key']))).status, 200)
  await until('it has expired', async () => {
    return (await ask('/api/v1/scores', String(made?.['key']))).status === 401 ? true : undefined
  })
  const listed = (await admin('key', 'list', ...data)).map(({ label, status }) => `${label} ${status}`)
  t.same(listed.sort(), ['dashboard active', 'short expired'])
})

t.test('without a service, a scan runs in the command, and verify reports that no events can arrive', async (t) => {
  const directory = t.testdir()
  const data = ['--data-dir', directory]
  await organizationWithToken(directory, 'Acme', 'sensor')
  t.match(await runAdmin(['verify', '--org', 'Acme', ...data]), {
    status: 4,
    stderr: /SERVICE_UNREACHABLE no posture-service runs on .*; start it first/,
  })
  t.match(await admin('scan', 'run', '--org', 'Acme', ...data), [{ status: 'completed', events: 0 }])
})

t.test('a second service on the same data is rejected, and a scan waits for its turn', async (t) => {
  const { data } = await site(t)
  const second = await run('service', [
    ...data,
    '--api-port',
    '0',
    '--console-port',
    'off',
    '--ingest-port',
    'off',
    '--metrics-port',
    'off',
  ])
  t.match(second, { status: 4, stderr: /STORE_IN_USE .*another service/ })
})

t.test('a command can run as a member, and names the missing right otherwise', async (t) => {
  const data = ['--data-dir', t.testdir()]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const org = ['--org', 'Acme', ...data]
  await admin('member', 'add', 'alice@acme.example', '--role', 'owner', ...org)
  await admin('member', 'add', 'bob', ...org, '--as', 'alice@acme.example')
  const refused = await runAdmin(['key', 'create', 'mine', ...ALL_SCOPES, ...org, '--as', 'bob'])
  t.match(refused, { status: 5, stderr: 'posture-admin: NOT_ALLOWED bob is a member; api-key.create needs admin\n' })
  await admin('member', 'role', 'bob', 'admin', ...org, '--as', 'alice@acme.example')
  await admin('key', 'create', 'mine', ...ALL_SCOPES, ...org, '--as', 'bob')
  t.match(await runAdmin(['member', 'role', 'bob', 'king', ...org]), { status: 2, stderr: /expected one of/ })
  t.match(await runAdmin(['organization', 'set', 'Acme', ...data]), { status: 2, stderr: /nothing to change/ })
  const both = ['--domain', 'other.example', '--plan', 'free', '--as', 'bob']
  t.match(await runAdmin(['organization', 'set', 'Acme', ...both, ...data]), { status: 5, stderr: /operator/ })
  t.match(
    await admin('organization', 'list', ...data),
    [{ domain: 'acme.example', plan: 'enterprise' }],
    'both or none',
  )
  for (const hidden of ['al\u200bice', 'x\u202eecila', 'a\u2028b']) {
    t.match(await runAdmin(['member', 'add', hidden, ...org]), { status: 2, stderr: /invisible characters/ })
  }
  const entries = await admin('audit', 'list', ...org, '--limit', '2')
  t.match(entries, [
    {
      actor: 'member alice@acme.example',
      action: 'member.role',
      subject: 'bob',
      details: { role: 'admin', was: 'member' },
    },
    { actor: 'member bob', action: 'api-key.create', subject: 'mine' },
  ])
})

t.test('bindings: several addresses and ports at once, and shown wherever the token is', async (t) => {
  const data = ['--data-dir', t.testdir()]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [token] = await admin('token', 'generate', 'one', ...data)
  const id = String(token?.['id'])
  await admin('token', 'bind', id, '--port', '5514', '--port', '5515', ...data)
  await admin('token', 'bind', id, '--address', '192.0.2.1', '--address', '192.0.2.2', '--port', '5516', ...data)
  const bound = ['port 5514', 'port 5515', '192.0.2.1 port 5516', '192.0.2.2 port 5516'].sort()
  for (const words of [['list'], ['set', id, '--zone', '+01:00'], ['revoke', id]]) {
    const [row] = await admin('token', ...words, ...data)
    t.same([...((row?.['bound_to'] as string[]) ?? [])].sort(), bound, String(words[0]))
  }
  const [other] = await admin('token', 'generate', 'two', ...data)
  const refused = ['token', 'bind', String(other?.['id']), '--address', '192.0.2.9', '--address', 'wrong', ...data]
  t.match(await runAdmin(refused), { status: 2, stderr: /--address: expected an address or a network/ })
  t.match(await runAdmin(['token', 'bind', String(other?.['id']), ...data]), { status: 2, stderr: /--address, --port/ })
  t.match(
    (await admin('token', 'list', ...data)).find(({ id }) => id === other?.['id']),
    { bound_to: [] },
    'none of them',
  )
})

t.test('errors say what to do next', async (t) => {
  const data = ['--data-dir', t.testdir()]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  for (const [words, line] of [
    [['key', 'create', '--lable', 'x'], /USAGE .*; see posture-admin key create --help\n$/],
    [['token', 'frobnicate'], /USAGE .*; see posture-admin token --help\n$/],
    [['frobnicate'], /USAGE .*; see posture-admin --help\n$/],
    [['key', 'revoke', 'deadbeef', ...data], /no API key "deadbeef"; posture-admin key list shows all\n$/],
    [['token', 'unbind', 'deadbeef', ...data], /no monitoring token "deadbeef"; posture-admin token list shows all\n$/],
    [
      ['assessment', 'show', 'deadbeef', ...data],
      /no assessment "deadbeef"; posture-admin assessment list shows all\n$/,
    ],
    [['member', 'remove', 'bob', ...data], /no member "bob"; posture-admin member list shows all\n$/],
  ] as const) {
    t.match((await runAdmin([...words])).stderr, line)
  }
})

t.test('a secret given in place of its name finds the record, and is in no output', async (t) => {
  const data = ['--data-dir', t.testdir()]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const org = ['--org', 'Acme', ...data]
  const [key] = await admin('key', 'create', 'one', ...ALL_SCOPES, ...org)
  const [token] = await admin('token', 'generate', 'one', ...org)
  const raw = { key: String(key?.['key']), token: String(token?.['token']) }
  for (const kind of ['key', 'token'] as const) {
    const unknown = raw[kind].replace(/.{4}$/, 'ffff')
    for (const [text, status] of [
      [unknown, 5],
      [raw[kind], 0],
      [raw[kind], 5],
    ] as const) {
      const ended = await runAdmin([kind, 'revoke', text, ...org])
      t.equal(ended.status, status, ended.stderr)
      t.notOk(`${ended.stdout}${ended.stderr}`.includes(text.slice(20)), ended.stderr)
    }
  }
  for (const args of [
    ['token', 'bind', raw.token, '--port', '5514'],
    ['verify', '--token', raw.token],
  ]) {
    const { stderr } = await runAdmin([...args, ...org])
    t.notOk(stderr.includes(raw.token.slice(20)), stderr)
  }
})
