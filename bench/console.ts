import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningService, startService } from '../test/support/programs.ts'
import { aimText, median, print, ratio, shown } from './compare.ts'
import type { Load, Programs, Users } from './console-load.ts'
import { megabytes, memoryBytes } from './machine.ts'
import { type ConsoleData, makeConsoleData } from './workload/console-data.ts'

/**
 * The console of a running posture-service: time and size of each page, the memory that its thread
 * adds, and the latency of the API while people use the console.
 */
const PAGE_MS_AIM = 20
const PAGE_BYTES_AIM = 40 * 1024
const MEMORY_AIM_MB = 40
const P99_AIM = 1.1

interface Sizes {
  readonly platforms: number
  readonly users: number
  readonly keys: number
  /** Requests of each page, of which the first half only warms up. */
  readonly timesEach: number
  /** Pages that are requested before the memory is measured. */
  readonly pages: number
  readonly rounds: number
  readonly seconds: number
  /** Requests to the API, far below what it can answer. */
  readonly perSecond: number
  readonly thinkMs: number
}

const SIZES: Sizes = {
  ...{ platforms: 800, users: 200, keys: 2000, timesEach: 100, pages: 1000 },
  ...{ rounds: 5, seconds: 10, perSecond: 500, thinkMs: 5000 },
}
const TOY: Sizes = {
  ...{ platforms: 20, users: 5, keys: 100, timesEach: 4, pages: 20 },
  ...{ rounds: 1, seconds: 1, perSecond: 50, thinkMs: 200 },
}

export async function run({ toy }: { toy: boolean }): Promise<void> {
  const sizes = toy ? TOY : SIZES
  const directory = mkdtempSync(join(tmpdir(), 'posture-bench-'))
  try {
    const data = await makeConsoleData(directory, sizes)
    await timePages(data, sizes)
    await compareMemory(data, sizes)
    await compareLatency(data, sizes)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

type ConsoleSetting = 'on' | 'off'

async function withService<T>(
  { directory }: ConsoleData,
  console: ConsoleSetting,
  work: (service: RunningService) => Promise<T>,
): Promise<T> {
  const one = ['--api-threads', '1', '--ingest-port', 'off', '--log-level', 'ERROR']
  const service = await startService(directory, [...one, ...(console === 'off' ? ['--console-port', 'off'] : [])])
  try {
    return await work(service)
  } finally {
    service.child.kill('SIGTERM')
    await service.ended
  }
}

/** A process with clients. */
class Client {
  readonly #child: ChildProcess = fork(new URL('./console-load.js', import.meta.url))

  run(work: Users | Programs): Promise<Load> {
    this.#child.send(work)
    return new Promise((resolve, reject) => {
      const failed = (): void => reject(new Error('the clients failed'))
      this.#child.once('exit', failed)
      this.#child.once('message', (load: Load) => {
        this.#child.off('exit', failed)
        resolve(load)
      })
    })
  }

  stop(): void {
    this.#child.kill('SIGTERM')
  }
}

const certificateOf = ({ directory }: ConsoleData): string => join(directory, 'tls/certificate.pem')
const consoleUrl = ({ consolePort }: RunningService): string => `https://localhost:${consolePort}`

/** One user, who requests these pages in turn. */
function reader(service: RunningService, data: ConsoleData, pages: readonly string[], pagesEach: number): Users {
  const where = { url: consoleUrl(service), certificateFile: certificateOf(data) }
  return { kind: 'users', ...where, cookies: data.cookies.slice(0, 1), pages, thinkMs: 0, until: { pagesEach } }
}

/** The pages and the seconds for them that the console has counted, by its own metrics. */
async function counted({ metricsPort }: RunningService): Promise<{ readonly pages: number; readonly seconds: number }> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
  return { pages: value('posture_console_pages_total'), seconds: value('posture_console_page_seconds_total') }
}

/** The time in the console's thread from the request until the compressed page is sent. */
async function timePages(data: ConsoleData, { timesEach }: Sizes): Promise<void> {
  const { pages, platforms } = data
  print(
    `${pages.length} pages of an organization with ${shown(platforms)} platforms, ${shown(timesEach)} times each; slowest first`,
  )
  const client = new Client()
  const rows = await withService(data, 'on', async (service) => {
    const measured: { path: string; ms: number; bytes: number }[] = []
    for (const path of pages) {
      await client.run(reader(service, data, [path], timesEach))
      const before = await counted(service)
      const { answers, bytes } = await client.run(reader(service, data, [path], timesEach))
      const after = await counted(service)
      if (after.pages - before.pages !== answers) throw new Error(`${path}: the console counted other pages`)
      const ms = ((after.seconds - before.seconds) * 1000) / answers
      measured.push({ path: path.replace(/[0-9a-f-]{36}/, ':id'), ms, bytes: bytes / answers })
    }
    return measured.toSorted((a, b) => b.ms - a.ms)
  })
  client.stop()
  for (const { path, ms, bytes } of rows) print(`  ${ms.toFixed(1)} ms  ${shown(bytes)} bytes  ${path}`)
  const slowestMs = rows[0]?.ms ?? 0
  const largest = Math.max(...rows.map(({ bytes }) => bytes))
  print(
    `  slowest ${slowestMs.toFixed(1)} ms, aim ${PAGE_MS_AIM} ${aimText(slowestMs <= PAGE_MS_AIM)}; largest ${shown(largest)} bytes gzip, aim ${shown(PAGE_BYTES_AIM)} ${aimText(largest <= PAGE_BYTES_AIM)}`,
  )
}

/**
 * Memory of a service without the console, and of one whose console was signed in to and has sent
 * pages. Pages of LMDB's file are not counted: they stay only while the system has space.
 */
async function compareMemory(data: ConsoleData, { pages, rounds }: Sizes): Promise<void> {
  const used = { off: [] as number[], on: [] as number[] }
  const client = new Client()
  for (let round = 0; round < rounds; round++) {
    for (const setting of ['off', 'on'] as const) {
      const bytes = await withService(data, setting, async (service) => {
        if (setting === 'on') await client.run(reader(service, data, data.pages, pages))
        return memoryBytes(service.child.pid ?? 0, 'RssAnon')
      })
      used[setting].push(bytes)
    }
  }
  client.stop()
  const [off, on] = [median(used.off), median(used.on)]
  const added = megabytes(on - off)
  print(
    `memory  ${added} MB that is no file's added by the console after ${shown(pages)} pages, aim ${MEMORY_AIM_MB} ${aimText(added <= MEMORY_AIM_MB)}  (${megabytes(on)} MB | ${megabytes(off)} MB without it; medians of ${rounds})`,
  )
}

/** Latency of the API at a fixed rate: without the console, and while people use it. */
async function compareLatency(data: ConsoleData, sizes: Sizes): Promise<void> {
  const { rounds, users, perSecond, seconds, thinkMs } = sizes
  const alone: Load[] = []
  const together: Load[] = []
  const browsing: Load[] = []
  const [api, people] = [new Client(), new Client()]
  for (let round = 0; round < rounds; round++) {
    alone.push(await withService(data, 'off', (service) => api.run(programsOf(service, data, sizes))))
    await withService(data, 'on', async (service) => {
      const where = { url: consoleUrl(service), certificateFile: certificateOf(data) }
      const use = { cookies: data.cookies.slice(0, users), pages: data.pages, thinkMs, until: { seconds: seconds + 1 } }
      const [read, browsed] = await Promise.all([
        api.run(programsOf(service, data, sizes)),
        people.run({ kind: 'users', ...where, ...use }),
      ])
      together.push(read)
      browsing.push(browsed)
    })
  }
  api.stop()
  people.stop()
  const p99 = (loads: readonly Load[]): number => median(loads.map(({ p99Ms }) => p99Ms))
  const times = p99(together) / p99(alone)
  print(
    `latency  ${ratio(times)} p99 of the API while ${users} people use the console, aim ${P99_AIM.toFixed(2)} ${aimText(times <= P99_AIM)}  (${p99(together).toFixed(2)} ms | ${p99(alone).toFixed(2)} ms without the console; ${shown(perSecond)} requests/s, medians of ${rounds})`,
  )
  const pagesPerSecond = median(browsing.map(({ answers }) => answers)) / (seconds + 1)
  print(
    `  ${shown(pagesPerSecond)} pages/s, one each ${(thinkMs / 1000).toFixed(1)} s for each of them; p99 of a page ${p99(browsing).toFixed(1)} ms`,
  )
}

function programsOf(service: RunningService, data: ConsoleData, { perSecond, seconds }: Sizes): Programs {
  const url = `https://localhost:${service.apiPort}/api/v1/discovery`
  return { kind: 'programs', url, certificateFile: certificateOf(data), keys: data.keys, perSecond, seconds }
}
