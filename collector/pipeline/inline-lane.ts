import { type Deferred, deferred } from '../../engine/kernel/process/deferred.ts'
import type { BatchPool } from '../batch/batch-pool.ts'
import type { DecodeLane } from './delivery.ts'

/** Message to the thread. */
export interface InlineOrder {
  readonly trie: SharedArrayBuffer
}

/**
 * The lane of a capture thread that decodes. Batches arrive decoded. A batch runs again in that
 * thread after its rows were read.
 */
export class InlineLane implements DecodeLane {
  readonly #pool: BatchPool
  readonly #post: (order: InlineOrder) => void
  readonly #answers: boolean[] = []
  readonly #tries: Deferred<void>[] = []
  #waiter: Deferred<boolean> | undefined

  /** `post` sends a message to the thread. */
  constructor(pool: BatchPool, post: (order: InlineOrder) => void) {
    this.#pool = pool
    this.#post = post
  }

  /** The thread has decoded the batch, or as much as fits the rows area. */
  decoded(done: boolean): void {
    const waiter = this.#waiter
    this.#waiter = undefined
    if (waiter === undefined) this.#answers.push(done)
    else waiter.resolve(done)
  }

  decode(): Promise<boolean> {
    const answer = this.#answers.shift()
    if (answer !== undefined) return Promise.resolve(answer)
    // After each result of false, the thread waits for this call, so at most one call is in
    // progress.
    this.#pool.runAgain()
    this.#waiter = deferred()
    return this.#waiter.promise
  }

  /** The thread switches at its next batch. A live capture has at least one batch a second. */
  useTrie(trie: SharedArrayBuffer): Promise<void> {
    const taken = deferred()
    this.#tries.push(taken)
    this.#post({ trie })
    return taken.promise
  }

  /** The thread has switched to another registry. */
  trieTaken(): void {
    this.#tries.shift()?.resolve()
  }

  async stop(): Promise<void> {
    for (const taken of this.#tries.splice(0)) taken.resolve()
  }
}
