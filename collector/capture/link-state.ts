import { readdirSync, readFileSync } from 'node:fs'
import { ANY_INTERFACE } from './interfaces.ts'

/** How an interface stands by the kernel's own counters, which no filter and no ring is in front of. */
export interface LinkState {
  /** Why nothing can come; empty when something can. */
  readonly trouble: string
  /** Packets received and sent since it was made. */
  readonly packets: number
  /** Packets that the interface itself had no room for: rx_missed_errors and rx_fifo_errors, as libpcap counts them. */
  readonly missed: number
}

const FOLDER = '/sys/class/net'
/** <linux/if.h> */
const IFF_UP = 0x1

/** The state of the interface, or of all of them together for `any`. */
export function readLinkState(name: string): LinkState {
  if (name !== ANY_INTERFACE) return stateOf(name)
  const sum = { trouble: '', packets: 0, missed: 0 }
  for (const each of namesIn(FOLDER)) {
    const { packets, missed } = stateOf(each)
    sum.packets += packets
    sum.missed += missed
  }
  return sum
}

function stateOf(name: string): LinkState {
  const flags = attribute(name, 'flags')
  const number = (file: string): number => Number(attribute(name, `statistics/${file}`) ?? 0)
  let trouble = ''
  if (flags === undefined) trouble = `${name} is gone`
  else if ((Number(flags) & IFF_UP) === 0) trouble = `${name} is down`
  else if (attribute(name, 'carrier') === '0') trouble = `${name} has no carrier`
  return {
    trouble,
    packets: number('rx_packets') + number('tx_packets'),
    missed: number('rx_missed_errors') + number('rx_fifo_errors'),
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** A file of the interface; undefined where it is not there or, as `carrier` of an interface that is down, not told. */
function attribute(name: string, file: string): string | undefined {
  try {
    return readFileSync(`${FOLDER}/${name}/${file}`, 'utf8').trim()
  } catch {
    return undefined
  }
}
