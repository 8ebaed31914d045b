import { SECOND_MS } from '../process/clock.ts'
import type { Logger } from '../process/log.ts'
import type { Reject, SourceDelta } from '../store/sources.ts'
import type { Store } from '../store/store.ts'
import { SourceTable } from './sources.ts'

/** What one transaction takes, so that none holds the writer for long. */
const SOURCES_PER_STEP = 1000
/** What waits while the disk is full; counts of the same source would join, so it is bounded by their number. */
const WAITING_MAX = 100_000
const SOURCE_SILENT_MS = 3600 * SECOND_MS

/** Writes down who sent what, about once a second: the sources of this thread's own listener, and those that other threads tell. */
export class IngestBooks {
  /** Of the listeners in this thread. */
  readonly sources = new SourceTable()
  /** Rows that found no room while the store could not be written. */
  lost = 0
  readonly #store: Store
  readonly #log: Logger
  #waiting: SourceDelta[] = []
  #rejects: Reject[] = []
  #timer: NodeJS.Timeout | undefined
  #failing = false

  constructor(store: Store, log: Logger) {
    this.#store = store
    this.#log = log
  }

  start(): void {
    this.#timer = setInterval(() => this.write(), SECOND_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.write()
  }

  add(sources: readonly SourceDelta[], rejects: readonly Reject[]): void {
    const room = Math.max(0, WAITING_MAX - this.#waiting.length)
    this.lost += Math.max(0, sources.length - room)
    this.#waiting.push(...sources.slice(0, room))
    this.#rejects.push(...rejects.slice(0, Math.max(0, WAITING_MAX - this.#rejects.length)))
  }

  write(): void {
    this.add(this.sources.takeDeltas(Date.now() - SOURCE_SILENT_MS), [])
    while (this.#waiting.length > 0 || this.#rejects.length > 0) {
      const sources = this.#waiting.slice(0, SOURCES_PER_STEP)
      const rejects = this.#rejects.slice(0, SOURCES_PER_STEP)
      try {
        this.#store.environment.write(() => {
          this.#store.sources.add(sources)
          this.#store.sources.addRejects(rejects)
        })
      } catch (error) {
        if (!this.#failing)
          this.#log.warn({ reason: (error as Error).message }, 'who sends what is not written down now')
        this.#failing = true
        return
      }
      this.#failing = false
      this.#waiting = this.#waiting.slice(sources.length)
      this.#rejects = this.#rejects.slice(rejects.length)
    }
  }
}
