import { setTimeout as later } from 'node:timers/promises'
import type { Random } from '../fuzz/random.ts'
import { type BrokerDisk, restorePower, stopPower } from '../support/broker-disks.ts'
import { type BrokerNetwork, SERVICE } from '../support/broker-network.ts'
import { BROKER_COUNT, type Brokers } from '../support/brokers.ts'
import type { TestNode } from '../support/cluster-node.ts'
import type { SteppedClock } from '../support/stepped-clock.ts'
import { between } from './crash-run.ts'

/*
 * What happens to the nodes and brokers of a cluster during a crash run. How long a fault lasts
 * decides only how the fault and the programs overlap, so no result depends on the speed of the
 * machine.
 */

const BROKERS = Array.from({ length: BROKER_COUNT }, (_, index) => index)
const DOWN_MS = { least: 50, most: 3000 } as const
/** Longer and shorter than it takes until another node becomes the primary. */
const PAUSE_MS = { least: 300, most: 9000 } as const
/** Longer and shorter than elections of brokers and takeovers. */
const PARTITION_MS = { least: 500, most: 12_000 } as const
const FULL_MS = { least: 1000, most: 5000 } as const
/** Forward from the time of the brokers, because their certificate is not valid before. */
const CLOCK_STEP_SECONDS = 7200

export interface ClusterSite {
  /** The last one only receives events. */
  readonly nodes: readonly TestNode[]
  readonly brokers: Brokers
  readonly disks: readonly BrokerDisk[]
  readonly network: BrokerNetwork
  /** One for each node. */
  readonly clocks: readonly SteppedClock[]
}

type Fault = (site: ClusterSite, primary: TestNode | undefined, random: Random) => Promise<void> | void

/** Kills and pauses are mostly those of the primary, which are the interesting ones. */
const victim = ({ nodes }: ClusterSite, primary: TestNode | undefined, random: Random): TestNode =>
  random.below(3) === 0 ? random.of(nodes) : (primary ?? random.of(nodes))

async function killBrokers({ brokers }: ClusterSite, killed: readonly number[], random: Random): Promise<void> {
  await Promise.all(killed.map((index) => brokers.kill(index)))
  await later(between(random, DOWN_MS))
  for (const index of killed) brokers.restart(index)
}

const FAULTS = {
  primary: ({ nodes }, primary, random) => (primary ?? random.of(nodes)).signal('SIGKILL'),
  ingest: ({ nodes }) => nodes.at(-1)?.signal('SIGKILL'),
  broker: (site, _primary, random) => killBrokers(site, [random.of(BROKERS)], random),
  async pause(site, primary, random) {
    const node = victim(site, primary, random)
    node.signal('SIGSTOP')
    await later(between(random, PAUSE_MS))
    node.signal('SIGCONT')
  },
  everything(site, _primary, random) {
    for (const node of site.nodes) node.signal('SIGKILL')
    return killBrokers(site, BROKERS, random)
  },
  /** Of all brokers, or sometimes of one. */
  async power({ brokers, disks, nodes }, _primary, random) {
    const dark = random.below(4) === 0 ? [random.of(BROKERS)] : BROKERS
    if (random.below(2) === 0) for (const node of nodes) node.signal('SIGKILL')
    await stopPower(brokers, disks, dark)
    await later(between(random, DOWN_MS))
    restorePower(brokers, disks, dark)
  },
  async partition({ network, nodes }, primary, random) {
    const node = SERVICE + Math.max(0, nodes.indexOf(primary ?? random.of(nodes)))
    const kind = random.of(Object.keys(PARTITIONS) as (keyof typeof PARTITIONS)[])
    for (const [from, to] of PARTITIONS[kind](random.of(BROKERS), node, nodes.length)) network.cut(from, to)
    await later(between(random, PARTITION_MS))
    network.heal()
  },
  /** NATS disables streams on a broker with a full disk until it is started again. */
  async disk({ brokers, disks }, _primary, random) {
    const index = random.of(BROKERS)
    disks[index]?.fillUpTo(0)
    await later(between(random, FULL_MS))
    disks[index]?.free()
    await brokers.kill(index)
    brokers.restart(index)
  },
} as const satisfies Readonly<Record<string, Fault>>

export type ClusterFault = keyof typeof FAULTS
export const CLUSTER_FAULTS = Object.keys(FAULTS) as readonly ClusterFault[]

/** The packets that a partition drops, as pairs of machines: from, to. */
type Pairs = readonly (readonly [number, number])[]

const bothDirections = (pairs: Pairs): Pairs => [...pairs, ...pairs.map(([from, to]) => [to, from] as const)]
const toBrokers = (machine: number): Pairs =>
  BROKERS.filter((broker) => broker !== machine).map((broker) => [machine, broker])
const allNodes = (count: number): number[] => Array.from({ length: count }, (_, index) => SERVICE + index)

const PARTITIONS = {
  node: (_broker, node) => bothDirections(toBrokers(node)),
  /** The node receives, and nothing that it sends arrives. */
  'node, one direction': (_broker, node) => toBrokers(node),
  'all nodes': (_broker, _node, nodes) => bothDirections(allNodes(nodes).flatMap(toBrokers)),
  /** A broker reaches no other machine. The other two continue. */
  broker: (broker, _node, nodes) =>
    bothDirections([...toBrokers(broker), ...allNodes(nodes).map((node) => [broker, node] as const)]),
  /** Nodes still reach a broker that has lost the other two. */
  'broker from brokers': (broker) => bothDirections(toBrokers(broker)),
  /** No quorum: nodes reach all brokers, and no broker another. */
  'every broker': () => BROKERS.flatMap(toBrokers),
} as const satisfies Readonly<Record<string, (broker: number, node: number, nodes: number) => Pairs>>

/** Causes a fault, and ends it. Before, the clock of one node steps. */
export async function causeFault(
  kind: ClusterFault,
  site: ClusterSite,
  primary: TestNode | undefined,
  random: Random,
): Promise<void> {
  random.of(site.clocks).step(random.below(CLOCK_STEP_SECONDS))
  const cause: Fault = FAULTS[kind]
  await cause(site, primary, random)
}
