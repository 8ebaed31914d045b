import { Piscina } from 'piscina'
import { type Deferred, deferred } from '../../engine/kernel/process/deferred.ts'
import type { DecodeLane } from './delivery.ts'
import { type DecodeAnswer, type DecodeTask, type DecodeWorkerData, NO_BATCH } from './worker-data.ts'

/**
 * One decode worker and the order of its batches. A lane is a piscina pool with exactly one thread,
 * because piscina cannot pin a task to a thread and both directions of a flow must go to the same
 * thread.
 */
export class Lane implements DecodeLane {
  readonly #pool: Piscina<DecodeTask, DecodeAnswer>
  /**
   * Settles when the thread has loaded its program. Terminating a thread earlier aborts the process
   * (Node 20: IsGraphAsync).
   */
  readonly #ready: Promise<DecodeAnswer>
  /** Resolves when the batch whose rows must be read has been completely decoded. */
  #blocked: Deferred<void> | undefined
  #stopped = false

  /** `onFailure` is called if the thread ends while it has no batch. */
  constructor(data: DecodeWorkerData, onFailure: (error: Error) => void) {
    this.#pool = new Piscina<DecodeTask, DecodeAnswer>({
      filename: new URL('./lane-worker.js', import.meta.url).href,
      workerData: data,
      // The worker is compiled. Loaders and flags of the main thread would only slow its start.
      execArgv: [],
      minThreads: 1,
      maxThreads: 1,
      idleTimeout: Number.POSITIVE_INFINITY,
      // Several batches are queued for the worker, so that it never waits for this thread to handle
      // a result.
      concurrentTasksPerWorker: data.batches.length,
      atomics: 'sync',
    })
    this.#pool.on('error', (error: Error) => {
      // A worker may answer a task that destroy() has just forgotten.
      if (!this.#stopped) onFailure(error)
    })
    this.#ready = this.#pool.run(NO_BATCH)
    this.#ready.catch(onFailure)
  }

  /**
   * Runs the batch once. Returns true if all frames are decoded, false if the rows must be read and
   * the batch run again. Rejects if the lane was stopped.
   */
  async decode(batch: number): Promise<boolean> {
    for (;;) {
      // For a task after destroy(), piscina would start another thread. That thread has decoded
      // nothing, so no batch would ever be its next one.
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
