import { randomBytes } from 'node:crypto'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Random } from '../fuzz/random.ts'

/**
 * What a network does to a connection:
 *
 *   none      passes all on
 *   cut       the next bytes, of either side, go through in part; then the connection ends
 *   silence   nothing passes, nothing is refused; later it goes on, or has ended
 *   garbage   the next bytes are others
 *   lies      connections lead to a server that is not the service (lying-server.ts)
 */
export const PROBLEMS = ['none', 'cut', 'silence', 'garbage', 'lies'] as const
export type Problem = (typeof PROBLEMS)[number]

export interface Upstream {
  readonly host: string
  readonly port: number
}

const FAULT_MS = { least: 50, most: 700 } as const
const GARBAGE_BYTES_MAX = 200

/** A TCP proxy between collector and service that makes trouble by chance. It does not look into TLS. */
export class FaultProxy {
  /** How often each trouble began. */
  readonly begun: Record<Problem, number> = { none: 0, cut: 0, silence: 0, garbage: 0, lies: 0 }
  readonly #upstreams: { readonly service: Upstream; readonly liar: Upstream }
  readonly #random: Random
  readonly #server: Server
  readonly #connections = new Set<Connection>()
  #problem: Problem = 'none'
  #timer: NodeJS.Timeout | undefined

  constructor(upstreams: { readonly service: Upstream; readonly liar: Upstream }, random: Random) {
    this.#upstreams = upstreams
    this.#random = random
    this.#server = createServer({ pauseOnConnect: true }, (client) => this.#take(client))
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return (this.#server.address() as AddressInfo).port
  }

  /** Trouble of all kinds from now on, about half of the time. */
  begin(): void {
    this.#set(this.#random.below(2) === 0 ? 'none' : this.#random.of(PROBLEMS))
    const ms = FAULT_MS.least + this.#random.below(FAULT_MS.most - FAULT_MS.least)
    this.#timer = setTimeout(() => this.begin(), ms)
  }

  /** No more trouble; what hangs in some is cut. */
  calm(): void {
    clearTimeout(this.#timer)
    this.#set('none')
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const connection of this.#connections) connection.end()
    this.#server.close()
  }

  #set(problem: Problem): void {
    const before = this.#problem
    if (problem === before) return
    this.#problem = problem
    this.begun[problem]++
    for (const connection of this.#connections) {
      // Elsewhere is another server.
      if (problem === 'lies' || before === 'lies') connection.end()
      else if (problem === 'silence') connection.hold()
      else if (before === 'silence' && this.#random.below(2) === 0) connection.end()
      else connection.resumeRelay()
    }
  }

  #take(client: Socket): void {
    const upstream = this.#problem === 'lies' ? this.#upstreams.liar : this.#upstreams.service
    const connection = new Connection(client, upstream, (bytes, pass) => this.#pass(connection, bytes, pass))
    this.#connections.add(connection)
    client.once('close', () => this.#connections.delete(connection))
    if (this.#problem !== 'silence') connection.resumeRelay()
  }

  #pass(connection: Connection, bytes: Buffer, pass: (bytes: Buffer) => void): void {
    switch (this.#problem) {
      case 'cut':
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

/** A client and, from when it first went on, an upstream. */
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

  /** What was passed on before may still arrive. */
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
