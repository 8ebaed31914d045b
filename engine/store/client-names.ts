import type { Environment } from '../kernel/lmdb/environment.ts'
import { addressBytes, contains, networkOf } from '../kernel/process/network.ts'
import { ADDRESSES_REMEMBERED_MAX, CLIENT_NAMES_REMOVED_MAX } from '../limits.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'
import { type NameSpan, type NamesInRange, namesIn } from './name-spans.ts'

/** IPv4 networks are stored as IPv4-mapped ones (RFC 4291 §2.5.5.2). */
const ADDRESS_BITS = 128

/** A network with a name, such as an office. */
export interface NamedNetwork {
  /** `10.2.0.0/16`. */
  readonly network: string
  readonly name: string
}

interface HostNames {
  readonly address: string
  /** In order, at least one. Absent in schema 2. */
  readonly spans?: readonly NameSpan[]
  /** The only name, in schema 2. */
  readonly name?: string
}

/** The names of an address in a range of time, and of its network. */
export interface AddressNames extends NamesInRange {
  readonly network: string | null
}

/** Reads the names of an address from one time to another; both belong to the range. */
export type NamesOf = (address: string, fromMs: number, toMs: number) => AddressNames

/** The names that an organization gives to addresses and networks. */
export class ClientNames {
  readonly #hosts: Family<HostNames>
  readonly #networks: Family<NamedNetwork>

  constructor(environment: Environment) {
    this.#hosts = new Family(environment.table('client-names'), 'name of a client')
    this.#networks = new Family(environment.table('client-networks'), 'named network')
  }

  /** The names of an address with their times, in order. */
  spansOf(organizationId: string, address: string): readonly NameSpan[] {
    const bytes = addressBytes(address)
    const record = bytes && this.#hosts.get(Buffer.concat([uuidBytes(organizationId), bytes]))
    return record === undefined ? [] : spansIn(record)
  }

  /** All addresses with their names. */
  *hosts(organizationId: string): Generator<[address: string, spans: readonly NameSpan[]]> {
    for (const { value } of this.#hosts.range(uuidBytes(organizationId))) yield [value.address, spansIn(value)]
  }

  /** Returns a function that names addresses. It remembers them: most clients are in many records. */
  names(organizationId: string): NamesOf {
    const networkOf = this.networkNames(organizationId)
    const known = new Map<string, { readonly spans: readonly NameSpan[]; readonly network: string | null }>()
    return (address, fromMs, toMs) => {
      let found = known.get(address)
      if (found === undefined) {
        if (known.size === ADDRESSES_REMEMBERED_MAX) known.clear()
        found = { spans: this.spansOf(organizationId, address), network: networkOf(address) ?? null }
        known.set(address, found)
      }
      return { ...namesIn(found.spans, fromMs, toMs), network: found.network }
    }
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

  putNetwork(organizationId: string, network: NamedNetwork): void {
    this.#networks.put(networkKey(organizationId, network.network), network)
  }

  /** Returns whether the network had a name. */
  removeNetwork(organizationId: string, network: string): boolean {
    const key = networkKey(organizationId, network)
    const isKnown = this.#networks.has(key)
    if (isKnown) this.#networks.remove(key)
    return isKnown
  }

  /** Replaces the names of an address. */
  putHost(organizationId: string, address: string, spans: readonly NameSpan[]): void {
    const key = Buffer.concat([uuidBytes(organizationId), addressBytes(address) ?? Buffer.alloc(0)])
    if (spans.length === 0) this.#hosts.remove(key)
    else this.#hosts.put(key, { address, spans })
  }

  /** Removes the names of an address, and of the network that is this address. */
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

  /** Removes the names of networks with one address. */
  removeSingleAddresses(organizationId: string): void {
    for (const { network } of this.networks(organizationId)) {
      if (isSingleAddress(network)) this.removeNetwork(organizationId, network)
    }
  }

  /** Removes old names of some addresses, and returns their number. */
  removeEnded(organizationId: string, beforeMs: number): number {
    const ended: (readonly [address: string, kept: readonly NameSpan[]])[] = []
    for (const [address, spans] of this.hosts(organizationId)) {
      const kept = spans.filter(({ toMs }) => toMs > beforeMs)
      if (kept.length < spans.length) ended.push([address, kept])
      if (ended.length === CLIENT_NAMES_REMOVED_MAX) break
    }
    for (const [address, kept] of ended) this.putHost(organizationId, address, kept)
    return ended.length
  }

  /** Removes the names of up to `countMax` addresses, and returns their number. */
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

function spansIn({ spans, name = '' }: HostNames): readonly NameSpan[] {
  return spans ?? [{ name, fromMs: 0, toMs: Number.POSITIVE_INFINITY }]
}

/** Whether a network such as `10.2.0.7/32` is one client. */
export function isSingleAddress(network: string): boolean {
  return networkOf(network)?.prefixBits === ADDRESS_BITS
}

function networkKey(organizationId: string, text: string): Buffer {
  const { bytes = [], prefixBits = 0 } = networkOf(text) ?? {}
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(bytes), Buffer.of(prefixBits)])
}
