import { ANY_INTERFACE } from './interfaces.ts'
import { attributeOf, type InterfaceCounters, readCounters, sysMatches } from './kernel-interfaces.ts'

/**
 * The state of an interface by the kernel's own counters, which count before any filter or ring.
 */
export interface LinkState {
  /** Why no packet can arrive; empty if packets can arrive. */
  readonly problem: string
  /** Packets received and sent since the interface was created. */
  readonly packets: number
  /**
   * Packets that the interface dropped for lack of space: rx_missed_errors and rx_fifo_errors, as
   * libpcap counts them.
   */
  readonly missed: number
}

/** <linux/if.h> */
const IFF_UP = 0x1

/** Reads the state of the interface, or the sum of all interfaces for `any`. */
export function readLinkState(name: string): LinkState {
  const counters = readCounters()
  const inSys = sysMatches(counters)
  if (name !== ANY_INTERFACE) return stateOf(name, counters.get(name), inSys)
  const sum = { problem: '', packets: 0, missed: 0 }
  for (const [each, counted] of counters) {
    const { packets, missed } = stateOf(each, counted, inSys)
    sum.packets += packets
    sum.missed += missed
  }
  return sum
}

function stateOf(name: string, counters: InterfaceCounters | undefined, inSys: boolean): LinkState {
  if (counters === undefined) return { problem: `${name} is gone`, packets: 0, missed: 0 }
  const packets = counters.received + counters.sent
  if (!inSys) return { problem: '', packets, missed: counters.fifo }
  let problem = ''
  if ((Number(attributeOf(name, 'flags') ?? IFF_UP) & IFF_UP) === 0) problem = `${name} is down`
  else if (attributeOf(name, 'carrier') === '0') problem = `${name} has no carrier`
  return { problem, packets, missed: counters.fifo + Number(attributeOf(name, 'statistics/rx_missed_errors') ?? 0) }
}
