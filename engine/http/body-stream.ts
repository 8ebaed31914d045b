import { type BodyEnd, type BodyPace, type TakeChunk, watchPace } from './port.ts'

export interface BodyStreamOptions {
  readonly bytesMax: number
  readonly pace: BodyPace | undefined
  readonly take: TakeChunk
  /** Stop and start reading from the connection. */
  readonly pause: () => void
  readonly resume: () => void
}

/** Passes the chunks of a body on, one at a time, and pauses the connection meanwhile. */
export class BodyStream {
  readonly ended: Promise<BodyEnd>
  readonly #options: BodyStreamOptions
  readonly #settle: (end: BodyEnd) => void
  readonly #fail: (error: unknown) => void
  /** Arrived after the connection was paused: what the socket had read before. */
  #waiting: Uint8Array[] = []
  #bytes = 0
  #isBusy = false
  #isComplete = false
  #isSettled = false
  #pausedMs = 0

  constructor(options: BodyStreamOptions) {
    this.#options = options
    let settle: (end: BodyEnd) => void = () => {}
    let fail: (error: unknown) => void = () => {}
    this.ended = new Promise((resolve, reject) => {
      settle = resolve
      fail = reject
    })
    const { pace } = options
    // The client is not slow while it has to wait.
    const credit = (): number => (this.#pausedMs / 1000) * (pace?.bytesPerSecondMin ?? 0)
    const isWaiting = (): number => (this.#isBusy ? Number.POSITIVE_INFINITY : 0)
    const stopWatch = watchPace(
      pace,
      () => this.#bytes + credit() + isWaiting(),
      () => this.#settle('too slow'),
    )
    const once = <A>(work: (value: A) => void): ((value: A) => void) => {
      return (value) => {
        if (this.#isSettled) return
        this.#isSettled = true
        this.#waiting = []
        stopWatch()
        work(value)
      }
    }
    this.#settle = once(settle)
    this.#fail = once(fail)
  }

  /** Receives a chunk, which belongs to the stream from now on. */
  push(chunk: Uint8Array): void {
    if (this.#isSettled) return
    this.#bytes += chunk.length
    if (this.#bytes > this.#options.bytesMax) return this.#settle('too large')
    this.#waiting.push(chunk)
    this.#passOn()
  }

  /** The body is complete. */
  complete(): void {
    this.#isComplete = true
    this.#passOn()
  }

  /** The connection is closed. */
  abort(): void {
    if (!this.#isComplete) this.#settle('aborted')
  }

  #passOn(): void {
    while (!this.#isBusy && !this.#isSettled) {
      const chunk = this.#waiting.shift()
      if (chunk === undefined) {
        if (this.#isComplete) this.#settle('ended')
        return
      }
      let taken: void | Promise<void>
      try {
        taken = this.#options.take(chunk)
      } catch (error) {
        return this.#fail(error)
      }
      if (taken !== undefined) this.#wait(taken)
    }
  }

  #wait(taking: Promise<void>): void {
    const sinceMs = performance.now()
    this.#isBusy = true
    this.#options.pause()
    const taken = (): void => {
      this.#isBusy = false
      this.#pausedMs += performance.now() - sinceMs
      this.#passOn()
      if (!this.#isBusy) this.#options.resume()
    }
    taking.catch(this.#fail).then(taken)
  }
}
