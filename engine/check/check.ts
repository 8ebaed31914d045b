import type { Store } from '../store/store.ts'
import { checkAccounts } from './accounts.ts'
import { checkAssessed } from './assessed.ts'
import { checkCoverage } from './coverage.ts'
import { checkDiscovery } from './discovery.ts'
import type { Finding } from './findings.ts'
import { checkIngest } from './ingest.ts'
import { checkPublished } from './published.ts'
import { checkUsers } from './users.ts'
import { type OnProgress, StoreWalk } from './walk.ts'

/** What a check of the whole store came to. */
export interface StoreCheck {
  /** None: the store is whole. The first FINDINGS_NAMED_MAX, where there are more. */
  readonly findings: readonly Finding[]
  readonly findingsCount: number
  /** Records by table. */
  readonly records: Readonly<Record<string, number>>
}

/**
 * Proves the whole store, in one snapshot: that each record can be opened and is somebody's, that indexes and records agree both ways, and that what is
 * told in two places is the same. Holds one record of each kind at a time, takes time linear in what is stored, and does not return before it is done;
 * writers go on meanwhile, and the file grows by what they replace.
 */
export function checkStore(store: Store, onProgress: OnProgress = () => {}): StoreCheck {
  const { environment } = store
  return environment.read(() => {
    const walk = new StoreWalk(store, onProgress)
    checkAccounts(walk)
    checkUsers(walk)
    checkIngest(walk)
    checkDiscovery(walk)
    checkCoverage(walk)
    checkAssessed(walk)
    checkPublished(walk)
    walk.assertAllVisited()
    const names = [...environment.tables.keys()].sort()
    return {
      findings: walk.findings.named,
      findingsCount: walk.findings.count,
      records: Object.fromEntries(names.map((name) => [name, environment.tableRecords(name)])),
    }
  })
}
