import { MessageChannel, Worker } from 'node:worker_threads'
import { LANE_RING_BYTES, SYSLOG_WAITING_BYTES_MAX } from '../limits.ts'
import { Fault } from '../process/error-codes.ts'
import type { Logger } from '../process/log.ts'
import { within } from '../process/shutdown.ts'
import { type EventAcceptor, unstoredPlaces } from './accept.ts'
import { makeByteRing } from './byte-ring.ts'
import type { IngestAccounting } from './ingest-accounting.ts'
import type { Unsettled } from './lane.ts'
import { OUTCOMES } from './outcome.ts'
import { LISTENERS, type Listener } from './sources.ts'
import type {
  FromLane,
  FromSockets,
  LaneData,
  LaneStatus,
  LaneThreadData,
  SocketStatus,
  SocketThreadData,
  SyslogEndpoint,
  SyslogStatus,
  ToLane,
  ToSockets,
} from './thread-protocol.ts'
import { makeTokenRateTable } from './token-rate.ts'
import { UnauthenticatedLog } from './unauthenticated-log.ts'

/** How long a thread that is told to end may take beyond what its connections are given. */
const CLOSE_MS = 2000
/** When the service ends, a batch that found no room is tried again after this time. */
const LAST_RETRY_MS = 100

export interface SyslogOptions extends Omit<SocketThreadData, 'lanes' | 'tokenRateTable' | 'waitingBytesMax'> {
  /** Threads that read messages; with 1 the thread of the sockets reads them itself. */
  readonly laneThreads: number
}

type Batch = Extract<FromLane, { kind: 'batch' }>

/** Runs the threads of syslog ingest beside the writer: stores their batches, keeps their books. */
export class SyslogIngest {
  readonly endpoints: readonly SyslogEndpoint[]
  readonly #sockets: Thread
  /** The threads with a lane: those of the lanes, or that of the sockets. */
  readonly #lanes: readonly Thread[]
  readonly #acceptor: EventAcceptor
  readonly #accounting: IngestAccounting
  readonly #log: Logger
  readonly #unauthenticated: UnauthenticatedLog
  /** Batches that wait to be tried again. */
  readonly #retries = new Map<NodeJS.Timeout, () => void>()
  #isDraining = false
  #isDrained = false

  private constructor(
    sockets: Thread,
    lanes: readonly Thread[],
    endpoints: readonly SyslogEndpoint[],
    acceptor: EventAcceptor,
    accounting: IngestAccounting,
    log: Logger,
  ) {
    this.#sockets = sockets
    this.#lanes = lanes
    this.endpoints = endpoints
    this.#acceptor = acceptor
    this.#accounting = accounting
    this.#log = log
    this.#unauthenticated = new UnauthenticatedLog(log)
    for (const lane of lanes) lane.worker.on('message', (message: FromSockets) => this.#onMessage(lane, message))
  }

  /** @throws Fault PORT_TAKEN, PORT_DENIED, CERTIFICATE. */
  static async start(
    { laneThreads, ...options }: SyslogOptions,
    acceptor: EventAcceptor,
    accounting: IngestAccounting,
    log: Logger,
    onFailure: (error: Error) => void,
  ): Promise<SyslogIngest> {
    const laneData: LaneData = {
      ...pick(options),
      tokenRateTable: makeTokenRateTable(),
      waitingBytesMax: Math.floor(SYSLOG_WAITING_BYTES_MAX / Math.max(1, laneThreads)),
    }
    const lanes: Thread[] = []
    const transports: SocketThreadData['lanes'][number][] = []
    for (let lane = 0; lane < laneThreads && laneThreads > 1; lane++) {
      const ring = makeByteRing(LANE_RING_BYTES)
      const { port1, port2 } = new MessageChannel()
      const workerData: LaneThreadData = { ...laneData, ring, sockets: port1 }
      lanes.push(
        new Thread(new Worker(new URL('./lane-thread.js', import.meta.url), { workerData, transferList: [port1] })),
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
    for (const { kind, address, port } of endpoints) log.info({ kind, address, port }, 'syslog listens')
    const ingest = new SyslogIngest(
      sockets,
      lanes.length === 0 ? [sockets] : lanes,
      endpoints,
      acceptor,
      accounting,
      log,
    )
    const failed = (error: Error): void => {
      if (!ingest.#isDraining) onFailure(error)
    }
    for (const { worker } of [sockets, ...lanes]) {
      worker.on('error', failed)
      worker.on('exit', () => failed(new Error('a thread of syslog ingest ended')))
    }
    return ingest
  }

  async status(): Promise<SyslogStatus> {
    const asked = [...new Set([this.#sockets, ...this.#lanes])]
    const answers = await Promise.all(
      asked.map((thread) => thread.status(thread === this.#sockets, this.#lanes.includes(thread))),
    )
    const sockets = answers.find((answer) => answer.sockets !== undefined)?.sockets
    const lanes = answers.flatMap(({ lane }) => (lane === undefined ? [] : [lane]))
    if (sockets === undefined) throw new Error('the thread of the sockets did not answer')
    return together(lanes, sockets)
  }

  /** New TLS connections get the certificate in these files. */
  reload(tls: { keyFile: string; certificateFile: string }): void {
    this.#sockets.notify({ kind: 'reload', tls })
  }

  /** Ends the listeners, and waits until what they took is stored. */
  async drain(deadlineMs: number): Promise<void> {
    const lateMs = Date.now() + deadlineMs
    this.#isDraining = true
    for (const tryAgain of [...this.#retries.values()]) tryAgain()
    const unsettled = [await this.#sockets.drain(deadlineMs)]
    const leftMs = Math.max(0, lateMs - Date.now())
    unsettled.push(
      ...(await Promise.all(this.#lanes.filter((lane) => lane !== this.#sockets).map((lane) => lane.drain(leftMs)))),
    )
    this.#isDrained = true
    for (const retry of this.#retries.keys()) clearTimeout(retry)
    this.#retries.clear()
    this.#reportLost(unsettled)
    await Promise.all([this.#sockets, ...this.#lanes].map(({ worker }) => worker.terminate()))
  }

  /** What is lost stays in the books as unsettled, as far as it was taken. */
  #reportLost(all: readonly (Unsettled | undefined)[]): void {
    const messages = all.reduce((sum, one) => sum + (one?.messages ?? 0), 0)
    const bytes = all.reduce((sum, one) => sum + (one?.bytes ?? 0), 0)
    if (messages + bytes > 0)
      this.#log.warn({ messages, bytes }, 'syslog messages were lost: the store was full until the end')
    if (all.includes(undefined))
      this.#log.warn('a thread of syslog ingest did not end in time; what it had read is lost')
  }

  #onMessage(lane: Thread, message: FromSockets): void {
    if (message.kind === 'batch') void this.#store(lane, message)
    else if (message.kind === 'counters') this.#accounting.add(message.sources, message.rejects)
    else if (message.kind === 'unauthorized') this.#unauthenticated.note(message, Date.now())
  }

  /** Until it is on disk: meanwhile the lane reads no more of that organization than its bounds allow. */
  async #store(lane: Thread, batch: Batch): Promise<void> {
    const { id, organizationId, bytes, deduplicate, reports } = batch
    const outcome = await this.#acceptor.acceptPacked(organizationId, bytes, { deduplicate, reports })
    switch (outcome.kind) {
      case 'stored':
        lane.notify({ kind: 'settled', id, unstored: unstoredPlaces(outcome) })
        return
      case 'retry': {
        if (this.#isDrained) return
        const tryAgain = (): void => {
          clearTimeout(retry)
          if (this.#retries.delete(retry)) void this.#store(lane, batch)
        }
        const retry = setTimeout(tryAgain, this.#isDraining ? LAST_RETRY_MS : outcome.afterSeconds * 1000)
        this.#retries.set(retry, tryAgain)
        return
      }
      case 'malformed':
        throw new Error(`a batch of our own cannot be read: ${outcome.why}`)
      default:
        outcome satisfies never
    }
  }
}

/** What lanes need, of what the sockets' thread is given. */
function pick({ dataDirectory, idleMs, tokenRateMax, trie }: Omit<LaneData, 'tokenRateTable' | 'waitingBytesMax'>) {
  return { dataDirectory, idleMs, tokenRateMax, trie }
}

function together(lanes: readonly LaneStatus[], { connections, ...sockets }: SocketStatus): SyslogStatus {
  const sum = (of: (lane: LaneStatus) => number): number => lanes.reduce((all, lane) => all + of(lane), 0)
  const each = <T>(of: (listener: Listener) => T): Record<Listener, T> =>
    Object.fromEntries(LISTENERS.map((listener) => [listener, of(listener)])) as Record<Listener, T>
  return {
    received: each((listener) => sum(({ received }) => received[listener])),
    messages: each((listener) =>
      OUTCOMES.map((_name, outcome) => sum(({ messages }) => messages[listener][outcome] ?? 0)),
    ),
    // Of several lanes there are several rows each; who shows them adds them up.
    formats: lanes.flatMap(({ formats }) => formats),
    tokens: lanes.flatMap(({ tokens }) => tokens),
    connections: { ...connections, oversized: sum(({ oversized }) => oversized) },
    datagramsDropped: sockets.datagramsDropped + sum(({ datagramsDropped }) => datagramsDropped),
    kernelDropped: sockets.kernelDropped,
    sourcesOverflowed: sum(({ sourcesOverflowed }) => sourcesOverflowed),
    coverageLeftOut: sum(({ coverageLeftOut }) => coverageLeftOut),
  }
}

interface StatusAnswer {
  sockets?: SocketStatus
  lane?: LaneStatus
}

/** A thread and what was asked of it. */
class Thread {
  readonly worker: Worker
  #lastId = 0
  #hasEnded = false
  readonly #atEnd = new Set<() => void>()

  constructor(worker: Worker) {
    this.worker = worker
    // One for each question that waits for its answer.
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
      const onEnd = (): void => reject(new Error('a thread of syslog ingest ended'))
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

  /** Fulfilled when a lane has loaded its program: one that is ended while it loads lmdb's addon takes the process with it. */
  async loaded(): Promise<void> {
    await within(
      CLOSE_MS,
      this.status(false, true).catch(() => {}),
    )
  }

  /** Answers what was lost; undefined where the thread did not say. */
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

  /** Runs `work` when the thread has ended, or at once if it has. */
  #onEnd(work: () => void): void {
    if (this.#hasEnded) work()
    else this.#atEnd.add(work)
  }
}
