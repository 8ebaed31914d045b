import { Worker } from 'node:worker_threads'
import { Fault } from '../kernel/process/error-codes.ts'
import type { StoreCheck } from './check.ts'
import type { CheckWorkerData, FromCheckWorker } from './check-worker.ts'
import type { OnProgress } from './walk.ts'

/**
 * Runs checkStore in a separate thread, because it reads one snapshot without a pause. In the
 * meantime, this thread can show progress and handle signals.
 *
 * @returns undefined if `signal` is aborted first
 * @throws Fault of the store; see Store
 */
export async function checkInThread(
  dataDirectory: string,
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<StoreCheck | undefined> {
  const stop = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const data: CheckWorkerData = { dataDirectory, stop }
  const requestStop = (): void => void Atomics.store(new Int32Array(stop), 0, 1)
  if (signal.aborted) requestStop()
  signal.addEventListener('abort', requestStop, { once: true })
  const worker = new Worker(new URL('./check-worker.js', import.meta.url), { workerData: data, execArgv: [] })
  try {
    return await new Promise((resolve, reject) => {
      let settle: (() => void) | undefined
      worker.on('message', (message: FromCheckWorker) => {
        switch (message.kind) {
          case 'progress':
            return onProgress(message.records, message.recordsTotal)
          case 'checked':
            settle = () => resolve(message.check)
            return
          case 'stopped':
            settle = () => resolve(undefined)
            return
          case 'failed': {
            const { code, message: text } = message
            settle = () => reject(code === undefined ? new Error(text) : new Fault(code, text))
            return
          }
          default:
            message satisfies never
        }
      })
      worker.once('error', reject)
      // Wait for the exit: the thread has then closed the store.
      worker.once('exit', (status) => (settle ?? (() => reject(new Error(`the check thread exited: ${status}`))))())
    })
  } finally {
    signal.removeEventListener('abort', requestStop)
  }
}
