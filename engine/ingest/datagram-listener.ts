import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import { portFault } from '../http/listen.ts'
import { MESSAGE_BYTES_MAX, UDP_RECEIVE_BYTES } from '../limits.ts'
import { CR, LF } from './formats/bytes.ts'
import { type Intake, Origin } from './intake.ts'
import { canonicalAddress } from './network.ts'

/** Peers whose last message is remembered. Beyond it the memory begins anew; what was counted stays with the source. */
const PEERS_MAX = 10_000
const LOCAL_PORT = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) /

export interface DatagramListenerOptions {
  readonly setting: string
  readonly address: string
  readonly port: number
  readonly onTaken: () => void
}

/** Listens for syslog over UDP: one message a datagram (RFC 5426 §3.1). */
export class DatagramListener {
  /** Datagrams that were let go because their organization had no room: UDP has no way to say so. */
  dropped = 0
  /** The one it was bound to: a socket that is closed no longer knows. */
  port = 0
  readonly #options: DatagramListenerOptions
  readonly #intake: Intake
  readonly #socket: Socket
  readonly #peers = new Map<string, Origin>()

  private constructor(options: DatagramListenerOptions, intake: Intake) {
    this.#options = options
    this.#intake = intake
    const type = options.address.includes(':') ? 'udp6' : 'udp4'
    this.#socket = createSocket({ type, recvBufferSize: UDP_RECEIVE_BYTES })
  }

  /** @throws Fault PORT_TAKEN, PORT_DENIED. */
  static async listen(options: DatagramListenerOptions, intake: Intake): Promise<DatagramListener> {
    const listener = new DatagramListener(options, intake)
    const socket = listener.#socket
    await new Promise<void>((resolve, reject) => {
      socket.once('error', (error: NodeJS.ErrnoException) =>
        reject(portFault(options.setting, options.address, options.port, error)),
      )
      socket.bind({ address: options.address, port: options.port, exclusive: true }, resolve)
    })
    listener.port = socket.address().port
    socket.removeAllListeners('error')
    // What the network says of earlier answers; there are none.
    socket.on('error', () => {})
    socket.on('message', (datagram, peer) => listener.#onDatagram(datagram, peer))
    return listener
  }

  get address(): string {
    return this.#options.address
  }

  close(): void {
    this.#socket.close()
    this.#peers.clear()
  }

  #onDatagram(datagram: Buffer, peer: RemoteInfo): void {
    const { line } = this.#intake
    let end = Math.min(datagram.length, MESSAGE_BYTES_MAX)
    // Some senders end the message as they would in a stream.
    while (end > 0 && isTrailer(datagram[end - 1] ?? 0)) end--
    if (end === 0) return
    line.bytes.set(end === datagram.length ? datagram : datagram.subarray(0, end))
    line.referenceMs = Date.now()
    if (!this.#intake.take(0, end, this.#originOf(peer.address))) this.dropped++
    this.#options.onTaken()
  }

  #originOf(address: string): Origin {
    let origin = this.#peers.get(address)
    if (origin === undefined) {
      if (this.#peers.size >= PEERS_MAX) this.#peers.clear()
      origin = new Origin('udp', canonicalAddress(address), this.port)
      this.#peers.set(address, origin)
    }
    return origin
  }
}

function isTrailer(byte: number): boolean {
  return byte === LF || byte === CR || byte === 0
}

/** Datagrams to these local ports that the kernel let go because nobody read them in time: the last column of its tables of UDP sockets. */
export function kernelDrops(ports: ReadonlySet<number>): number {
  let drops = 0
  for (const file of ['/proc/self/net/udp', '/proc/self/net/udp6']) {
    let table: string
    try {
      table = readFileSync(file, 'latin1')
    } catch {
      continue
    }
    for (const row of table.split('\n')) {
      const port = Number.parseInt(LOCAL_PORT.exec(row)?.[1] ?? '', 16)
      if (ports.has(port)) drops += Number(row.trim().split(/\s+/).at(-1))
    }
  }
  return drops
}
