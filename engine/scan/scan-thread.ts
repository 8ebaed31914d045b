import { Piscina } from 'piscina'
import type { ScanOutcome, ScanRequest } from './fold.ts'
import type { ScanTask, ScanWorkerData } from './scan-task.ts'

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
  #pool: Piscina<ScanTask, ScanOutcome[]> | undefined

  /** `onError` hears of a thread that ends while it scans nothing. */
  constructor(data: ScanWorkerData, onError: (error: Error) => void) {
    this.#data = data
    this.#onError = onError
  }

  run(requests: readonly ScanRequest[]): Promise<ScanOutcome[]> {
    this.#pool ??= this.#start()
    return this.#pool.run(requests)
  }

  /** After the scans that run. */
  async close(): Promise<void> {
    const pool = this.#pool
    if (pool === undefined) return
    await pool.run('close')
    await pool.destroy()
  }

  #start(): Piscina<ScanTask, ScanOutcome[]> {
    const pool = new Piscina<ScanTask, ScanOutcome[]>({
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
