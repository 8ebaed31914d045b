import { readdirSync, readFileSync } from 'node:fs'

/*
 * What Linux tells of the network interfaces: /proc/self/net/dev is of the network namespace of the process that reads it, /sys/class/net of the one
 * in which /sys was mounted. Who enters another namespace without mounting it anew (nsenter -n) sees different interfaces in the two.
 */
const FOLDER = '/sys/class/net'
/** Stands beside the interfaces where the bonding module is loaded. */
const BONDING_FILE = 'bonding_masters'

/** Packets since the interface was made. */
export interface InterfaceCounters {
  readonly received: number
  readonly sent: number
  /** The card's own queue was full (rx_fifo_errors). */
  readonly fifo: number
}

/** By name; proc_net(5). */
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

/** Whether /sys tells of the same interfaces. */
export function sysIsOurs(counters: ReadonlyMap<string, InterfaceCounters>): boolean {
  const names = namesInSys().filter((name) => name !== BONDING_FILE)
  return names.length === counters.size && names.every((name) => counters.has(name))
}

/** A file of the interface; undefined where it is not there or, as `carrier` of an interface that is down, not told. */
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
