import { createSocket, type Socket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import { portFault } from '../http/listen.ts'
import { canonicalAddress } from '../kernel/process/network.ts'
import { UDP_RECEIVE_BYTES } from '../limits.ts'
import type { ConnectionReader, Peer } from './connection.ts'
import type { ConnectionLane } from './lane.ts'

/**
 * Peers whose state is kept. Beyond the limit, all are forgotten; their counters stay with the
 * source.
 */
const PEERS_MAX = 10_000
const LOCAL_PORT = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) /

export interface DatagramListenerOptions {
  readonly setting: string
  readonly address: string
  readonly port: number
  /** Chooses the lane that reads a new peer. */
  readonly lane: () => ConnectionLane
}

/** UDP cannot pause or close a peer. */
const NO_SOCKET: Peer = { pause() {}, resume() {}, close() {}, noteToken() {} }

/** Listens for syslog over UDP, one message per datagram (RFC 5426 §3.1). */
export class DatagramListener {
  /** The bound port. A closed socket no longer reports it. */
  port = 0
  readonly #options: DatagramListenerOptions
  readonly #socket: Socket
  readonly #peers = new Map<string, ConnectionReader>()

  private constructor(options: DatagramListenerOptions) {
    this.#options = options
    const type = options.address.includes(':') ? 'udp6' : 'udp4'
    this.#socket = createSocket({ type, recvBufferSize: UDP_RECEIVE_BYTES })
  }

  /** @throws Fault PORT_TAKEN, PORT_DENIED. */
  static async listen(options: DatagramListenerOptions): Promise<DatagramListener> {
    const listener = new DatagramListener(options)
    const socket = listener.#socket
    await new Promise<void>((resolve, reject) => {
      socket.once('error', (error: NodeJS.ErrnoException) =>
        reject(portFault(options.setting, options.address, options.port, error)),
      )
      socket.bind({ address: options.address, port: options.port, exclusive: true }, resolve)
    })
    listener.port = socket.address().port
    socket.removeAllListeners('error')
    // Errors of earlier sends. This socket sends nothing.
    socket.on('error', () => {})
    socket.on('message', (datagram, peer) => listener.#readerOf(peer.address).data(datagram))
    return listener
  }

  get address(): string {
    return this.#options.address
  }

  close(): void {
    this.#socket.close()
    this.#forgetPeers()
  }

  #readerOf(address: string): ConnectionReader {
    let reader = this.#peers.get(address)
    if (reader === undefined) {
      if (this.#peers.size >= PEERS_MAX) this.#forgetPeers()
      reader = this.#options.lane().open('udp', canonicalAddress(address), this.port, NO_SOCKET)
      this.#peers.set(address, reader)
    }
    return reader
  }

  #forgetPeers(): void {
    for (const reader of this.#peers.values()) reader.close()
    this.#peers.clear()
  }
}

/**
 * Datagrams for these local ports that the kernel dropped because the receive buffer was full: the
 * last column of the kernel's UDP socket tables.
 */
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
