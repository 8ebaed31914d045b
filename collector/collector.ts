import { deferred } from '../engine/process/deferred.ts'
import { Fault } from '../engine/process/error-codes.ts'
import type { Logger } from '../engine/process/log.ts'
import { within } from '../engine/process/shutdown.ts'
import type { Catalog } from '../registry/catalog.ts'
import { type CollectorSettings, outboxLimits } from './config.ts'
import type { ForwardEnd } from './forward/forward-loop.ts'
import { Transports } from './forward/transports.ts'
import { DropLog } from './outbox/drop-log.ts'
import { Outbox } from './outbox/outbox.ts'
import { OUTBOX_IN_MEMORY } from './outbox/outbox-limits.ts'
import { OutboxLock } from './outbox/outbox-lock.ts'
import type { CollectorStatus } from './status.ts'
import { type CollectorSource, Watch } from './watch.ts'

/**
 * Wires the stages of the collector: the watch of a source writes to the outbox, and forwarding
 * empties the outbox.
 */
export class Collector {
  readonly #settings: CollectorSettings
  readonly #log: Logger
  readonly #source: CollectorSource
  readonly #catalog: Catalog
  readonly #outbox: Outbox
  readonly #transports: Transports
  readonly #drops: DropLog
  /** Events waiting when the run began. */
  readonly #found: number
  readonly #startedMs = performance.now()
  /** Resolves when the source is open, or when it will never open. */
  readonly #opened = deferred()
  /** Resolves when a stop is requested. */
  readonly #stopRequested = deferred()
  #lock: OutboxLock | undefined
  /** Undefined until the source is open. */
  #watch: Watch | undefined
  #ended = false

  /**
   * @param onRegistry receives the version of the registry that the service uses
   * @throws Fault of the outbox; USAGE if the CA certificate cannot be read.
   */
  constructor(
    settings: CollectorSettings,
    source: CollectorSource,
    catalog: Catalog,
    log: Logger,
    onRegistry: (version: string) => void = () => {},
  ) {
    this.#settings = settings
    this.#source = source
    this.#catalog = catalog
    this.#log = log
    this.#outbox = new Outbox(settings.outbox, outboxLimits(settings))
    if (settings.outbox === OUTBOX_IN_MEMORY) {
      log.warn('--outbox memory: events that are not forwarded are lost when the collector ends or crashes')
    }
    this.#found = this.#outbox.waiting
    this.#drops = new DropLog(log)
    this.#transports = new Transports(settings, this.#outbox, log, { probes: source.kind === 'interface', onRegistry })
  }

  /**
   * Runs until the source has ended and the service has acknowledged every event, or until stopped.
   *
   * @returns the Fault that ended the source early, if any. Data before it was used.
   * @throws Fault STORE_IN_USE; TOKEN_REFUSED, after which the events wait in the outbox; Faults of
   *   the source.
   */
  async run(): Promise<Fault | undefined> {
    this.#lock = await OutboxLock.take(this.#settings.outbox)
    // Forwarding starts after the source is open, so that a missing interface is not reported
    // together with an unreachable service.
    const forwarding = this.#opened.promise.then(() => this.#transports.run(this.#watch?.reporter))
    try {
      const damage = await this.#runWatch(forwarding)
      this.#transports.finish()
      const ended = await forwarding
      if (ended.kind === 'unauthorized') throw tokenRefused(ended.why, this.#outbox.waiting)
      return damage
    } finally {
      this.#transports.stop()
      this.#opened.resolve()
      await forwarding
      this.#ended = true
      await within(1000, this.#transports.close())
    }
  }

  /** Releases the outbox. The status is unavailable afterward. */
  async close(): Promise<void> {
    await this.#outbox.close()
    await this.#lock?.release()
  }

  /**
   * Stops the source, forwards waiting events for at most `deadlineMs`, and ends the run. Remaining
   * events stay on disk.
   */
  async drain(deadlineMs: number): Promise<void> {
    this.#stopRequested.resolve()
    setTimeout(() => {
      this.#transports.stop()
      void this.#transports.close()
    }, deadlineMs).unref()
    await this.#watch?.drain()
  }

  /** Switches to another registry. */
  async useCatalog(catalog: Catalog): Promise<void> {
    // Nothing is matched before the source is open.
    await this.#opened.promise
    await this.#watch?.useCatalog(catalog)
  }

  /** Whether the source is open and a status available. */
  get started(): boolean {
    return this.#watch !== undefined
  }

  get status(): CollectorStatus {
    const watch = this.#watch
    if (watch === undefined) throw new Error('a status before anything was observed')
    return {
      ...watch.status,
      source: this.#source.kind === 'file' ? this.#source.path : this.#source.live.name,
      uptimeSeconds: Math.floor((performance.now() - this.#startedMs) / 1000),
      ended: this.#ended,
      events: {
        ...watch.events,
        found: this.#found,
        waiting: this.#outbox.waiting,
        dropped: this.#outbox.dropped,
        oldestMs: this.#outbox.oldestWrittenMs,
        outboxBytes: this.#outbox.footprintBytes,
      },
      transports: this.#transports.status,
      coverageReports: watch.reporter.counts,
      deciding: this.#transports.deciding,
    }
  }

  async #runWatch(forwarding: ReturnType<Transports['run']>): Promise<Fault | undefined> {
    const watch = await Watch.open(this.#source, {
      settings: this.#settings,
      catalog: this.#catalog,
      outbox: this.#outbox,
      log: this.#log,
      cancel: this.#stopRequested.promise,
      onWritten: () => {
        this.#transports.poll()
        this.#drops.note(this.#outbox.dropped)
      },
      onSecond: () => {
        this.#outbox.dropExpired()
        this.#drops.note(this.#outbox.dropped)
      },
    })
    this.#watch = watch
    this.#opened.resolve()
    void this.#stopRequested.promise.then(() => watch.drain())
    // Watching is pointless without a valid token: the run ends and reports why.
    const stopUnauthorized = ({ kind }: ForwardEnd) => (kind === 'unauthorized' ? watch.stop() : undefined)
    // An error of forwarding also ends the run, which throws it when awaiting `forwarding`.
    forwarding.then(stopUnauthorized, () => watch.stop())
    const damage = await watch.run()
    watch.reporter.finish()
    return damage
  }
}

function tokenRefused(why: string, waiting: number): Fault {
  return new Fault(
    'TOKEN_REFUSED',
    `${why}; ${waiting} events wait in the outbox until the collector is restarted with a valid token`,
  )
}
