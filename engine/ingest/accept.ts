import { candidateOf } from '../../registry/candidate-names.ts'
import { canonicalName } from '../../registry/domain-name.ts'
import type { CoverageReport } from '../kernel/event/coverage-report.ts'
import type { Event } from '../kernel/event/event.ts'
import { CLOCK_SET_MS, type Clock } from '../kernel/process/clock.ts'
import { Fault, isFault } from '../kernel/process/error-codes.ts'
import { faultPoint } from '../kernel/process/fault-point.ts'
import type { Logger } from '../kernel/process/log.ts'
import {
  BATCH_EVENTS_MAX,
  BUFFERED_EVENTS_MAX,
  COVERAGE_ORGANIZATIONS_MAX,
  COVERAGE_PER_SECOND_MAX,
  PENDING_EVENTS_MAX,
  RETRY_AFTER_SECONDS,
} from '../limits.ts'
import { type CandidateDelta, SKETCH_BYTES } from '../store/candidates.ts'
import type { CoverageAddition } from '../store/coverage.ts'
import type { Places } from '../store/seen-events.ts'
import type { Store } from '../store/store.ts'
import { BatchReader, type ReadBatch, type Rejection } from './batch-reader.ts'
import { ClientPrivacy } from './client-privacy.ts'
import { OrganizationRate } from './rates.ts'

/** The outcome of a batch. `rejected` events can never be stored. All other events are on disk. */
export type Acceptance =
  | {
      readonly kind: 'stored'
      readonly accepted: number
      readonly duplicates: number
      /**
       * Events older than what is remembered of their sender: not stored, since they may have been.
       */
      readonly outsideDedupWindow: number
      readonly rejected: readonly Rejection[]
      /** Indexes in the batch of the duplicates and of the late events, ascending. */
      readonly repeated: readonly number[]
      readonly late: readonly number[]
      readonly coverage: readonly CoverageFate[]
    }
  | {
      readonly kind: 'retry'
      readonly afterSeconds: number
      readonly why: string
      /** A record of the organization is damaged. Retrying cannot help on this node. */
      readonly isDamaged?: boolean
    }
  /** The organization was removed after its token was read. Retrying cannot help. */
  | { readonly kind: 'removed' }

/** Indexes of the events of a batch that were not stored. */
export interface UnstoredPlaces {
  readonly duplicates: readonly number[]
  readonly outsideDedupWindow: readonly number[]
  readonly rejected: readonly number[]
}

export function unstoredPlaces(stored: Extract<Acceptance, { kind: 'stored' }>): UnstoredPlaces {
  const rejected = stored.rejected.map(({ index }) => index)
  return { duplicates: stored.repeated, outsideDedupWindow: stored.late, rejected }
}

/**
 * The outcome of a coverage report. `added` and `known` are on disk. `damaged`: the stored record
 * of this instance is damaged. `error`: why the report is malformed.
 */
export type CoverageFate = CoverageAddition | 'damaged' | { readonly error: string }

/** Why a sender has to retry: scans have not emptied the organization's buffer. */
export const BUFFER_FULL = "the organization's buffer is full"

/** The bytes are not a valid batch. Retrying cannot help. */
export interface Malformed {
  readonly kind: 'malformed'
  readonly why: string
}

export interface PackedBatchOptions {
  /**
   * false for events whose ids this service has just created, so that no sender can have sent them
   * before.
   */
  readonly deduplicate: boolean
  /**
   * Runs in the transaction that stores the batch, so that its writes and the events are committed
   * together. Must not throw. Does not run if the batch is deferred.
   */
  readonly alongside?: () => void
  /** Runs after each transaction of the batch that was aborted. `alongside` may have run in it. */
  readonly onAborted?: () => void
  /**
   * When the batch was received, in milliseconds since 1970, if it waited in a log. Its sender has
   * its answer, so the limit of the organization's buffer was checked before it was appended.
   */
  readonly receivedMs?: number
  /** Coverage reports received by syslog, stored in the same transaction. */
  readonly reports?: readonly CoverageReport[]
}

interface Waiting extends Omit<PackedBatchOptions, 'reports'> {
  readonly organizationId: string
  readonly batch: ReadBatch
  /** The reports of the batch and of the options. A string is the error of a malformed report. */
  readonly reports: readonly (CoverageReport | string)[]
  readonly settle: (acceptance: Acceptance) => void
}

/**
 * Counters since the start of the service. messages = accepted + duplicates + outsideDedupWindow +
 * rejected + deferred + removed.
 */
export interface AcceptCounters {
  messages: number
  accepted: number
  duplicates: number
  outsideDedupWindow: number
  rejected: number
  /** Refused temporarily because a limit was reached or the store failed. The sender retries. */
  deferred: number
  /** The organization was removed before they were stored. */
  removed: number
  /**
   * Events that were last seen after their receipt, by the sender's clock: stored as of receipt.
   */
  ahead: number
}

/**
 * Counters of coverage reports since the start. A malformed report received by syslog counts as a
 * rejected message instead.
 */
export interface CoverageReportCounters {
  accepted: number
  /** The same content was stored before. */
  repeated: number
  tooOften: number
  /**
   * Not stored because the batch was deferred or the stored record is damaged. The sender retries.
   */
  deferred: number
  /** The organization was removed before they were stored. */
  removed: number
  malformed: number
}

/** Where listeners put batches: into the store, or into a log from which the store reads them. */
export type BatchWriter = Pick<EventAcceptor, 'accept' | 'acceptPacked'>

/**
 * Stores admitted events and coverage reports. Batches that arrive while the event loop is busy
 * share one transaction. Each batch is answered after that transaction is on disk.
 */
export class EventAcceptor {
  readonly counters: AcceptCounters = {
    messages: 0,
    accepted: 0,
    duplicates: 0,
    outsideDedupWindow: 0,
    rejected: 0,
    deferred: 0,
    removed: 0,
    ahead: 0,
  }
  readonly coverage: CoverageReportCounters = {
    accepted: 0,
    repeated: 0,
    tooOften: 0,
    deferred: 0,
    removed: 0,
    malformed: 0,
  }
  readonly #store: Store
  readonly #reader = new BatchReader()
  readonly #clock: Clock
  readonly #log: Logger
  readonly #clients: ClientPrivacy
  readonly #onBuffered: (organizationId: string) => void
  readonly #bufferedEventsMax: number
  /**
   * Limits stored reports per organization: a sender that claims many instances must not delay the
   * events of others.
   */
  readonly #coverageRate = new OrganizationRate(COVERAGE_PER_SECOND_MAX, COVERAGE_ORGANIZATIONS_MAX)
  #waiting: Waiting[] = []
  #waitingEvents = 0
  readonly #afterCommit: (() => void)[] = []

  constructor(
    store: Store,
    clock: Clock,
    log: Logger,
    onBuffered: (organizationId: string) => void,
    bufferedEventsMax = BUFFERED_EVENTS_MAX,
  ) {
    this.#store = store
    this.#clock = clock
    this.#log = log
    this.#clients = new ClientPrivacy(store.dataDirectory, clock, log)
    this.#onBuffered = onBuffered
    this.#bufferedEventsMax = bufferedEventsMax
  }

  /** What was removed from the counted events at a limit, since the start. */
  get forgotten(): { readonly instances: number; readonly pages: number } {
    return this.#store.seenEvents.forgotten
  }

  /**
   * Stores a batch of an organization. A string in `events` is the error of an event that could not
   * be read. `coverage` is an unchecked report.
   */
  accept(organizationId: string, events: readonly (Event | string)[], coverage?: unknown): Promise<Acceptance> {
    const batch = this.#reader.pack(events, coverage, this.#clock.nowMs())
    return this.#enqueue(organizationId, batch, { deduplicate: true })
  }

  /**
   * Stores a batch in msgpack (engine/kernel/event/event.ts). Its bytes must not change until the promise
   * settles.
   */
  acceptPacked(
    organizationId: string,
    bytes: Uint8Array,
    options: PackedBatchOptions,
  ): Promise<Acceptance | Malformed> {
    const batch = this.#reader.read(bytes, BATCH_EVENTS_MAX, options.receivedMs ?? this.#clock.nowMs())
    if (typeof batch === 'string') return Promise.resolve({ kind: 'malformed', why: batch })
    const isOfLog = options.receivedMs !== undefined
    if (isOfLog && !this.#fits(batch)) return this.#enqueueLater(organizationId, batch, options)
    return this.#enqueue(organizationId, batch, options)
  }

  #fits({ events }: ReadBatch): boolean {
    return this.#waitingEvents + events.count <= PENDING_EVENTS_MAX
  }

  /** A reader of the log has a limit of its own, and would try again only after seconds. */
  async #enqueueLater(organizationId: string, batch: ReadBatch, options: PackedBatchOptions): Promise<Acceptance> {
    while (!this.#fits(batch)) await new Promise<void>((resolve) => this.#afterCommit.push(resolve))
    return this.#enqueue(organizationId, batch, options)
  }

  #enqueue(organizationId: string, batch: ReadBatch, options: PackedBatchOptions): Promise<Acceptance> {
    const events = batch.events.count
    const messages = events + batch.rejected.length
    const reports = reportsOf(batch, options)
    this.counters.messages += messages
    const clockIsSet = this.#clock.nowMs() >= CLOCK_SET_MS
    if (clockIsSet) this.counters.ahead += batch.ahead
    if (!clockIsSet || !this.#fits(batch)) {
      this.counters.deferred += messages
      this.coverage.deferred += reports.length
      const why = clockIsSet ? 'the service is busy' : 'the clock of the service is not set'
      return Promise.resolve({ kind: 'retry', afterSeconds: RETRY_AFTER_SECONDS, why })
    }
    return new Promise((settle) => {
      this.#waiting.push({ ...options, organizationId, batch, reports, settle })
      this.#waitingEvents += events
      if (this.#waiting.length === 1) setImmediate(() => this.#commit())
    })
  }

  #commit(): void {
    const batches = this.#waiting
    this.#waiting = []
    this.#waitingEvents = 0
    const outcomes = this.#stored(batches)
    this.#log.debug({ batches: batches.length }, 'events stored')
    for (const [index, batch] of batches.entries()) this.#settle(batch, outcomes[index] as Acceptance)
    for (const resolve of this.#afterCommit.splice(0)) resolve()
    for (const organizationId of new Set(batches.map((batch) => batch.organizationId))) this.#onBuffered(organizationId)
  }

  /** In one transaction, or each in its own if a record of one organization is damaged. */
  #stored(batches: readonly Waiting[]): Acceptance[] {
    try {
      const outcomes = this.#store.environment.write(() => batches.map((batch) => this.#storeBatch(batch)))
      faultPoint('accept:committed')
      return outcomes
    } catch (error) {
      for (const { onAborted } of batches) onAborted?.()
      const isDamaged = isFault(error, 'STORE_DAMAGED')
      if (isDamaged && batches.length > 1) return batches.flatMap((batch) => this.#stored([batch]))
      if (isDamaged || !(error instanceof Fault)) this.#log.error({ err: error }, 'events could not be stored')
      const why = isFault(error, 'STORE_FULL') ? 'the disk is full' : 'the store cannot be written'
      return batches.map(() => ({ kind: 'retry', afterSeconds: RETRY_AFTER_SECONDS, why, isDamaged }))
    }
  }

  /** Runs in the transaction. */
  #storeBatch({ organizationId, batch, reports, deduplicate, alongside, receivedMs }: Waiting): Acceptance {
    const { events, runs, rejected } = batch
    const { buffer, seenEvents, organizations } = this.#store
    if (!organizations.exists(organizationId)) return { kind: 'removed' }
    if (receivedMs === undefined && buffer.count(organizationId) + events.count > this.#bufferedEventsMax) {
      return { kind: 'retry', afterSeconds: RETRY_AFTER_SECONDS, why: BUFFER_FULL }
    }
    const { unseen, late } = deduplicate
      ? seenEvents.keepUnseen(organizationId, runs, this.#clock.nowMs())
      : { unseen: [{ from: 0, to: events.count }], late: [] }
    // In the transaction, so that no event is stored with a setting that was changed before.
    const stored = this.#clients.applyTo(events, organizationId, organizations.clientSettings(organizationId))
    const accepted = buffer.appendPacked(organizationId, stored, unseen)
    alongside?.()
    const repeated = placesOf(spansOutside([...unseen, ...late], events.count), rejected)
    const outsideDedupWindow = placesOf(late, rejected)
    const coverage = reports.map((report) =>
      typeof report === 'string' ? { error: report } : this.#storeReport(organizationId, report, receivedMs),
    )
    return {
      kind: 'stored',
      accepted,
      duplicates: repeated.length,
      outsideDedupWindow: outsideDedupWindow.length,
      rejected,
      repeated,
      late: outsideDedupWindow,
      coverage,
    }
  }

  /** Runs in the transaction. A report that is not stored costs one lookup. */
  #storeReport(organizationId: string, report: CoverageReport, receivedMs = this.#clock.nowMs()): CoverageFate {
    const { coverage } = this.#store
    try {
      const fate = coverage.preview(organizationId, report, receivedMs)
      if (fate !== 'added') return fate
      const mayAdd = this.#coverageRate.take(organizationId, receivedMs)
      if (!mayAdd) return 'tooSoon'
      this.#storeCandidates(organizationId, report.candidates ?? [], receivedMs)
      return coverage.add(organizationId, report, receivedMs)
    } catch (error) {
      if (!isFault(error, 'STORE_DAMAGED')) throw error
      // A damaged coverage record must not abort the transaction, which also stores events.
      this.#log.error({ err: error }, 'a coverage report could not be stored')
      return 'damaged'
    }
  }

  /** A sensor's word is not enough: the name must look like an AI service to this program, too. */
  #storeCandidates(organizationId: string, seen: NonNullable<CoverageReport['candidates']>, atMs: number): void {
    const deltas = seen.flatMap(([text, requests]): CandidateDelta[] => {
      const host = canonicalName(text)
      const name = host && candidateOf(host)?.name
      if (name === undefined) return []
      const clients = new Uint8Array(SKETCH_BYTES)
      return [{ organizationId, name, requests, withAi: 0, firstSeenMs: atMs, lastSeenMs: atMs, clients }]
    })
    this.#store.candidates.add(deltas, () => false)
  }

  #settle({ batch, reports, settle }: Waiting, outcome: Acceptance): void {
    if (outcome.kind === 'stored') {
      this.counters.accepted += outcome.accepted
      this.counters.duplicates += outcome.duplicates
      this.counters.outsideDedupWindow += outcome.outsideDedupWindow
      this.counters.rejected += outcome.rejected.length
      for (const fate of outcome.coverage) this.coverage[typeof fate === 'string' ? COUNTER_OF[fate] : 'malformed']++
    } else {
      const counter = outcome.kind === 'retry' ? 'deferred' : 'removed'
      this.counters[counter] += batch.events.count + batch.rejected.length
      this.coverage[counter] += reports.length
    }
    settle(outcome)
  }
}

const COUNTER_OF = { added: 'accepted', known: 'repeated', tooSoon: 'tooOften', damaged: 'deferred' } as const

function reportsOf({ coverage }: ReadBatch, { reports = [] }: PackedBatchOptions): Waiting['reports'] {
  return coverage === undefined ? reports : [coverage, ...reports]
}

/** Returns the spans of a batch of `count` events outside all given spans. */
function spansOutside(spans: readonly Places[], count: number): Places[] {
  const outside: Places[] = []
  let from = 0
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    if (span.from > from) outside.push({ from, to: span.from })
    from = span.to
  }
  if (count > from) outside.push({ from, to: count })
  return outside
}

/**
 * Indexes in the batch of the events in ascending spans. Spans count readable events only. Indexes
 * count rejected events, too.
 */
function placesOf(spans: readonly Places[], rejected: readonly Rejection[]): number[] {
  const places: number[] = []
  let left = 0
  for (const { from, to } of spans) {
    for (let event = from; event < to; event++) {
      while (rejected[left] !== undefined && (rejected[left]?.index ?? 0) <= event + left) left++
      places.push(event + left)
    }
  }
  return places
}
