import { MessageChannel, Worker } from 'node:worker_threads'
import type { TlsFiles } from '../http/certificate.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import type { Logger, LogLevel } from '../kernel/process/log.ts'
import { within } from '../kernel/process/signals.ts'
import { LANE_RING_BYTES, SYSLOG_WAITING_BYTES_MAX } from '../limits.ts'
import { OUTCOMES } from '../store/outcomes.ts'
import { type BatchWriter, unstoredPlaces } from './accept.ts'
import { makeByteRing } from './byte-ring.ts'
import type { IngestAccounting } from './ingest-accounting.ts'
import type { Unsettled } from './lane.ts'
import { SenderLog } from './notice-limiter.ts'
import { LISTENERS, type Listener } from './sources.ts'
import type {
  FromLane,
  FromSockets,
  LaneData,
  LaneStatus,
  LaneWorkerData,
  SocketStatus,
  SocketThreadData,
  SyslogEndpoint,
  SyslogStatus,
  ToLane,
  ToSockets,
} from './thread-protocol.ts'

/** Additional milliseconds for a thread to end, after the deadline of its connections. */
const CLOSE_MS = 2000
/** Retry interval for deferred batches during shutdown. */
const LAST_RETRY_MS = 100

export interface SyslogOptions extends Omit<SocketThreadData, 'lanes' | 'waitingBytesMax'> {
  /** Number of threads that read messages. With 1, the socket thread reads them itself. */
  readonly laneThreads: number
}

type Batch = Extract<FromLane, { kind: 'batch' }>

/**
 * Manages the threads of syslog ingest from the writer thread: stores their batches and counters.
 */
export class SyslogIngest {
  readonly endpoints: readonly SyslogEndpoint[]
  readonly #sockets: Thread
  /** Threads with a lane: the lane threads, or the socket thread. */
  readonly #lanes: readonly Thread[]
  readonly #acceptor: BatchWriter
  readonly #accounting: IngestAccounting
  readonly #log: Logger
  readonly #senderLog: SenderLog
  /** Deferred batches. */
  readonly #retries = new Map<NodeJS.Timeout, () => void>()
  #phase: 'running' | 'draining' | 'drained' = 'running'

  private constructor(
    sockets: Thread,
    lanes: readonly Thread[],
    endpoints: readonly SyslogEndpoint[],
    acceptor: BatchWriter,
    accounting: IngestAccounting,
    log: Logger,
  ) {
    this.#sockets = sockets
    this.#lanes = lanes
    this.endpoints = endpoints
    this.#acceptor = acceptor
    this.#accounting = accounting
    this.#log = log
    this.#senderLog = new SenderLog(log)
    for (const lane of lanes) lane.worker.on('message', (message: FromSockets) => this.#onMessage(lane, message))
  }

  /** @throws Fault PORT_TAKEN, PORT_DENIED, CERTIFICATE. */
  static async start(
    { laneThreads, ...options }: SyslogOptions,
    acceptor: BatchWriter,
    accounting: IngestAccounting,
    log: Logger,
    onFailure: (error: Error) => void,
  ): Promise<SyslogIngest> {
    const laneData: LaneData = {
      ...pick(options),
      waitingBytesMax: Math.floor(SYSLOG_WAITING_BYTES_MAX / Math.max(1, laneThreads)),
    }
    const lanes: Thread[] = []
    const transports: SocketThreadData['lanes'][number][] = []
    for (let lane = 0; lane < laneThreads && laneThreads > 1; lane++) {
      const ring = makeByteRing(LANE_RING_BYTES)
      const { port1, port2 } = new MessageChannel()
      const workerData: LaneWorkerData = { ...laneData, ring, sockets: port1 }
      lanes.push(
        new Thread(new Worker(new URL('./lane-worker.js', import.meta.url), { workerData, transferList: [port1] })),
      )
      transports.push({ ring, port: port2 })
    }
    const workerData: SocketThreadData = { ...options, ...laneData, lanes: transports }
    const transferList = transports.map(({ port }) => port)
    const sockets = new Thread(new Worker(new URL('./socket-thread.js', import.meta.url), { workerData, transferList }))
    const first = await sockets.firstMessage()
    if (first.kind === 'failed') {
      await Promise.all(lanes.map((lane) => lane.loaded()))
      await Promise.all([sockets, ...lanes].map(({ worker }) => worker.terminate()))
      throw new Fault(first.code, first.message)
    }
    const endpoints = first.kind === 'listening' ? first.endpoints : []
    for (const { kind, dnstap, address, port } of endpoints)
      log.info({ kind, address, port }, dnstap === true ? 'listening for dnstap' : 'listening for syslog')
    const ingest = new SyslogIngest(
      sockets,
      lanes.length === 0 ? [sockets] : lanes,
      endpoints,
      acceptor,
      accounting,
      log,
    )
    const failed = (error: Error): void => {
      if (ingest.#phase === 'running') onFailure(error)
    }
    for (const { worker } of [sockets, ...lanes]) {
      worker.on('error', failed)
      worker.on('exit', () => failed(new Error('a syslog thread exited')))
    }
    return ingest
  }

  async status(): Promise<SyslogStatus> {
    const threads = [...new Set([this.#sockets, ...this.#lanes])]
    const answers = await Promise.all(
      threads.map((thread) => thread.status(thread === this.#sockets, this.#lanes.includes(thread))),
    )
    const sockets = answers.find((answer) => answer.sockets !== undefined)?.sockets
    const lanes = answers.flatMap(({ lane }) => (lane === undefined ? [] : [lane]))
    if (sockets === undefined) throw new Error('the socket thread did not respond')
    return combine(lanes, sockets)
  }

  /** New TLS connections use these certificate files. */
  reload(tls: TlsFiles | undefined, logLevel: LogLevel): void {
    this.#sockets.notify({ kind: 'reload', tls, logLevel })
  }

  /** Closes the listeners and waits until everything they received is stored. */
  async drain(deadlineMs: number): Promise<void> {
    const lateMs = Date.now() + deadlineMs
    this.#phase = 'draining'
    for (const tryAgain of [...this.#retries.values()]) tryAgain()
    const unsettled = [await this.#sockets.drain(deadlineMs)]
    const leftMs = Math.max(0, lateMs - Date.now())
    unsettled.push(
      ...(await Promise.all(this.#lanes.filter((lane) => lane !== this.#sockets).map((lane) => lane.drain(leftMs)))),
    )
    this.#phase = 'drained'
    for (const retry of this.#retries.keys()) clearTimeout(retry)
    this.#retries.clear()
    this.#reportLost(unsettled)
    await Promise.all([this.#sockets, ...this.#lanes].map(({ worker }) => worker.terminate()))
  }

  /** Lost messages were counted as received, but have no outcome. */
  #reportLost(all: readonly (Unsettled | undefined)[]): void {
    const messages = all.reduce((sum, one) => sum + (one?.messages ?? 0), 0)
    const bytes = all.reduce((sum, one) => sum + (one?.bytes ?? 0), 0)
    if (messages + bytes > 0)
      this.#log.warn({ messages, bytes }, 'syslog messages were lost: the store was full until shutdown')
    if (all.includes(undefined))
      this.#log.warn('a syslog thread did not stop in time; the messages that it had read are lost')
  }

  #onMessage(lane: Thread, message: FromSockets): void {
    if (message.kind === 'batch') void this.#store(lane, message)
    else if (message.kind === 'counters') this.#accounting.add(message)
    else if (message.kind === 'notice') this.#senderLog.note(message, Date.now())
  }

  /**
   * Retries until the batch is on disk or its organization is removed. The lane limits how much it
   * reads for that organization in the meantime.
   */
  async #store(lane: Thread, batch: Batch): Promise<void> {
    const { id, organizationId, bytes, deduplicate, reports } = batch
    const outcome = await this.#acceptor.acceptPacked(organizationId, bytes, { deduplicate, reports })
    switch (outcome.kind) {
      case 'stored':
        lane.notify({ kind: 'settled', id, unstored: unstoredPlaces(outcome) })
        return
      case 'removed':
        lane.notify({ kind: 'settled', id, unstored: 'all' })
        return
      case 'retry': {
        if (this.#phase === 'drained') return
        const tryAgain = (): void => {
          clearTimeout(retry)
          if (this.#retries.delete(retry)) void this.#store(lane, batch)
        }
        const retry = setTimeout(tryAgain, this.#phase === 'running' ? outcome.afterSeconds * 1000 : LAST_RETRY_MS)
        this.#retries.set(retry, tryAgain)
        return
      }
      case 'malformed':
        throw new Error(`internal error: malformed batch: ${outcome.why}`)
      default:
        outcome satisfies never
    }
  }
}

/** Returns the options that all lanes need. */
function pick({ dataDirectory, idleMs, tokenRateMax, tokenRateTable, registry }: Omit<LaneData, 'waitingBytesMax'>) {
  return { dataDirectory, idleMs, tokenRateMax, tokenRateTable, registry }
}

function combine(lanes: readonly LaneStatus[], { connections, ...sockets }: SocketStatus): SyslogStatus {
  const sum = (of: (lane: LaneStatus) => number): number => lanes.reduce((all, lane) => all + of(lane), 0)
  const each = <T>(of: (listener: Listener) => T): Record<Listener, T> =>
    Object.fromEntries(LISTENERS.map((listener) => [listener, of(listener)])) as Record<Listener, T>
  return {
    received: each((listener) => sum(({ received }) => received[listener])),
    messages: each((listener) =>
      OUTCOMES.map((_name, outcome) => sum(({ messages }) => messages[listener][outcome] ?? 0)),
    ),
    // Each lane has its own rows. byFormat() in metrics.ts adds them up.
    formats: lanes.flatMap(({ formats }) => formats),
    tokens: lanes.flatMap(({ tokens }) => tokens),
    connections: { ...connections, oversized: sum(({ oversized }) => oversized) },
    datagramsDropped: sockets.datagramsDropped + sum(({ datagramsDropped }) => datagramsDropped),
    datagramsWaiting: sum(({ datagramsWaiting }) => datagramsWaiting),
    kernelDropped: sockets.kernelDropped,
    dnstap: sockets.dnstap,
    sourcesOverflowed: sum(({ sourcesOverflowed }) => sourcesOverflowed),
    coverageSkipped: sum(({ coverageSkipped }) => coverageSkipped),
    usersTruncated: sum(({ usersTruncated }) => usersTruncated),
    usersRefused: sum(({ usersRefused }) => usersRefused),
    candidatesSkipped: {
      busy: sum(({ candidatesSkipped }) => candidatesSkipped.busy),
      unread: sum(({ candidatesSkipped }) => candidatesSkipped.unread),
      full: sum(({ candidatesSkipped }) => candidatesSkipped.full),
    },
  }
}

interface StatusAnswer {
  sockets?: SocketStatus
  lane?: LaneStatus
}

/** A worker thread and its pending requests. */
class Thread {
  readonly worker: Worker
  #lastId = 0
  #hasEnded = false
  readonly #atEnd = new Set<() => void>()

  constructor(worker: Worker) {
    this.worker = worker
    // Each pending request adds a listener.
    worker.setMaxListeners(0)
    worker.once('exit', () => {
      this.#hasEnded = true
      for (const work of this.#atEnd) work()
    })
  }

  firstMessage(): Promise<FromSockets> {
    return new Promise((resolve, reject) => {
      this.worker.once('error', reject)
      this.worker.once('message', (message: FromSockets) => {
        this.worker.off('error', reject)
        resolve(message)
      })
    })
  }

  notify(message: ToSockets | ToLane): void {
    this.worker.postMessage(message)
  }

  status(ofSockets: boolean, ofLane: boolean): Promise<StatusAnswer> {
    const id = ++this.#lastId
    const answer: StatusAnswer = {}
    return new Promise((resolve, reject) => {
      const onEnd = (): void => reject(new Error('a syslog thread exited'))
      this.#onEnd(onEnd)
      const onMessage = (message: FromSockets): void => {
        if (message.kind === 'socketStatus' && message.id === id) answer.sockets = message.status
        else if (message.kind === 'status' && message.id === id) answer.lane = message.status
        else return
        if ((ofSockets && answer.sockets === undefined) || (ofLane && answer.lane === undefined)) return
        this.worker.off('message', onMessage)
        this.#atEnd.delete(onEnd)
        resolve(answer)
      }
      this.worker.on('message', onMessage)
      this.notify({ kind: 'status', id })
    })
  }

  /**
   * Resolves when a lane thread has started. Terminating a thread while it loads lmdb's addon
   * crashes the process.
   */
  async loaded(): Promise<void> {
    await within(
      CLOSE_MS,
      this.status(false, true).catch(() => {}),
    )
  }

  /** Returns what was lost. undefined: the thread did not report in time. */
  async drain(deadlineMs: number): Promise<Unsettled | undefined> {
    let unsettled: Unsettled | undefined
    const drained = new Promise<void>((resolve) => {
      this.worker.on('message', (message: FromSockets) => {
        if (message.kind !== 'drained') return
        unsettled = message
        resolve()
      })
      this.#onEnd(resolve)
    })
    this.notify({ kind: 'drain', deadlineMs })
    await within(deadlineMs + CLOSE_MS, drained)
    return unsettled
  }

  /** Runs `work` when the thread has ended. */
  #onEnd(work: () => void): void {
    if (this.#hasEnded) work()
    else this.#atEnd.add(work)
  }
}
