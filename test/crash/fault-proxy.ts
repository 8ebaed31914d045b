import { randomBytes } from 'node:crypto'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Random } from '../fuzz/random.ts'

/**
 * The faults of the network:
 *
 *   none      passes everything
 *   abort     passes part of the next bytes of either side, then closes the connection
 *   silence   passes and rejects nothing; later the connection resumes or is closed
 *   garbage   replaces the next bytes
 *   rogue     connects to another server (rogue-server.ts)
 */
export const FAULTS = ['none', 'abort', 'silence', 'garbage', 'rogue'] as const
export type Fault = (typeof FAULTS)[number]

export interface Upstream {
  readonly host: string
  readonly port: number
}

const FAULT_MS = { least: 50, most: 700 } as const
const GARBAGE_BYTES_MAX = 200

/** A TCP proxy between collector and service with random faults. It does not decrypt TLS. */
export class FaultProxy {
  /** How often each fault began. */
  readonly faultCounts: Record<Fault, number> = { none: 0, abort: 0, silence: 0, garbage: 0, rogue: 0 }
  readonly #upstreams: { readonly service: Upstream; readonly rogue: Upstream }
  readonly #random: Random
  readonly #server: Server
  readonly #connections = new Set<Connection>()
  #fault: Fault = 'none'
  #timer: NodeJS.Timeout | undefined

  constructor(upstreams: { readonly service: Upstream; readonly rogue: Upstream }, random: Random) {
    this.#upstreams = upstreams
    this.#random = random
    this.#server = createServer({ pauseOnConnect: true }, (client) => this.#accept(client))
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return (this.#server.address() as AddressInfo).port
  }

  /** Starts random faults, which are active about half of the time. */
  startFaults(): void {
    this.#set(this.#random.below(2) === 0 ? 'none' : this.#random.of(FAULTS))
    const ms = FAULT_MS.least + this.#random.below(FAULT_MS.most - FAULT_MS.least)
    this.#timer = setTimeout(() => this.startFaults(), ms)
  }

  /** Stops all faults. Connections that hang are resumed or closed. */
  stopFaults(): void {
    clearTimeout(this.#timer)
    this.#set('none')
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const connection of this.#connections) connection.end()
    this.#server.close()
  }

  #set(fault: Fault): void {
    const before = this.#fault
    if (fault === before) return
    this.#fault = fault
    this.faultCounts[fault]++
    for (const connection of this.#connections) {
      // The connection leads to the wrong server now.
      if (fault === 'rogue' || before === 'rogue') connection.end()
      else if (fault === 'silence') connection.hold()
      else if (before === 'silence' && this.#random.below(2) === 0) connection.end()
      else connection.resumeRelay()
    }
  }

  #accept(client: Socket): void {
    const upstream = this.#fault === 'rogue' ? this.#upstreams.rogue : this.#upstreams.service
    const connection = new Connection(client, upstream, (bytes, pass) => this.#pass(connection, bytes, pass))
    this.#connections.add(connection)
    client.once('close', () => this.#connections.delete(connection))
    if (this.#fault !== 'silence') connection.resumeRelay()
  }

  #pass(connection: Connection, bytes: Buffer, pass: (bytes: Buffer) => void): void {
    switch (this.#fault) {
      case 'abort':
        pass(bytes.subarray(0, this.#random.below(bytes.length + 1)))
        return connection.end()
      case 'garbage':
        return pass(randomBytes(1 + this.#random.below(GARBAGE_BYTES_MAX)))
      default:
        return pass(bytes)
    }
  }
}

type Pass = (bytes: Buffer, pass: (bytes: Buffer) => void) => void

/** A client connection. Its upstream connection is opened with the first relayed bytes. */
class Connection {
  readonly #client: Socket
  readonly #address: Upstream
  readonly #pass: Pass
  #upstream: Socket | undefined

  constructor(client: Socket, address: Upstream, pass: Pass) {
    this.#client = client
    this.#address = address
    this.#pass = pass
    client.on('error', () => {})
  }

  hold(): void {
    this.#client.pause()
    this.#upstream?.pause()
  }

  resumeRelay(): void {
    if (this.#client.destroyed) return
    this.#upstream ??= this.#connect()
    this.#client.resume()
    this.#upstream.resume()
  }

  /** Closes both connections. Bytes already passed on may still arrive. */
  end(): void {
    this.#client.destroySoon()
    this.#upstream?.destroySoon()
  }

  #connect(): Socket {
    const upstream = connect(this.#address.port, this.#address.host)
    for (const [from, to] of [
      [this.#client, upstream],
      [upstream, this.#client],
    ] as const) {
      from.on('data', (bytes: Buffer) =>
        this.#pass(bytes, (passed) => {
          if (to.writable) to.write(passed)
        }),
      )
      from.on('close', () => to.destroySoon())
    }
    upstream.on('error', () => {})
    return upstream
  }
}
