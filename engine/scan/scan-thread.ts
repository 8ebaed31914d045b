import { Piscina } from 'piscina'
import { Fault } from '../process/error-codes.ts'
import { within } from '../process/shutdown.ts'
import type { ScanOutcome, ScanRequest } from './fold.ts'
import type { ScanAnswer, ScanTask, ScanWorkerData } from './scan-task.ts'

/** Milliseconds that a thread has to end. */
const DESTROY_MS = 5000

/** Who runs scans: one group at a time. */
export interface ScanExecutor {
  run(requests: readonly ScanRequest[]): Promise<readonly ScanOutcome[]>
  close(): Promise<void>
}

/**
 * Runs scans in a thread of its own, so that folding a full buffer holds up neither ingest nor anybody else who waits for the main thread. It is
 * started with the first scan: a site that scans once a day does not pay for it before.
 */
export class ScanThread implements ScanExecutor {
  readonly #data: ScanWorkerData
  readonly #onError: (error: Error) => void
  #pool: Piscina<ScanTask, ScanAnswer> | undefined

  /** `onError` hears of a thread that ends while it scans nothing. */
  constructor(data: ScanWorkerData, onError: (error: Error) => void) {
    this.#data = data
    this.#onError = onError
  }

  async run(requests: readonly ScanRequest[]): Promise<readonly ScanOutcome[]> {
    const pool = this.#pool ?? this.#start()
    this.#pool = pool
    try {
      const answer = await pool.run(requests)
      if (answer.kind === 'failed') throw new Fault(answer.fault.code, answer.fault.message)
      return answer.outcomes
    } catch (error) {
      // What made it fail may be in the thread, or keep it from starting, and a pool whose thread does not start answers nothing more: the next gets another.
      this.#pool = undefined
      await within(DESTROY_MS, pool.destroy())
      throw error
    }
  }

  /** After the scans that run. */
  async close(): Promise<void> {
    const pool = this.#pool
    if (pool === undefined) return
    await within(
      DESTROY_MS,
      pool.run('close').then(() => pool.destroy()),
    )
  }

  #start(): Piscina<ScanTask, ScanAnswer> {
    const pool = new Piscina<ScanTask, ScanAnswer>({
      filename: new URL('./scan-worker.js', import.meta.url).href,
      workerData: this.#data,
      // The worker is compiled: loaders and flags of the main thread only slow its start.
      execArgv: [],
      minThreads: 1,
      maxThreads: 1,
      idleTimeout: Number.POSITIVE_INFINITY,
      concurrentTasksPerWorker: 1,
    })
    // A thread that ends while it scans fails the task; one that ends otherwise is started again with the next.
    pool.on('error', this.#onError)
    return pool
  }
}
