import { parentPort, workerData } from 'node:worker_threads'
import { Fault } from '../process/error-codes.ts'
import { Store } from '../store/store.ts'
import { checkStore } from './check.ts'
import type { CheckWorkerData, FromCheckWorker } from './check-protocol.ts'

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
