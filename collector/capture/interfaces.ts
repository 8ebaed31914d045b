import { networkInterfaces } from 'node:os'
import { editDistance } from '../../engine/process/similar.ts'
import { attributeOf, readCounters } from './kernel-interfaces.ts'

/** The network interfaces of this machine, as Linux tells everybody: it needs no permission and no libpcap. */

/** libpcap's pseudo-interface: all that there are, those that come later included. */
export const ANY_INTERFACE = 'any'

export interface NetworkInterface {
  readonly name: string
  /** `no carrier`: brought up, but no cable or peer. */
  readonly state: 'up' | 'down' | 'no carrier'
  /** What the kernel calls it (bridge, vlan, wlan, …), or else its hardware type. */
  readonly kind: string
  /** Textual IPv4 and IPv6 addresses; none are told of an interface that is not up. */
  readonly addresses: readonly string[]
  /** Packets received since it was made. */
  readonly receivedPackets: number
}

/** <linux/if.h> */
const IFF_UP = 0x1
/** ARPHRD_ of <linux/if_arp.h>. */
const HARDWARE: Readonly<Record<string, string>> = {
  1: 'ethernet',
  32: 'infiniband',
  280: 'can',
  512: 'ppp',
  519: 'rawip',
  768: 'ipip',
  769: 'ip6tnl',
  772: 'loopback',
  776: 'sit',
  778: 'gre',
  801: 'wlan',
  803: 'radiotap',
  823: 'ip6gre',
  65534: 'tun',
}

/** The names, in the order of the alphabet, without `any`. */
export function interfaceNames(): string[] {
  const counted = [...readCounters().keys()]
  // Without /proc those that are up are known.
  return (counted.length > 0 ? counted : Object.keys(networkInterfaces())).sort()
}

/** What can be captured on: every interface, and `any` last. */
export function listInterfaces(): NetworkInterface[] {
  const addresses = networkInterfaces()
  const counters = readCounters()
  const found = interfaceNames().map((name): NetworkInterface => {
    return {
      name,
      state: stateOf(name),
      kind: kindOf(name),
      addresses: (addresses[name] ?? []).map(({ address }) => address),
      receivedPackets: counters.get(name)?.received ?? 0,
    }
  })
  const receivedPackets = found.reduce((sum, each) => sum + each.receivedPackets, 0)
  return [...found, { name: ANY_INTERFACE, state: 'up', kind: 'all interfaces', addresses: [], receivedPackets }]
}

function stateOf(name: string): NetworkInterface['state'] {
  const flags = attributeOf(name, 'flags')
  if (flags !== undefined && (Number(flags) & IFF_UP) === 0) return 'down'
  return attributeOf(name, 'carrier') === '0' ? 'no carrier' : 'up'
}

function kindOf(name: string): string {
  const made = /^DEVTYPE=(\S+)$/m.exec(attributeOf(name, 'uevent') ?? '')?.[1]
  const type = attributeOf(name, 'type') ?? ''
  return made ?? HARDWARE[type] ?? `hardware type ${type}`
}

/** A machine with containers has hundreds of interfaces: so many names fit a line. */
const NAMES_SAID_MAX = 8

/** One line for a name that no interface has, with the names that are most like it. */
export function noSuchInterface(wrong: string, names: readonly string[] = interfaceNames()): string {
  const said = [...names].sort((a, b) => editDistance(wrong, a) - editDistance(wrong, b)).slice(0, NAMES_SAID_MAX)
  const more = names.length > said.length ? `, and ${names.length - said.length} more` : ''
  return `${wrong}: no such interface; there are ${said.join(', ')}${more} (posture-collector --list-interfaces)`
}
