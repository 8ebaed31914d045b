import { Piscina } from 'piscina'
import { Fault } from '../process/error-codes.ts'
import { within } from '../process/shutdown.ts'
import type { ScanOutcome, ScanRequest } from './scan-runner.ts'
import type { ScanAnswer, ScanTask, ScanWorkerData } from './scan-task.ts'

/** Milliseconds for the thread to end. */
const DESTROY_MS = 5000

/** Runs scans, one group at a time. */
export interface ScanExecutor {
  run(requests: readonly ScanRequest[]): Promise<readonly ScanOutcome[]>
  close(): Promise<void>
}

/**
 * Runs scans in a separate thread, so that scanning a full buffer blocks neither ingest nor other
 * work of the main thread. Starts the thread with the first scan: a site that scans once a day does
 * not pay for it before.
 */
export class ScanThread implements ScanExecutor {
  readonly #data: ScanWorkerData
  readonly #onError: (error: Error) => void
  #pool: Piscina<ScanTask, ScanAnswer> | undefined

  /** @param onError called if the thread ends while it runs no scan */
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
      // The thread may be broken or unable to start, and a pool whose thread does not start never
      // responds. The next scan gets a new pool.
      this.#pool = undefined
      await within(DESTROY_MS, pool.destroy())
      throw error
    }
  }

  /** Waits for running scans. */
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
      // The worker is compiled. Loaders and flags of the main thread would only slow its start.
      execArgv: [],
      minThreads: 1,
      maxThreads: 1,
      idleTimeout: Number.POSITIVE_INFINITY,
      concurrentTasksPerWorker: 1,
    })
    // A thread that ends during a scan fails the task. A thread that ends otherwise is restarted
    // for the next task.
    pool.on('error', this.#onError)
    return pool
  }
}
