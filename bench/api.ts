import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { provideCertificate } from '../engine/http/certificate.ts'
import { NGINX } from '../test/support/nginx.ts'
import { copyDirectory } from '../test/support/store.ts'
import { aimText, median, print, ratio, shown } from './compare.ts'
import { isInstalled, pin, pinned } from './cores.ts'
import { megabytes, memoryBytes } from './machine.ts'
import { NGINX_NAME, startNginx } from './peers/nginx.ts'
import { peerFolder } from './peers/package.ts'
import { type ApiData, makeApiData } from './workload/api-data.ts'
import { CONNECTIONS, luaOf, type Measured, wrk } from './wrk.ts'

/**
 * Compares the API with the speed of a socket: posture-service with one API thread, bare node:http
 * servers with a constant body of the same size and with as many bodies as there are organizations,
 * fastify over better-sqlite3 with the same work, and nginx with the same bytes in a
 * file. wrk sends all of them the same requests in turn, with enough keys that no rate limit
 * applies, each on a core of its own if there are two.
 */
const RESIDENT_AIM_MB = 150

interface Contender {
  readonly name: string
  readonly pid: number
  readonly url: string
  stop(): Promise<void>
}

/**
 * Aims relative to a contender: minimum share of its requests per second, and maximum multiple of
 * its p99.
 */
interface Aims {
  readonly times?: number
  readonly p99?: number
}

export async function run({ toy }: { toy: boolean }): Promise<void> {
  if (!isInstalled('wrk')) return print('wrk is not installed: apt-get install wrk')
  const sizes = toy ? { rounds: 1, seconds: 1 } : { rounds: 3, seconds: 3 }
  const stores = toy
    ? [{ organizations: 300, keysEach: 25, platformsEach: 5 }]
    : [
        { organizations: 1200, keysEach: 25, platformsEach: 40 },
        { organizations: 10_000, keysEach: 3, platformsEach: 100 },
      ]
  for (const store of stores) {
    const directory = mkdtempSync(join(tmpdir(), 'posture-bench-'))
    try {
      const data = await makeApiData(join(directory, 'data'), store)
      copyDirectory(data.directory, copyOf(data).directory)
      for (const tls of [false, true]) {
        for (const gzip of [false, true]) await compareServers(directory, data, { ...sizes, tls, gzip, toy })
      }
    } finally {
      rmSync(directory, { recursive: true })
    }
  }
}

/** Two services cannot use one data directory. */
const copyOf = (data: ApiData): ApiData => ({ ...data, directory: `${data.directory}-2` })

interface Sizes {
  readonly rounds: number
  readonly seconds: number
  readonly tls: boolean
  /** Whether requests accept gzip, as those of nearly all clients do. */
  readonly gzip: boolean
  readonly toy: boolean
}

async function compareServers(directory: string, data: ApiData, sizes: Sizes): Promise<void> {
  const { rounds, seconds, tls, gzip, toy } = sizes
  const bytes = gzip ? data.gzipBody.length : data.body.length
  const certificate = await provideCertificate(join(directory, 'tls'), undefined)
  const files = tls ? { key: certificate.keyFile, certificate: certificate.certificateFile } : undefined
  const contenders: Contender[] = []
  try {
    contenders.push(
      await ours('ours', data, tls, ['--console-port', '0']),
      ...(gzip ? [] : [await ours(WITHOUT_CONSOLE, copyOf(data), tls, ['--console-port', 'off'])]),
      await child(BARE, BARE_NAME, data, bytes, files),
      await child(BARE, `the same with ${data.organizations} bodies in turn`, data, bytes, files, [
        `${data.organizations}`,
      ]),
    )
    const [first] = contenders
    // Pages that are no whole part are the only long answers that are not compressed.
    if (gzip && first !== undefined)
      contenders.push({ ...first, name: HALF_PAGE, url: `${first.url}?limit=50`, async stop() {} })
    const fastify = toy ? undefined : fastifyFolders()
    if (fastify !== undefined) {
      contenders.push(
        await child(new URL('./peers/fastify-sqlite.js', import.meta.url), FASTIFY_NAME, data, bytes, files, fastify),
      )
    }
    if (!existsSync(NGINX)) print('nginx is not unpacked: node deploy/setup.mjs --full')
    else if (!toy) contenders.push(await startNginx(directory, data, files, pinned('server')))
    const script = join(directory, 'keys.lua')
    writeFileSync(script, luaOf(data.keys, gzip))
    const results = contenders.map((): Measured[] => [])
    for (let round = 0; round < rounds; round++) {
      for (const [index, { url }] of contenders.entries()) {
        await wrk(url, script, 1)
        results[index]?.push(await wrk(url, script, seconds))
      }
    }
    report(contenders, results, data, sizes)
  } finally {
    for (const contender of contenders) await contender.stop()
  }
}

function report(
  contenders: readonly Contender[],
  results: readonly (readonly Measured[])[],
  data: ApiData,
  { tls, gzip, rounds }: Sizes,
): void {
  const of = (index: number, what: keyof Measured) => median((results[index] ?? []).map((measured) => measured[what]))
  const perSecond = of(0, 'perSecond')
  const resident = megabytes(memoryBytes(contenders[0]?.pid ?? 0, 'VmRSS'))
  const anonymous = megabytes(memoryBytes(contenders[0]?.pid ?? 0, 'RssAnon'))
  print(
    `${tls ? 'TLS' : 'plain HTTP'}, ${shown(data.organizations)} organizations, ${shown(data.platforms)} platforms, ${shown(data.keys.length)} keys, body ${shown(gzip ? data.gzipBody.length : data.body.length)} bytes${gzip ? ' in gzip' : ''}, ${CONNECTIONS} connections; medians of ${rounds} rounds`,
  )
  print(
    `  ours ${shown(perSecond)} requests/s, p50 ${shown(of(0, 'p50Us'))} us, p99 ${shown(of(0, 'p99Us'))} us; ${resident} MB resident, ${anonymous} MB of it no file's, aim ${RESIDENT_AIM_MB} ${aimText(resident <= RESIDENT_AIM_MB)}`,
  )
  contenders.slice(1).forEach(({ name, pid }, at) => {
    const index = at + 1
    const times = perSecond / of(index, 'perSecond')
    const slower = of(0, 'p99Us') / of(index, 'p99Us')
    const { times: timesAim, p99: p99Aim } = AIMS[name] ?? {}
    const aim = timesAim === undefined ? '' : `, aim ${timesAim} ${aimText(times >= timesAim)}`
    const p99 = p99Aim === undefined ? '' : `; p99 ${ratio(slower)}, aim ${p99Aim} ${aimText(slower <= p99Aim)}`
    print(
      `  ${ratio(times)} ${name}  (${shown(of(index, 'perSecond'))} requests/s, p50 ${shown(of(index, 'p50Us'))} us, p99 ${shown(of(index, 'p99Us'))} us, ${megabytes(memoryBytes(pid, 'VmRSS'))} MB)${aim}${p99}`,
    )
  })
}

const BARE = new URL('./peers/bare-http.js', import.meta.url)
const BARE_NAME = 'a bare node:http server'
const WITHOUT_CONSOLE = 'the same without its console'
const HALF_PAGE = 'ours, with limit=50, so not compressed'
const FASTIFY_NAME = 'fastify 5.6.2 over better-sqlite3'
const AIMS: Readonly<Record<string, Aims>> = {
  [WITHOUT_CONSOLE]: { times: 0.98 },
  [BARE_NAME]: { times: 0.85, p99: 2 },
  [FASTIFY_NAME]: { times: 6 },
  [NGINX_NAME]: { times: 1 },
}

const SERVICE = fileURLToPath(new URL('../api/main.js', import.meta.url))

async function ours(name: string, { directory }: ApiData, tls: boolean, more: readonly string[]): Promise<Contender> {
  const off = ['ingest-port', 'syslog-tls', 'syslog-tcp', 'syslog-udp', 'metrics-port'].flatMap((name) => [
    `--${name}`,
    'off',
  ])
  const loopback = ['--api-address', '127.0.0.1', '--api-port', '0', '--api-threads', '1', ...more]
  const service = fork(SERVICE, ['--data-dir', directory, ...loopback, ...off, ...(tls ? [] : ['--plain-http'])], {
    env: { PATH: process.env['PATH'], LOG_LEVEL: 'ERROR' },
  })
  const [{ apiPort }] = (await once(service, 'message')) as [{ apiPort: number }]
  return running(name, service, `${tls ? 'https' : 'http'}://127.0.0.1:${apiPort}/api/v1/discovery`)
}

async function child(
  file: URL,
  name: string,
  { directory }: ApiData,
  bytes: number,
  files: { key: string; certificate: string } | undefined,
  more: readonly string[] = [],
): Promise<Contender> {
  const words = [directory, String(bytes), files?.key ?? '', files?.certificate ?? '', ...more]
  const started = fork(file, words)
  const [port] = (await once(started, 'message')) as [number]
  return running(name, started, `${files === undefined ? 'http' : 'https'}://127.0.0.1:${port}/api/v1/discovery`)
}

function running(name: string, started: ChildProcess, url: string): Contender {
  pin(started.pid ?? 0, 'server')
  return {
    name,
    pid: started.pid ?? 0,
    url,
    async stop() {
      const ended = once(started, 'exit')
      started.kill('SIGTERM')
      await ended
    },
  }
}

function fastifyFolders(): readonly string[] | undefined {
  const folders = [
    peerFolder('fastify', '5.6.2', true),
    peerFolder('better-sqlite3', '12.11.1', true),
    peerFolder('@fastify/compress', '9.2.0', true),
  ]
  return folders.every((folder) => folder !== undefined) ? folders : undefined
}
