import type { Logger } from '../../engine/process/log.ts'
import { FORWARD_BYTES_MAX, FORWARD_EVENTS_MAX, FORWARD_IDLE_MS } from '../limits.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Forwarder } from './forwarder.ts'
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
}

/** Moves events from the outbox to the service, oldest first, one batch at a time, until it is stopped. */
export class ForwardLoop {
  readonly counters: ForwardCounters = { acknowledged: 0, duplicates: 0, refused: 0, batches: 0, retries: 0 }
  readonly #outbox: Outbox
  readonly #forwarder: Forwarder
  readonly #log: Logger
  #stopping = false
  #finishing = false
  #wake: () => void = () => {}
  #complained = { why: '', atMs: 0 }

  constructor(outbox: Outbox, forwarder: Forwarder, log: Logger) {
    this.#outbox = outbox
    this.#forwarder = forwarder
    this.#log = log
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
      const waiting = this.#outbox.oldest(eventsMax, FORWARD_BYTES_MAX)
      if (waiting === undefined) {
        if (this.#finishing) return { kind: 'stopped' }
        await this.#sleep(FORWARD_IDLE_MS)
        continue
      }
      const outcome = await this.#forwarder.send(waiting.events)
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
