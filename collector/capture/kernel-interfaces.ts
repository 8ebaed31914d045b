import { readdirSync, readFileSync } from 'node:fs'

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
