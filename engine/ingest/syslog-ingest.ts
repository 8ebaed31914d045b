import { Worker } from 'node:worker_threads'
import { Fault } from '../process/error-codes.ts'
import type { Logger } from '../process/log.ts'
import { within } from '../process/shutdown.ts'
import type { EventAcceptor } from './accept.ts'
import type { IngestBooks } from './ingest-books.ts'
import type {
  FromSyslogThread,
  SyslogEndpoint,
  SyslogStatus,
  SyslogThreadData,
  ToSyslogThread,
} from './thread-protocol.ts'

/** How long a thread that is told to end may take beyond what its connections are given. */
const CLOSE_MS = 2000

type Batch = Extract<FromSyslogThread, { kind: 'batch' }>

/** Runs the thread of the syslog listeners beside the writer: stores its batches, keeps its books. */
export class SyslogIngest {
  readonly endpoints: readonly SyslogEndpoint[]
  readonly #worker: Worker
  readonly #acceptor: EventAcceptor
  readonly #books: IngestBooks
  readonly #statusWanted = new Map<number, (status: SyslogStatus) => void>()
  #statusId = 0
  #settleDrained: (() => void) | undefined
  /** Batches that wait to be tried again. */
  readonly #retries = new Set<NodeJS.Timeout>()

  private constructor(
    worker: Worker,
    endpoints: readonly SyslogEndpoint[],
    acceptor: EventAcceptor,
    books: IngestBooks,
  ) {
    this.#worker = worker
    this.endpoints = endpoints
    this.#acceptor = acceptor
    this.#books = books
    worker.on('message', (message: FromSyslogThread) => this.#onMessage(message))
  }

  /** @throws Fault PORT_TAKEN, PORT_DENIED, CERTIFICATE. */
  static async start(
    data: SyslogThreadData,
    acceptor: EventAcceptor,
    books: IngestBooks,
    log: Logger,
    onFailure: (error: Error) => void,
  ): Promise<SyslogIngest> {
    const worker = new Worker(new URL('./syslog-thread.js', import.meta.url), { workerData: data })
    const first = await new Promise<FromSyslogThread>((resolve, reject) => {
      worker.once('error', reject)
      worker.once('message', resolve)
    })
    worker.removeAllListeners('error')
    worker.on('error', onFailure)
    if (first.kind === 'failed') {
      await worker.terminate()
      throw new Fault(first.code, first.message)
    }
    const endpoints = first.kind === 'listening' ? first.endpoints : []
    for (const { kind, address, port } of endpoints) log.info({ kind, address, port }, 'syslog listens')
    return new SyslogIngest(worker, endpoints, acceptor, books)
  }

  status(): Promise<SyslogStatus> {
    const id = ++this.#statusId
    return new Promise((resolve) => {
      this.#statusWanted.set(id, resolve)
      this.#tell({ kind: 'status', id })
    })
  }

  /** New TLS connections get the certificate in these files. */
  reload(tls: { keyFile: string; certificateFile: string }): void {
    this.#tell({ kind: 'reload', tls })
  }

  /** Ends the listeners, and waits until what they took is stored. */
  async drain(deadlineMs: number): Promise<void> {
    this.#worker.removeAllListeners('error')
    const drained = new Promise<void>((resolve) => {
      this.#settleDrained = resolve
      this.#worker.once('exit', resolve)
    })
    this.#tell({ kind: 'drain', deadlineMs })
    await within(deadlineMs + CLOSE_MS, drained)
    for (const retry of this.#retries) clearTimeout(retry)
    await this.#worker.terminate()
  }

  #onMessage(message: FromSyslogThread): void {
    switch (message.kind) {
      case 'batch':
        void this.#store(message)
        return
      case 'books':
        return this.#books.add(message.sources, message.rejects)
      case 'status':
        this.#statusWanted.get(message.id)?.(message.status)
        this.#statusWanted.delete(message.id)
        return
      case 'drained':
        return this.#settleDrained?.()
      case 'listening':
      case 'failed':
        return
      default:
        message satisfies never
    }
  }

  /** Until it is on disk: meanwhile the thread reads no more of that organization than its bounds allow. */
  async #store(batch: Batch): Promise<void> {
    const { id, organizationId, bytes, deduplicate } = batch
    const outcome = await this.#acceptor.acceptPacked(organizationId, bytes, { deduplicate })
    switch (outcome.kind) {
      case 'stored':
        this.#tell({ kind: 'settled', id, duplicates: outcome.duplicates, rejected: outcome.rejected.length })
        return
      case 'retry': {
        const retry = setTimeout(() => {
          this.#retries.delete(retry)
          void this.#store(batch)
        }, outcome.afterSeconds * 1000)
        this.#retries.add(retry)
        return
      }
      case 'malformed':
        throw new Error(`a batch of our own cannot be read: ${outcome.why}`)
      default:
        outcome satisfies never
    }
  }

  #tell(message: ToSyslogThread): void {
    this.#worker.postMessage(message)
  }
}
