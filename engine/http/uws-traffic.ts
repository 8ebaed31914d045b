import { readFileSync } from 'node:fs'
import { clientOfBytes } from '../kernel/process/network.ts'
import { BODILESS_ANSWERS_MEAN } from '../limits.ts'
import { EstimatedCounts } from './client-counts.ts'
import { Connections, UNLIMITED } from './connections.ts'
import type { HttpListenOptions } from './port.ts'
import { TurnBudget, WaitingAnswers } from './waiting-answers.ts'

/** State shared by the connections and responses of a listener over uWebSockets.js. */
export class Traffic {
  /** Requests whose response the kernel has not accepted completely. */
  requests = 0
  /** The port that the listener is bound to. */
  port = 0
  readonly connections: Connections
  readonly waiting: WaitingAnswers
  readonly turn = new TurnBudget()
  #bodiless = 0

  constructor({ limits = UNLIMITED, connectionCounters, log }: HttpListenOptions) {
    const counts = new EstimatedCounts(() => connectionsByClient(this.port), log)
    this.connections = new Connections(limits, counts, connectionCounters, log)
    this.waiting = new WaitingAnswers(limits.perClientMax > 0)
  }

  /**
   * Whether to close the connection after a response without a body. The library buffers these for
   * clients that do not read, and reveals neither the buffered size nor the connection. So
   * connections are closed at random, which bounds the expected number per connection. The first
   * responses of a listener are exempt.
   */
  closesBodiless(): boolean {
    return ++this.#bodiless > BODILESS_ANSWERS_MEAN && Math.random() * BODILESS_ANSWERS_MEAN < 1
  }
}

/** proc_pid_net(5), of IPv4 and IPv6. */
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6']
/** Columns of a line. */
const LOCAL = 1
const REMOTE = 2
const STATE = 3
const INODE = 9
/** TCP_ESTABLISHED and TCP_CLOSE_WAIT (net/tcp_states.h): only these have a descriptor. */
const HELD = new Set(['01', '08'])

/** Counts the connections to a local TCP port by client, as listed by the kernel. */
function connectionsByClient(port: number): Map<string, number> {
  const counts = new Map<string, number>()
  for (const file of TABLES) countLines(tableText(file), port, counts)
  return counts
}

/** Adds the lines of one table. Exported for its test. */
export function countLines(text: string, port: number, counts: Map<string, number>): void {
  const localPort = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  for (const line of text.split('\n')) {
    if (!line.includes(localPort)) continue
    const words = line.trim().split(/\s+/)
    // A connection without an inode has no descriptor: it is not accepted yet, or is closed.
    if (!words[LOCAL]?.endsWith(localPort) || !HELD.has(words[STATE] ?? '') || words[INODE] === '0') continue
    const client = clientOfBytes(addressOf(words[REMOTE]?.split(':', 1)[0] ?? ''))
    counts.set(client, (counts.get(client) ?? 0) + 1)
  }
}

/** The kernel writes an address as words of 32 bits, each in the byte order of the machine. */
function addressOf(hex: string): Uint8Array {
  const bytes = Buffer.from(hex, 'hex')
  return LITTLE_ENDIAN ? bytes.swap32() : bytes
}

const LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1

/** A system without IPv6 has no table of it. */
function tableText(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
