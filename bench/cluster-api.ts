import { mkdtempSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { REQUESTS_PER_WINDOW } from '../api/rate-limit/rate-limit.ts'
import type { TestNode } from '../test/support/cluster-node.ts'
import { httpsClient } from '../test/support/https.ts'
import { type RunningService, startService } from '../test/support/programs.ts'
import { copyDirectory } from '../test/support/store.ts'
import { until } from '../test/support/wait.ts'
import { ClusterSite, metric, totalBrokerCpu } from './cluster-site.ts'
import { aimText, median, print, ratio, shown } from './compare.ts'
import { isInstalled } from './cores.ts'
import { cpuSeconds, mainThreadCpuSeconds } from './machine.ts'
import { makeApiData } from './workload/api-data.ts'
import { CONNECTIONS, luaOf, type Measured, wrk } from './wrk.ts'

/** Of the throughput of one service without brokers. */
const AIM = 0.95
const PATH = '/api/v1/discovery'
const ROUNDS = 5
const SECONDS = 4
/** Requests of one key per second, over three nodes. Infinite: all at once. */
const PACES = [20, 100, 500, Number.POSITIVE_INFINITY]
const KEYS_PER_PACE = 3

interface Contender {
  readonly name: string
  readonly service: RunningService
  readonly results: (Measured & {
    readonly cpu: number
    readonly mainThread: number
    readonly all: number
    readonly requests: number
  })[]
}

/**
 * What the rate limit over all nodes costs the API: requests to a replica and to the primary of
 * three nodes, and to one service without brokers, in turn. Each request has another key. And by
 * how much a key can exceed its limit over three nodes.
 */
export async function run({ toy }: { toy: boolean }): Promise<void> {
  if (!isInstalled('wrk')) return print('wrk is not installed: apt-get install wrk')
  const site = await ClusterSite.start(mkdtempSync(join(tmpdir(), 'bench-cluster-api-')))
  try {
    const nodes = ['one', 'two', 'three'].map((name) => site.node(name))
    const [one] = nodes as [TestNode]
    // An API thread caches 50,000 keys. 45,000 requests/s use less than the limit of each.
    const sizes = toy ? { organizations: 100, keysEach: 50 } : { organizations: 400, keysEach: 100 }
    const data = await makeApiData(one.directory, { ...sizes, platformsEach: 40 })
    const [first = '', ...others] = data.keys
    const paced = others.slice(0, PACES.length * KEYS_PER_PACE)
    const single = join(site.directory, 'single')
    copyDirectory(one.directory, single)
    const service = await startService(single, ['--api-threads', '1'])
    try {
      await startNodes(site, nodes, first)
      const { primary, replicas } = await site.roles()
      const contenders = [
        { name: 'one service without brokers', service, results: [] },
        { name: 'a replica', service: (replicas[0] as TestNode).service, results: [] },
        { name: 'the primary', service: primary.service, results: [] },
      ]
      const keys = others.slice(paced.length)
      const [rounds, seconds] = toy ? [1, 1] : [ROUNDS, SECONDS]
      const script = join(site.directory, 'keys.lua')
      writeFileSync(script, luaOf(keys, true))
      for (let round = 0; round < rounds; round++) {
        for (const each of contenders) await measure(site, each, script, seconds)
      }
      print(`body ${shown(data.gzipBody.length)} bytes in gzip, TLS, ${CONNECTIONS} connections, ${loadText()}`)
      print(`${shown(keys.length)} keys, medians of ${rounds} rounds of ${seconds} s`)
      report(contenders)
      for (const [index, pace] of PACES.entries()) {
        const excess: number[] = []
        for (const key of paced.slice(index * KEYS_PER_PACE, (index + 1) * KEYS_PER_PACE)) {
          excess.push((await allowedOver(nodes, key, pace)) - REQUESTS_PER_WINDOW)
        }
        const sent = pace === Number.POSITIVE_INFINITY ? '180 requests at once' : `${pace} requests/s`
        print(`${sent} of a key over three nodes: ${excess.join(', ')} more than ${REQUESTS_PER_WINDOW} are allowed`)
      }
      const lost = await Promise.all(
        nodes.map(({ service }) => metric(service.metricsPort, 'posture_cluster_rate_uses_total{outcome="lost"}')),
      )
      print(`uses that were not sent to other nodes: ${lost.join(', ')}`)
    } finally {
      service.child.kill('SIGKILL')
      await service.ended
    }
  } finally {
    await site.end()
  }
}

/** Requests of a key that three nodes in turn allow, of three times the limit at this pace. */
async function allowedOver(nodes: readonly TestNode[], key: string, pace: number): Promise<number> {
  const clients = nodes.map(({ service, directory }) =>
    httpsClient(service.apiPort, join(directory, 'tls/certificate.pem')),
  )
  const answers: Promise<{ readonly status: number }>[] = []
  const startMs = performance.now()
  try {
    for (let number = 0; number < 3 * REQUESTS_PER_WINDOW; number++) {
      const waitMs = (number * 1000) / pace - (performance.now() - startMs)
      if (waitMs > 0) await later(waitMs)
      const { ask } = clients[number % clients.length] as (typeof clients)[number]
      answers.push(ask(PATH, { headers: { 'x-api-key': key } }))
    }
    return (await Promise.all(answers)).filter(({ status }) => status === 200).length
  } finally {
    for (const { close } of clients) await close()
  }
}

function loadText(): string {
  return `load ${loadavg()[0]?.toFixed(0)}`
}

async function startNodes(site: ClusterSite, nodes: readonly TestNode[], key: string): Promise<void> {
  for (const node of nodes) {
    await node.start()
    if (node === nodes[0]) await node.untilPrimary()
  }
  for (const node of site.nodes) {
    await until(
      `${node.name} does not answer`,
      async () => (await node.get(PATH, key)).status === 200 || later(100, false),
    )
  }
}

async function measure(site: ClusterSite, contender: Contender, script: string, seconds: number): Promise<void> {
  const pid = contender.service.child.pid ?? 0
  const url = `https://127.0.0.1:${contender.service.apiPort}${PATH}`
  const all = (): number => site.cpu().reduce((sum, each) => sum + each, totalBrokerCpu(site))
  await wrk(url, script, 1)
  const [cpu, mainThread, cluster] = [cpuSeconds(pid), mainThreadCpuSeconds(pid), all()]
  const measured = await wrk(url, script, seconds)
  contender.results.push({
    ...measured,
    requests: measured.perSecond * seconds,
    cpu: cpuSeconds(pid) - cpu,
    mainThread: mainThreadCpuSeconds(pid) - mainThread,
    all: all() - cluster,
  })
}

function report(contenders: readonly Contender[]): void {
  const of = ({ results }: Contender, what: keyof Contender['results'][number]): number =>
    median(results.map((each) => each[what]))
  const [single] = contenders as [Contender]
  const perRequest = (contender: Contender, what: 'cpu' | 'mainThread' | 'all'): string =>
    median(contender.results.map((each) => (each[what] / each.requests) * 1e6)).toFixed(1)
  for (const contender of contenders) {
    const share = of(contender, 'perSecond') / of(single, 'perSecond')
    print(
      `  ${contender.name}  ${shown(of(contender, 'perSecond'))} requests/s, p50 ${shown(of(contender, 'p50Us'))} us, p99 ${shown(of(contender, 'p99Us'))} us; CPU per request ${perRequest(contender, 'cpu')} us, of it main thread ${perRequest(contender, 'mainThread')} us; cluster in all ${perRequest(contender, 'all')} us`,
    )
    if (contender !== single)
      print(`    ${ratio(share)} one service without brokers, aim ${AIM} ${aimText(share >= AIM)}`)
  }
}
