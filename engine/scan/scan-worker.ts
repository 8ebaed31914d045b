import { Piscina } from 'piscina'
import { systemClock } from '../process/clock.ts'
import { Fault, plainFault } from '../process/error-codes.ts'
import { RegistryInForce } from '../store/registry-in-force.ts'
import { Store } from '../store/store.ts'
import { ScanRunner } from './scan-runner.ts'
import type { ScanAnswer, ScanTask, ScanWorkerData } from './scan-task.ts'

const { dataDirectory } = Piscina.workerData as ScanWorkerData
let open: { readonly store: Store; readonly runner: ScanRunner } | undefined

/** The piscina task: runs scans, or closes the store before the thread ends. */
export default async function scan(task: ScanTask): Promise<ScanAnswer> {
  try {
    if (task !== 'close') return { kind: 'ran', outcomes: opened().runner.run(task) }
    await open?.store.close()
    return { kind: 'ran', outcomes: [] }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { kind: 'failed', fault: plainFault(error) }
  }
}

function opened(): NonNullable<typeof open> {
  if (open === undefined) {
    const store = new Store(dataDirectory, { mustExist: true })
    open = { store, runner: new ScanRunner(store, new RegistryInForce(store), systemClock) }
  }
  return open
}
