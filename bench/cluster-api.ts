import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { REQUESTS_PER_WINDOW } from '../api/rate-limit/rate-limit.ts'
import type { TestNode } from '../test/support/cluster-node.ts'
import { httpsClient } from '../test/support/https.ts'
import { type RunningService, startService } from '../test/support/programs.ts'
import { copyDirectory } from '../test/support/store.ts'
import { until } from '../test/support/wait.ts'
import { ClusterSite } from './cluster-site.ts'
import { type Figure, inTurn, isInstalled, print, type Size, stopped } from './harness.ts'
import { makeApiData } from './workload/api-data.ts'
import { luaOf, wrk } from './wrk.ts'

/** Of the throughput of one service without brokers. */
const AIM = 0.95
const PATH = '/api/v1/discovery'
const ROUNDS = 5
const SECONDS = 4
/** Requests of one key per second, over three nodes. */
const PACES = [20, 100, 500]

/**
 * What the rate limit over all nodes costs the API: requests to a replica and to the primary of
 * three nodes, and to one service without brokers, in turn. Each request has another key. And by
 * how much a key can exceed its limit over three nodes.
 */
export async function run(size: Size): Promise<Figure[]> {
  if (!isInstalled('wrk')) {
    print('  wrk is not installed: apt-get install wrk')
    return []
  }
  const toy = size === 'toy'
  const site = await ClusterSite.start(mkdtempSync(join(tmpdir(), 'bench-cluster-api-')))
  try {
    const nodes = ['one', 'two', 'three'].map((name) => site.node(name))
    const [one] = nodes as [TestNode]
    // An API thread caches 50,000 keys. 45,000 requests/s use less than the limit of each.
    const sizes = toy ? { organizations: 100, keysEach: 50 } : { organizations: 400, keysEach: 100 }
    const data = await makeApiData(one.directory, { ...sizes, platformsEach: 40 })
    const [first = '', ...others] = data.keys
    const single = join(site.directory, 'single')
    copyDirectory(one.directory, single)
    const service = await startService(single, ['--api-threads', '1'])
    try {
      await startNodes(site, nodes, first)
      const { primary, replicas } = await site.roles()
      const script = join(site.directory, 'keys.lua')
      writeFileSync(script, luaOf(others.slice(PACES.length), true))
      const contender = (name: string, { apiPort }: RunningService) => ({
        name,
        run: async () => {
          const url = `https://127.0.0.1:${apiPort}${PATH}`
          await wrk(url, script, 1)
          return (await wrk(url, script, toy ? 1 : SECONDS)).perSecond
        },
      })
      const alone = contender('one service without brokers', service)
      const aim = { ratio: true, atLeast: AIM }
      const figures: Figure[] = []
      for (const [name, node] of [
        ['a replica', replicas[0] as TestNode],
        ['the primary', primary],
      ] as const) {
        const figure = await inTurn(toy ? 1 : ROUNDS, [contender(name, node.service), alone])
        figures.push({ what: `API of ${name}, TLS with gzip`, unit: 'requests/s', ...figure, aim })
      }
      for (const [index, pace] of PACES.entries()) {
        const ours = (await allowedOver(nodes, others[index] ?? '', pace)) - REQUESTS_PER_WINDOW
        figures.push({ what: `a key over three nodes, ${pace} requests/s`, unit: 'requests beyond its limit', ours })
      }
      return figures
    } finally {
      await stopped(service.child)
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
