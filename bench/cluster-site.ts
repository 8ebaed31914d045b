import { type ChildProcess, fork } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { NatsConnection } from '@nats-io/transport-node'
import { Administration } from '../engine/admin/administration.ts'
import { systemClock } from '../engine/kernel/process/clock.ts'
import { askLocal } from '../engine/kernel/process/local-server.ts'
import { Store } from '../engine/store/store.ts'
import { matchesInScans } from '../test/crash/oracle.ts'
import { BROKER_COUNT, Brokers } from '../test/support/brokers.ts'
import { TestNode } from '../test/support/cluster-node.ts'
import { until } from '../test/support/wait.ts'
import { cpuSeconds, messageOf, same } from './harness.ts'
import type { Sending, Sent } from './ingest-sender.ts'

const SENDER = fileURLToPath(new URL('./ingest-sender.js', import.meta.url))
/** Of all benchmarks of the cluster together. */
const BROKER_EVENTS_MAX_MB = ['--broker-events-max-mb', '8192']

/** Three brokers, nodes and a process that sends batches, for one part of the benchmark. */
export class ClusterSite {
  readonly directory: string
  readonly brokers: Brokers
  readonly connection: NatsConnection
  readonly nodes: TestNode[] = []
  readonly #sender: ChildProcess = fork(SENDER)
  readonly #ends: (() => unknown)[]

  private constructor(directory: string, brokers: Brokers, connection: NatsConnection, ends: (() => unknown)[]) {
    this.directory = directory
    this.brokers = brokers
    this.connection = connection
    this.#ends = ends
  }

  static async start(directory: string): Promise<ClusterSite> {
    const ends: (() => unknown)[] = []
    const t = { testdir: () => directory, teardown: (work: () => unknown) => void ends.push(work) }
    const brokers = await Brokers.start(t, { directory: join(directory, 'brokers') })
    return new ClusterSite(directory, brokers, await brokers.connect(), ends)
  }

  /** Creates a node, which is not started. */
  node(name: string, parameters: readonly string[] = []): TestNode {
    const node = new TestNode(name, this.directory, this.brokers, {
      parameters: [...BROKER_EVENTS_MAX_MB, ...parameters],
    })
    this.nodes.push(node)
    return node
  }

  /** The node that is the primary, and the others. */
  async roles(): Promise<{ readonly primary: TestNode; readonly replicas: readonly TestNode[] }> {
    const primary = await until('no node is the primary', () => primaryOf(this.nodes))
    return { primary, replicas: this.nodes.filter((node) => node !== primary) }
  }

  /** Sends batches, and checks that all of their events were accepted. */
  async send(sending: Sending): Promise<Sent> {
    this.#sender.send(sending)
    const sent = await messageOf<Sent>(this.#sender)
    same('accepted events', sent.accepted, eventsOf(sending))
    return sent
  }

  /** CPU seconds of each node since its start. 0: it does not run. */
  cpu(): number[] {
    return this.nodes.map(({ service: { child } }) => (child.exitCode === null ? cpuSeconds(child.pid ?? 0) : 0))
  }

  async end(): Promise<void> {
    this.#sender.disconnect()
    await Promise.all(this.nodes.map((node) => node.kill()))
    await this.connection.close()
    for (const end of this.#ends) await end()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** CPU seconds of the three brokers since their start. */
export function totalBrokerCpu({ brokers }: ClusterSite): number {
  return Array.from({ length: BROKER_COUNT }, (_, index) => cpuSeconds(brokers.pid(index))).reduce(sum, 0)
}

const sum = (total: number, value: number): number => total + value

export const eventsOf = ({ tokens, batchesEach, eventsEach }: Sending): number =>
  tokens.length * batchesEach * eventsEach

async function primaryOf(nodes: readonly TestNode[]): Promise<TestNode | undefined> {
  for (const node of nodes) if (await node.isPrimary()) return node
  return undefined
}

/** A sample of a metric, with its labels. 0 if it is not there. */
export async function metric(metricsPort: number, name: string): Promise<number> {
  const { text } = await askLocal(metricsPort, '/metrics')
  const line = text.split('\n').find((each) => each.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? 0)
}

export interface Organization {
  readonly id: string
  readonly name: string
  readonly token: string
}

/** Creates organizations with a token each in the store of a service that does not run. */
export async function createOrganizations(dataDirectory: string, count: number): Promise<Organization[]> {
  const store = new Store(dataDirectory)
  try {
    const administration = new Administration(store, systemClock)
    return Array.from({ length: count }, (_, index) => {
      const name = `Bench ${index}`
      const organization = store.environment.write(() =>
        store.organizations.create({ name, domain: `b${index}.example`, plan: 'enterprise' }, systemClock.nowMs()),
      )
      return { id: organization.id, name, token: administration.tokens.generate(organization, 'bench').raw }
    })
  } finally {
    await store.close()
  }
}

/** The sum of the counts of all events in the scans of a store. */
export async function matchesIn(dataDirectory: string, organizations: readonly Organization[]): Promise<number> {
  const store = new Store(dataDirectory, { mustExist: true })
  try {
    return organizations
      .flatMap(({ id }) => [...matchesInScans(store, id).values()].flatMap((names) => [...names.values()]))
      .reduce(sum, 0)
  } finally {
    await store.close()
  }
}
