import { readFileSync } from 'node:fs'
import { clientOfBytes } from '../process/network.ts'

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
export function connectionsByClient(port: number): Map<string, number> {
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
