import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { type RunningService, startService } from '../test/support/programs.ts'
import { copyDirectory } from '../test/support/store.ts'
import { aimText, median, print, ratio, shown } from './compare.ts'
import type { Load, Programs, Users } from './console-load.ts'
import { pin } from './cores.ts'
import { cpuSeconds, megabytes, memoryBytes } from './machine.ts'
import { type ConsoleData, makeConsoleData } from './workload/console-data.ts'

/**
 * The console of a running posture-service: time and size of each page, the memory that its thread
 * adds, and the latency of the API while people use the console. The service has one core, and its
 * clients have another one.
 */
const PAGE_MS_AIM = 20
const PAGE_BYTES_AIM = 40 * 1024
const MEMORY_AIM_MB = 40
const P99_AIM = 1.1
const NICENESS_MAX = 19
/** On an idle machine, the p99 without the console is a few milliseconds. */
const DISTURBED_P99_MS = 20

interface Sizes {
  readonly platforms: number
  readonly users: number
  readonly keys: number
  /** Requests of each page, of which the first half only warms up. */
  readonly timesEach: number
  /** Pages that are requested before the memory is measured. */
  readonly pages: number
  /** Services that are started with the console, and as many without it, to measure memory. */
  readonly starts: number
  /** Pairs of measurements of the API's latency. */
  readonly rounds: number
  readonly seconds: number
  /** Requests to the API per second, far below what it can answer. */
  readonly perSecond: number
  readonly thinkMs: number
}

const SIZES: Sizes = {
  ...{ platforms: 800, users: 200, keys: 2000, timesEach: 100, pages: 1000 },
  ...{ starts: 3, rounds: 9, seconds: 6, perSecond: 500, thinkMs: 5000 },
}
const TOY: Sizes = {
  ...{ platforms: 20, users: 5, keys: 100, timesEach: 4, pages: 20 },
  ...{ starts: 1, rounds: 1, seconds: 1, perSecond: 50, thinkMs: 200 },
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
  pin(service.child.pid ?? 0, 'server')
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

  /** @param niceness 19: other clients come first */
  constructor(niceness = 0) {
    pin(this.#child.pid ?? 0, 'client')
    setPriority(this.#child.pid ?? 0, niceness)
  }

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

/**
 * The processor time of the whole service for a page, which other processes on the machine do not
 * lengthen as much, and the time in the console's thread from the request until the compressed page
 * is sent.
 */
async function timePages(data: ConsoleData, { timesEach }: Sizes): Promise<void> {
  const { pages, platforms } = data
  print(
    `${pages.length} pages of an organization with ${shown(platforms)} platforms, ${shown(timesEach)} times each; slowest first`,
  )
  const client = new Client()
  const rows = await withService(data, 'on', async (service) => {
    const measured: { path: string; ms: number; cpuMs: number; bytes: number }[] = []
    const pid = service.child.pid ?? 0
    for (const path of pages) {
      await client.run(reader(service, data, [path], timesEach))
      const before = await counted(service)
      const cpuBefore = cpuSeconds(pid)
      const { answers, bytes } = await client.run(reader(service, data, [path], timesEach))
      const cpuMs = ((cpuSeconds(pid) - cpuBefore) * 1000) / answers
      const after = await counted(service)
      if (after.pages - before.pages !== answers) throw new Error(`${path}: the console counted other pages`)
      const ms = ((after.seconds - before.seconds) * 1000) / answers
      measured.push({ path: path.replace(/[0-9a-f-]{36}/, ':id'), ms, cpuMs, bytes: bytes / answers })
    }
    return measured.toSorted((a, b) => b.cpuMs - a.cpuMs)
  })
  client.stop()
  for (const { path, ms, cpuMs, bytes } of rows) {
    print(`  ${cpuMs.toFixed(1)} ms of processor time, ${ms.toFixed(1)} ms  ${shown(bytes)} bytes  ${path}`)
  }
  const slowestMs = rows[0]?.cpuMs ?? 0
  const largest = Math.max(...rows.map(({ bytes }) => bytes))
  print(
    `  slowest ${slowestMs.toFixed(1)} ms of processor time, aim ${PAGE_MS_AIM} ${aimText(slowestMs <= PAGE_MS_AIM)}; largest ${shown(largest)} bytes gzip, aim ${shown(PAGE_BYTES_AIM)} ${aimText(largest <= PAGE_BYTES_AIM)}`,
  )
}

/**
 * Memory of a service without the console, and of one whose console has checked a password and sent
 * pages. Pages of LMDB's file are not counted: they stay only while the system has space.
 */
async function compareMemory(data: ConsoleData, { pages, starts }: Sizes): Promise<void> {
  const used = { off: [] as number[], idle: [] as number[], on: [] as number[] }
  const client = new Client()
  for (let start = 0; start < starts; start++) {
    for (const setting of ['off', 'on'] as const) {
      await withService(data, setting, async (service) => {
        const bytes = (): number => memoryBytes(service.child.pid ?? 0, 'RssAnon')
        if (setting === 'off') return used.off.push(bytes())
        used.idle.push(bytes())
        await tryPassword(service, data)
        await client.run(reader(service, data, data.pages, pages))
        return used.on.push(bytes())
      })
    }
  }
  client.stop()
  const [off, idle, on] = [median(used.off), median(used.idle), median(used.on)]
  const added = megabytes(on - off)
  const range = [Math.min(...used.on), Math.max(...used.on)].map((bytes) => megabytes(bytes - off)).join(' to ')
  print(
    `memory  ${added} MB that is no file's added by the console after ${shown(pages)} pages (${range} MB, with the last garbage collection), ${megabytes(idle - off)} MB when idle, aim ${MEMORY_AIM_MB} ${aimText(added <= MEMORY_AIM_MB)}  (${megabytes(on)} MB | ${megabytes(off)} MB without it; medians of ${starts})`,
  )
}

/** Tries to sign in, so that the console has loaded what it needs for that. */
async function tryPassword(service: RunningService, data: ConsoleData): Promise<void> {
  const url = consoleUrl(service)
  const dispatcher = new Agent({ connect: { ca: readFileSync(certificateOf(data)) } })
  const { statusCode, body } = await request(`${url}/sign-in`, {
    ...{ dispatcher, method: 'POST', body: 'name=owner&password=wrong' },
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      ...{ origin: url, 'sec-fetch-site': 'same-origin' },
    },
  })
  await body.dump()
  await dispatcher.close()
  if (statusCode !== 403) throw new Error(`a wrong password: ${statusCode}`)
}

/**
 * Latency of the API at a fixed rate, from the time at which each request was due: of a service
 * without the console, and of one whose console people use. Both run the whole time and take turns,
 * first one and then the other, so that a slow minute of the machine affects both.
 */
async function compareLatency(data: ConsoleData, sizes: Sizes): Promise<void> {
  const { rounds, users, seconds, thinkMs } = sizes
  const copy: ConsoleData = { ...data, directory: `${data.directory}-2` }
  copyDirectory(data.directory, copy.directory)
  const alone: Load[] = []
  const together: Load[] = []
  const browsing: Load[] = []
  const [api, people] = [new Client(), new Client(NICENESS_MAX)]
  try {
    await withService(data, 'off', (without) =>
      withService(copy, 'on', async (service) => {
        const where = { url: consoleUrl(service), certificateFile: certificateOf(copy) }
        const cookies = data.cookies.slice(0, users)
        const browse = (forSeconds: number): Promise<Load> =>
          people.run({ kind: 'users', ...where, cookies, pages: data.pages, thinkMs, until: { seconds: forSeconds } })
        const measureAlone = async (): Promise<void> => {
          alone.push(await api.run(programsOf(without, data, sizes)))
        }
        const measureTogether = async (): Promise<void> => {
          // Ends when the last user has read the last page, so that the next measurement is alone.
          const browsed = browse(seconds + thinkMs / 1000)
          await later(thinkMs)
          together.push(await api.run(programsOf(service, copy, sizes)))
          browsing.push(await browsed)
        }
        for (let round = -1; round < rounds; round++) {
          const turns = [measureAlone, measureTogether]
          for (const measure of round % 2 === 0 ? turns : turns.reverse()) await measure()
          // The first round only warms up.
          if (round < 0) for (const loads of [alone, together, browsing]) loads.length = 0
        }
      }),
    )
  } finally {
    api.stop()
    people.stop()
    rmSync(copy.directory, { recursive: true })
  }
  reportLatency({ alone, together, browsing }, sizes)
}

interface Loads {
  readonly alone: readonly Load[]
  readonly together: readonly Load[]
  readonly browsing: readonly Load[]
}

function reportLatency({ alone, together, browsing }: Loads, sizes: Sizes): void {
  const { rounds, users, perSecond, seconds, thinkMs } = sizes
  const of = (loads: readonly Load[], what: 'p50Ms' | 'p99Ms'): number => median(loads.map((load) => load[what]))
  const ratios = together.map(({ p99Ms }, round) => p99Ms / (alone[round]?.p99Ms ?? 0))
  const times = median(ratios)
  const isDisturbed = of(alone, 'p99Ms') > DISTURBED_P99_MS
  const aim = isDisturbed ? 'not measured: other processes used the machine' : aimText(times <= P99_AIM)
  const range = `${ratio(Math.min(...ratios))} to ${ratio(Math.max(...ratios))}`
  print(
    `latency  ${ratio(times)} p99 of the API while ${users} people use the console, aim ${P99_AIM.toFixed(2)} ${aim}  (${range}, median of ${rounds} pairs; p99 ${of(together, 'p99Ms').toFixed(2)} ms | ${of(alone, 'p99Ms').toFixed(2)} ms without the console, p50 ${of(together, 'p50Ms').toFixed(2)} ms | ${of(alone, 'p50Ms').toFixed(2)} ms; ${shown(perSecond)} requests/s, one core for the service)`,
  )
  const pagesPerSecond = median(browsing.map(({ answers }) => answers)) / (seconds + thinkMs / 1000)
  print(
    `  ${shown(pagesPerSecond)} pages/s, one each ${(thinkMs / 1000).toFixed(1)} s for each of them; p99 of a page ${of(browsing, 'p99Ms').toFixed(1)} ms`,
  )
}

function programsOf(service: RunningService, data: ConsoleData, { perSecond, seconds }: Sizes): Programs {
  const url = `https://localhost:${service.apiPort}/api/v1/discovery`
  return { kind: 'programs', url, certificateFile: certificateOf(data), keys: data.keys, perSecond, seconds }
}
