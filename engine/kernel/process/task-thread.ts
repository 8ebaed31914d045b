import { Piscina } from 'piscina'
import { within } from './signals.ts'

/** Milliseconds for the thread to end. */
const DESTROY_MS = 5000

export interface TaskThreadOptions {
  /** The compiled file of the worker, whose default export runs a task. */
  readonly file: URL
  readonly data: unknown
  /** Called if the thread ends while it runs no task. */
  readonly onError: (error: Error) => void
}

/**
 * A thread that runs tasks, one at a time. It starts with the first task. Its event loop runs
 * between tasks, so it can do other work in the meantime.
 */
export class TaskThread<Task, Answer> {
  readonly #options: TaskThreadOptions
  #pool: Piscina<Task, Answer> | undefined

  constructor(options: TaskThreadOptions) {
    this.#options = options
  }

  get hasStarted(): boolean {
    return this.#pool !== undefined
  }

  async run(task: Task): Promise<Answer> {
    const pool = this.#pool ?? this.#start()
    this.#pool = pool
    try {
      return await pool.run(task)
    } catch (error) {
      await this.#discard(pool)
      throw error
    }
  }

  /**
   * Ends the thread. The next task starts another one: the thread may be broken or unable to start,
   * and a pool whose thread does not start never responds.
   */
  async discard(): Promise<void> {
    if (this.#pool !== undefined) await this.#discard(this.#pool)
  }

  /**
   * Waits for running tasks, runs the last one, and ends the thread, at the latest after the
   * deadline. A thread that stays would keep the process running.
   */
  async close(last: Task, deadlineMs = DESTROY_MS): Promise<void> {
    const pool = this.#pool
    if (pool === undefined) return
    // The thread may end at the same time because it failed (discard), which fails this task.
    const ended = pool.run(last).catch(() => {})
    await within(deadlineMs, ended)
    await this.#discard(pool)
  }

  async #discard(pool: Piscina<Task, Answer>): Promise<void> {
    if (this.#pool === pool) this.#pool = undefined
    await within(DESTROY_MS, pool.destroy())
  }

  #start(): Piscina<Task, Answer> {
    const { file, data, onError } = this.#options
    const pool = new Piscina<Task, Answer>({
      filename: file.href,
      workerData: data,
      // The worker is compiled. Loaders and flags of the main thread would only slow its start.
      execArgv: [],
      minThreads: 1,
      maxThreads: 1,
      idleTimeout: Number.POSITIVE_INFINITY,
      concurrentTasksPerWorker: 1,
      // Otherwise an idle thread waits for tasks without running its event loop.
      atomics: 'disabled',
    })
    // A thread that ends during a task fails the task. A thread that ends otherwise is restarted
    // for the next task.
    pool.on('error', onError)
    return pool
  }
}
