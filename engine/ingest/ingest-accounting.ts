import { SECOND_MS } from '../kernel/process/clock.ts'
import { logFailure } from '../kernel/process/failure.ts'
import type { Logger } from '../kernel/process/log.ts'
import { type CandidateDelta, sumOfDeltas } from '../store/candidates.ts'
import { NO_ORGANIZATION, type Reject, type SourceDelta, sum } from '../store/sources.ts'
import type { Store } from '../store/store.ts'
import { SourceTable } from './sources.ts'

/** Rows per transaction, so that none blocks the writer for long. */
const SOURCES_PER_STEP = 1000
/**
 * Rows held while the disk is full. Counts of one source are merged, so rows are bounded by the
 * number of sources.
 */
const WAITING_MAX = 100_000
const SOURCE_SILENT_MS = 3600 * SECOND_MS
/**
 * Milliseconds that the counters of a thread wait for those of other threads, to share their
 * transaction. Short, because people wait for the first event of a sender.
 */
const SHARED_WRITE_MS = 100

/** What a thread counted since its last report. */
export interface ReportedCounters {
  readonly sources: readonly SourceDelta[]
  readonly rejects: readonly Reject[]
  readonly candidates: readonly CandidateDelta[]
}

/** Stores rows. Throws, or rejects, if they have to wait. */
export type CounterSink = (rows: ReportedCounters) => void | Promise<void>

/** The sink of a store that this process writes. */
export function storeSink(store: Store): CounterSink {
  return (rows) => store.environment.write(() => addRows(store, rows))
}

/**
 * Stores the counters of all senders: those of this thread's listener once a second, and those of
 * other threads when they report them, which they do once a second.
 */
export class IngestAccounting {
  /** Sources of the listeners in this thread. */
  readonly sources = new SourceTable()
  /** Rows dropped while the store could not be written. */
  lost = 0
  readonly #sink: CounterSink
  readonly #log: Logger
  readonly #waiting = new Map<string, SourceDelta>()
  readonly #candidates = new Map<string, CandidateDelta>()
  #rejects: Reject[] = []
  #timer: NodeJS.Timeout | undefined
  #nextWrite: NodeJS.Timeout | undefined
  #failing = false
  #isWriting = false

  constructor(sink: CounterSink, log: Logger) {
    this.#sink = sink
    this.#log = log
  }

  start(): void {
    this.#timer = setInterval(() => void this.write(), SECOND_MS)
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    await this.write()
  }

  /** Takes the counters that another thread reports. */
  add(counters: ReportedCounters): void {
    this.#keep(counters)
    if (this.#timer !== undefined) this.#nextWrite ??= setTimeout(() => void this.write(), SHARED_WRITE_MS)
  }

  #keep({ sources, rejects, candidates }: ReportedCounters): void {
    for (const delta of sources) {
      const { organizationId, tokenId, listener, address, host } = delta
      const key = `${organizationId}${tokenId} ${listener} ${address} ${host}`
      const before = this.#waiting.get(key)
      if (before === undefined && this.#waiting.size >= WAITING_MAX) this.lost++
      else this.#waiting.set(key, before === undefined ? delta : sum(before, delta))
    }
    for (const delta of candidates) {
      const key = `${delta.organizationId} ${delta.name}`
      const before = this.#candidates.get(key)
      if (before === undefined && this.#candidates.size >= WAITING_MAX) this.lost++
      else this.#candidates.set(key, before === undefined ? delta : sumOfDeltas(before, delta))
    }
    this.#rejects.push(...rejects.slice(0, Math.max(0, WAITING_MAX - this.#rejects.length)))
  }

  /** Without a wait if the sink needs none. */
  async write(): Promise<void> {
    clearTimeout(this.#nextWrite)
    this.#nextWrite = undefined
    this.#keep({ sources: this.sources.takeDeltas(Date.now() - SOURCE_SILENT_MS), rejects: [], candidates: [] })
    if (this.#isWriting) return
    this.#isWriting = true
    try {
      while (this.#waiting.size + this.#rejects.length + this.#candidates.size > 0) {
        const rows = this.#takeRows()
        try {
          const stored = this.#sink(rows)
          if (stored !== undefined) await stored
          this.#failing = false
        } catch (error) {
          this.#keep(rows)
          if (!this.#failing)
            logFailure(this.#log, error, 'could not store the counters of senders; retrying', { level: 'warn' })
          this.#failing = true
          return
        }
      }
    } finally {
      this.#isWriting = false
    }
  }

  #takeRows(): ReportedCounters {
    const sources = [...this.#waiting].slice(0, SOURCES_PER_STEP)
    const rejects = this.#rejects.splice(0, SOURCES_PER_STEP)
    const candidates = [...this.#candidates].slice(0, SOURCES_PER_STEP)
    for (const [key] of sources) this.#waiting.delete(key)
    for (const [key] of candidates) this.#candidates.delete(key)
    return { sources: sources.map(([, delta]) => delta), rejects, candidates: candidates.map(([, delta]) => delta) }
  }
}

/**
 * Adds rows inside a transaction of the caller, except those of removed organizations: no row
 * outlives its organization.
 */
export function addRows(store: Store, { sources, rejects, candidates }: ReportedCounters): void {
  const known = new Map([[NO_ORGANIZATION, true]])
  const exists = ({ organizationId }: { readonly organizationId: string }): boolean => {
    const found = known.get(organizationId) ?? store.organizations.exists(organizationId)
    known.set(organizationId, found)
    return found
  }
  store.sources.add(sources.filter(exists))
  store.sources.addRejects(rejects.filter(exists))
  store.candidates.add(candidates.filter(exists), (id) => store.organizations.clientSettings(id).mode === 'full')
}
