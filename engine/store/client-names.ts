import type { Environment } from '../lmdb/environment.ts'
import { addressBytes, contains, networkOf } from '../process/network.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** A network with a name, such as an office. */
export interface NamedNetwork {
  /** `10.2.0.0/16`. */
  readonly network: string
  readonly name: string
}

interface HostName {
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

  /** The name of the smallest named network that contains the address. */
  networkOf(networks: readonly NamedNetwork[], address: string): string | undefined {
    const bytes = addressBytes(address)
    if (bytes === undefined) return undefined
    let best: { readonly prefixBits: number; readonly name: string } | undefined
    for (const { network: text, name } of networks) {
      const network = networkOf(text)
      if (network === undefined || !contains(network, bytes)) continue
      if (best === undefined || network.prefixBits > best.prefixBits) best = { prefixBits: network.prefixBits, name }
    }
    return best?.name
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

function networkKey(organizationId: string, text: string): Buffer {
  const { bytes = [], prefixBits = 0 } = networkOf(text) ?? {}
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(bytes), Buffer.of(prefixBits)])
}
