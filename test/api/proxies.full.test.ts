import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { freePort } from '../support/free-port.ts'
import { IMPLEMENTATIONS } from '../support/https.ts'
import { NGINX, nginxTemporaryFolders } from '../support/nginx.ts'
import { ALL_SCOPES, admin, REPOSITORY, startService } from '../support/programs.ts'
import { until } from '../support/wait.ts'

/**
 * The proxies of deploy/proxies keep connections to the service open. Sparse requests come just
 * when the service, or the proxy, may close one: none may fail. Five clients for each pause send as
 * many requests in two minutes as one client in ten.
 */
const MEASURED_MS = 120_000
const CLIENTS_PER_PAUSE = 5
const ANSWER_MS = 120_000
/** Around 5 s (the field), 8 to 12 s (uWebSockets.js), 60 s (proxies) and 75 s (node:http). */
const PAUSES_MS = [100, 3900, 4100, 5000, 7900, 8000, 9000, 10_000, 11_000, 11_900, 12_100, 60_000, 74_900]

interface Proxy {
  readonly name: string
  readonly file: string
  readonly command: (config: string, directory: string) => readonly string[]
  /** Of the file, for a whole configuration. */
  readonly around: (text: string, directory: string) => string
}

const CACHE = join(REPOSITORY, 'node_modules/.cache')
const PROXIES: readonly Proxy[] = [
  {
    name: 'nginx',
    file: 'nginx.conf',
    command: (config, directory) => [NGINX, '-p', directory, '-c', config],
    around: (text, directory) =>
      `daemon off; worker_processes 1; user root; pid ${join(directory, 'pid')}; error_log stderr warn;\n` +
      `events { worker_connections 100; }\nhttp { access_log off; ${nginxTemporaryFolders(directory)}\n${text} }\n`,
  },
  {
    name: 'HAProxy',
    file: 'haproxy.cfg',
    command: (config) => [join(CACHE, 'haproxy/usr/sbin/haproxy'), '-db', '-f', config],
    around: (text) => text,
  },
]

t.jobs = PROXIES.length * IMPLEMENTATIONS.length

for (const implementation of IMPLEMENTATIONS) {
  for (const proxy of PROXIES) {
    t.test(`${proxy.name} in front of ${implementation}`, async (t) => {
      const directory = t.testdir()
      const data = join(directory, 'service')
      await admin('organization', 'create', 'Acme', '--domain', 'acme.example', '--data-dir', data)
      const [made] = await admin('key', 'create', 'test', ...ALL_SCOPES, '--org', 'Acme', '--data-dir', data)
      const words = ['--http-server', implementation, '--plain-http', '--ingest-port', 'off', '--api-threads', '1']
      const service = await startService(data, [...words, '--max-connections-per-address', '0'])
      t.teardown(() => service.child.kill('SIGKILL'))
      const { port, stop, output } = await startProxy(t, proxy, directory, service.apiPort)
      const failures: string[] = []
      let answers = 0
      const endMs = performance.now() + MEASURED_MS
      await Promise.all(
        PAUSES_MS.flatMap((pauseMs) => Array<number>(CLIENTS_PER_PAUSE).fill(pauseMs)).map(async (pauseMs, client) => {
          // Evenly spaced, so that a proxy's connection is idle for different times.
          await later(((client % CLIENTS_PER_PAUSE) * pauseMs) / CLIENTS_PER_PAUSE)
          while (performance.now() < endMs) {
            try {
              const { statusCode, headers } = await ask(port, '/api/v1/scores', String(made?.['key']))
              answers++
              if (headers['keep-alive'] !== undefined) failures.push("the service's Keep-Alive was passed on")
              if (statusCode !== 200 && statusCode !== 429) failures.push(`${statusCode}`)
            } catch (error) {
              failures.push(`${pauseMs} ms: ${(error as Error).message}`)
            }
            await later(pauseMs)
          }
        }),
      )
      await stop()
      t.same(failures, [], `${answers} answers`)
      t.ok(answers > 100)
      t.notMatch(output(), /reset|prematurely closed/i, 'no connection to the service failed')
    })
  }
}

/** Sends a request on a new connection. Fails after ANSWER_MS, so that a hang is reported. */
async function ask(port: number, path: string, key = ''): Promise<IncomingMessage> {
  const headers = { connection: 'keep-alive', 'x-api-key': key }
  const request = get({ port, path, agent: false, headers, signal: AbortSignal.timeout(ANSWER_MS) })
  request.on('error', () => {}) // once() reports it.
  try {
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    await once(answer.resume(), 'end')
    return answer
  } finally {
    request.destroy()
  }
}

async function startProxy(t: Test, proxy: Proxy, directory: string, servicePort: number) {
  const port = await freePort()
  const text = readFileSync(join(REPOSITORY, 'deploy/proxies', proxy.file), 'utf8')
    .replace('127.0.0.1:8443', `127.0.0.1:${servicePort}`)
    .replace('127.0.0.1:8080', `127.0.0.1:${port}`)
  const config = join(directory, proxy.file)
  writeFileSync(config, proxy.around(text, directory))
  const [command = '', ...parameters] = proxy.command(config, directory)
  const libraries = join(CACHE, 'haproxy/usr/lib/x86_64-linux-gnu')
  const child: ChildProcess = spawn(command, parameters, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], LD_LIBRARY_PATH: libraries },
  })
  const exited = once(child, 'exit')
  // Without SIGKILL: the worker of nginx would stay, and keep the pipes of this process open.
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await exited
  }
  t.teardown(stop)
  let written = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      written += String(chunk)
    })
  }
  await until(`${proxy.name} answers`, async () => {
    if (child.exitCode !== null) throw new Error(`${proxy.name}: ${written}`)
    const answer = await ask(port, '/api/v1/openapi.json').catch(() => undefined)
    return answer?.statusCode === 200
  })
  return { port, stop, output: () => written }
}
