import { join } from 'node:path'
import type { BrokerHost } from './brokers.ts'
import { ip } from './namespace.ts'

/** The number of the first service's machine. The brokers have 0 to 2. */
export const SERVICE = 3
const BROKERS = [0, 1, 2] as const
const SERVICES_MAX = 4
const MACHINES = [...BROKERS, ...Array.from({ length: SERVICES_MAX }, (_, index) => SERVICE + index)]
const BRIDGE = 'br0'
const ANY_ADDRESS = '0.0.0.0'
/** Nobody has this address, so its frames are lost without a notice to the sender. */
const NO_MAC = '02:00:00:00:00:ff'

/** The network in which two machines reach each other. Brokers are in the first one. */
const networkOf = (one: number, other: number): number => Math.max(one, other, SERVICE) - SERVICE
const addressIn = (network: number, machine: number): string => `10.98.${network}.${Math.min(machine, SERVICE) + 1}`
const macOf = (machine: number): string => `02:00:00:00:00:0${Math.min(machine, SERVICE) + 1}`
const namespaceOf = (machine: number): string => `broker-${machine}`

/**
 * A network namespace for each broker, on a bridge in the namespace of this process, which is the
 * machine of all services. Each service reaches the brokers in a network of its own, so that each
 * can be disconnected alone. For programs that run in private namespaces (namespace.ts).
 */
export class BrokerNetwork {
  constructor() {
    ip('link', 'set', 'lo', 'up')
    ip('link', 'add', BRIDGE, 'address', macOf(SERVICE), 'type', 'bridge')
    const networks = [...Array(SERVICES_MAX).keys()]
    for (const network of networks) ip('address', 'add', `${addressIn(network, SERVICE)}/24`, 'dev', BRIDGE)
    ip('link', 'set', BRIDGE, 'up')
    for (const machine of BROKERS) {
      const name = namespaceOf(machine)
      ip('netns', 'add', name)
      const ends = ['type', 'veth', 'peer', 'name', 'eth0', 'address', macOf(machine), 'netns', name]
      ip('link', 'add', name, ...ends)
      ip('link', 'set', name, 'master', BRIDGE, 'up')
      for (const network of networks) {
        ip('-netns', name, 'address', 'add', `${addressIn(network, machine)}/24`, 'dev', 'eth0')
      }
      for (const link of ['lo', 'eth0']) ip('-netns', name, 'link', 'set', link, 'up')
    }
    this.heal()
  }

  /** The brokers' machines, with data in this directory. */
  hosts(directory: string): BrokerHost[] {
    return BROKERS.map((machine) => {
      // Not `ip netns exec`, whose namespace of mounts would keep disks mounted.
      const through = ['nsenter', `--net=/run/netns/${namespaceOf(machine)}`]
      const addresses = [...Array(SERVICES_MAX).keys()].map((network) => addressIn(network, machine))
      const [address = ''] = addresses
      return { address, addresses, listen: ANY_ADDRESS, data: join(directory, namespaceOf(machine)), through }
    })
  }

  /** Drops the packets from one machine to another, in this direction only. */
  cut(from: number, to: number): void {
    this.#send(from, to, NO_MAC)
  }

  heal(): void {
    for (const from of MACHINES) {
      for (const to of MACHINES) {
        const isLink = from !== to && Math.min(from, to) < SERVICE
        if (isLink) this.#send(from, to, macOf(to))
      }
    }
  }

  /** With permanent entries, a machine sends no ARP queries, so it notices no partition. */
  #send(from: number, to: number, mac: string): void {
    const [inside, device] = from >= SERVICE ? [[], BRIDGE] : [['-netns', namespaceOf(from)], 'eth0']
    const address = addressIn(networkOf(from, to), to)
    ip(...inside, 'neighbour', 'replace', address, 'lladdr', mac, 'dev', device, 'nud', 'permanent')
  }
}
