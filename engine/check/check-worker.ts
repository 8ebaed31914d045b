import { parentPort, workerData } from 'node:worker_threads'
import { Fault, type FaultCode } from '../kernel/process/error-codes.ts'
import { Store } from '../store/store.ts'
import { checkStore, type StoreCheck } from './check.ts'

/** Options of the check thread. */
export interface CheckWorkerData {
  readonly dataDirectory: string
  /** One 32-bit number. Any value but 0 requests a stop. */
  readonly stop: SharedArrayBuffer
}

/** Messages of the check thread. `checked`, `stopped` or `failed` is the last one. */
export type FromCheckWorker =
  | { readonly kind: 'progress'; readonly records: number; readonly recordsTotal: number }
  | { readonly kind: 'checked'; readonly check: StoreCheck }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'failed'; readonly code: FaultCode | undefined; readonly message: string }

class Stopped extends Error {}

const { dataDirectory, stop } = workerData as CheckWorkerData
const stopFlag = new Int32Array(stop)

function notify(message: FromCheckWorker): void {
  parentPort?.postMessage(message)
}

async function check(): Promise<void> {
  const store = new Store(dataDirectory, { mustExist: true })
  try {
    const found = checkStore(store, (records, recordsTotal) => {
      if (Atomics.load(stopFlag, 0) !== 0) throw new Stopped()
      notify({ kind: 'progress', records, recordsTotal })
    })
    notify({ kind: 'checked', check: found })
  } finally {
    await store.close()
  }
}

function reportFailure(error: unknown): void {
  if (error instanceof Stopped) return notify({ kind: 'stopped' })
  const { message, stack } = error as Error
  const isFault = error instanceof Fault
  notify({ kind: 'failed', code: isFault ? error.code : undefined, message: isFault ? message : (stack ?? message) })
}

await check().catch(reportFailure)
