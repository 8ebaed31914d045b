import { parentPort, workerData } from 'node:worker_threads'
import type { TlsFiles } from '../http/certificate.ts'
import { SECOND_MS } from '../kernel/process/clock.ts'
import { ConnectionLimitLog } from '../kernel/process/connection-limit-log.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { logFailure } from '../kernel/process/failure.ts'
import { createLogger, type Logger, setLogLevel } from '../kernel/process/log.ts'
import { RegistryInForce } from '../store/registry-in-force.ts'
import { Store } from '../store/store.ts'
import { DatagramListener, kernelDrops } from './datagram-listener.ts'
import { type ConnectionLane, Lane } from './lane.ts'
import { TokenRate } from './rates.ts'
import { ConnectionAccounting, StreamListener } from './stream-listener.ts'
import { ThreadLane } from './thread-lane.ts'
import type { FromSockets, SocketStatus, SocketThreadData, SyslogEndpoint, ToSockets } from './thread-protocol.ts'

/** Time in which the last bytes before shutdown are read. */
const LAST_BYTES_MS = 100

/**
 * The thread of all syslog sockets. Reads messages itself if it is the only thread; otherwise sends
 * the bytes to the lanes.
 */
class SocketThread {
  readonly #data: SocketThreadData
  readonly #log: Logger
  readonly #accounting = new ConnectionAccounting()
  readonly #streams: StreamListener[] = []
  readonly #datagrams: DatagramListener[] = []
  /** This thread's lane. Undefined if there are lane threads. */
  readonly #own: { readonly lane: Lane; readonly store: Store } | undefined
  readonly #threads: readonly ThreadLane[]
  readonly #lanes: readonly ConnectionLane[]
  #sweepTimer: NodeJS.Timeout | undefined

  constructor(data: SocketThreadData) {
    this.#data = data
    this.#log = createLogger('posture-service', data.logLevel)
    this.#threads = data.lanes.map(({ ring, port }) => new ThreadLane(ring, port))
    if (this.#threads.length === 0) {
      const store = new Store(data.dataDirectory)
      const { idleMs, waitingBytesMax, tokenRateMax, tokenRateTable } = data
      const tokenRate = tokenRateMax === 0 ? undefined : new TokenRate(tokenRateTable, tokenRateMax)
      const known = new RegistryInForce(store, data.registry)
      this.#own = { store, lane: new Lane({ store, known, idleMs, waitingBytesMax, tokenRate, notify }) }
    }
    this.#lanes = this.#own === undefined ? this.#threads : [this.#own.lane]
  }

  async start(): Promise<readonly SyslogEndpoint[]> {
    const { proxyProtocol, connectionsMax, connectionsPerAddressMax, tls } = this.#data
    const limits = { connectionsMax, connectionsPerAddressMax, limitLog: new ConnectionLimitLog(this.#log) }
    const lane = (): ConnectionLane => this.#leastLoaded()
    const bound: SyslogEndpoint[] = []
    for (const endpoint of this.#data.endpoints) {
      const { kind, setting, address, port, dnstap } = endpoint
      if (kind === 'udp') {
        const listener = await DatagramListener.listen({ setting, address, port, lane: () => this.#nextLane() })
        this.#datagrams.push(listener)
        bound.push({ ...endpoint, port: listener.port })
      } else {
        const files = kind === 'tls' ? tls : undefined
        const options = { kind, dnstap, setting, address, port, ...limits, proxyProtocol, tls: files, lane }
        const listener = await StreamListener.listen(options, this.#accounting)
        this.#streams.push(listener)
        bound.push({ ...endpoint, port: listener.port })
      }
    }
    this.#sweepTimer = setInterval(() => this.#sweep(), SECOND_MS)
    return bound
  }

  onMessage(message: ToSockets): void {
    const lane = this.#own?.lane
    switch (message.kind) {
      case 'settled':
        return lane?.settled(message.id, message.unstored)
      case 'status':
        if (lane !== undefined) notify({ kind: 'status', id: message.id, status: lane.status() }, [])
        return notify({ kind: 'socketStatus', id: message.id, status: this.#status() }, [])
      case 'reload':
        setLogLevel(this.#log, message.logLevel)
        if (message.tls !== undefined) this.#reload(message.tls)
        return
      case 'drain':
        void this.#drain(message.deadlineMs)
        return
      default:
        message satisfies never
    }
  }

  /** Round robin: the load and the end of a datagram peer are unknown. */
  #nextLane(): ConnectionLane {
    this.#turn = (this.#turn + 1) % this.#lanes.length
    return this.#lanes[this.#turn] ?? this.#leastLoaded()
  }
  #turn = 0

  #leastLoaded(): ConnectionLane {
    const [first, ...others] = this.#lanes
    if (first === undefined) throw new Error('no lane')
    return others.reduce((least, lane) => (lane.load < least.load ? lane : least), first)
  }

  #sweep(): void {
    const nowMs = Date.now()
    for (const stream of this.#streams) stream.sweep(nowMs)
    this.#own?.lane.sweep(nowMs)
  }

  #reload(tls: TlsFiles): void {
    for (const stream of this.#streams) {
      if (stream.kind !== 'tls') continue
      try {
        stream.reload(tls)
      } catch (error) {
        logFailure(this.#log, error, 'could not load the new certificate; keeping the old one')
      }
    }
  }

  /**
   * Reads what has arrived, closes all connections, and waits until its own lane has stored
   * everything.
   */
  async #drain(deadlineMs: number): Promise<void> {
    const lateMs = Date.now() + deadlineMs
    for (const stream of this.#streams) stream.stopAccepting()
    await new Promise((resolve) => setTimeout(resolve, LAST_BYTES_MS))
    for (const stream of this.#streams) stream.close()
    for (const datagrams of this.#datagrams) datagrams.close()
    // Sockets emit `close` in a later turn of the event loop, and the lanes need that event.
    do await new Promise((resolve) => setTimeout(resolve, 1))
    while (this.#threads.some(({ idle }) => !idle) && Date.now() < lateMs)
    const unsettled = (await this.#own?.lane.drain(Math.max(0, lateMs - Date.now()))) ?? { messages: 0, bytes: 0 }
    clearInterval(this.#sweepTimer)
    await this.#own?.store.close()
    notify({ kind: 'drained', ...unsettled }, [])
  }

  #status(): SocketStatus {
    const { open, accepted, closed, dnstap } = this.#accounting
    return {
      connections: { open, accepted: { ...accepted }, closed: { tcp: { ...closed.tcp }, tls: { ...closed.tls } } },
      dnstap: { ...dnstap.frames },
      datagramsDropped: this.#threads.reduce((sum, { datagramsDropped }) => sum + datagramsDropped, 0),
      kernelDropped: kernelDrops(new Set(this.#datagrams.map(({ port }) => port))),
    }
  }
}

function notify(message: FromSockets, transfer: readonly ArrayBuffer[]): void {
  parentPort?.postMessage(message, transfer)
}

async function listen(thread: SocketThread): Promise<void> {
  try {
    notify({ kind: 'listening', endpoints: await thread.start() }, [])
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    notify({ kind: 'failed', code: error.code, message: error.message }, [])
  }
}

const thread = new SocketThread(workerData as SocketThreadData)
parentPort?.on('message', (message: ToSockets) => thread.onMessage(message))
await listen(thread)
