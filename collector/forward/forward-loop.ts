import type { CoverageReport } from '../../engine/event/coverage-report.ts'
import type { Event } from '../../engine/event/event.ts'
import { deferred } from '../../engine/process/deferred.ts'
import { isFault } from '../../engine/process/error-codes.ts'
import { failureText, logFailure } from '../../engine/process/failure.ts'
import type { Logger } from '../../engine/process/log.ts'
import { within } from '../../engine/process/shutdown.ts'
import {
  COVERAGE_LAST_MS,
  FORWARD_IDLE_MS,
  FORWARD_PAUSE_MS,
  FORWARD_PROBE_MS,
  FULL_DISK_RETRY_MS,
  OVERDUE_MS,
} from '../limits.ts'
import type { CoverageReporter } from './coverage-reporter.ts'
import type { Forwarder, Outcome } from './forwarder.ts'
import { backoffMs } from './retry.ts'
import type { Supply } from './supply.ts'

/** The same complaint is logged when it begins and then this often. */
const COMPLAIN_EVERY_MS = 60_000

/** matched events = acknowledged + refused + what waits in the outbox + what the outbox dropped. */
export interface ForwardCounters {
  /** By HTTPS, with the service; among them `duplicates`, which it had already, and `tooLate`, which it may have had. By syslog, with the operating system. */
  acknowledged: number
  duplicates: number
  tooLate: number
  /** The service will never take them. */
  refused: number
  batches: number
  retries: number
  /** Time from a batch's sending to its answer, of all batches that were answered, in milliseconds. */
  answerMs: number
}

/** Whether events get through, by what happened last. */
export interface ForwardState {
  /** The last batch, or a probe without events, got through, and no connection was lost since. */
  readonly connected: boolean
  /** Why not; empty before the first try. */
  readonly problem: string
  /** When something last got through, or was tried first, in milliseconds of the monotonic clock; 0 before. */
  readonly sinceMs: number
}

export interface ForwardOptions {
  readonly supply: Supply
  readonly forwarder: Forwarder
  readonly log: Logger
  /** A batch is sent when so many events wait, or so many bytes, or one has waited so long. */
  readonly batch: { readonly events: number; readonly bytes: number; readonly lingerMs: number }
  /** Sends an empty batch when nothing else was sent for a while: so the state is true on a quiet link, too. */
  readonly probes?: boolean
  /** Something got through. */
  readonly onSent?: () => void
}

/** Until when the loop runs: it only goes up. */
const Goal = {
  /** Until it is stopped. */
  forward: 0,
  /** Until nothing waits. */
  empty: 1,
  /** No longer than what is under way. */
  stop: 2,
} as const
type Goal = (typeof Goal)[keyof typeof Goal]

/** A pause of the loop: `idle` because nothing waits, or too little, so new events end it; `retry` after a failure, so they do not. */
interface Pause {
  readonly kind: 'idle' | 'retry'
  readonly end: () => void
}

export type ForwardEnd = { readonly kind: 'stopped' } | { readonly kind: 'unauthorized'; readonly why: string }

/**
 * Moves events from the outbox to the service by one way, oldest first, one batch at a time, until it is stopped. A coverage report
 * that is due goes with the next batch, or alone where no events wait.
 */
export class ForwardLoop {
  readonly counters: ForwardCounters = {
    acknowledged: 0,
    duplicates: 0,
    tooLate: 0,
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
  /** When the oldest event that could be sent was seen first; Infinity when there is none. */
  #waitingSinceMs = Number.POSITIVE_INFINITY
  /** When something was sent last, be it a probe, and how long after that a probe is due. */
  #sentMs = 0
  /** When what is under way was sent; 0 when nothing is. */
  #askedMs = 0
  #probeAfterMs = 0
  #failures = 0
  #complained = { why: '', atMs: 0 }

  constructor(options: ForwardOptions) {
    this.#options = options
  }

  get state(): ForwardState {
    const state = this.#state
    const waitedMs = this.#askedMs === 0 ? 0 : performance.now() - this.#askedMs
    if (waitedMs >= OVERDUE_MS) {
      const problem = `no answer for ${Math.round(waitedMs / 1000)} s`
      return { ...state, connected: false, problem: state.connected ? problem : state.problem || problem }
    }
    if (!state.connected || this.#options.forwarder.alive) return state
    return { ...state, connected: false, problem: 'the connection was lost' }
  }

  /**
   * Runs until stopped, or until nothing waits after `finish` was called; then the last coverage report of `reporter` is sent.
   *
   * @returns why it ended; with `unauthorized` the events stay in the outbox.
   */
  async run(reporter?: CoverageReporter): Promise<ForwardEnd> {
    const { supply, batch, log } = this.#options
    this.#reporter = reporter
    let attempt = 0
    let eventsMax = batch.events
    while (this.#goal !== Goal.stop) {
      if (!this.#due()) {
        if (this.#goal === Goal.empty && supply.waiting === 0) return this.#sendLastReport()
        const outcome = await this.#sendEmpty()
        if (outcome?.kind === 'unauthorized') return outcome
        const nextMs = Math.min(this.#waitingSinceMs + batch.lingerMs, this.#emptyAtMs())
        await this.#pauseFor('idle', Math.max(FORWARD_PAUSE_MS, Math.min(FORWARD_IDLE_MS, nextMs - performance.now())))
        continue
      }
      const waiting = supply.take(eventsMax, batch.bytes)
      if (waiting === undefined) {
        // What stands next cannot be read; the way that decides will let it go.
        await this.#pauseFor('retry', FORWARD_IDLE_MS)
        continue
      }
      const { events, lastSequence } = waiting
      const report = this.#reporter?.take()
      const outcome = await this.#send(events, report)
      // An event that is refused alone stays lent until it is known what becomes of it.
      const undecided = outcome.kind === 'refused' && events.length === 1 && report === undefined
      if (outcome.kind !== 'accepted' && !undecided) supply.back()
      switch (outcome.kind) {
        case 'accepted':
          if (!(await this.#done(lastSequence))) break
          this.counters.batches++
          this.counters.acknowledged += events.length - outcome.rejected.length
          this.counters.duplicates += outcome.duplicates
          this.counters.tooLate += outcome.tooLate
          if (outcome.rejected.length > 0) this.#refuse(outcome.rejected.length, outcome.rejected[0] ?? '')
          if (attempt > 0) log.info({ waiting: supply.waiting }, 'forwarding again')
          attempt = 0
          eventsMax = batch.events
          break
        case 'retry':
          attempt++
          this.counters.retries++
          this.#complain(outcome.why)
          await this.#pauseFor('retry', Math.max(outcome.afterMs ?? 0, backoffMs(attempt)))
          break
        case 'refused':
          // The report may be what is refused: the events are tried without it first.
          if (report !== undefined) break
          // One bad event must not hold up the others: halve the batch until it stands alone.
          if (events.length > 1) {
            eventsMax = Math.ceil(events.length / 2)
            break
          }
          // Nothing is given up to somebody who refuses everything: another release, a gateway that answers like the service.
          if ((await this.#send([])).kind !== 'accepted') {
            supply.back()
            attempt++
            this.counters.retries++
            this.#complain(outcome.why)
            await this.#pauseFor('retry', backoffMs(attempt))
            break
          }
          if (!(await this.#done(lastSequence))) break
          this.#refuse(1, outcome.why)
          eventsMax = batch.events
          break
        case 'notPassed':
          this.counters.retries++
          this.#complain(outcome.why)
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

  /** Something was written to the outbox: looks at once, unless it waits for a service that does not answer. */
  poll(): void {
    if (this.#pause?.kind === 'idle') this.#pause.end()
  }

  /** Ends the run once nothing waits any more. */
  finish(): void {
    this.#aim(Goal.empty)
  }

  /** Ends the run after the batch that is under way. What waits stays in the outbox. */
  stop(): void {
    this.#aim(Goal.stop)
  }

  /** Whether there is a batch: enough events, or one that has waited long enough. */
  #due(): boolean {
    const { supply, batch } = this.#options
    const { available } = supply
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
    this.#askedMs = startMs
    const outcome = await this.#outcomeOf(events, report)
    this.#askedMs = 0
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

  /** An internal error costs no event: the batch is tried again, as after any failure. */
  async #outcomeOf(events: readonly Event[], report: CoverageReport | undefined): Promise<Outcome> {
    try {
      return await this.#options.forwarder.send(events, report)
    } catch (error) {
      logFailure(this.#options.log, error, 'the batch could not be sent')
      return { kind: 'retry', why: failureText(error) }
    }
  }

  /** Notes in the outbox what was taken; false when it was stopped before there was space for that. The service knows the ids then. */
  async #done(lastSequence: number): Promise<boolean> {
    const { supply, onSent } = this.#options
    while (true) {
      try {
        supply.done(lastSequence)
        // More may be due at once, and what is not has waited since now at the longest.
        this.#waitingSinceMs = Number.POSITIVE_INFINITY
        onSent?.()
        return true
      } catch (error) {
        if (!isFault(error, 'STORE_FULL')) throw error
        this.#complain(error.message)
        if (this.#goal === Goal.stop) {
          supply.back()
          return false
        }
        await this.#pauseFor('retry', FULL_DISK_RETRY_MS)
      }
    }
  }

  /**
   * Sends a batch without events: a probe, now and then, to see whether it would get through, and after a failure as another try would
   * be; or a coverage report that no events wait to carry.
   */
  async #sendEmpty(): Promise<Outcome | undefined> {
    if (performance.now() < this.#emptyAtMs()) return undefined
    const report = this.#reporter?.take()
    if (report === undefined && performance.now() < this.#probeAtMs()) return undefined
    const outcome = await this.#send([], report)
    if (outcome.kind === 'retry' || outcome.kind === 'notPassed') this.#complain(outcome.why)
    return outcome
  }

  /** After the last events. Tries again as with events, for COVERAGE_LAST_MS at most. */
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
    const reportAtMs = this.#options.supply.available === 0 ? this.#reporter?.dueMs : undefined
    return Math.min(this.#probeAtMs(), reportAtMs ?? Number.POSITIVE_INFINITY)
  }

  #probeAtMs(): number {
    if (!this.#options.probes || this.#goal !== Goal.forward) return Number.POSITIVE_INFINITY
    // A connection that was lost is made anew at once.
    if (!this.state.connected && this.#state.connected) return 0
    return this.#sentMs + this.#probeAfterMs
  }

  #refuse(count: number, why: string): void {
    this.counters.refused += count
    this.#options.log.warn({ refused: count, why }, 'the service refused events')
  }

  #complain(why: string): void {
    const nowMs = Date.now()
    if (why === this.#complained.why && nowMs - this.#complained.atMs < COMPLAIN_EVERY_MS) return
    this.#complained = { why, atMs: nowMs }
    const { log, supply } = this.#options
    log.warn({ why, waiting: supply.waiting }, 'cannot forward, the events wait in the outbox')
  }

  #aim(goal: Goal): void {
    if (goal > this.#goal) this.#goal = goal
    this.#pause?.end()
  }

  /** Until the time is up, or the pause is ended. */
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
