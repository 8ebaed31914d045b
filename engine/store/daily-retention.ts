import { setImmediate as othersTurn } from 'node:timers/promises'
import { type Clock, DAY_MS, MINUTE_MS } from '../kernel/process/clock.ts'
import { logFailure } from '../kernel/process/failure.ts'
import type { Logger } from '../kernel/process/log.ts'
import { applyRetention, countOf } from './retention.ts'
import type { Store } from './store.ts'

/** Delay after the start of the service, so that requests are served first. */
const FIRST_AFTER_MS = MINUTE_MS

/** Removes expired records of all organizations once a day. */
export class DailyRetention {
  readonly #store: Store
  readonly #clock: Clock
  readonly #log: Logger
  readonly #timers: NodeJS.Timeout[] = []
  #running: Promise<void> = Promise.resolve()
  #stopped = false

  constructor(store: Store, clock: Clock, log: Logger) {
    this.#store = store
    this.#clock = clock
    this.#log = log
  }

  start(): void {
    const run = (): void => {
      this.#running = this.#running.then(() => this.run())
    }
    this.#timers.push(setTimeout(run, FIRST_AFTER_MS), setInterval(run, DAY_MS))
  }

  async stop(): Promise<void> {
    this.#stopped = true
    for (const timer of this.#timers) clearTimeout(timer)
    await this.#running
  }

  /** Processes all organizations in turn. Never rejects: a failed run is retried the next day. */
  async run(): Promise<void> {
    const removed = { scans: 0, auditEntries: 0, sources: 0, clientRecords: 0 }
    try {
      for (const removal of this.#store.environment.read(() => this.#store.removals.all())) {
        for (const _records of this.#store.removals.finish(removal)) {
          await othersTurn()
          if (this.#stopped) return
        }
        this.#log.info({ organization: removal.organizationId }, 'the records of a removed organization are deleted')
      }
      for (const { id } of this.#store.environment.read(() => this.#store.organizations.all())) {
        for (const step of applyRetention(this.#store, id, this.#clock.nowMs())) {
          removed.scans += step.scans
          removed.auditEntries += step.auditEntries
          removed.sources += step.sources
          removed.clientRecords += step.clientRecords
          await othersTurn()
          if (this.#stopped) return
        }
      }
      if (countOf(removed) > 0) this.#log.info(removed, 'retention applied')
    } catch (error) {
      logFailure(this.#log, error, 'could not apply retention; retrying tomorrow')
    }
  }
}
