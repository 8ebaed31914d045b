import { deferredFailure } from '../engine/process/deferred.ts'
import { COLLECTOR_QUIET_TICK_MS, COLLECTOR_TICK_MS } from './limits.ts'

export interface TickerWork {
  /** At each tick, with the time of the monotonic clock in milliseconds. */
  readonly tick: (nowMs: number) => void | Promise<void>
  /** At the first tick of each second. */
  readonly second: (nowMs: number) => void
  /** Whether the next tick comes after COLLECTOR_TICK_MS, or after COLLECTOR_QUIET_TICK_MS. */
  readonly isBusy: () => boolean
}

/** Calls the work that has its time while packets come as they happen: often while there is something to do, rarely on a quiet link. */
export class Ticker {
  readonly #work: TickerWork
  readonly #failure = deferredFailure()
  #timer: NodeJS.Timeout | undefined
  #state: 'waiting' | 'running' | 'stopped' = 'waiting'
  #second = -1

  constructor(work: TickerWork) {
    this.#work = work
  }

  /** The promise never resolves. It rejects with what the work throws, after which the ticks go on until stop(). */
  start(): Promise<never> {
    if (this.#state === 'waiting') this.#state = 'running'
    this.#tickIn(0)
    return this.#failure.promise
  }

  /** There is something to do, after there was nothing. Before the start and after the end it does nothing. */
  hurry(): void {
    this.#tickIn(COLLECTOR_TICK_MS)
  }

  stop(): void {
    this.#state = 'stopped'
    clearTimeout(this.#timer)
  }

  #tickIn(ms: number): void {
    clearTimeout(this.#timer)
    if (this.#state === 'running') this.#timer = setTimeout(() => this.#tick(), ms)
  }

  #tick(): void {
    const nowMs = performance.now()
    // While the disk is full a tick lasts; the next ones come meanwhile.
    void this.#run(() => this.#work.tick(nowMs))
    const second = Math.floor(nowMs / 1000)
    if (second !== this.#second) {
      this.#second = second
      void this.#run(() => this.#work.second(nowMs))
    }
    this.#tickIn(this.#work.isBusy() ? COLLECTOR_TICK_MS : COLLECTOR_QUIET_TICK_MS)
  }

  async #run(work: () => void | Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#failure.reject(error)
    }
  }
}
