import { execFileSync, spawn } from 'node:child_process'
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
const discovery = await get('/api/v1/discovery')
await collect('buffered', `${ports.ingestPort}`)
const waiting = collect('outbox', NOBODY)
await later(WAIT_MS)
;(await waiting.child).kill('SIGKILL')
running.kill('SIGTERM')
await once(running, 'exit')

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
const was = { commit, writtenAt: new Date().toISOString(), key, token, discovery }
writeFileSync(join(to, 'was.json'), `${JSON.stringify(was, null, 1)}\n`)
rmSync(folder, { recursive: true })

function admin(...words: string[]): unknown {
  const [command, file] = program('engine/admin/main.js')
  const printed = execFileSync(command, [file, ...words, '--data-dir', data], { encoding: 'utf8' })
  return JSON.parse(printed.split('\n', 1)[0] ?? '')
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
