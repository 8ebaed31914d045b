import { Worker } from 'node:worker_threads'
import type { TlsFiles } from '../engine/http/certificate.ts'
import { drainThread, faultOf, listening } from '../engine/http/listener-thread.ts'
import { systemClock } from '../engine/kernel/process/clock.ts'
import type { Logger, LogLevel } from '../engine/kernel/process/log.ts'
import type { MetricRow } from '../engine/kernel/process/metrics.ts'
import type { Network } from '../engine/kernel/process/network.ts'
import { RegistryInForce } from '../engine/store/registry-in-force.ts'
import type { Store } from '../engine/store/store.ts'
import { consoleRows, makeConsoleCounters } from './metrics.ts'
import type { ConsoleThreadData, FromConsole, ToConsole } from './thread.ts'
import { ConsoleWriter } from './writer.ts'

/**
 * Heap limits of the thread, in megabytes. Without limits, V8 lets the garbage of pages grow to 90
 * MB before it collects it. A young generation of 4 MB instead of 8 saves 4 MB, and makes the
 * largest page a tenth slower. The largest pages need a quarter of the old generation.
 */
const HEAP_LIMITS = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 128 }

/** The web console: a thread that answers browsers, and a writer for the changes of its pages. */
export class Console {
  readonly implementation: string
  readonly #thread: Worker
  readonly #metricRows: () => MetricRow[]

  private constructor(thread: Worker, implementation: string, metricRows: () => MetricRow[]) {
    this.#thread = thread
    this.implementation = implementation
    this.#metricRows = metricRows
  }

  /**
   * Starts the thread and waits until it listens.
   *
   * @param onFailure called if the thread ends unexpectedly
   * @throws Fault PORT_TAKEN, PORT_DENIED, CERTIFICATE.
   */
  static async start(
    data: Omit<ConsoleThreadData, 'counters'>,
    store: Store,
    log: Logger,
    onFailure: (error: unknown) => void,
  ): Promise<Console> {
    const counters = makeConsoleCounters()
    const thread = new Worker(new URL('./thread.js', import.meta.url), {
      workerData: { ...data, counters } satisfies ConsoleThreadData,
      resourceLimits: HEAP_LIMITS,
    })
    const { implementation } = await listening(thread, 'the console')
    const writer = new ConsoleWriter(store, new RegistryInForce(store), systemClock, log)
    thread.on('message', (message: FromConsole) => {
      if (message.kind === 'failed') onFailure(faultOf(message, 'the console'))
      else if (message.kind === 'change' || message.kind === 'account') {
        void writer.make(message).then((outcome: ToConsole) => thread.postMessage(outcome))
      }
    })
    thread.on('error', onFailure)
    thread.on('exit', () => onFailure(new Error('the thread of the console ended')))
    return new Console(thread, implementation, () => consoleRows(counters, writer.counts(), store.sessions.count()))
  }

  /** Applies the certificate files, if any, to new connections, and the rest immediately. */
  reload(tls: TlsFiles | undefined, logLevel: LogLevel, networks: readonly Network[]): void {
    const messages: readonly ToConsole[] = [
      { kind: 'reload', tls, logLevel },
      { kind: 'outbound-networks', networks },
    ]
    for (const message of messages) this.#thread.postMessage(message)
  }

  metricRows(): MetricRow[] {
    return this.#metricRows()
  }

  drain(deadlineMs: number): Promise<void> {
    return drainThread(this.#thread, deadlineMs)
  }
}
