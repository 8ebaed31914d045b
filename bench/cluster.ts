import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { jetstream } from '@nats-io/jetstream'
import type { TestNode } from '../test/support/cluster-node.ts'
import { ALL_SCOPES, admin, type RunningService, startService } from '../test/support/programs.ts'
import { until } from '../test/support/wait.ts'
import {
  ClusterSite,
  createOrganizations,
  eventsOf,
  matchesIn,
  metric,
  type Organization,
  totalBrokerCpu,
} from './cluster-site.ts'
import { cpuSeconds, type Figure, median, type Size, same } from './harness.ts'
import type { Sending, Sent } from './ingest-sender.ts'
import { RenumberedBatch } from './workload/event-batches.ts'
import { ScanEvents } from './workload/scan-events.ts'

/*
 * A cluster on this machine: three brokers and three nodes, each a process. Events arrive at a node
 * that is not the primary; a round ends when the primary has stored them and both replicas have
 * repeated the changes. In turn with one service without brokers, which gets the same batches.
 * Then a client of JetStream publishes the same batches without a service.
 */
const ORGANIZATIONS = 4
const IN_FLIGHT = 64
const CPU_AIM = 2
/** Each poll of the metrics costs the node CPU time. */
const POLL_MS = 50
const MILLION = 1e6

const ACCEPTED = 'posture_ingest_events_total{outcome="accepted"}'
const PUBLISHED = 'posture_cluster_changes_total{outcome="published"}'
const APPLIED = 'posture_cluster_changes_total{outcome="applied"}'

interface Sizes {
  readonly rounds: number
  readonly batchesEach: number
  readonly eventsEach: number
}

interface Round extends Sent {
  /** Until the stores have the events. */
  readonly storedSeconds: number
  /** CPU seconds of the primary, and of all processes. */
  readonly primary: number
  readonly total: number
}

export async function run(size: Size): Promise<Figure[]> {
  const sizes =
    size === 'toy' ? { rounds: 1, batchesEach: 1, eventsEach: 100 } : { rounds: 3, batchesEach: 32, eventsEach: 1000 }
  const site = await ClusterSite.start(mkdtempSync(join(tmpdir(), 'bench-cluster-')))
  const directory = join(site.directory, 'single')
  const alone = await createOrganizations(directory, ORGANIZATIONS)
  const service = await startService(directory, ['--api-threads', '1'])
  try {
    const [one, two, three] = [site.node('one'), site.node('two'), site.node('three', ['--roles', 'ingest,api'])]
    const organizations = await createOrganizations(one.directory, ORGANIZATIONS)
    const [key] = await admin('key', 'create', 'bench', '--org', 'Bench 0', ...ALL_SCOPES, ...one.data)
    await one.start()
    await one.untilPrimary()
    await two.start()
    await three.start()
    const toCluster = sendingTo(three.service, three.directory, organizations, sizes)
    const toService = sendingTo(service, directory, alone, sizes)
    const [cluster, single]: [Round[], Round[]] = [[], []]
    // A slow minute of the machine affects both.
    for (let round = 0; round < sizes.rounds; round++) {
      cluster.push(await clusterRound(site, one, [two, three], toCluster))
      single.push(await singleRound(site, service, toService))
    }
    await compareAnswers(site, organizations, String(key?.['key']), toCluster, sizes)
    for (const node of site.nodes) await node.kill('SIGTERM')
    return figuresOf(cluster, single, await publishedRates(site, sizes))
  } finally {
    service.child.kill('SIGKILL')
    await service.ended
    await site.end()
  }
}

function figuresOf(cluster: readonly Round[], single: readonly Round[], bare: readonly number[]): Figure[] {
  const of = (rounds: readonly Round[], value: (round: Round) => number): number => median(rounds.map(value))
  const acknowledged = ({ accepted, seconds }: Round): number => accepted / seconds
  const perMillion = (what: 'primary' | 'total') => (round: Round) => round[what] / (round.accepted / MILLION)
  const figure = (what: string, unit: string, value: (round: Round) => number): Figure => {
    const peers = [{ name: 'one service without brokers', value: of(single, value) }]
    return { what, unit, ours: of(cluster, value), peers }
  }
  const rate = figure('acknowledged', 'events/s', acknowledged)
  return [
    { ...rate, peers: [...(rate.peers ?? []), { name: 'a client of JetStream alone', value: median(bare) }] },
    figure(
      'stored by the primary and repeated by both replicas',
      'events/s',
      (round) => round.accepted / round.storedSeconds,
    ),
    figure('p99 of a batch', 'ms', ({ p99Ms }) => p99Ms),
    { ...figure('CPU of the primary for a million events', 's', perMillion('primary')), aim: { atMost: CPU_AIM } },
    figure('CPU of all processes for a million events', 's', perMillion('total')),
  ]
}

function sendingTo(
  service: RunningService,
  directory: string,
  organizations: readonly Organization[],
  { batchesEach, eventsEach }: Sizes,
): Sending {
  const tokens = Array.from({ length: IN_FLIGHT }, (_, index) => organizations[index % ORGANIZATIONS]?.token ?? '')
  const certificateFile = join(directory, 'tls/certificate.pem')
  return { port: service.ingestPort, certificateFile, tokens, batchesEach, eventsEach }
}

async function singleRound(
  site: ClusterSite,
  { child, metricsPort }: RunningService,
  sending: Sending,
): Promise<Round> {
  const [accepted, cpu] = [await metric(metricsPort, ACCEPTED), cpuSeconds(child.pid ?? 0)]
  const sent = await site.send(sending)
  same('counted events', (await metric(metricsPort, ACCEPTED)) - accepted, sent.accepted)
  const total = cpuSeconds(child.pid ?? 0) - cpu
  return { ...sent, storedSeconds: sent.seconds, primary: total, total }
}

async function clusterRound(
  site: ClusterSite,
  primary: TestNode,
  replicas: readonly TestNode[],
  sending: Sending,
): Promise<Round> {
  const { metricsPort } = primary.service
  const accepted = await metric(metricsPort, ACCEPTED)
  const repeated = await untilRepeated(primary, replicas)
  const [cpu, brokers, startMs] = [site.cpu(), totalBrokerCpu(site), performance.now()]
  const sent = await site.send(sending)
  await until(`the primary has not stored ${sent.accepted} events`, async () => {
    return (await metric(metricsPort, ACCEPTED)) === accepted + sent.accepted || later(POLL_MS, false)
  })
  await untilRepeated(primary, replicas, repeated)
  const storedSeconds = (performance.now() - startMs) / 1000
  const spent = site.cpu().map((seconds, index) => seconds - (cpu[index] ?? 0))
  const total = spent.reduce((sum, each) => sum + each, totalBrokerCpu(site) - brokers)
  return { ...sent, storedSeconds, primary: spent[0] ?? 0, total }
}

/** Transactions that the primary published, and that each replica repeated. */
type Repeated = readonly number[]

/** Waits until the replicas have repeated what the primary has published since `before`. */
async function untilRepeated(primary: TestNode, replicas: readonly TestNode[], before?: Repeated): Promise<Repeated> {
  let last: Repeated = []
  return until('the replicas have not repeated all changes', async () => {
    const published = await metric(primary.service.metricsPort, PUBLISHED)
    const applied = await Promise.all(replicas.map(({ service }) => metric(service.metricsPort, APPLIED)))
    const found = [published, ...applied]
    const isSame = found.every((value, index) => value === last[index])
    last = found
    const grown = found.map((value, index) => value - (before?.[index] ?? value))
    return isSame && grown.every((value) => value === grown[0]) ? found : later(POLL_MS, false)
  })
}

/** All nodes have all events that were sent, and answer with the same bytes. */
async function compareAnswers(
  site: ClusterSite,
  organizations: readonly Organization[],
  key: string,
  sending: Sending,
  { rounds, eventsEach }: Sizes,
): Promise<void> {
  const { primary, replicas } = await site.roles()
  await primary.untilRead()
  for (const { name } of organizations) await admin('scan', 'run', '--org', name, ...primary.data)
  const { text: expected } = await primary.get('/api/v1/discovery', key)
  for (const node of replicas) {
    await until(`${node.name} answers with other bytes`, async () => {
      return (await node.get('/api/v1/discovery', key)).text === expected || later(POLL_MS * 10, false)
    })
  }
  const scanEvents = new ScanEvents(Date.now())
  const batch = Array.from({ length: eventsEach }, (_, number) => scanEvents.event(0, number).count)
  const matches = (rounds * eventsOf(sending) * batch.reduce((sum, count) => sum + count, 0)) / eventsEach
  for (const node of site.nodes) {
    same(`${node.name}: matches in scans`, await matchesIn(node.directory, organizations), matches)
  }
}

/** Events/s of a client that publishes the same batches, while no node runs. */
async function publishedRates(site: ClusterSite, { rounds, batchesEach, eventsEach }: Sizes): Promise<number[]> {
  const stream = jetstream(site.connection)
  const batch = new RenumberedBatch(eventsEach)
  const rates: number[] = []
  for (let round = 0; round < rounds; round++) {
    const startMs = performance.now()
    await Promise.all(
      Array.from({ length: IN_FLIGHT }, async (_, connection) => {
        for (let sent = 0; sent < batchesEach; sent++) {
          batch.next()
          await stream.publish(`ev.${connection}.bench`, Buffer.from(batch.bytes))
        }
      }),
    )
    rates.push((IN_FLIGHT * batchesEach * eventsEach) / ((performance.now() - startMs) / 1000))
  }
  return rates
}
