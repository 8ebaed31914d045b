import { cpSync, mkdtempSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { FREE_AFTER_MS } from '../api/rate-limit/protocol.ts'
import type { TestNode } from '../test/support/cluster-node.ts'
import { type RunningService, startService } from '../test/support/programs.ts'
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

interface Length {
  readonly rounds: number
  readonly seconds: number
}

const TOY: Length = { rounds: 1, seconds: 1 }
const BEYOND: Length = { rounds: 5, seconds: 4 }
/** 50,000 requests/s use less than the allowance of each key. */
const WITHIN: Length = { rounds: 3, seconds: 3 }

/** Of the keys, those that are beyond their allowance. An API thread caches 50,000 keys. */
const BEYOND_SHARE = 0.25

/**
 * What the rate limit over all nodes costs the API: requests to a replica and to the primary of
 * three nodes, and to one service without brokers, in turn. Each request has another key. First,
 * before the nodes have allowances, each one needs a permit of the primary. Then the allowances
 * suffice.
 */
export async function run({ toy }: { toy: boolean }): Promise<void> {
  if (!isInstalled('wrk')) return print('wrk is not installed: apt-get install wrk')
  const site = await ClusterSite.start(mkdtempSync(join(tmpdir(), 'bench-cluster-api-')))
  try {
    const nodes = ['one', 'two', 'three'].map((name) => site.node(name))
    const [one] = nodes as [TestNode]
    const sizes = toy ? { organizations: 100, keysEach: 50 } : { organizations: 500, keysEach: 120 }
    const data = await makeApiData(one.directory, { ...sizes, platformsEach: 40 })
    const single = join(site.directory, 'single')
    cpSync(one.directory, single, { recursive: true })
    const service = await startService(single, ['--api-threads', '1'])
    try {
      await startNodes(site, nodes, data.keys[0] ?? '')
      const { primary, replicas } = await site.roles()
      const contender = (name: string, { service }: Pick<TestNode, 'service'>): Contender => ({
        name,
        service,
        results: [],
      })
      const beyond = Math.floor(data.keys.length * BEYOND_SHARE)
      print(`body ${shown(data.gzipBody.length)} bytes in gzip, TLS, ${CONNECTIONS} connections`)
      const compare = async (what: string, keys: readonly string[], { rounds, seconds }: Length): Promise<void> => {
        const contenders = [
          contender('one service without brokers', { service }),
          contender('a replica', replicas[0] as TestNode),
          contender('the primary', primary),
        ]
        const script = join(site.directory, 'keys.lua')
        writeFileSync(script, luaOf(keys, true))
        const permitsBefore = await permitsOf(contenders)
        for (let round = 0; round < rounds; round++) {
          for (const each of contenders) await measure(site, each, script, seconds)
        }
        print(`${shown(keys.length)} keys ${what}, medians of ${rounds} rounds of ${seconds} s, ${loadText()}`)
        report(contenders)
        for (const [name, permits] of await permitsOf(contenders)) {
          print(`  ${name}  asked for ${shown(permits - (permitsBefore.get(name) ?? 0))} permits`)
        }
      }
      const readyMs = performance.now()
      await compare('beyond their allowance', data.keys.slice(0, beyond), toy ? TOY : BEYOND)
      if (toy) return
      await later(Math.max(0, readyMs + FREE_AFTER_MS + 10_000 - performance.now()))
      await compare('within their allowance', data.keys.slice(beyond), WITHIN)
    } finally {
      service.child.kill('SIGKILL')
      await service.ended
    }
  } finally {
    await site.end()
  }
}

/** Of the nodes of the cluster. Requests within an allowance need none. */
async function permitsOf(contenders: readonly Contender[]): Promise<ReadonlyMap<string, number>> {
  const permits = new Map<string, number>()
  for (const { name, service } of contenders.slice(1)) {
    permits.set(name, await metric(service.metricsPort, 'posture_cluster_permits_total{outcome="answered"}'))
  }
  return permits
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
