import { asUser, becomeUser, type Ids } from '../engine/kernel/process/become-user.ts'
import { CertificateExpiry } from '../engine/kernel/process/certificate-expiry.ts'
import { deferred } from '../engine/kernel/process/deferred.ts'
import { Fault } from '../engine/kernel/process/error-codes.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import { findUser } from '../engine/kernel/process/ownership.ts'
import { within } from '../engine/kernel/process/signals.ts'
import type { Catalog } from '../registry/catalog.ts'
import { type CollectorSettings, outboxLimits } from './config.ts'
import type { ForwardEnd } from './forward/forward-loop.ts'
import { Transports } from './forward/transports.ts'
import { Outbox } from './outbox/outbox.ts'
import { OUTBOX_IN_MEMORY, OutboxLock } from './outbox/outbox-store.ts'
import type { CollectorStatus } from './status.ts'
import { type CollectorSource, Watch } from './watch.ts'

export interface CollectorOptions {
  readonly onRegistry?: (version: string) => void
  readonly user?: Ids | undefined
}

interface Stages {
  readonly outbox: Outbox
  readonly transports: Transports
  /** Events waiting when the run began. */
  readonly found: number
}

/**
 * Wires the stages of the collector: the watch of a source writes to the outbox, and forwarding
 * empties the outbox.
 */
export class Collector {
  readonly #settings: CollectorSettings
  readonly #log: Logger
  readonly #source: CollectorSource
  readonly #catalog: Catalog
  readonly #options: CollectorOptions
  readonly #drops: DropLog
  readonly #certificates: CertificateExpiry
  /** Undefined while root opens the source. */
  #stages: Stages | undefined
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
   * @param user runs the collector when the source is open. Only then is the outbox opened: its
   *   owner may have prepared its files. undefined: the user of this process.
   * @throws Fault of the outbox; USAGE if the CA certificate cannot be read.
   */
  constructor(
    settings: CollectorSettings,
    source: CollectorSource,
    catalog: Catalog,
    log: Logger,
    options: CollectorOptions = {},
  ) {
    this.#settings = settings
    this.#source = source
    this.#catalog = catalog
    this.#log = log
    this.#options = options
    if (settings.outbox === OUTBOX_IN_MEMORY) {
      log.warn('--outbox memory: events that are not forwarded are lost when the collector ends or crashes')
    }
    const extra = process.env['NODE_EXTRA_CA_CERTS'] ?? ''
    this.#certificates = new CertificateExpiry(
      () => [
        { name: 'ca', file: settings.ca, isCa: true },
        { name: 'node_extra_ca_certs', file: extra, isCa: true },
      ],
      log,
    )
    this.#drops = new DropLog(log)
    if (options.user === undefined) this.#open()
  }

  /**
   * Runs until the source has ended and the service has acknowledged every event, or until stopped.
   *
   * @returns the Fault that ended the source early, if any. Data before it was used.
   * @throws Fault STORE_IN_USE; TOKEN_REFUSED, after which the events wait in the outbox; Faults of
   *   the source.
   */
  async run(): Promise<Fault | undefined> {
    const { user } = this.#options
    const take = <T>(step: () => T): T => (user === undefined ? step() : asUser(user, step))
    this.#lock = await OutboxLock.take(this.#settings.outbox, take)
    // Forwarding starts after the source is open, so that a missing interface is not reported
    // together with an unreachable service.
    const forwarding = this.#opened.promise.then(() => this.#open().transports.run(this.#watch?.reporter))
    try {
      const damage = await this.#runWatch(forwarding)
      const { transports, outbox } = this.#open()
      transports.finish()
      const ended = await forwarding
      if (ended.kind === 'unauthorized') throw tokenRefused(ended.why, outbox.waiting)
      return damage
    } finally {
      if (this.#stages !== undefined) {
        const { transports } = this.#stages
        transports.stop()
        this.#opened.resolve()
        await forwarding
        await within(1000, transports.close())
      }
      this.#ended = true
    }
  }

  /** Releases the outbox. The status is unavailable afterward. */
  async close(): Promise<void> {
    this.#certificates.stop()
    await this.#stages?.outbox.close()
    await this.#lock?.release()
  }

  /**
   * Stops the source, forwards waiting events for at most `deadlineMs`, and ends the run. Remaining
   * events stay on disk.
   */
  async drain(deadlineMs: number): Promise<void> {
    this.#stopRequested.resolve()
    setTimeout(() => {
      this.#stages?.transports.stop()
      void this.#stages?.transports.close()
    }, deadlineMs).unref()
    await this.#watch?.drain()
  }

  /** Returns why the registry should be replaced; '' while it is valid. */
  registryProblem: () => string = () => ''

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
    const [watch, stages] = [this.#watch, this.#stages]
    if (watch === undefined || stages === undefined) throw new Error('a status before anything was observed')
    const { outbox, transports, found } = stages
    return {
      ...watch.status,
      source: this.#source.kind === 'file' ? this.#source.path : this.#source.live.name,
      uptimeSeconds: Math.floor((performance.now() - this.#startedMs) / 1000),
      ended: this.#ended,
      events: {
        ...watch.events,
        found,
        waiting: outbox.waiting,
        dropped: outbox.dropped,
        oldestMs: outbox.oldestWrittenMs,
        outboxBytes: outbox.footprintBytes,
      },
      transports: transports.status,
      coverageReports: watch.reporter.counts,
      deciding: transports.deciding,
      expired: [this.registryProblem(), ...this.#certificates.expired()].filter((problem) => problem !== ''),
      certificateEnds: this.#certificates.endSeconds(),
    }
  }

  /** The outbox and what forwards it. At the first call, root becomes the user. */
  #open(): Stages {
    if (this.#stages !== undefined) return this.#stages
    const { onRegistry = () => {}, user } = this.#options
    const { kind } = this.#source
    if (user !== undefined) {
      becomeUser(user)
      const name = findUser(({ uid }) => uid === user.uid)?.name ?? String(user.uid)
      const level = kind === 'interface' ? 'info' : 'debug'
      this.#log[level]({ user: name }, `the ${kind} is open, root privileges are dropped`)
    }
    const outbox = new Outbox(this.#settings.outbox, outboxLimits(this.#settings))
    const transports = new Transports(this.#settings, outbox, this.#log, { probes: kind === 'interface', onRegistry })
    this.#stages = { outbox, transports, found: outbox.waiting }
    return this.#stages
  }

  async #runWatch(forwarding: ReturnType<Transports['run']>): Promise<Fault | undefined> {
    const watch = await Watch.open(this.#source, {
      settings: this.#settings,
      catalog: this.#catalog,
      outbox: () => this.#open().outbox,
      log: this.#log,
      cancel: this.#stopRequested.promise,
      onWritten: () => {
        const { transports, outbox } = this.#open()
        transports.poll()
        this.#drops.note(outbox.dropped)
      },
      onSecond: () => {
        const { outbox } = this.#open()
        outbox.dropExpired()
        this.#drops.note(outbox.dropped)
      },
    })
    try {
      this.#open()
    } catch (error) {
      await watch.stop()
      throw error
    }
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

const LOG_EVERY_MS = 60_000

/** Logs events dropped from the outbox, at most once a minute. */
export class DropLog {
  readonly #log: Logger
  #logged = { dropped: 0, atMs: Number.NEGATIVE_INFINITY }

  constructor(log: Logger) {
    this.#log = log
  }

  /** Takes the totals so far, by reason. */
  note({ full, tooOld, damaged }: { readonly full: number; readonly tooOld: number; readonly damaged: number }): void {
    const nowMs = performance.now()
    const dropped = full + tooOld + damaged
    if (dropped === this.#logged.dropped || nowMs - this.#logged.atMs < LOG_EVERY_MS) return
    this.#logged = { dropped, atMs: nowMs }
    this.#log.error({ full, tooOld, damaged }, 'events were dropped from the outbox, total so far')
  }
}
