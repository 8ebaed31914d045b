import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'

/*
 * Writes what the programs of a release leave on disk, for upgrade.test.ts: npm run keep-sample -- CHECKOUT NAME, where the checkout of
 * the release is built. Run once for each release, and its files are never changed.
 *
 * Three passes of the demo capture: one is in a scan, one in the service's buffer, one waits in the collector's outbox.
 */

const [checkout = '', name = ''] = process.argv.slice(2)
if (name === '') throw new Error('usage: npm run keep-sample -- CHECKOUT NAME')
const program = (file: string) => [process.execPath, join(resolve(checkout), 'dist', file)] as const
const CAPTURE = resolve('test/captures/demo/input.pcap')
const folder = mkdtempSync(join(tmpdir(), 'upgrade-'))
const data = join(folder, 'service')
/** A port on which nothing listens. */
const NOBODY = '9'
const WAIT_MS = 5000

const [node, service] = program('api/main.js')
const running = spawn(
  node,
  [
    ...[service, '--data-dir', data, '--api-address', '127.0.0.1', '--ingest-address', '127.0.0.1'],
    ...['--api-port', '0', '--ingest-port', '0'],
  ],
  // A port or a listener that a release has not is none of its settings.
  {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, SYSLOG_TLS: 'off', SYSLOG_TCP: 'off', SYSLOG_UDP: 'off', METRICS_PORT: 'off' },
  },
)
const [ports] = (await once(running, 'message')) as [{ apiPort: number; ingestPort: number }]
admin('organization', 'create', 'Acme', '--domain', 'acme.example')
const { key } = admin('key', 'create', 'dashboard', '--org', 'Acme') as { key: string }
const { token } = admin('token', 'generate', 'sensor', '--org', 'Acme') as { token: string }
await collect('scanned', `${ports.ingestPort}`)
admin('scan', 'run', '--org', 'Acme')
// One record of each kind at least, as far as the release knows the kind.
const acme = ['--org', 'Acme']
ifKnown('member', 'add', 'ada@acme.example', '--role', 'admin', ...acme)
ifKnown('approval', 'add', 'ChatGPT', ...acme)
ifKnown('retention', 'set', '--audit', '100', ...acme)
ifKnown('token', 'bind', `${token.slice(7, 15)}`, '--address', '192.0.2.7', ...acme)
const assessment = ifKnown('assessment', 'create', '--framework', 'nist-csf-2', '--title', 'Spring', ...acme)
if (assessment !== undefined) {
  const { id } = assessment[0] as { id: string }
  const items = ifKnown('assessment', 'show', id, '--items', ...acme) ?? []
  for (const { item_id: item } of items as { item_id: string }[]) {
    ifKnown('assessment', 'answer', id, item, 'partial', ...acme)
  }
  ifKnown('assessment', 'complete', id, ...acme)
}
const discovery = await get('/api/v1/discovery')
const answers: Record<string, unknown> = {}
for (const name of ['scores', 'recommendations', 'assessments']) answers[name] = await get(`/api/v1/${name}`)
await collect('buffered', `${ports.ingestPort}`)
const waiting = collect('outbox', NOBODY)
await later(WAIT_MS)
;(await waiting.child).kill('SIGKILL')
running.kill('SIGTERM')
await once(running, 'exit')
const tables = Object.fromEntries(
  ((ifKnown('doctor') ?? []) as { table?: string; records?: number }[]).flatMap(({ table, records }) =>
    table === undefined ? [] : [[table, records]],
  ),
)

const to = resolve('test/upgrade', name)
rmSync(to, { recursive: true, force: true })
mkdirSync(to, { recursive: true })
// The locks are of processes that have ended; a certificate is made anew.
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
const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: checkout, encoding: 'utf8' }).trim()
const was = { commit, writtenAt: new Date().toISOString(), key, token, discovery, answers, tables }
writeFileSync(join(to, 'was.json'), `${JSON.stringify(was, null, 1)}\n`)
rmSync(folder, { recursive: true })

function admin(...words: string[]): unknown {
  const [command, file] = program('engine/admin/main.js')
  const printed = execFileSync(command, [file, ...words, '--data-dir', data], { encoding: 'utf8' })
  return JSON.parse(printed.split('\n', 1)[0] ?? '')
}

/** What a command prints; undefined where the release does not have it. */
function ifKnown(...words: string[]): unknown[] | undefined {
  const [command, file] = program('engine/admin/main.js')
  const { status, stdout, stderr } = spawnSync(command, [file, ...words, '--data-dir', data], { encoding: 'utf8' })
  if (status !== 0) process.stderr.write(`${words.slice(0, 2).join(' ')}: ${stderr}`)
  if (status !== 0) return undefined
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown)
}

/** A pass of the demo, moved to now, with an outbox of its own. */
function collect(outbox: string, port: string): Promise<void> & { child: Promise<ReturnType<typeof spawn>> } {
  const [command, file] = program('collector/main.js')
  const child = spawn(
    command,
    [
      ...[file, 'run', '--read', CAPTURE, '--shift-to-now', '--outbox', join(folder, outbox)],
      ...['--endpoint', 'localhost', '--https-port', port, '--ca', join(data, 'tls/certificate.pem')],
    ],
    { stdio: 'inherit', env: { ...process.env, SVC_TOKEN: token, AGGREGATE_SECONDS: '0' } },
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
      response.once('end', () => resolve(JSON.parse(text)))
    })
      .once('error', reject)
      .end()
  })
}
