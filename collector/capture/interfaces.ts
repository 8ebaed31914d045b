import { readdirSync, readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { editDistance } from '../../engine/kernel/process/similar.ts'

/**
 * The network interfaces of this machine. Linux reports them without special permission and without
 * libpcap.
 */

/** libpcap's pseudo-interface: all interfaces, including those added later. */
export const ANY_INTERFACE = 'any'

export interface NetworkInterface {
  readonly name: string
  /** `no carrier`: up, but without cable or peer. */
  readonly state: 'up' | 'down' | 'no carrier'
  /** The kernel's device type (bridge, vlan, wlan, …), or the hardware type if there is none. */
  readonly kind: string
  /** Textual IPv4 and IPv6 addresses. Empty if the interface is down. */
  readonly addresses: readonly string[]
  /** Packets received since the interface was created. */
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

/** Names in alphabetical order, without `any`. */
export function interfaceNames(): string[] {
  const counted = [...readCounters().keys()]
  // Without /proc, only interfaces that are up are known.
  return (counted.length > 0 ? counted : Object.keys(networkInterfaces())).sort()
}

/** Lists every interface, then `any`. */
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

/** A machine with containers has hundreds of interfaces. This many names fit on a line. */
const NAMES_LISTED_MAX = 8

/** One line for an unknown interface name, with the most similar names. */
export function noSuchInterface(wrong: string, names: readonly string[] = interfaceNames()): string {
  const listed = [...names].sort((a, b) => editDistance(wrong, a) - editDistance(wrong, b)).slice(0, NAMES_LISTED_MAX)
  const more = names.length > listed.length ? `, and ${names.length - listed.length} more` : ''
  return `${wrong}: no such interface; available: ${listed.join(', ')}${more} (posture-collector --list-interfaces)`
}

/*
 * /proc/self/net/dev lists the interfaces of the reading process's network namespace.
 * /sys/class/net lists those of the namespace in which /sys was mounted. A process that enters
 * another namespace without mounting /sys again (nsenter -n) sees different interfaces in the two.
 */
const FOLDER = '/sys/class/net'
/** A file in /sys/class/net, next to the interfaces, when the bonding module is loaded. */
const BONDING_FILE = 'bonding_masters'

/** Packets since the interface was created. */
export interface InterfaceCounters {
  readonly received: number
  readonly sent: number
  /** Packets dropped because the network card's queue was full (rx_fifo_errors). */
  readonly fifo: number
}

/** Counters by interface name; proc_net(5). */
export function readCounters(): Map<string, InterfaceCounters> {
  const counters = new Map<string, InterfaceCounters>()
  for (const line of textOf('/proc/self/net/dev').split('\n')) {
    const [, name, figures] = /^\s*(\S+):\s*(.*)$/.exec(line) ?? []
    if (name === undefined || figures === undefined) continue
    const [, received = 0, , , fifo = 0, , , , , sent = 0] = figures.split(/\s+/).map(Number)
    counters.set(name, { received, sent, fifo })
  }
  return counters
}

/** Whether /sys lists the same interfaces as /proc. */
export function sysMatches(counters: ReadonlyMap<string, InterfaceCounters>): boolean {
  const names = namesInSys().filter((name) => name !== BONDING_FILE)
  return names.length === counters.size && names.every((name) => counters.has(name))
}

/**
 * Reads an attribute file of the interface. Undefined if the file is missing or unreadable, like
 * `carrier` of an interface that is down.
 */
export function attributeOf(name: string, file: string): string | undefined {
  const text = textOf(`${FOLDER}/${name}/${file}`).trim()
  return text === '' ? undefined : text
}

function namesInSys(): string[] {
  try {
    return readdirSync(FOLDER)
  } catch {
    return []
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
