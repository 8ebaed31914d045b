import { Piscina } from 'piscina'
import { type Deferred, deferred } from '../../engine/process/deferred.ts'
import type { DecodeLane } from './delivery.ts'
import { type DecodeAnswer, type DecodeTask, type DecodeWorkerData, NO_BATCH } from './worker-data.ts'

/**
 * One decode worker and the order of its batches. A lane is a piscina pool of exactly one thread, since piscina cannot pin a task to a
 * thread, and both directions of a flow must meet in the same one.
 */
export class Lane implements DecodeLane {
  readonly #pool: Piscina<DecodeTask, DecodeAnswer>
  /** Settles when the thread has loaded its program. One that is ended before takes the process with it (Node 20: IsGraphAsync). */
  readonly #ready: Promise<DecodeAnswer>
  /** Settles when the batch that waits for its rows to be read has been decoded to its end. */
  #blocked: Deferred<void> | undefined
  #stopped = false

  /** `onFailure` hears of a thread that ends while it has no batch to answer for. */
  constructor(data: DecodeWorkerData, onFailure: (error: Error) => void) {
    this.#pool = new Piscina<DecodeTask, DecodeAnswer>({
      filename: new URL('./lane-worker.js', import.meta.url).href,
      workerData: data,
      // The worker is compiled: loaders and flags of the main thread only slow its start.
      execArgv: [],
      minThreads: 1,
      maxThreads: 1,
      idleTimeout: Number.POSITIVE_INFINITY,
      // Several batches on the way to the worker, so that it never waits for this thread to hear of the last one.
      concurrentTasksPerWorker: data.batches.length,
      atomics: 'sync',
    })
    this.#pool.on('error', onFailure)
    this.#ready = this.#pool.run(NO_BATCH)
    this.#ready.catch(onFailure)
  }

  /**
   * Runs the batch once. True when it is done; false when its rows have to be read and it has to be run again. Rejected when the
   * lane was stopped.
   */
  async decode(batch: number): Promise<boolean> {
    for (;;) {
      // For a task after its end, piscina starts another thread. To that one, which decoded nothing, no batch is ever the next.
      if (this.#stopped) throw new Error('the lane was stopped')
      const answer = await this.#pool.run(batch)
      switch (answer) {
        case 'done':
          this.#blocked?.resolve()
          this.#blocked = undefined
          return true
        case 'rowsFull':
          this.#blocked ??= deferred()
          return false
        case 'notYet':
          await this.#blocked?.promise
          break
        default:
          return answer satisfies never
      }
    }
  }

  async useTrie(trie: SharedArrayBuffer): Promise<void> {
    await this.#pool.run({ trie })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#ready.catch(() => {})
    await this.#pool.destroy()
  }
}
