import type { Event } from '../../engine/event.ts'
import type { Logger } from '../../engine/process/log.ts'
import { FORWARD_BYTES_MAX, FORWARD_EVENTS_MAX, FORWARD_IDLE_MS, FORWARD_PROBE_MS } from '../limits.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Forwarder, Outcome } from './forwarder.ts'
import { backoffMs } from './retry.ts'

/** The same complaint is logged when it begins and then this often. */
const COMPLAIN_EVERY_MS = 60_000

/** matched events = acknowledged + refused + what waits in the outbox + what the outbox dropped. */
export interface ForwardCounters {
  /** With the service. Among them `duplicates`, which it had already. */
  acknowledged: number
  duplicates: number
  /** The service will never take them. */
  refused: number
  batches: number
  retries: number
  /** Time from a batch's sending to its answer, of all batches that were answered, in milliseconds. */
  answerMs: number
}

/** Whether events get through, by what happened last. */
export interface ForwardState {
  /** The service answered, and took what it was sent. */
  readonly connected: boolean
  /** Why not; empty before the first try. */
  readonly problem: string
  /** Since when that is so, in milliseconds of the monotonic clock; of a connection, when it last answered. */
  readonly sinceMs: number
}

/** Moves events from the outbox to the service, oldest first, one batch at a time, until it is stopped. */
export class ForwardLoop {
  readonly counters: ForwardCounters = {
    acknowledged: 0,
    duplicates: 0,
    refused: 0,
    batches: 0,
    retries: 0,
    answerMs: 0,
  }
  readonly #outbox: Outbox
  readonly #forwarder: Forwarder
  readonly #log: Logger
  readonly #probes: boolean
  readonly #off: boolean
  #state: ForwardState
  #stopping = false
  #finishing = false
  /** Sleeps because nothing waits. */
  #idle = false
  #probedMs = 0
  #wake: () => void = () => {}
  #complained = { why: '', atMs: 0 }

  /**
   * With `probes` an empty batch is sent when nothing else was for a while: so the state is true on a quiet link, too. With `off` nothing is
   * sent, and events wait.
   */
  constructor(
    outbox: Outbox,
    forwarder: Forwarder,
    log: Logger,
    options: { readonly probes?: boolean; readonly off?: boolean } = {},
  ) {
    this.#outbox = outbox
    this.#forwarder = forwarder
    this.#log = log
    this.#probes = options.probes ?? false
    this.#off = options.off ?? false
    const problem = this.#off ? 'forwarding is turned off' : ''
    this.#state = { connected: false, problem, sinceMs: this.#off ? Number.NEGATIVE_INFINITY : 0 }
  }

  get state(): ForwardState {
    return this.#state
  }

  /**
   * Runs until stopped, or until the outbox is empty after `finish` was called.
   *
   * @returns why it ended; with `unauthorised` the events stay in the outbox.
   */
  async run(): Promise<{ readonly kind: 'stopped' } | { readonly kind: 'unauthorised'; readonly why: string }> {
    let attempt = 0
    let eventsMax = FORWARD_EVENTS_MAX
    while (!this.#stopping) {
      if (this.#off) {
        if (this.#finishing) break
        await this.#sleep(FORWARD_IDLE_MS)
        continue
      }
      const waiting = this.#outbox.oldest(eventsMax, FORWARD_BYTES_MAX)
      if (waiting === undefined) {
        if (this.#finishing) return { kind: 'stopped' }
        const probed = await this.#probe()
        if (probed?.kind === 'unauthorised') return probed
        this.#idle = true
        await this.#sleep(FORWARD_IDLE_MS)
        this.#idle = false
        continue
      }
      const outcome = await this.#send(waiting.events)
      switch (outcome.kind) {
        case 'accepted':
          this.#outbox.acknowledge(waiting.lastSequence)
          this.counters.batches++
          this.counters.acknowledged += waiting.events.length - outcome.rejected.length
          this.counters.duplicates += outcome.duplicates
          if (outcome.rejected.length > 0) this.#refuse(outcome.rejected.length, outcome.rejected[0] ?? '')
          if (attempt > 0) this.#log.info({ waiting: this.#outbox.waiting }, 'forwarding again')
          attempt = 0
          eventsMax = FORWARD_EVENTS_MAX
          break
        case 'retry':
          attempt++
          this.counters.retries++
          this.#complain(outcome.why)
          await this.#sleep(Math.max(outcome.afterMs ?? 0, backoffMs(attempt)))
          break
        case 'refused':
          // One bad event must not hold up the others: halve the batch until it stands alone.
          if (waiting.events.length > 1) {
            eventsMax = Math.ceil(waiting.events.length / 2)
            break
          }
          this.#outbox.acknowledge(waiting.lastSequence)
          this.#refuse(1, outcome.why)
          eventsMax = FORWARD_EVENTS_MAX
          break
        case 'notPassed':
          this.counters.retries++
          this.#complain(outcome.why)
          if (waiting.events.length > 1) {
            eventsMax = Math.ceil(waiting.events.length / 2)
            break
          }
          attempt++
          await this.#sleep(backoffMs(attempt))
          break
        case 'unauthorised':
          return outcome
        default:
          outcome satisfies never
      }
    }
    return { kind: 'stopped' }
  }

  /** Something was written to the outbox: looks at once, unless it waits for a service that does not answer. */
  look(): void {
    if (this.#idle) this.#wake()
  }

  /** Ends the run once nothing waits any more. */
  finish(): void {
    this.#finishing = true
    this.#wake()
  }

  /** Ends the run after the batch that is under way. What waits stays in the outbox. */
  stop(): void {
    this.#stopping = true
    this.#wake()
  }

  async #send(events: readonly Event[]): Promise<Outcome> {
    const startMs = performance.now()
    const outcome = await this.#forwarder.send(events)
    const nowMs = performance.now()
    const connected = outcome.kind === 'accepted' || outcome.kind === 'refused'
    if (connected) this.counters.answerMs += nowMs - startMs
    const sinceMs = connected || this.#state.connected || this.#state.sinceMs === 0 ? nowMs : this.#state.sinceMs
    this.#state = { connected, problem: 'why' in outcome && !connected ? outcome.why : '', sinceMs }
    return outcome
  }

  /** Sends nothing, to see whether it would get through. */
  async #probe(): Promise<Outcome | undefined> {
    const { sinceMs } = this.#state
    const untriedMs = performance.now() - Math.max(sinceMs, this.#probedMs)
    if (!this.#probes || this.#finishing || (sinceMs > 0 && untriedMs < FORWARD_PROBE_MS)) return undefined
    this.#probedMs = performance.now()
    const outcome = await this.#send([])
    if (outcome.kind === 'retry' || outcome.kind === 'notPassed') this.#complain(outcome.why)
    return outcome
  }

  #refuse(count: number, why: string): void {
    this.counters.refused += count
    this.#log.warn({ refused: count, why }, 'the service refused events')
  }

  #complain(why: string): void {
    const nowMs = Date.now()
    if (why === this.#complained.why && nowMs - this.#complained.atMs < COMPLAIN_EVERY_MS) return
    this.#complained = { why, atMs: nowMs }
    this.#log.warn({ why, waiting: this.#outbox.waiting }, 'cannot forward, the events wait in the outbox')
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
