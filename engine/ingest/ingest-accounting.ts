import { SECOND_MS } from '../process/clock.ts'
import { logFailure } from '../process/failure.ts'
import type { Logger } from '../process/log.ts'
import { NO_ORGANIZATION, type Reject, type SourceDelta, sum } from '../store/sources.ts'
import type { Store } from '../store/store.ts'
import { SourceTable } from './sources.ts'

/** What one transaction takes, so that none holds the writer for long. */
const SOURCES_PER_STEP = 1000
/** Rows that wait while the disk is full. Counts of the same source join, so they are as many as sources. */
const WAITING_MAX = 100_000
const SOURCE_SILENT_MS = 3600 * SECOND_MS

/** Writes down who sent what, about once a second: the sources of this thread's own listener, and those that other threads tell. */
export class IngestAccounting {
  /** Of the listeners in this thread. */
  readonly sources = new SourceTable()
  /** Rows that found no room while the store could not be written. */
  lost = 0
  readonly #store: Store
  readonly #log: Logger
  readonly #waiting = new Map<string, SourceDelta>()
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
    for (const delta of sources) {
      const { organizationId, tokenId, listener, address, host } = delta
      const key = `${organizationId}${tokenId} ${listener} ${address} ${host}`
      const before = this.#waiting.get(key)
      if (before === undefined && this.#waiting.size >= WAITING_MAX) this.lost++
      else this.#waiting.set(key, before === undefined ? delta : sum(before, delta))
    }
    this.#rejects.push(...rejects.slice(0, Math.max(0, WAITING_MAX - this.#rejects.length)))
  }

  /**
   * For one transaction: whether a row's organization is in the store, so that no row outlives its
   * organization.
   */
  #organizationCheck(): (row: { readonly organizationId: string }) => boolean {
    const known = new Map([[NO_ORGANIZATION, true]])
    return ({ organizationId }) => {
      const exists = known.get(organizationId) ?? this.#store.organizations.exists(organizationId)
      known.set(organizationId, exists)
      return exists
    }
  }

  write(): void {
    this.add(this.sources.takeDeltas(Date.now() - SOURCE_SILENT_MS), [])
    while (this.#waiting.size > 0 || this.#rejects.length > 0) {
      const step = [...this.#waiting].slice(0, SOURCES_PER_STEP)
      const rejects = this.#rejects.slice(0, SOURCES_PER_STEP)
      try {
        this.#store.environment.write(() => {
          const isStored = this.#organizationCheck()
          this.#store.sources.add(step.map(([, delta]) => delta).filter(isStored))
          this.#store.sources.addRejects(rejects.filter(isStored))
        })
      } catch (error) {
        if (!this.#failing) logFailure(this.#log, error, 'counts of senders are not stored now', { level: 'warn' })
        this.#failing = true
        return
      }
      this.#failing = false
      for (const [key] of step) this.#waiting.delete(key)
      this.#rejects = this.#rejects.slice(rejects.length)
    }
  }
}
