import type { EventLog } from '../cluster/log/event-log.ts'
import { type Event, packBatch } from '../kernel/event/event.ts'
import { CLOCK_SET_MS, type Clock } from '../kernel/process/clock.ts'
import { BATCH_EVENTS_MAX, BUFFERED_EVENTS_MAX, RETRY_AFTER_SECONDS } from '../limits.ts'
import type { Store } from '../store/store.ts'
import {
  type Acceptance,
  type BatchWriter,
  BUFFER_FULL,
  type CoverageFate,
  type Malformed,
  type PackedBatchOptions,
} from './accept.ts'
import { BatchReader, type ReadBatch } from './batch-reader.ts'

/** Batches since the start, by outcome. */
export interface EventLogWriteCounters {
  appended: number
  /** The sender retries. */
  deferred: number
  /** The organization was removed before. */
  removed: number
}

/**
 * Appends batches to a log, from which an EventLogReader stores them. A batch is answered when it
 * is durable on the brokers. Which of its events are duplicates is known only later, so its answer
 * names none.
 */
export class EventLogWriter implements BatchWriter {
  readonly counters: EventLogWriteCounters = { appended: 0, deferred: 0, removed: 0 }
  readonly #log: EventLog
  readonly #store: Store
  readonly #clock: Clock
  readonly #isStale: () => boolean
  readonly #bufferedEventsMax: number
  readonly #reader = new BatchReader()

  /** @param isStale whether the store may lack tokens that were revoked elsewhere */
  constructor(
    log: EventLog,
    store: Store,
    clock: Clock,
    isStale: () => boolean,
    bufferedEventsMax = BUFFERED_EVENTS_MAX,
  ) {
    this.#log = log
    this.#store = store
    this.#clock = clock
    this.#isStale = isStale
    this.#bufferedEventsMax = bufferedEventsMax
  }

  accept(organizationId: string, events: readonly (Event | string)[], coverage?: unknown): Promise<Acceptance> {
    const nowMs = this.#clock.nowMs()
    const batch = this.#reader.pack(events, coverage, nowMs)
    const report = typeof batch.coverage === 'string' ? undefined : batch.coverage
    const bytes = packBatch(
      events.filter((event) => typeof event !== 'string'),
      report,
    )
    return this.#append(organizationId, batch, [bytes], nowMs)
  }

  /** Ignores `deduplicate`: a batch can be in the log twice, so the reader drops duplicates. */
  acceptPacked(
    organizationId: string,
    bytes: Uint8Array,
    { reports = [] }: PackedBatchOptions,
  ): Promise<Acceptance | Malformed> {
    const nowMs = this.#clock.nowMs()
    const batch = this.#reader.read(bytes, BATCH_EVENTS_MAX, nowMs)
    if (typeof batch === 'string') return Promise.resolve({ kind: 'malformed', why: batch })
    // A batch has one report at most.
    const others = reports.map((report) => packBatch([], report))
    return this.#append(organizationId, batch, [bytes, ...others], nowMs, reports.length)
  }

  async #append(
    organizationId: string,
    { events, rejected, coverage }: ReadBatch,
    messages: readonly Uint8Array[],
    nowMs: number,
    reports = 0,
  ): Promise<Acceptance> {
    if (this.#isStale()) return this.#deferred('this node does not receive the changes of its cluster')
    if (nowMs < CLOCK_SET_MS) return this.#deferred('the clock of the service is not set')
    const { environment, organizations, buffer } = this.#store
    const buffered = environment.read(() => organizations.exists(organizationId) && buffer.count(organizationId))
    if (buffered === false) {
      this.counters.removed++
      return { kind: 'removed' }
    }
    // Without what the primary has not read yet.
    if (buffered + events.count > this.#bufferedEventsMax) return this.#deferred(BUFFER_FULL)
    const [batch, ...others] = messages
    const isEmpty = events.count === 0 && typeof coverage !== 'object'
    const appended = isEmpty || batch === undefined ? others : [batch, ...others]
    const failures = await Promise.all(appended.map((bytes) => this.#log.append(organizationId, bytes, nowMs)))
    const failure = failures.find((each) => each !== undefined)
    if (failure !== undefined) return this.#deferred(failure)
    this.counters.appended += appended.length
    const fates: CoverageFate[] = Array.from({ length: reports }, () => 'added')
    if (coverage !== undefined) fates.unshift(typeof coverage === 'string' ? { error: coverage } : 'added')
    const none = { duplicates: 0, outsideDedupWindow: 0, repeated: [], late: [] } as const
    return { kind: 'stored', accepted: events.count, rejected, coverage: fates, ...none }
  }

  #deferred(why: string): Acceptance {
    this.counters.deferred++
    return { kind: 'retry', afterSeconds: RETRY_AFTER_SECONDS, why }
  }
}
