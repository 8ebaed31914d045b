import type { Store } from '../store/store.ts'
import { checkFamilies } from './families.ts'
import { checkPublished } from './published.ts'
import { checkQueues } from './queue.ts'
import { checkSums } from './sums.ts'
import { type Finding, type OnProgress, StoreWalk } from './walk.ts'

/** The result of checking the whole store. */
export interface StoreCheck {
  /** Empty if the store is intact. At most FINDINGS_NAMED_MAX. */
  readonly findings: readonly Finding[]
  readonly findingsCount: number
  /** Records by table. */
  readonly records: Readonly<Record<string, number>>
}

/**
 * Verifies the whole store in one snapshot: each record can be read and has an owner, indexes and
 * records match in both directions, and redundant data agrees. Holds one record of each kind at a
 * time, and sums by organization and sender. Takes linear time, and does not yield. Others can write
 * in the meantime; the file grows by what they replace.
 */
export function checkStore(store: Store, onProgress: OnProgress = () => {}): StoreCheck {
  const { environment } = store
  return environment.read(() => {
    const walk = new StoreWalk(store, onProgress)
    checkFamilies(walk)
    checkQueues(walk)
    checkSums(walk)
    checkPublished(walk)
    walk.assertAllVisited()
    const names = [...environment.tables.keys()].sort()
    return {
      findings: walk.findings,
      findingsCount: walk.findingsCount,
      records: Object.fromEntries(names.map((name) => [name, environment.tableRecords(name)])),
    }
  })
}
