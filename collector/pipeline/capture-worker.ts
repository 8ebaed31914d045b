import { once } from 'node:events'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { CaptureMessage, CaptureThreadData } from './capture-thread.ts'
import type { InlineOrder } from './inline-lane.ts'

/**
 * The capture thread, seen from the main thread. The thread loads its modules while the main thread
 * prepares its work, and then waits for start() or cancel(). One of them must be called.
 */
export class CaptureWorker {
  /** Resolves when the thread has ended. Rejects if an error ended it. */
  readonly exited: Promise<void>
  readonly #thread: Worker
  /** The work has a port of its own, because the thread polls its parent's port for orders. */
  readonly #work: MessagePort
  /** Messages until open() is called, because the thread does not wait. */
  readonly #kept: CaptureMessage[] = []
  #take: ((message: CaptureMessage) => void) | undefined

  constructor() {
    const { port1, port2 } = new MessageChannel()
    this.#work = port1
    this.#thread = new Worker(new URL('./capture-thread.js', import.meta.url), {
      workerData: port2,
      transferList: [port2],
      // The thread is compiled. Loaders and flags of this thread would only slow its start.
      execArgv: [],
      // The main thread opens files that this one closes.
      trackUnmanagedFds: false,
    })
    this.#thread.on('message', (message: CaptureMessage) => {
      if (this.#take === undefined) this.#kept.push(message)
      else this.#take(message)
    })
    // Registered at once: the thread of a small file may end before its first message is read.
    this.exited = new Promise<void>((resolve, reject) => {
      this.#thread.once('error', reject)
      this.#thread.once('exit', () => resolve())
    })
    this.exited.catch(() => {})
  }

  start(data: CaptureThreadData): void {
    this.#work.postMessage(data)
  }

  /**
   * Ends the thread if it was not started. The thread ends by itself, after it has loaded its
   * modules: terminating it before aborts the process (Node 20).
   */
  cancel(): void {
    this.#work.close()
  }

  order(order: InlineOrder): void {
    this.#thread.postMessage(order)
  }

  /** Returns the first message. Rejects if the thread ends before it. */
  async first(): Promise<CaptureMessage> {
    if (this.#kept.length === 0) await Promise.race([once(this.#thread, 'message'), this.exited])
    const message = this.#kept.shift()
    if (message === undefined) throw new Error('the capture thread ended without a message')
    return message
  }

  /** Passes on the messages after the first. */
  open(take: (message: CaptureMessage) => void): void {
    this.#take = take
    for (const message of this.#kept.splice(0)) take(message)
  }
}
