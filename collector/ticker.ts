import { deferredFailure } from '../engine/kernel/process/deferred.ts'
import { COLLECTOR_QUIET_TICK_MS, COLLECTOR_TICK_MS } from './limits.ts'

export interface TickerWork {
  /** Called at each tick, with the time of the monotonic clock in milliseconds. */
  readonly tick: (nowMs: number) => void | Promise<void>
  /** Called at the first tick of each second. */
  readonly second: (nowMs: number) => void
  /**
   * Selects the delay of the next tick: COLLECTOR_TICK_MS if busy, otherwise
   * COLLECTOR_QUIET_TICK_MS.
   */
  readonly isBusy: () => boolean
}

/** Runs the periodic work of a live source: often while there is work, rarely on a quiet link. */
export class Ticker {
  readonly #work: TickerWork
  readonly #failure = deferredFailure()
  #timer: NodeJS.Timeout | undefined
  #state: 'waiting' | 'running' | 'stopped' = 'waiting'
  #second = -1

  constructor(work: TickerWork) {
    this.#work = work
  }

  /**
   * Starts the ticks. The promise never resolves. It rejects with the error of the work, and the
   * ticks continue until stop().
   */
  start(): Promise<never> {
    if (this.#state === 'waiting') this.#state = 'running'
    this.#tickIn(0)
    return this.#failure.promise
  }

  /**
   * Call when there is work after there was none. Has no effect before start() and after stop().
   */
  wake(): void {
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
    // While the disk is full a tick does not finish, and further ticks follow meanwhile.
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
