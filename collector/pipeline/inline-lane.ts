import { type Deferred, deferred } from '../../engine/process/deferred.ts'
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
  readonly #tries: Deferred<void>[] = []
  #taker: Deferred<boolean> | undefined

  /** `post` sends to the thread. */
  constructor(pool: BatchPool, post: (order: InlineOrder) => void) {
    this.#pool = pool
    this.#post = post
  }

  /** The thread has decoded: all of the batch, or as much as there was room for rows. */
  decoded(done: boolean): void {
    const taker = this.#taker
    this.#taker = undefined
    if (taker === undefined) this.#answers.push(done)
    else taker.resolve(done)
  }

  decode(): Promise<boolean> {
    const answer = this.#answers.shift()
    if (answer !== undefined) return Promise.resolve(answer)
    // The thread waits for this behind each answer that was false, so there is never a second one under way.
    this.#pool.runAgain()
    this.#taker = deferred()
    return this.#taker.promise
  }

  /** The thread takes it with its next batch, of which a live capture has one a second at least. */
  useTrie(trie: SharedArrayBuffer): Promise<void> {
    const taken = deferred()
    this.#tries.push(taken)
    this.#post({ trie })
    return taken.promise
  }

  /** The thread has taken a registry. */
  trieTaken(): void {
    this.#tries.shift()?.resolve()
  }

  async stop(): Promise<void> {
    for (const taken of this.#tries.splice(0)) taken.resolve()
  }
}
