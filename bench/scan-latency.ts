import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Administration } from '../engine/admin/administration.ts'
import { systemClock } from '../engine/process/clock.ts'
import { Store } from '../engine/store/store.ts'
import { aimText, median, print, ratio, shown } from './compare.ts'
import { ScanEvents } from './workload/scan-events.ts'

/**
 * Whether API clients notice a scan: a real service with requests at a steady rate from its first
 * second. In alternate runs, its scans have no events, or full buffers one after the other. Latency
 * is measured from the time at which a request was due, so that a stall is not hidden by the
 * requests that it delays.
 */
const P99_AIM = 1.5
const REQUESTS_PER_SECOND = 250
/** Below the specification's rate limit. */
const REQUESTS_PER_KEY_MAX = 50
const KEYS_PER_ORGANIZATION = 25

export async function measureLatency({ toy }: { toy: boolean }): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'posture-bench-'))
  const sizes = toy
    ? { rounds: 1, organizations: 2, eventsEach: 6000, seconds: 1 }
    : { rounds: 3, organizations: 6, eventsEach: 1_000_000, seconds: 3 }
  try {
    // The rate limit counts on over restarts of the service.
    const { ids, keys } = prepare(directory, sizes.organizations, 2 * sizes.rounds * sizes.seconds)
    const work = new ScanEvents(Date.now())
    const idle: number[][] = []
    const busy: number[][] = []
    const store = new Store(directory)
    for (let round = 0; round < sizes.rounds; round++) {
      idle.push(await latencies(directory, keys, sizes.seconds))
      work.fill(store, ids, round * sizes.eventsEach, (round + 1) * sizes.eventsEach)
      busy.push(await latencies(directory, keys, sizes.seconds, () => scanned(store, ids)))
    }
    await store.close()
    const of = (part: number, rounds: readonly number[][]) => median(rounds.map((times) => percentile(times, part)))
    const grown = of(0.99, busy) / of(0.99, idle)
    print(
      `API at ${REQUESTS_PER_SECOND} requests/s while ${shown(sizes.organizations * sizes.eventsEach)} events are scanned: p99 ${ratio(grown)} of that of an idle service, aim ${P99_AIM}x ${aimText(grown <= P99_AIM)}  (p50 ${ms(of(0.5, busy))} | ${ms(of(0.5, idle))}, p99 ${ms(of(0.99, busy))} | ${ms(of(0.99, idle))}; medians of ${sizes.rounds} rounds)`,
    )
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/**
 * Resolves when no organization has buffered events. A scan that takes longer than the measurement
 * covers all of it, so the measurement is void only if scans never end.
 */
async function scanned(store: Store, ids: readonly string[]): Promise<void> {
  const endMs = performance.now() + SCAN_MS_MAX
  for (;;) {
    const waiting = ids.reduce((sum, id) => sum + store.environment.read(() => store.buffer.count(id)), 0)
    if (waiting === 0) return
    if (performance.now() > endMs) throw new Error(`${waiting} events were not scanned within ${SCAN_MS_MAX / 1000} s`)
    await new Promise((resolve) => setTimeout(resolve, SCAN_POLL_MS))
  }
}

const SCAN_MS_MAX = 120_000
const SCAN_POLL_MS = 20
const SERVICE = fileURLToPath(new URL('../api/main.js', import.meta.url))

/**
 * Creates organizations with full buffers, and enough keys of others that no key reaches its rate
 * limit.
 */
function prepare(directory: string, organizations: number, seconds: number): { ids: string[]; keys: string[] } {
  const store = new Store(directory)
  const administration = new Administration(store, systemClock)
  const make = (name: string) => administration.organizations.create({ name, domain: 'o.example', plan: 'enterprise' })
  const ids = Array.from({ length: organizations }, (_, index) => make(`scanned ${index}`).id)
  const keys: string[] = []
  while (keys.length * REQUESTS_PER_KEY_MAX < REQUESTS_PER_SECOND * seconds) {
    const organization = make(`asks ${keys.length}`)
    for (let key = 0; key < KEYS_PER_ORGANIZATION; key++) {
      keys.push(administration.apiKeys.create(organization, `key ${key}`, ['discovery:read']).raw)
    }
  }
  void store.close()
  return { ids, keys }
}

/**
 * Milliseconds of each request to a newly started service. The service runs until `done` resolves.
 */
async function latencies(
  directory: string,
  keys: readonly string[],
  seconds: number,
  done: () => Promise<void> = async () => {},
): Promise<number[]> {
  const loopback = [
    '--api-address',
    '127.0.0.1',
    '--api-port',
    '0',
    '--console-port',
    'off',
    '--plain-http',
    '--api-threads',
    '1',
  ]
  const off = ['ingest-port', 'syslog-tls', 'syslog-tcp', 'syslog-udp', 'metrics-port'].flatMap((name) => [
    `--${name}`,
    'off',
  ])
  const service = fork(SERVICE, ['--data-dir', directory, ...loopback, ...off], {
    env: { PATH: process.env['PATH'], LOG_LEVEL: 'ERROR' },
  })
  const exited = once(service, 'exit')
  try {
    const [{ apiPort }] = (await once(service, 'message')) as [{ apiPort: number }]
    const agent = new Agent({ keepAlive: true, maxSockets: 32 })
    const count = REQUESTS_PER_SECOND * seconds
    const start = performance.now()
    const times = await Promise.all(
      Array.from({ length: count }, async (_, number) => {
        const due = start + (number * 1000) / REQUESTS_PER_SECOND
        await new Promise((resolve) => setTimeout(resolve, Math.ceil(due - performance.now())))
        await ask(agent, apiPort, keys[number % keys.length] ?? '')
        return performance.now() - due
      }),
    )
    agent.destroy()
    await done()
    return times
  } finally {
    service.kill('SIGTERM')
    await exited
  }
}

async function ask(agent: Agent, port: number, key: string): Promise<void> {
  const request = get({ agent, host: '127.0.0.1', port, path: '/api/v1/discovery', headers: { 'x-api-key': key } })
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  for await (const _chunk of answer);
  if (answer.statusCode !== 200) throw new Error(`the API answered ${answer.statusCode}`)
}

function percentile(times: readonly number[], part: number): number {
  return times.toSorted((a, b) => a - b)[Math.floor(part * times.length)] ?? 0
}

const ms = (milliseconds: number): string => `${milliseconds.toFixed(2)} ms`
