import { Worker } from 'node:worker_threads'
import { Accounts } from '../engine/admin/accounts.ts'
import { Administration } from '../engine/admin/administration.ts'
import type { TlsFiles } from '../engine/http/certificate.ts'
import { drainThread, faultOf, listening } from '../engine/http/listener-thread.ts'
import { type Clock, systemClock } from '../engine/kernel/process/clock.ts'
import { Fault, plainFault } from '../engine/kernel/process/error-codes.ts'
import { logFailure } from '../engine/kernel/process/failure.ts'
import type { Logger, LogLevel } from '../engine/kernel/process/log.ts'
import type { LabeledValue, MetricRow } from '../engine/kernel/process/metrics.ts'
import type { Network } from '../engine/kernel/process/network.ts'
import { confirmChanges } from '../engine/store/confirm-changes.ts'
import { SERVICE_WIDE } from '../engine/store/own-platforms.ts'
import { RegistryInForce } from '../engine/store/registry-in-force.ts'
import type { Store } from '../engine/store/store.ts'
import type { ChangeOutcome, ChangeRequest } from './change-sender.ts'
import { ACCOUNT_COMMANDS, COMMANDS, type Command, runAccountCommand } from './commands.ts'
import { consoleRows, makeConsoleCounters } from './metrics.ts'
import type { ConsoleThreadData, FromConsole, ToConsole } from './thread.ts'

const COMMAND_NAMES = [...Object.keys(COMMANDS), ...Object.keys(ACCOUNT_COMMANDS)]
const RESULTS = ['changed', 'refused', 'failed'] as const

/** Makes the changes of the console's thread, in the writing thread. */
export class ConsoleWriter {
  readonly #store: Store
  readonly #registry: RegistryInForce
  readonly #clock: Clock
  readonly #log: Logger
  readonly #counts = new Map<string, number>()

  constructor(store: Store, registry: RegistryInForce, clock: Clock, log: Logger) {
    this.#store = store
    this.#registry = registry
    this.#clock = clock
    this.#log = log
  }

  /** Returns when the change is durable: on the brokers too, if the store is replicated. */
  async make(request: ChangeRequest): Promise<ChangeOutcome> {
    const outcome = await this.#outcome(request)
    const result = outcome.kind === 'changed' ? 'changed' : outcome.fault === undefined ? 'failed' : 'refused'
    const key = `${request.command} ${result}`
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
    return outcome
  }

  /** The number of changes by command and result. */
  counts(): LabeledValue[] {
    return COMMAND_NAMES.flatMap((command) =>
      RESULTS.map((result) => {
        return { labels: { command, result }, value: this.#counts.get(`${command} ${result}`) ?? 0 }
      }),
    )
  }

  async #outcome(request: ChangeRequest): Promise<ChangeOutcome> {
    const { id, command } = request
    try {
      const result = this.#run(request)
      await confirmChanges(this.#store)
      return { kind: 'changed', id, result }
    } catch (error) {
      if (error instanceof Fault) return { kind: 'refused', id, fault: plainFault(error) }
      logFailure(this.#log, error, 'a change of the console failed', { fields: { command } })
      return { kind: 'refused', id, fault: undefined }
    }
  }

  #run(request: ChangeRequest): unknown {
    if (request.kind === 'account') {
      return runAccountCommand(new Accounts(this.#store, this.#clock), request.command, request.parameters)
    }
    const { command, organizationId, memberName, parameters } = request
    const administration = new Administration(this.#store, this.#clock, { kind: 'member', name: memberName })
    const organization = this.#store.organizations.get(organizationId)
    if (organization === undefined) throw new Fault('NOT_FOUND', 'the organization no longer exists')
    const run = COMMANDS[command] as Command<unknown, unknown>
    const registry = this.#registry
    const catalogs = { own: registry.catalogOf(organizationId), shared: registry.catalogOf(SERVICE_WIDE) }
    return run(administration, organization, parameters, catalogs)
  }
}

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
