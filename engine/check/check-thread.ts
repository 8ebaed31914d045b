import { Worker } from 'node:worker_threads'
import { Fault } from '../process/error-codes.ts'
import type { StoreCheck } from './check.ts'
import type { CheckWorkerData, FromCheckWorker } from './check-protocol.ts'
import type { OnProgress } from './walk.ts'

/**
 * checkStore in a thread of its own, since it reads one snapshot from beginning to end without a pause: so progress can be shown and signals are heard
 * meanwhile.
 *
 * @returns undefined where `givenUp` was aborted before the end.
 * @throws Fault of the store; see Store.
 */
export async function checkInThread(
  dataDirectory: string,
  onProgress: OnProgress,
  givenUp: AbortSignal,
): Promise<StoreCheck | undefined> {
  const stop = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const data: CheckWorkerData = { dataDirectory, stop }
  const askToStop = (): void => void Atomics.store(new Int32Array(stop), 0, 1)
  if (givenUp.aborted) askToStop()
  givenUp.addEventListener('abort', askToStop, { once: true })
  const worker = new Worker(new URL('./check-worker.js', import.meta.url), { workerData: data, execArgv: [] })
  try {
    return await new Promise((resolve, reject) => {
      let said: (() => void) | undefined
      worker.on('message', (message: FromCheckWorker) => {
        switch (message.kind) {
          case 'progress':
            return onProgress(message.records, message.recordsTotal)
          case 'checked':
            said = () => resolve(message.check)
            return
          case 'stopped':
            said = () => resolve(undefined)
            return
          case 'failed': {
            const { code, message: text } = message
            said = () => reject(code === undefined ? new Error(text) : new Fault(code, text))
            return
          }
          default:
            message satisfies never
        }
      })
      worker.once('error', reject)
      // It has closed the store then.
      worker.once('exit', (status) => (said ?? (() => reject(new Error(`the thread of the check ended: ${status}`))))())
    })
  } finally {
    givenUp.removeEventListener('abort', askToStop)
  }
}
