import type { BatchPool } from '../batch/batch-pool.ts'
import type { DecodeLane } from './delivery.ts'

/** What the thread is told. */
export interface InlineOrder {
  readonly trie: SharedArrayBuffer
}

/** The lane of a capture thread that decodes itself: a batch comes decoded, and is run again there when its rows were read. */
export class InlineLane implements DecodeLane {
  readonly #pool: BatchPool
  readonly #post: (order: InlineOrder) => void
  readonly #answers: boolean[] = []
  readonly #tries: (() => void)[] = []
  #take: ((done: boolean) => void) | undefined

  /** `post` sends to the thread. */
  constructor(pool: BatchPool, post: (order: InlineOrder) => void) {
    this.#pool = pool
    this.#post = post
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

  /** The thread takes it with its next batch, of which a live capture has one a second at least. */
  useTrie(trie: SharedArrayBuffer): Promise<void> {
    return new Promise((resolve) => {
      this.#tries.push(resolve)
      this.#post({ trie })
    })
  }

  /** The thread has taken a registry. */
  trieTaken(): void {
    this.#tries.shift()?.()
  }

  async stop(): Promise<void> {
    for (const resolve of this.#tries.splice(0)) resolve()
  }
}
