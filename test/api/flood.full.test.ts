import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import type { HttpImplementation } from '../../engine/http/listen.ts'
import type { FloodData, FloodReport } from '../support/flood-thread.ts'
import { IMPLEMENTATIONS } from '../support/https.ts'
import { type ServiceSite, startSite } from '../support/service-site.ts'

/**
 * Clients without a valid key pipeline thousands of requests. A client with a key waits little
 * longer than for an idle service beside it.
 */
const GOOD_MS = 100
const IDLE_TIMES = 5
const MEASURED_MS = 6000
const PAUSE_MS = 10

/** Another process can slow down one of the two services in a measurement, but not in each. */
const MEASUREMENTS_MAX = 3

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}: a flood of pipelined requests hardly delays a client with a key`, async (t) => {
    for (const { attackers, reads } of [
      { attackers: 10, reads: true },
      { attackers: 10, reads: false },
      { attackers: 300, reads: true },
      { attackers: 300, reads: false },
    ]) {
      const name = `${attackers} attackers that ${reads ? 'read' : 'never read'}`
      let isGood = false
      let found = ''
      for (let measured = 0; measured < MEASUREMENTS_MAX && !isGood; measured++) {
        const { attackedMs, idleMs, report } = await measure(t, implementation, { attackers, reads })
        const ratio = (attackedMs / idleMs).toFixed(1)
        found = `p99 ${ratio}x idle (${attackedMs.toFixed(1)} ms, ${idleMs.toFixed(1)} ms)`
        t.comment(`${implementation}, ${name}: ${found}, ${JSON.stringify(report)}`)
        t.equal(report.disconnected, attackers, `${name}: all are disconnected`)
        isGood = attackedMs < Math.max(GOOD_MS, IDLE_TIMES * idleMs)
      }
      t.ok(isGood, `${name}: ${found}`)
    }
  })
}

interface Measured {
  readonly attackedMs: number
  readonly idleMs: number
  readonly report: FloodReport
}

/** Measures a new service under attack, and an idle one beside it. */
async function measure(
  t: Test,
  implementation: HttpImplementation,
  { attackers, reads }: Pick<FloodData, 'attackers' | 'reads'>,
): Promise<Measured> {
  const threads = ['--api-threads', implementation === 'uws' ? '2' : '1', '--http-server', implementation]
  const words = ['--ingest-port', 'off', '--plain-http', ...threads]
  const folder = mkdtempSync(join(tmpdir(), 'posture-flood-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const attacked = await startSite(t, words, { directory: join(folder, 'attacked') })
  const idle = await startSite(t, words, { directory: join(folder, 'idle') })
  const workerData: FloodData = { port: attacked.service.apiPort, attackers, requests: 20_000, reads }
  const flood = new Worker(new URL('../support/flood-thread.js', import.meta.url), { workerData })
  await once(flood, 'online')
  const [attackedMs, idleMs] = await latencies(t, [attacked, idle])
  flood.postMessage('end')
  const [report] = (await once(flood, 'message')) as [FloodReport]
  for (const site of [attacked, idle]) await site.stop('SIGKILL')
  return { attackedMs, idleMs, report }
}

/**
 * The 99th percentile of a client's latency at each service, in milliseconds. The client sends one
 * request after the other, to the services in turn. Above the rate of its key the answer is 429.
 */
async function latencies(t: Test, sites: readonly [ServiceSite, ServiceSite]): Promise<[number, number]> {
  const clients = sites.map((site) => ({ ...site, dispatcher: new Agent({ connections: 1 }), waited: [] as number[] }))
  for (const endMs = performance.now() + MEASURED_MS; performance.now() < endMs; ) {
    for (const { service, key, dispatcher, waited } of clients) {
      const began = performance.now()
      const answer = await request(`http://127.0.0.1:${service.apiPort}/api/v1/scores`, {
        dispatcher,
        headers: { 'x-api-key': key },
      })
      await answer.body.dump()
      waited.push(performance.now() - began)
      if (answer.statusCode !== 200 && answer.statusCode !== 429) t.fail(`status ${answer.statusCode}`)
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  const [attacked = 0, idle = 0] = clients.map(({ waited }) => {
    waited.sort((one, other) => one - other)
    return waited[Math.ceil(waited.length * 0.99) - 1] ?? 0
  })
  await Promise.all(clients.map(({ dispatcher }) => dispatcher.close()))
  return [attacked, idle]
}
