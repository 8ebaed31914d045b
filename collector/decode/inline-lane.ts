import type { BatchPool } from '../capture/batch-pool.ts'
import type { DecodeLane } from './delivery.ts'

/** The lane of a capture thread that decodes itself: a batch comes decoded, and is run again there when its rows were read. */
export class InlineLane implements DecodeLane {
  readonly #pool: BatchPool
  readonly #answers: boolean[] = []
  #take: ((done: boolean) => void) | undefined

  constructor(pool: BatchPool) {
    this.#pool = pool
  }

  /** The thread has decoded: all of the batch, or as much as there was room for rows. */
  decoded(done: boolean): void {
    const take = this.#take
    this.#take = undefined
    if (take === undefined) this.#answers.push(done)
    else take(done)
  }

  decode(): Promise<boolean> {
    const answer = this.#answers.shift()
    if (answer !== undefined) return Promise.resolve(answer)
    // The thread waits for this behind each answer that was false, so there is never a second one under way.
    this.#pool.runAgain()
    return new Promise((resolve) => {
      this.#take = resolve
    })
  }

  async stop(): Promise<void> {}
}
