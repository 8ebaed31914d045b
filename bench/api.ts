import { type ChildProcess, fork } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { provideCertificate } from '../engine/http/certificate.ts'
import { NGINX } from '../test/support/nginx.ts'
import { startService } from '../test/support/programs.ts'
import {
  type Figure,
  inDirectory,
  inTurn,
  isInstalled,
  memoryMb,
  messageOf,
  pin,
  pinned,
  print,
  type Size,
  stopped,
} from './harness.ts'
import { startNginx } from './peers/nginx.ts'
import { peerFolder } from './peers/package.ts'
import { makeApiData } from './workload/api-data.ts'
import { luaOf, wrk } from './wrk.ts'

/**
 * Requests per second over TLS with gzip: posture-service with one API thread, a bare node:https
 * server with a constant body of the same size, fastify over better-sqlite3 with the same work, and
 * nginx with the same bytes in a file. wrk sends all of them the same requests in turn, with enough
 * keys that no rate limit applies, each on a core of its own if there are two.
 */
interface Server {
  readonly name: string
  readonly url: string
  stop(): Promise<void>
}

const AIM = 0.85

export async function run(size: Size): Promise<Figure[]> {
  if (!isInstalled('wrk')) {
    print('  wrk is not installed: apt-get install wrk')
    return []
  }
  const [rounds, seconds] = { full: [3, 3], short: [1, 2], toy: [1, 1] }[size] as [number, number]
  const sizes = size === 'toy' ? { organizations: 300, platformsEach: 5 } : { organizations: 1200, platformsEach: 40 }
  return inDirectory(async (directory) => {
    const data = await makeApiData(join(directory, 'data'), { ...sizes, keysEach: 25 })
    const { keyFile, certificateFile } = await provideCertificate(join(directory, 'tls'), undefined)
    const script = join(directory, 'keys.lua')
    writeFileSync(script, luaOf(data.keys, true))
    const service = await startService(data.directory, ['--api-threads', '1', '--log-level', 'ERROR'])
    const pid = service.child.pid ?? 0
    const idle = [memoryMb(pid, 'VmRSS'), memoryMb(pid, 'RssAnon')] as const
    const servers = [running('ours', service.child, service.apiPort)]
    try {
      const words = [data.directory, String(data.gzipBody.length), keyFile, certificateFile]
      servers.push(await child('a bare node:https server', new URL('./peers/bare-http.js', import.meta.url), words))
      const packages = size === 'toy' ? undefined : fastifyFolders()
      if (packages !== undefined) {
        servers.push(
          await child('fastify 5.6.2 over better-sqlite3', new URL('./peers/fastify-sqlite.js', import.meta.url), [
            ...words,
            ...packages,
          ]),
        )
      }
      const files = { key: keyFile, certificate: certificateFile }
      if (size !== 'toy' && existsSync(NGINX)) servers.push(await startNginx(directory, data, files, pinned('server')))
      const contenders = servers.map(({ name, url }) => ({
        name,
        run: async () => {
          await wrk(url, script, 1)
          return (await wrk(url, script, seconds)).perSecond
        },
      }))
      const figure = await inTurn(rounds, contenders)
      return [
        { what: 'API, TLS with gzip', unit: 'requests/s', ...figure, aim: { ratio: true, atLeast: AIM } },
        { what: 'memory of the idle service', unit: 'MB', ours: idle[0] },
        { what: 'anonymous memory of the idle service', unit: 'MB', ours: idle[1] },
        { what: 'memory of the service after the requests', unit: 'MB', ours: memoryMb(pid, 'VmRSS') },
      ]
    } finally {
      for (const server of servers) await server.stop()
    }
  })
}

async function child(name: string, file: URL, words: readonly string[]): Promise<Server> {
  const started = fork(file, words)
  return running(name, started, await messageOf<number>(started))
}

function running(name: string, process: ChildProcess, port: number): Server {
  pin(process.pid ?? 0, 'server')
  return { name, url: `https://127.0.0.1:${port}/api/v1/discovery`, stop: () => stopped(process) }
}

function fastifyFolders(): readonly string[] | undefined {
  const folders = [
    peerFolder('fastify', '5.6.2', true),
    peerFolder('better-sqlite3', '12.11.1', true),
    peerFolder('@fastify/compress', '9.2.0', true),
  ]
  return folders.every((folder) => folder !== undefined) ? folders : undefined
}
