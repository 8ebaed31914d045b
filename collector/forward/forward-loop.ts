import type { CoverageReport } from '../../engine/kernel/event/coverage-report.ts'
import type { Event } from '../../engine/kernel/event/event.ts'
import { deferred } from '../../engine/kernel/process/deferred.ts'
import { isFault } from '../../engine/kernel/process/error-codes.ts'
import { failureText, logFailure } from '../../engine/kernel/process/failure.ts'
import type { Logger } from '../../engine/kernel/process/log.ts'
import { within } from '../../engine/kernel/process/signals.ts'
import {
  COVERAGE_LAST_MS,
  FORWARD_IDLE_MS,
  FORWARD_PAUSE_MS,
  FORWARD_PROBE_MS,
  FULL_DISK_RETRY_MS,
  OVERDUE_MS,
} from '../limits.ts'
import type { CoverageReporter } from './coverage-reporter.ts'
import type { EventSource } from './event-source.ts'
import { backoffMs, type Forwarder, type Outcome } from './forwarder.ts'

/** A problem is logged when it begins, and again after this time. */
const LOG_PROBLEM_EVERY_MS = 60_000

/** matched events = acknowledged + refused + waiting in the outbox + dropped from the outbox. */
export interface ForwardCounters {
  /**
   * HTTPS: on the service's disk, or `duplicates`, which the service already had, or
   * `outsideDedupWindow`, which it may already have had. Syslog: passed to the operating system.
   */
  acknowledged: number
  duplicates: number
  outsideDedupWindow: number
  /** Events that the service will never accept. */
  refused: number
  batches: number
  retries: number
  /** Total time from sending a batch to its answer, in milliseconds. */
  answerMs: number
}

/** Whether events are delivered, by the most recent outcome. */
export interface ForwardState {
  /** The last batch or probe succeeded, and the connection was not lost since. */
  readonly connected: boolean
  /** Why not connected; empty before the first attempt. */
  readonly problem: string
  /**
   * Time of the last success, or of the first attempt if there was none, in milliseconds of the
   * monotonic clock; 0 before.
   */
  readonly sinceMs: number
}

export interface ForwardOptions {
  readonly source: EventSource
  readonly forwarder: Forwarder
  readonly log: Logger
  /** A batch is sent when this many events or bytes wait, or an event has waited this long. */
  readonly batch: { readonly events: number; readonly bytes: number; readonly lingerMs: number }
  /**
   * Sends an empty batch after a time without traffic, so that the state is correct on a quiet
   * link, too.
   */
  readonly probes?: boolean
  /** Called when a batch succeeded. */
  readonly onSent?: () => void
}

/** How long the loop runs. The goal only increases. */
const Goal = {
  /** Until stopped. */
  forward: 0,
  /** Until no event waits. */
  empty: 1,
  /** Until the batch in progress is done. */
  stop: 2,
} as const
type Goal = (typeof Goal)[keyof typeof Goal]

/**
 * A pause of the loop: `idle` because too few events wait, ended by new events; `retry` after a
 * failure, not ended by new events.
 */
interface Pause {
  readonly kind: 'idle' | 'retry'
  readonly end: () => void
}

export type ForwardEnd = { readonly kind: 'stopped' } | { readonly kind: 'unauthorized'; readonly why: string }

/**
 * Moves events from the outbox to the service by one transport, oldest first, one batch at a time,
 * until stopped. A due coverage report goes with the next batch, or alone if no events wait.
 */
export class ForwardLoop {
  readonly counters: ForwardCounters = {
    acknowledged: 0,
    duplicates: 0,
    outsideDedupWindow: 0,
    refused: 0,
    batches: 0,
    retries: 0,
    answerMs: 0,
  }
  readonly #options: ForwardOptions
  #reporter: CoverageReporter | undefined
  #state: ForwardState = { connected: false, problem: '', sinceMs: 0 }
  #goal: Goal = Goal.forward
  /** Undefined while the loop works. */
  #pause: Pause | undefined
  /** When the oldest available event was first seen; Infinity if there is none. */
  #waitingSinceMs = Number.POSITIVE_INFINITY
  /** When a batch or probe was last sent, and how long after that the next probe is due. */
  #sentMs = 0
  /** When the request in progress was sent; 0 if there is none. */
  #sendingSinceMs = 0
  #probeAfterMs = 0
  #failures = 0
  #loggedProblem = { why: '', atMs: 0 }

  constructor(options: ForwardOptions) {
    this.#options = options
  }

  get state(): ForwardState {
    const state = this.#state
    const waitedMs = this.#sendingSinceMs === 0 ? 0 : performance.now() - this.#sendingSinceMs
    if (waitedMs >= OVERDUE_MS) {
      const problem = `no answer for ${Math.round(waitedMs / 1000)} s`
      return { ...state, connected: false, problem: state.connected ? problem : state.problem || problem }
    }
    if (!state.connected || this.#options.forwarder.alive) return state
    return { ...state, connected: false, problem: 'the connection was lost' }
  }

  /**
   * Runs until stopped, or until no event waits after finish() was called. Then sends the last
   * coverage report of `reporter`.
   *
   * @returns why the loop ended. After `unauthorized` the events stay in the outbox.
   */
  async run(reporter?: CoverageReporter): Promise<ForwardEnd> {
    const { source, batch, log } = this.#options
    this.#reporter = reporter
    let attempt = 0
    let eventsMax = batch.events
    while (this.#goal !== Goal.stop) {
      if (!this.#due()) {
        if (this.#goal === Goal.empty && source.waiting === 0) return this.#sendLastReport()
        const outcome = await this.#sendEmpty()
        if (outcome?.kind === 'unauthorized') return outcome
        const nextMs = Math.min(this.#waitingSinceMs + batch.lingerMs, this.#emptyAtMs())
        await this.#pauseFor('idle', Math.max(FORWARD_PAUSE_MS, Math.min(FORWARD_IDLE_MS, nextMs - performance.now())))
        continue
      }
      const waiting = source.take(eventsMax, batch.bytes)
      if (waiting === undefined) {
        // The next events are unreadable. The deciding transport will drop them.
        await this.#pauseFor('retry', FORWARD_IDLE_MS)
        continue
      }
      const { events, lastSequence } = waiting
      const report = this.#reporter?.take()
      const outcome = await this.#send(events, report)
      // A single refused event stays in flight until its outcome is known.
      const undecided = outcome.kind === 'refused' && events.length === 1 && report === undefined
      if (outcome.kind !== 'accepted' && !undecided) source.putBack()
      switch (outcome.kind) {
        case 'accepted':
          if (!(await this.#done(lastSequence))) break
          this.counters.batches++
          this.counters.acknowledged += events.length - outcome.rejected.length
          this.counters.duplicates += outcome.duplicates
          this.counters.outsideDedupWindow += outcome.outsideDedupWindow
          if (outcome.rejected.length > 0) this.#refuse(outcome.rejected.length, outcome.rejected[0] ?? '')
          log.debug({ events: events.length, duplicates: outcome.duplicates, waiting: source.waiting }, 'batch sent')
          if (attempt > 0) log.info({ waiting: source.waiting }, 'forwarding again')
          attempt = 0
          eventsMax = batch.events
          break
        case 'retry':
          attempt++
          this.counters.retries++
          this.#logProblem(outcome.why)
          await this.#pauseFor('retry', Math.max(outcome.afterMs ?? 0, backoffMs(attempt)))
          break
        case 'refused':
          // The service may have refused the report: send the events without it first.
          if (report !== undefined) break
          // One bad event must not block the others: halve the batch until the event is alone.
          if (events.length > 1) {
            eventsMax = Math.ceil(events.length / 2)
            break
          }
          // Drop no event for a peer that refuses everything, such as another release or a gateway
          // that answers like the service.
          if ((await this.#send([])).kind !== 'accepted') {
            source.putBack()
            attempt++
            this.counters.retries++
            this.#logProblem(outcome.why)
            await this.#pauseFor('retry', backoffMs(attempt))
            break
          }
          if (!(await this.#done(lastSequence))) break
          this.#refuse(1, outcome.why)
          eventsMax = batch.events
          break
        case 'notPassed':
          this.counters.retries++
          this.#logProblem(outcome.why)
          if (report !== undefined) break
          if (events.length > 1) {
            eventsMax = Math.ceil(events.length / 2)
            break
          }
          attempt++
          await this.#pauseFor('retry', backoffMs(attempt))
          break
        case 'unauthorized':
          return outcome
        default:
          outcome satisfies never
      }
    }
    return { kind: 'stopped' }
  }

  /**
   * Called after a write to the outbox: checks for events at once, unless the loop waits to retry.
   */
  poll(): void {
    if (this.#pause?.kind === 'idle') this.#pause.end()
  }

  /** Ends the run once no event waits. */
  finish(): void {
    this.#raiseGoal(Goal.empty)
  }

  /** Ends the run after the batch in progress. Waiting events stay in the outbox. */
  stop(): void {
    this.#raiseGoal(Goal.stop)
  }

  /** Whether a batch is due: enough events, or one that has waited long enough. */
  #due(): boolean {
    const { source, batch } = this.#options
    const { available } = source
    if (available === 0) {
      this.#waitingSinceMs = Number.POSITIVE_INFINITY
      return false
    }
    const nowMs = performance.now()
    this.#waitingSinceMs = Math.min(this.#waitingSinceMs, nowMs)
    return this.#goal !== Goal.forward || available >= batch.events || nowMs - this.#waitingSinceMs >= batch.lingerMs
  }

  async #send(events: readonly Event[], report?: CoverageReport): Promise<Outcome> {
    const startMs = performance.now()
    this.#sendingSinceMs = startMs
    const outcome = await this.#outcomeOf(events, report)
    this.#sendingSinceMs = 0
    if (report !== undefined) this.#reporter?.settle(report, outcome)
    const nowMs = performance.now()
    const connected = outcome.kind === 'accepted' || outcome.kind === 'refused'
    if (connected) this.counters.answerMs += nowMs - startMs
    this.#sentMs = nowMs
    this.#failures = connected ? 0 : this.#failures + 1
    this.#probeAfterMs = connected ? FORWARD_PROBE_MS : Math.min(FORWARD_PROBE_MS, backoffMs(this.#failures))
    const sinceMs = connected ? nowMs : this.#state.sinceMs || startMs
    this.#state = { connected, problem: 'why' in outcome && !connected ? outcome.why : '', sinceMs }
    return outcome
  }

  /** An internal error loses no event: the batch is retried, as after any failure. */
  async #outcomeOf(events: readonly Event[], report: CoverageReport | undefined): Promise<Outcome> {
    try {
      return await this.#options.forwarder.send(events, report)
    } catch (error) {
      logFailure(this.#options.log, error, 'the batch could not be sent')
      return { kind: 'retry', why: failureText(error) }
    }
  }

  /**
   * Records in the outbox that the events were accepted. Returns false if stopped before there was
   * disk space for that. The service then recognizes the IDs.
   */
  async #done(lastSequence: number): Promise<boolean> {
    const { source, onSent } = this.#options
    while (true) {
      try {
        source.done(lastSequence)
        // More events may be due at once. The others have waited since now at most.
        this.#waitingSinceMs = Number.POSITIVE_INFINITY
        onSent?.()
        return true
      } catch (error) {
        if (!isFault(error, 'STORE_FULL')) throw error
        this.#logProblem(error.message)
        if (this.#goal === Goal.stop) {
          source.putBack()
          return false
        }
        await this.#pauseFor('retry', FULL_DISK_RETRY_MS)
      }
    }
  }

  /**
   * Sends a batch without events: a periodic probe, a probe after a failure with the delay of a
   * retry, or a coverage report while no events wait.
   */
  async #sendEmpty(): Promise<Outcome | undefined> {
    if (performance.now() < this.#emptyAtMs()) return undefined
    const report = this.#reporter?.take()
    if (report === undefined && performance.now() < this.#probeAtMs()) return undefined
    const outcome = await this.#send([], report)
    if (outcome.kind === 'retry' || outcome.kind === 'notPassed') this.#logProblem(outcome.why)
    return outcome
  }

  /** Sends the last report, after the last events. Retries for COVERAGE_LAST_MS at most. */
  async #sendLastReport(): Promise<ForwardEnd> {
    let end: ForwardEnd = { kind: 'stopped' }
    const trying = async (): Promise<void> => {
      for (let attempt = 1; this.#goal !== Goal.stop; attempt++) {
        const report = this.#reporter?.takeLast()
        if (report === undefined) return
        const outcome = await this.#send([], report)
        if (outcome.kind === 'unauthorized') end = outcome
        if (outcome.kind !== 'retry') return
        await this.#pauseFor('retry', Math.max(outcome.afterMs ?? 0, backoffMs(attempt)))
      }
    }
    await within(COVERAGE_LAST_MS, trying())
    this.stop()
    return end
  }

  #emptyAtMs(): number {
    const reportAtMs = this.#options.source.available === 0 ? this.#reporter?.dueMs : undefined
    return Math.min(this.#probeAtMs(), reportAtMs ?? Number.POSITIVE_INFINITY)
  }

  #probeAtMs(): number {
    if (!this.#options.probes || this.#goal !== Goal.forward) return Number.POSITIVE_INFINITY
    // A lost connection is reopened at once.
    if (!this.state.connected && this.#state.connected) return 0
    return this.#sentMs + this.#probeAfterMs
  }

  #refuse(count: number, why: string): void {
    this.counters.refused += count
    this.#options.log.warn({ refused: count, why }, 'the service refused events')
  }

  #logProblem(why: string): void {
    const nowMs = Date.now()
    if (why === this.#loggedProblem.why && nowMs - this.#loggedProblem.atMs < LOG_PROBLEM_EVERY_MS) return
    this.#loggedProblem = { why, atMs: nowMs }
    const { log, source } = this.#options
    log.warn({ why, waiting: source.waiting }, 'cannot forward, the events wait in the outbox')
  }

  #raiseGoal(goal: Goal): void {
    if (goal > this.#goal) this.#goal = goal
    this.#pause?.end()
  }

  /** Waits until the time is up or the pause is ended. */
  async #pauseFor(kind: Pause['kind'], ms: number): Promise<void> {
    if (this.#goal === Goal.stop) return
    const over = deferred()
    const timer = setTimeout(over.resolve, ms)
    this.#pause = { kind, end: over.resolve }
    await over.promise
    clearTimeout(timer)
    this.#pause = undefined
  }
}
