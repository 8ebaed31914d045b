import { setTimeout as later } from 'node:timers/promises'
import type { Random } from '../fuzz/random.ts'
import { type BrokerDisk, restorePower, stopPower } from '../support/broker-disks.ts'
import { type BrokerNetwork, SERVICE } from '../support/broker-network.ts'
import type { Brokers } from '../support/brokers.ts'
import { type BrokerFaults, between } from './crash-run.ts'

/*
 * What happens to brokers during a crash run. How long a fault lasts decides only how the fault and
 * the programs overlap, so no result depends on the speed of the machine.
 */

const ALL = [0, 1, 2] as const
const DOWN_MS = { least: 50, most: 3000 } as const
/**
 * Brokers elect another leader after 4 to 9 seconds. The service retries for 20 seconds before it
 * gives up, which is also tested.
 */
const PARTITION_MS = { least: 500, most: 12_000 } as const

/** One broker, or one time in `everyAll` all of them. */
function some(random: Random, everyAll: number): readonly number[] {
  return random.below(everyAll) === 0 ? ALL : [random.of(ALL)]
}

/** Kills the process of one broker, or of all, and starts it again. */
export function brokerKills(brokers: Brokers, faults: number): BrokerFaults {
  return {
    parameters: brokers.parameters,
    faults,
    async cause(random) {
      const killed = some(random, 5)
      await Promise.all(killed.map((index) => brokers.kill(index)))
      await later(between(random, DOWN_MS))
      for (const index of killed) brokers.restart(index)
    },
  }
}

/** Stops the power of all brokers, or sometimes of one. */
export function powerFailures(
  brokers: Brokers,
  disks: readonly BrokerDisk[],
  faults: number,
  onFailure: (brokers: number) => void,
): BrokerFaults {
  return {
    parameters: brokers.parameters,
    faults,
    async cause(random) {
      const dark = random.below(4) === 0 ? [random.of(ALL)] : ALL
      await stopPower(brokers, disks, dark)
      onFailure(dark.length)
      await later(between(random, DOWN_MS))
      restorePower(brokers, disks, dark)
    },
  }
}

/** The packets that a partition drops, as pairs of machines: from, to. */
type Pairs = readonly (readonly [number, number])[]

const bothDirections = (pairs: Pairs): Pairs =>
  pairs.flatMap(
    ([from, to]): Pairs => [
      [from, to],
      [to, from],
    ],
  )

/** Each fault of the network is one of these, of a broker chosen at random. */
export const PARTITIONS = {
  /** A broker reaches no other machine. The other two continue. */
  broker: (broker) => bothDirections(others(broker).map((other) => [broker, other])),
  /** The service still reaches a broker that has lost the other two. */
  'broker from brokers': (broker) =>
    bothDirections(others(broker).flatMap((other) => (other === SERVICE ? [] : [[broker, other]]))),
  /** A broker receives, and nothing that it sends arrives. */
  'broker, one direction': (broker) => others(broker).map((other) => [broker, other]),
  service: () => bothDirections(ALL.map((broker) => [SERVICE, broker])),
  /** No quorum: the service reaches all, and no broker another. */
  'every broker': () => ALL.flatMap((from) => ALL.filter((to) => to !== from).map((to) => [from, to] as const)),
} as const satisfies Readonly<Record<string, (broker: number) => Pairs>>

export type Partition = keyof typeof PARTITIONS

function others(broker: number): number[] {
  return [...ALL, SERVICE].filter((machine) => machine !== broker)
}

/** Partitions of the network between the brokers and the service. Each kind is as frequent. */
export function partitions(
  brokers: Brokers,
  network: BrokerNetwork,
  faults: number,
  onPartition: (partition: Partition) => void,
): BrokerFaults {
  const kinds = Object.keys(PARTITIONS) as Partition[]
  let next: number | undefined
  return {
    parameters: brokers.parameters,
    faults,
    async cause(random) {
      next = ((next ?? random.below(kinds.length)) + 1) % kinds.length
      const kind = kinds[next] as Partition
      for (const [from, to] of PARTITIONS[kind](random.of(ALL))) network.cut(from, to)
      onPartition(kind)
      await later(between(random, PARTITION_MS))
      network.heal()
    },
  }
}
