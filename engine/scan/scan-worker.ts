import { Piscina } from 'piscina'
import { NameMatcher } from '../../registry/match.ts'
import { systemClock } from '../process/clock.ts'
import { Store } from '../store/store.ts'
import { type ScanOutcome, ScanRunner } from './fold.ts'
import type { ScanTask, ScanWorkerData } from './scan-task.ts'

const { dataDirectory, catalog } = Piscina.workerData as ScanWorkerData
const store = new Store(dataDirectory, { mustExist: true })
const runner = new ScanRunner(store, new NameMatcher(catalog), systemClock)

/** The piscina task: runs scans, or closes the store before the thread ends. */
export default async function scan(task: ScanTask): Promise<ScanOutcome[]> {
  if (task !== 'close') return runner.run(task)
  await store.close()
  return []
}
