import type { Event } from '../event.ts'
import { BUFFERED_EVENTS_MAX, FUTURE_MS_MAX, PENDING_EVENTS_MAX, RETRY_AFTER_SECONDS } from '../limits.ts'
import type { Clock } from '../process/clock.ts'
import { CLOCK_SET_MS } from '../process/clock.ts'
import { Fault, isFault } from '../process/error-codes.ts'
import { faultPoint } from '../process/fault-point.ts'
import type { Logger } from '../process/log.ts'
import type { Store } from '../store/store.ts'
import type { NameMatcher } from './match.ts'

/** What became of a batch. `rejected` events will never be taken; the others are on disk. */
export type Acceptance =
  | {
      readonly kind: 'stored'
      readonly accepted: number
      readonly duplicates: number
      readonly rejected: readonly Rejection[]
    }
  | { readonly kind: 'retry'; readonly afterSeconds: number; readonly why: string }

export interface Rejection {
  /** Place in the batch, from 0. */
  readonly index: number
  readonly error: string
}

interface Waiting {
  readonly organizationId: string
  readonly events: readonly Event[]
  readonly rejected: readonly Rejection[]
  readonly settle: (acceptance: Acceptance) => void
}

/** What the service has counted since it started. messages = accepted + duplicates + rejected + deferred. */
export interface AcceptCounters {
  messages: number
  accepted: number
  duplicates: number
  rejected: number
  /** Refused for now, because a bound was reached; the sender tries again. */
  deferred: number
  /** Among the accepted and the duplicates: of a time that is still to come, and counted as of now. */
  ahead: number
}

/**
 * Takes admitted events into the durable buffer. Batches that arrive while the loop is busy share one transaction, and
 * each is answered only when that transaction is on disk.
 */
export class EventAcceptor {
  readonly counters: AcceptCounters = { messages: 0, accepted: 0, duplicates: 0, rejected: 0, deferred: 0, ahead: 0 }
  readonly #store: Store
  readonly #matcher: NameMatcher
  readonly #clock: Clock
  readonly #log: Logger
  readonly #onBuffered: (organizationId: string) => void
  #waiting: Waiting[] = []
  #waitingEvents = 0

  constructor(
    store: Store,
    matcher: NameMatcher,
    clock: Clock,
    log: Logger,
    onBuffered: (organizationId: string) => void,
  ) {
    this.#store = store
    this.#matcher = matcher
    this.#clock = clock
    this.#log = log
    this.#onBuffered = onBuffered
  }

  /** Takes one batch of an organization: its events, or a line for each that could not be read. */
  accept(organizationId: string, batch: readonly (Event | string)[]): Promise<Acceptance> {
    const events: Event[] = []
    const rejected: Rejection[] = []
    const nowMs = this.#clock.nowMs()
    if (nowMs < CLOCK_SET_MS) {
      this.counters.messages += batch.length
      this.counters.deferred += batch.length
      return Promise.resolve({ kind: 'retry', afterSeconds: RETRY_AFTER_SECONDS, why: 'its clock was never set' })
    }
    for (const [index, event] of batch.entries()) {
      const error = typeof event === 'string' ? event : this.#whyRefused(event)
      if (error !== undefined) rejected.push({ index, error })
      else events.push(this.#inTime(event as Event, nowMs))
    }
    this.counters.messages += batch.length
    if (this.#waitingEvents + events.length > PENDING_EVENTS_MAX) {
      this.counters.deferred += batch.length
      return Promise.resolve({ kind: 'retry', afterSeconds: RETRY_AFTER_SECONDS, why: 'the service is busy' })
    }
    return new Promise((settle) => {
      this.#waiting.push({ organizationId, events, rejected, settle })
      this.#waitingEvents += events.length
      if (this.#waiting.length === 1) setImmediate(() => this.#commit())
    })
  }

  /** A sender whose clock is wrong has seen something all the same; but nothing may stand where the evidence window never ends. */
  #inTime(event: Event, nowMs: number): Event {
    if (event.lastSeenMs <= nowMs + FUTURE_MS_MAX) return event
    this.counters.ahead++
    return { ...event, firstSeenMs: Math.min(event.firstSeenMs, nowMs), lastSeenMs: nowMs }
  }

  #whyRefused(event: Event): string | undefined {
    if (this.#matcher.match(event.name) === undefined)
      return `name: ${event.name} belongs to no platform of the service's registry`
    return undefined
  }

  #commit(): void {
    const batches = this.#waiting
    this.#waiting = []
    this.#waitingEvents = 0
    let outcomes: Acceptance[]
    try {
      outcomes = this.#store.environment.write(() => batches.map((batch) => this.#storeBatch(batch)))
      faultPoint('accept:committed')
    } catch (error) {
      if (!(error instanceof Fault)) this.#log.error({ err: error }, 'events could not be stored')
      const why = isFault(error, 'STORE_FULL') ? 'the disk is full' : 'the store cannot be written'
      outcomes = batches.map(() => ({ kind: 'retry', afterSeconds: RETRY_AFTER_SECONDS, why }))
    }
    for (const [index, batch] of batches.entries()) this.#settle(batch, outcomes[index] as Acceptance)
    for (const organizationId of new Set(batches.map((batch) => batch.organizationId))) this.#onBuffered(organizationId)
  }

  /** Inside the transaction. */
  #storeBatch(batch: Waiting): Acceptance {
    if (this.#store.buffer.count(batch.organizationId) + batch.events.length > BUFFERED_EVENTS_MAX) {
      return { kind: 'retry', afterSeconds: RETRY_AFTER_SECONDS, why: "the organization's buffer is full" }
    }
    const unseen = this.#store.seenEvents.keepUnseen(batch.organizationId, batch.events, this.#clock.nowMs())
    this.#store.buffer.append(batch.organizationId, unseen)
    return {
      kind: 'stored',
      accepted: unseen.length,
      duplicates: batch.events.length - unseen.length,
      rejected: batch.rejected,
    }
  }

  #settle(batch: Waiting, outcome: Acceptance): void {
    if (outcome.kind === 'stored') {
      this.counters.accepted += outcome.accepted
      this.counters.duplicates += outcome.duplicates
      this.counters.rejected += outcome.rejected.length
    } else {
      this.counters.deferred += batch.events.length + batch.rejected.length
    }
    batch.settle(outcome)
  }
}
