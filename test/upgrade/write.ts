import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { ALL_SCOPES } from '../support/programs.ts'

/*
 * Writes a sample of the data that the programs of a schema leave on disk, for
 * upgrade.full.test.ts: npm run keep-sample -- CHECKOUT NAME. The checkout must be built. The
 * sample of a published release never changes.
 *
 * The demo capture is read three times: into a scan, into the service's buffer, and into the
 * outbox.
 */

const [checkout = '', name = ''] = process.argv.slice(2)
if (name === '') throw new Error('usage: npm run keep-sample -- CHECKOUT NAME')
const program = (file: string) => [process.execPath, join(resolve(checkout), 'dist', file)] as const
const CAPTURE = resolve('test/captures/demo/input.pcap')
const folder = mkdtempSync(join(tmpdir(), 'upgrade-'))
const data = join(folder, 'service')
/** A port on which nothing listens. */
const UNUSED_PORT = '9'
const WAIT_MS = 5000

const [node, service] = program('api/main.js')
const running = spawn(
  node,
  [
    ...[service, '--data-dir', data, '--api-address', '127.0.0.1', '--ingest-address', '127.0.0.1'],
    ...['--api-port', '0', '--ingest-port', '0', '--console-port', 'off'],
  ],
  {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, SYSLOG_TLS: 'off', SYSLOG_TCP: 'off', SYSLOG_UDP: 'off', METRICS_PORT: 'off' },
  },
)
const [ports] = (await once(running, 'message')) as [{ apiPort: number; ingestPort: number }]
admin('organization', 'create', 'Acme', '--domain', 'acme.example')
const [{ key }] = admin('key', 'create', 'dashboard', '--org', 'Acme', ...ALL_SCOPES) as [{ key: string }]
const [{ token }] = admin('token', 'generate', 'sensor', '--org', 'Acme') as [{ token: string }]
await collect('scanned', `${ports.ingestPort}`)
admin('scan', 'run', '--org', 'Acme')
// At least one record of each persistent kind.
const acme = ['--org', 'Acme']
admin('member', 'add', 'ada@acme.example', '--role', 'admin', ...acme)
admin('member', 'add', 'bob@acme.example', ...acme)
admin('member', 'remove', 'bob@acme.example', ...acme)
admin('approval', 'add', 'ChatGPT', '--note', 'Contract', '--owner', 'ada@acme.example', '--expires', '365d', ...acme)
admin('approval', 'reject', 'DeepSeek', ...acme)
admin('approval', 'remove', 'DeepSeek', ...acme)
admin('blocklist', 'link', 'create', 'firewall', '--rejected', ...acme)
admin('retention', 'set', '--audit-days', '100', ...acme)
admin('network', 'add', '192.0.2.0/24', 'Office', ...acme)
const groups = join(folder, 'groups.csv')
writeFileSync(groups, '192.0.2.7,Lab\nada,Finance,grace@acme.example\n')
admin('client', 'groups', 'import', groups, ...acme)
const names = join(folder, 'names.csv')
writeFileSync(names, 'address,name,from,to\n192.0.2.7,laptop,2026-11-03,2026-11-09\n192.0.2.7,phone,2026-11-09,\n')
admin('client', 'names', 'import', names, ...acme)
admin('token', 'bind', `${token.slice(7, 15)}`, '--address', '192.0.2.7', ...acme)
const assessment = admin('assessment', 'create', '--framework', 'nist-csf-2', '--title', 'Spring', ...acme)
const [{ id }] = assessment as [{ id: string }]
for (const { item_id: item } of admin('assessment', 'show', id, '--items', ...acme) as { item_id: string }[]) {
  admin('assessment', 'answer', id, item, 'partial', ...acme)
}
admin('assessment', 'complete', id, ...acme)
// A log with one match and one line of an unknown format.
const clientSecret = join(folder, 'client-secret')
writeFileSync(clientSecret, 'secret', { mode: 0o600 })
const provider = ['--name', 'Okta', '--issuer', 'https://login.example', '--client-id', 'console']
admin('sign-in', 'set', ...provider, '--group', 'staff=viewer', '--client-secret-file', clientSecret, ...acme)
// Nobody has this name, so its messages wait.
admin('alert', 'channel', 'add', 'siem', '--kind', 'syslog', '--host', 'siem.invalid', ...acme)
admin('alert', 'rule', 'mute', 'coverage-low', ...acme)
admin('alert', 'rule', 'set', 'unapproved-platform', '50', ...acme)
const log = join(folder, 'squid.log')
const seconds = (Date.now() / 1000).toFixed(3)
writeFileSync(
  log,
  `${seconds} 12 192.0.2.7 TCP_TUNNEL/200 512 CONNECT claude.ai:443 - HIER_DIRECT/192.0.2.1 -\nno log line\n`,
)
admin('ingest', 'file', log, '--token', token)
const answers: Record<string, unknown> = {}
for (const name of ['scores', 'recommendations', 'assessments']) answers[name] = await get(`/api/v1/${name}`)
await collect('buffered', `${ports.ingestPort}`)
const waiting = collect('outbox', UNUSED_PORT)
await later(WAIT_MS)
;(await waiting.child).kill('SIGKILL')
// The last, because a new organization is scanned by itself, and a slow machine takes that long.
const discovery = await get('/api/v1/discovery')
running.kill('SIGTERM')
await once(running, 'exit')
const tables = Object.fromEntries(
  (admin('doctor') as { table?: string; records?: number }[]).flatMap(({ table, records }) =>
    table === undefined ? [] : [[table, records]],
  ),
)

const to = resolve('test/upgrade', name)
rmSync(to, { recursive: true, force: true })
mkdirSync(to, { recursive: true })
// Leaves out locks, whose processes have ended, and the certificate, which the service creates
// again.
const pack = (from: string, archive: string) =>
  execFileSync('tar', [
    '-czf',
    join(to, archive),
    '--exclude=*.sock',
    '--exclude=lock.mdb',
    '--exclude=./tls',
    '-C',
    from,
    '.',
  ])
pack(data, 'service.tar.gz')
pack(join(folder, 'outbox'), 'outbox.tar.gz')
copyFileSync(log, join(to, 'squid.log'))
const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: checkout, encoding: 'utf8' }).trim()
const was = { commit, writtenAt: new Date().toISOString(), key, token, discovery, answers, tables }
writeFileSync(join(to, 'was.json'), `${JSON.stringify(was, null, 1)}\n`)
rmSync(folder, { recursive: true })

/** The rows that a posture-admin command prints. */
function admin(...words: string[]): unknown[] {
  const [command, file] = program('engine/admin/main.js')
  const printed = execFileSync(command, [file, ...words, '--data-dir', data], { encoding: 'utf8' })
  return printed
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown)
}

/** Reads the demo capture, with its times shifted to now, through a separate outbox. */
function collect(outbox: string, port: string): Promise<void> & { child: Promise<ReturnType<typeof spawn>> } {
  const [command, file] = program('collector/main.js')
  const child = spawn(
    command,
    [
      ...[file, 'run', '--read', CAPTURE, '--shift-to-now', '--outbox', join(folder, outbox)],
      ...['--endpoint', 'localhost', '--https-port', port, '--service-ca-file', join(data, 'tls/certificate.pem')],
    ],
    { stdio: 'inherit', env: { ...process.env, SVC_TOKEN: token, EVENT_WINDOW_SECONDS: '0' } },
  )
  const ended = once(child, 'exit').then(([status]) => {
    if (status !== 0 && status !== null) throw new Error(`the collector ended with ${status}`)
  })
  return Object.assign(ended, { child: Promise.resolve(child) })
}

function get(path: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const options = { port: ports.apiPort, path, headers: { 'X-API-Key': key }, rejectUnauthorized: false }
    request({ host: '127.0.0.1', ...options }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      response.once('end', () => {
        if (response.statusCode === 200) resolve(JSON.parse(text))
        else reject(new Error(`${path}: ${response.statusCode} ${text}`))
      })
    })
      .once('error', reject)
      .end()
  })
}
