import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { jetstream } from '@nats-io/jetstream'
import { SECOND_MS } from '../engine/process/clock.ts'
import type { TestNode } from '../test/support/cluster-node.ts'
import { ALL_SCOPES, admin, type RunningService, startService } from '../test/support/programs.ts'
import { until } from '../test/support/wait.ts'
import {
  type ClusterSite,
  createOrganizations,
  eventsOf,
  matchesIn,
  metric,
  type Organization,
  totalBrokerCpu,
} from './cluster-site.ts'
import { aimText, median, print, ratio, shown } from './compare.ts'
import type { Sending, Sent } from './ingest-sender.ts'
import { cpuSeconds, mainThreadCpuSeconds } from './machine.ts'
import { POSTGRESQL_NAME, PostgresqlCluster } from './peers/postgresql.ts'
import { RenumberedBatch } from './workload/event-batches.ts'
import { ScanEvents } from './workload/scan-events.ts'

/*
 * Ingest through the log, and the reading of a backlog. Scans run as always: a second after the
 * last scan of an organization if 5,000 of its events wait. The same organizations send to one
 * service without brokers, and a client of JetStream publishes the same batches without a service.
 */
const ORGANIZATIONS = 4
const IN_FLIGHT = 64
/** For the time of an acknowledgment without a queue: a connection has one batch in flight. */
const FEW_IN_FLIGHT = 4
const CPU_AIM = 2
const REPLAY_AIM = 150_000
/** Each poll of the metrics costs the node CPU time. */
const POLL_MS = 50
const MILLION = 1e6

const ACCEPTED = 'posture_ingest_events_total{outcome="accepted"}'
const PUBLISHED = 'posture_cluster_changes_total{outcome="published"}'
const APPLIED = 'posture_cluster_changes_total{outcome="applied"}'
const SCAN_SECONDS = 'posture_scan_seconds_total'

/** The nodes, with what they received so far. */
export interface Ingested {
  readonly site: ClusterSite
  readonly one: TestNode
  readonly two: TestNode
  /** Receives, and never becomes the primary. */
  readonly three: TestNode
  readonly organizations: readonly Organization[]
  readonly key: string
  readonly sizes: Sizes
  /** Sum of the counts of all events that were sent to the cluster. */
  matches: number
}

interface Sizes {
  readonly rounds: number
  readonly batchesEach: number
  readonly eventsEach: number
}

interface Round extends Sent {
  /** Until the stores have the events. */
  readonly storedSeconds: number
  readonly scanSeconds: number
  /** CPU seconds by process, and bytes by stream. */
  readonly costs: Readonly<Record<string, number>>
}

export async function startNodes(site: ClusterSite, toy: boolean): Promise<Ingested> {
  const [one, two, three] = [site.node('one'), site.node('two'), site.node('three', ['--roles', 'ingest,api'])]
  const organizations = await createOrganizations(one.directory, ORGANIZATIONS)
  const [first] = organizations
  const [key] = await admin('key', 'create', 'bench', '--org', String(first?.name), ...ALL_SCOPES, ...one.data)
  await one.start()
  await one.untilPrimary()
  await two.start()
  await three.start()
  const sizes = toy ? { rounds: 1, batchesEach: 1, eventsEach: 100 } : { rounds: 3, batchesEach: 32, eventsEach: 1000 }
  return { site, one, two, three, organizations, key: String(key?.['key']), sizes, matches: 0 }
}

export async function ingest(ingested: Ingested): Promise<void> {
  const { site, sizes } = ingested
  const directory = join(site.directory, 'single')
  const organizations = await createOrganizations(directory, ORGANIZATIONS)
  const service = await startService(directory, ['--api-threads', '1'])
  try {
    const single = (inFlight: number, batchesEach: number) => {
      const sending = sendingTo(service, directory, organizations, inFlight, { ...sizes, batchesEach })
      return singleRound(site, service, sending)
    }
    const rounds: [Round[], Round[]] = [[], []]
    // A slow minute of the machine affects both.
    for (let round = 0; round < sizes.rounds; round++) {
      rounds[0].push(await clusterRound(ingested, IN_FLIGHT, sizes.batchesEach))
      rounds[1].push(await single(IN_FLIGHT, sizes.batchesEach))
    }
    const batches = Math.ceil((sizes.batchesEach * IN_FLIGHT) / FEW_IN_FLIGHT / 8)
    const few = [await clusterRound(ingested, FEW_IN_FLIGHT, batches), await single(FEW_IN_FLIGHT, batches)] as const
    const events = IN_FLIGHT * sizes.batchesEach * sizes.eventsEach
    print(
      `${shown(events)} events, batches of ${shown(sizes.eventsEach)}, ${ORGANIZATIONS} organizations; medians of ${sizes.rounds} rounds`,
    )
    report(rounds, few)
  } finally {
    service.child.kill('SIGKILL')
    await service.ended
  }
}

/** CPU time while nobody sends anything. */
export async function idle({ site }: Ingested, seconds: number): Promise<void> {
  const [cpu, brokers] = [site.cpu(), totalBrokerCpu(site)]
  await later(seconds * SECOND_MS)
  const percent = (spent: number): string => `${((spent / seconds) * 100).toFixed(1)}%`
  const [primary = 0, replica = 0] = site.cpu().map((each, index) => each - (cpu[index] ?? 0))
  print(
    `idle, of one core  primary ${percent(primary)}, replica ${percent(replica)}, three brokers ${percent(totalBrokerCpu(site) - brokers)}; ${seconds} s`,
  )
}

function report([cluster, single]: readonly [Round[], Round[]], few: readonly [Sent, Sent]): void {
  const rateOf = (rounds: readonly Round[]): number => median(rounds.map(({ accepted, seconds }) => accepted / seconds))
  const storedOf = (rounds: readonly Round[]): number =>
    median(rounds.map(({ accepted, storedSeconds }) => accepted / storedSeconds))
  const costOf = (rounds: readonly Round[], name: string): number =>
    median(rounds.map(({ accepted, costs }) => (costs[name] ?? 0) / (accepted / MILLION)))
  const total = (rounds: readonly Round[]): number =>
    median(
      rounds.map(
        ({ accepted, costs }) =>
          ['receiver', 'primary', 'replica', 'brokers', 'service'].reduce((sum, name) => sum + (costs[name] ?? 0), 0) /
          (accepted / MILLION),
      ),
    )
  const latency = ({ p50Ms, p99Ms }: Sent): string => `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`
  const middle = (rounds: readonly Round[]): string => {
    const [p50Ms, p99Ms] = [median(rounds.map((each) => each.p50Ms)), median(rounds.map((each) => each.p99Ms))]
    return latency({ p50Ms, p99Ms, seconds: 0, accepted: 0 })
  }
  print(`acknowledged  ${shown(rateOf(cluster))} events/s, ${IN_FLIGHT} batches in flight, ${middle(cluster)}`)
  print(
    `  ${ratio(rateOf(cluster) / rateOf(single))} one service without brokers  (${shown(rateOf(single))} events/s, ${middle(single)})`,
  )
  print(`  ${FEW_IN_FLIGHT} in flight: ${latency(few[0])}; without brokers ${latency(few[1])}`)
  print(`stored by the primary and repeated by both replicas  ${shown(storedOf(cluster))} events/s`)
  print(
    `CPU seconds per million events  ${ratio(total(cluster) / total(single))} one service without brokers  (${total(cluster).toFixed(2)} | ${total(single).toFixed(2)})`,
  )
  const primary = costOf(cluster, 'primary')
  print(
    `  primary ${primary.toFixed(2)}, of it ${costOf(cluster, 'mainThread').toFixed(2)} in the thread that stores and publishes, aim ${CPU_AIM} ${aimText(primary <= CPU_AIM)}; receiver, which also repeats, ${costOf(cluster, 'receiver').toFixed(2)}; replica ${costOf(cluster, 'replica').toFixed(2)}; three brokers ${costOf(cluster, 'brokers').toFixed(2)}`,
  )
  const scans = (rounds: readonly Round[]): string =>
    median(rounds.map(({ scanSeconds, accepted }) => scanSeconds / (accepted / MILLION))).toFixed(2)
  print(
    `  one service ${costOf(single, 'service').toFixed(2)}, of it ${costOf(single, 'mainThread').toFixed(2)} in the thread that stores`,
  )
  print(`  duration of scans in seconds: primary ${scans(cluster)}, one service ${scans(single)}`)
  print(
    `bytes per event  events ${(costOf(cluster, 'eventBytes') / MILLION).toFixed(1)}, changes ${(costOf(cluster, 'changeBytes') / MILLION).toFixed(1)}; both on the disk of a broker ${(costOf(cluster, 'diskBytes') / MILLION).toFixed(1)}`,
  )
}

function sendingTo(
  service: RunningService,
  directory: string,
  organizations: readonly Organization[],
  inFlight: number,
  { batchesEach, eventsEach }: Sizes,
): Sending {
  const tokens = Array.from(
    { length: inFlight },
    (_, index) => organizations[index % organizations.length]?.token ?? '',
  )
  const certificateFile = join(directory, 'tls/certificate.pem')
  return { port: service.ingestPort, certificateFile, tokens, batchesEach, eventsEach, hasFewPlatforms: true }
}

async function singleRound(site: ClusterSite, service: RunningService, sending: Sending): Promise<Round> {
  const pid = service.child.pid ?? 0
  const of = (name: string): Promise<number> => metric(service.metricsPort, name)
  const mainThread = mainThreadCpuSeconds(pid)
  const [accepted, scanned, cpu] = [await of(ACCEPTED), await of(SCAN_SECONDS), cpuSeconds(pid)]
  const sent = await site.send(sending)
  const costs = { service: cpuSeconds(pid) - cpu, mainThread: mainThreadCpuSeconds(pid) - mainThread }
  if ((await of(ACCEPTED)) !== accepted + sent.accepted)
    throw new Error('the service counts other events than were sent')
  return { ...sent, storedSeconds: sent.seconds, scanSeconds: (await of(SCAN_SECONDS)) - scanned, costs }
}

/** Sends to the node that is never the primary. */
async function sendTo(ingested: Ingested, inFlight: number, batchesEach: number): Promise<Sent> {
  const { site, three, organizations, sizes } = ingested
  const sending = sendingTo(three.service, three.directory, organizations, inFlight, { ...sizes, batchesEach })
  const sent = await site.send(sending)
  ingested.matches += (eventsOf(sending) / sizes.eventsEach) * matchesOfBatch(sizes.eventsEach)
  return sent
}

function matchesOfBatch(events: number): number {
  const scanEvents = new ScanEvents(Date.now())
  return Array.from({ length: events }, (_, number) => scanEvents.event(0, number).count).reduce((a, b) => a + b, 0)
}

async function clusterRound(ingested: Ingested, inFlight: number, batchesEach: number): Promise<Round> {
  const { site, one, two, three } = ingested
  const accepted = await metric(one.service.metricsPort, ACCEPTED)
  const scanned = await metric(one.service.metricsPort, SCAN_SECONDS)
  const repeated = await untilRepeated(one, [two, three])
  const pid = one.service.child.pid ?? 0
  const [mainThread, disk] = [mainThreadCpuSeconds(pid), site.diskBytes()]
  const [bytes, cpu, brokers, startMs] = [await site.streamBytes(), site.cpu(), totalBrokerCpu(site), performance.now()]
  const sent = await sendTo(ingested, inFlight, batchesEach)
  await untilMetric(one, ACCEPTED, accepted + sent.accepted)
  await untilRepeated(one, [two, three], repeated)
  const storedSeconds = (performance.now() - startMs) / 1000
  const [bytesAfter, cpuAfter] = [await site.streamBytes(), site.cpu()]
  const [primary = 0, replica = 0, receiver = 0] = cpuAfter.map((seconds, index) => seconds - (cpu[index] ?? 0))
  const costs = {
    ...{ primary, replica, receiver, mainThread: mainThreadCpuSeconds(pid) - mainThread },
    brokers: totalBrokerCpu(site) - brokers,
    diskBytes: site.diskBytes() - disk,
    eventBytes: bytesAfter.events - bytes.events,
    changeBytes: bytesAfter.changes - bytes.changes,
  }
  return { ...sent, storedSeconds, scanSeconds: (await metric(one.service.metricsPort, SCAN_SECONDS)) - scanned, costs }
}

async function untilMetric({ service }: TestNode, name: string, value: number): Promise<void> {
  await until(`${name} is not ${value}`, async () => {
    const found = await metric(service.metricsPort, name)
    if (found > value) throw new Error(`${name} is ${found}, expected ${value}`)
    return found === value || later(POLL_MS, false)
  })
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

/** How fast a new primary stores what the log has. */
export async function backlog(ingested: Ingested): Promise<void> {
  const { one, two, sizes } = ingested
  await two.kill('SIGTERM')
  await one.kill('SIGTERM')
  const { accepted } = await sendTo(ingested, IN_FLIGHT, sizes.batchesEach)
  await one.start()
  const beganMs = performance.now()
  const pid = one.service.child.pid ?? 0
  const [before, mainBefore] = [cpuSeconds(pid), mainThreadCpuSeconds(pid)]
  await until('the backlog is not read', async () => {
    const found = await metric(one.service.metricsPort, ACCEPTED)
    return found === accepted || later(POLL_MS, false)
  })
  const seconds = (performance.now() - beganMs) / 1000
  const cpu = (cpuSeconds(pid) - before) / (accepted / MILLION)
  const mainThread = (mainThreadCpuSeconds(pid) - mainBefore) / (accepted / MILLION)
  const rate = accepted / seconds
  print(
    `backlog  ${shown(rate)} events/s from the log into the store of a new primary, aim ${shown(REPLAY_AIM)} ${aimText(rate >= REPLAY_AIM)}; ${cpu.toFixed(2)} CPU seconds per million events, of it ${mainThread.toFixed(2)} in the thread that stores and publishes`,
  )
  await two.start()
}

/** All nodes have all events that were sent, and answer with the same bytes. */
export async function compareAnswers({ site, organizations, key, matches }: Ingested): Promise<void> {
  const { primary, replicas } = await site.roles()
  await primary.untilRead()
  for (const { name } of organizations) await admin('scan', 'run', '--org', name, ...primary.data)
  const { text: expected } = await primary.get('/api/v1/discovery', key)
  for (const node of replicas) {
    await until(`${node.name} answers with other bytes`, async () => {
      return (await node.get('/api/v1/discovery', key)).text === expected || later(POLL_MS * 10, false)
    })
  }
  for (const node of site.nodes) {
    const found = await matchesIn(node.directory, organizations)
    if (found !== matches) throw new Error(`${node.name}: ${found} matches in scans, ${matches} were sent`)
  }
  print(`  all nodes answer with the same bytes and have the ${shown(matches)} matches that were sent`)
}

/** The same batches from a client of JetStream, and of PostgreSQL, while no node runs. */
export async function barePublishers({ site, sizes }: Ingested): Promise<void> {
  for (const node of site.nodes) await node.kill('SIGTERM')
  const stream = jetstream(site.connection)
  const postgresql = await PostgresqlCluster.start(IN_FLIGHT)
  const peers: readonly Peer[] = [
    {
      name: 'JetStream, three replicas',
      append: (connection, batch) => stream.publish(`ev.${connection}.bench`, batch),
      cpuSeconds: () => totalBrokerCpu(site),
    },
    {
      name: POSTGRESQL_NAME,
      append: (connection, batch) => postgresql.append(connection, batch),
      cpuSeconds: () => postgresql.cpuSeconds,
    },
  ]
  try {
    const rounds = Array.from({ length: sizes.rounds }, (_, index) => index)
    const results = new Map<Peer, { readonly rate: number; readonly cpu: number }[]>(peers.map((peer) => [peer, []]))
    // A slow minute of the machine affects both.
    for (const _ of rounds) for (const peer of peers) results.get(peer)?.push(await appendBatches(peer, sizes))
    print(`clients that append the same batches, ${IN_FLIGHT} in flight, no node runs`)
    for (const [{ name }, figures] of results) {
      const [rate, cpu] = [median(figures.map((each) => each.rate)), median(figures.map((each) => each.cpu))]
      print(`  ${name}  ${shown(rate)} events/s, servers ${cpu.toFixed(2)} CPU seconds per million events`)
    }
  } finally {
    await postgresql.stop()
  }
}

interface Peer {
  readonly name: string
  readonly append: (connection: number, batch: Buffer) => Promise<unknown>
  readonly cpuSeconds: () => number
}

async function appendBatches(peer: Peer, { batchesEach, eventsEach }: Sizes): Promise<{ rate: number; cpu: number }> {
  const scanEvents = new ScanEvents(Date.now())
  const batch = new RenumberedBatch(eventsEach, (number) => scanEvents.event(0, number - 1))
  const events = IN_FLIGHT * batchesEach * eventsEach
  const [startMs, cpu] = [performance.now(), peer.cpuSeconds()]
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async (_, connection) => {
      for (let sent = 0; sent < batchesEach; sent++) {
        batch.next()
        await peer.append(connection, Buffer.from(batch.bytes))
      }
    }),
  )
  return {
    rate: events / ((performance.now() - startMs) / 1000),
    cpu: (peer.cpuSeconds() - cpu) / (events / MILLION),
  }
}
