import type { Environment } from '../kernel/lmdb/environment.ts'
import { addressBytes, contains, networkOf } from '../kernel/process/network.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** IPv4 networks are stored as IPv4-mapped ones (RFC 4291 §2.5.5.2). */
const ADDRESS_BITS = 128

/** A network with a name, such as an office. */
export interface NamedNetwork {
  /** `10.2.0.0/16`. */
  readonly network: string
  readonly name: string
}

export interface HostName {
  readonly address: string
  readonly name: string
}

/** The names that an organization gives to addresses and networks. */
export class ClientNames {
  readonly #hosts: Family<HostName>
  readonly #networks: Family<NamedNetwork>

  constructor(environment: Environment) {
    this.#hosts = new Family(environment.table('client-names'), 'name of a client')
    this.#networks = new Family(environment.table('client-networks'), 'named network')
  }

  /** The name of an address. */
  hostOf(organizationId: string, address: string): string | undefined {
    const bytes = addressBytes(address)
    return bytes && this.#hosts.get(Buffer.concat([uuidBytes(organizationId), bytes]))?.name
  }

  /** Number of addresses with a name. */
  hostsCount(organizationId: string): number {
    return this.#hosts.count(uuidBytes(organizationId))
  }

  /**
   * Returns a function that names the smallest named network of an address. The networks are parsed
   * once, so that a list of many addresses is fast.
   */
  networkNames(organizationId: string): (address: string) => string | undefined {
    const parsed = this.networks(organizationId)
      .flatMap(({ network: text, name }) => {
        const network = networkOf(text)
        return network === undefined ? [] : [{ network, name }]
      })
      .sort((a, b) => b.network.prefixBits - a.network.prefixBits)
    return (address) => {
      const bytes = parsed.length === 0 ? undefined : addressBytes(address)
      return bytes && parsed.find(({ network }) => contains(network, bytes))?.name
    }
  }

  /** By address. */
  networks(organizationId: string): NamedNetwork[] {
    return Array.from(this.#networks.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** Requires a write transaction. */
  putNetwork(organizationId: string, network: NamedNetwork): void {
    this.#networks.put(networkKey(organizationId, network.network), network)
  }

  /** Returns whether the network had a name. Requires a write transaction. */
  removeNetwork(organizationId: string, network: string): boolean {
    const key = networkKey(organizationId, network)
    const isKnown = this.#networks.has(key)
    if (isKnown) this.#networks.remove(key)
    return isKnown
  }

  /** Names an address. Requires a write transaction. */
  putHost(organizationId: string, address: string, name: string): void {
    this.#hosts.put(Buffer.concat([uuidBytes(organizationId), addressBytes(address) ?? Buffer.alloc(0)]), {
      address,
      name,
    })
  }

  /** Removes the name of an address, and of the network that is this address. Requires a write transaction. */
  removeHost(organizationId: string, address: string): void {
    const bytes = addressBytes(address)
    if (bytes === undefined) return
    this.#hosts.remove(Buffer.concat([uuidBytes(organizationId), bytes]))
    for (const { network } of this.networks(organizationId)) {
      const parsed = networkOf(network)
      if (parsed !== undefined && isSingleAddress(network) && contains(parsed, bytes))
        this.removeNetwork(organizationId, network)
    }
  }

  /** Removes the names of networks with one address. Requires a write transaction. */
  removeSingleAddresses(organizationId: string): void {
    for (const { network } of this.networks(organizationId)) {
      if (isSingleAddress(network)) this.removeNetwork(organizationId, network)
    }
  }

  /**
   * Removes up to `countMax` names of addresses, and returns their number. Requires a write
   * transaction.
   */
  removeHosts(organizationId: string, countMax: number): number {
    const keys: Buffer[] = []
    for (const key of this.#hosts.keys(uuidBytes(organizationId))) {
      if (keys.length === countMax) break
      keys.push(Buffer.from(key))
    }
    for (const key of keys) this.#hosts.remove(key)
    return keys.length
  }
}

/** Whether a network such as `10.2.0.7/32` is one client. */
export function isSingleAddress(network: string): boolean {
  return networkOf(network)?.prefixBits === ADDRESS_BITS
}

function networkKey(organizationId: string, text: string): Buffer {
  const { bytes = [], prefixBits = 0 } = networkOf(text) ?? {}
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(bytes), Buffer.of(prefixBits)])
}
