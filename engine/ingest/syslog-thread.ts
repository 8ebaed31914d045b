import { parentPort, workerData } from 'node:worker_threads'
import { LOG_BATCH_MS } from '../limits.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS, systemClock } from '../process/clock.ts'
import { Fault } from '../process/error-codes.ts'
import { createLogger } from '../process/log.ts'
import { Store } from '../store/store.ts'
import { DatagramListener, kernelDrops } from './datagram-listener.ts'
import { FORMATS } from './formats/formats.ts'
import { Intake, type Origin, type OutgoingBatch, VERDICTS } from './intake.ts'
import { LISTENERS, type Listener } from './sources.ts'
import { ConnectionBook, StreamListener, WORK_BYTES } from './stream-listener.ts'
import type {
  FromSyslogThread,
  SyslogEndpoint,
  SyslogStatus,
  SyslogThreadData,
  ToSyslogThread,
} from './thread-protocol.ts'
import { TokenDoor } from './token-door.ts'

/** A source that was silent for so long is forgotten; what was counted of it is in the store. */
const SOURCE_SILENT_MS = HOUR_MS
/** Senders without a known token are named in the log once in this time each, and so many at most. */
const UNAUTHORISED_LOG_MS = MINUTE_MS
const UNAUTHORISED_LOGGED_MAX = 10_000
/** How long what was sent before the end is read. */
const LAST_BYTES_MS = 100

/** The thread of all syslog listeners: reads, recognises and matches; what matched goes to the writer in batches. */
class SyslogThread {
  readonly #data: SyslogThreadData
  readonly #store: Store
  readonly #log
  readonly #intake: Intake
  readonly #book = new ConnectionBook()
  readonly #streams: StreamListener[] = []
  readonly #datagrams: DatagramListener[] = []
  /** Batches that are with the writer. */
  readonly #inFlight = new Map<number, OutgoingBatch>()
  #batchId = 0
  #flushTimer: NodeJS.Timeout | undefined
  #sweepTimer: NodeJS.Timeout | undefined
  readonly #unauthorisedLoggedMs = new Map<string, number>()
  #draining = false
  #settleDrained: (() => void) | undefined

  constructor(data: SyslogThreadData) {
    this.#data = data
    this.#store = new Store(data.dataDirectory)
    this.#log = createLogger('posture-service', data.logLevel)
    const door = new TokenDoor(this.#store, systemClock)
    this.#intake = new Intake(new Uint8Array(WORK_BYTES), data.trie, door, {
      tokenRateMax: data.tokenRateMax,
      noteUnauthorised: (origin, hasToken) => this.#noteUnauthorised(origin, hasToken),
    })
  }

  async start(): Promise<readonly SyslogEndpoint[]> {
    const { proxyProtocol, idleMs, tls } = this.#data
    const onTaken = (): void => this.#onTaken()
    const bound: SyslogEndpoint[] = []
    for (const endpoint of this.#data.endpoints) {
      const { kind, setting, address, port } = endpoint
      if (kind === 'udp') {
        const listener = await DatagramListener.listen({ setting, address, port, onTaken }, this.#intake)
        this.#datagrams.push(listener)
        bound.push({ ...endpoint, port: listener.port })
      } else {
        const options = { kind, setting, address, port, proxyProtocol, idleMs, onTaken }
        const files = kind === 'tls' ? tls : undefined
        const listener = await StreamListener.listen({ ...options, tls: files }, this.#intake, this.#book)
        this.#streams.push(listener)
        bound.push({ ...endpoint, port: listener.port })
      }
    }
    this.#sweepTimer = setInterval(() => this.#sweep(), SECOND_MS)
    return bound
  }

  onMessage(message: ToSyslogThread): void {
    switch (message.kind) {
      case 'settled':
        return this.#onSettled(message.id, message.duplicates, message.rejected)
      case 'status':
        return tell({ kind: 'status', id: message.id, status: this.#status() })
      case 'reload':
        return this.#reload(message.tls)
      case 'drain':
        void this.#drain(message.deadlineMs)
        return
      default:
        message satisfies never
    }
  }

  /** Messages were taken: full batches go at once, others after a moment. */
  #onTaken(): void {
    this.#send(false)
    if (this.#flushTimer !== undefined || this.#intake.idle) return
    this.#flushTimer = setTimeout(() => {
      this.#flushTimer = undefined
      this.#send(true)
      // Those that found no place with the writer wait for the next time.
      this.#onTaken()
      for (const stream of this.#streams) stream.resumeStalled()
    }, LOG_BATCH_MS)
  }

  #send(all: boolean): void {
    for (const batch of this.#intake.takeBatches(all)) {
      const id = ++this.#batchId
      this.#inFlight.set(id, batch)
      const { organizationId, deduplicate, bytes } = batch
      parentPort?.postMessage({ kind: 'batch', id, organizationId, deduplicate, bytes } satisfies FromSyslogThread, [
        bytes.buffer,
      ])
    }
  }

  #onSettled(id: number, duplicates: number, rejected: number): void {
    const batch = this.#inFlight.get(id)
    if (batch === undefined) return
    this.#inFlight.delete(id)
    this.#intake.settled(batch, duplicates, rejected)
    for (const stream of this.#streams) stream.resumeStalled()
    this.#onTaken()
    if (this.#draining) this.#checkDrained()
  }

  #sweep(): void {
    const nowMs = Date.now()
    for (const stream of this.#streams) {
      stream.sweep(nowMs)
      stream.resumeStalled()
    }
    this.#tellBooks(nowMs)
  }

  #tellBooks(nowMs: number): void {
    const sources = this.#intake.sources.takeDeltas(nowMs - SOURCE_SILENT_MS)
    const rejects = this.#intake.takeRejects()
    if (sources.length > 0 || rejects.length > 0) tell({ kind: 'books', sources, rejects })
  }

  #reload(tls: { keyFile: string; certificateFile: string }): void {
    for (const stream of this.#streams) {
      if (stream.kind !== 'tls') continue
      try {
        stream.reload(tls)
      } catch (error) {
        this.#log.error({ reason: (error as Error).message }, 'the new certificate cannot be used; the old one stays')
      }
    }
  }

  /** Reads what has arrived, closes all connections, and waits until everything is with the store. */
  async #drain(deadlineMs: number): Promise<void> {
    this.#draining = true
    for (const stream of this.#streams) stream.stopAccepting()
    await new Promise((resolve) => setTimeout(resolve, LAST_BYTES_MS))
    for (const stream of this.#streams) stream.close()
    for (const datagrams of this.#datagrams) datagrams.close()
    const drained = new Promise<void>((resolve) => {
      this.#settleDrained = resolve
    })
    this.#checkDrained()
    const late = setTimeout(() => this.#settleDrained?.(), deadlineMs)
    await drained
    clearTimeout(late)
    clearTimeout(this.#flushTimer)
    clearInterval(this.#sweepTimer)
    this.#tellBooks(Date.now())
    await this.#store.close()
    tell({ kind: 'drained' })
    parentPort?.close()
  }

  #checkDrained(): void {
    this.#send(true)
    if (this.#intake.idle) this.#settleDrained?.()
  }

  #noteUnauthorised(origin: Origin, hasToken: boolean): void {
    const nowMs = Date.now()
    const last = this.#unauthorisedLoggedMs.get(origin.address)
    if (last !== undefined && Math.abs(nowMs - last) < UNAUTHORISED_LOG_MS) return
    if (this.#unauthorisedLoggedMs.size >= UNAUTHORISED_LOGGED_MAX) {
      for (const [address, timeMs] of this.#unauthorisedLoggedMs) {
        if (Math.abs(nowMs - timeMs) >= UNAUTHORISED_LOG_MS) this.#unauthorisedLoggedMs.delete(address)
      }
      if (this.#unauthorisedLoggedMs.size >= UNAUTHORISED_LOGGED_MAX) return
    }
    this.#unauthorisedLoggedMs.set(origin.address, nowMs)
    this.#log.warn(
      { listener: origin.listener, address: origin.address, port: origin.port },
      hasToken
        ? 'syslog with an unknown or revoked token is dropped'
        : 'syslog without a token is dropped; see posture-admin token bind for devices that cannot send one',
    )
  }

  #status(): SyslogStatus {
    const { sources, formatCounts } = this.#intake
    const messages = {} as Record<Listener, readonly number[]>
    for (const listener of LISTENERS) messages[listener] = Array.from(sources.listeners[listener])
    const formats = [...FORMATS.map(({ id }) => id), ''].map((format, index) => ({
      format,
      verdicts: Array.from(formatCounts.subarray(index * VERDICTS, (index + 1) * VERDICTS)),
    }))
    const { open, accepted, oversized, closed } = this.#book
    return {
      received: { ...sources.received },
      messages,
      formats,
      tokens: Array.from(sources.tokens.values(), ({ organizationId, tokenId, label, counts }) => {
        return { organizationId, tokenId, label, counts: Array.from(counts) }
      }),
      connections: { open, accepted, oversized, closed: { ...closed } },
      datagramsDropped: this.#datagrams.reduce((sum, { dropped }) => sum + dropped, 0),
      kernelDropped: kernelDrops(new Set(this.#datagrams.map(({ port }) => port))),
      sourcesOverflowed: sources.overflowed,
    }
  }
}

function tell(message: FromSyslogThread): void {
  parentPort?.postMessage(message)
}

const thread = new SyslogThread(workerData as SyslogThreadData)
parentPort?.on('message', (message: ToSyslogThread) => thread.onMessage(message))
try {
  tell({ kind: 'listening', endpoints: await thread.start() })
} catch (error) {
  if (!(error instanceof Fault)) throw error
  tell({ kind: 'failed', code: error.code, message: error.message })
}
