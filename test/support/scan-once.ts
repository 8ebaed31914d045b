import { runScan } from '../../engine/scan/fold.ts'
import { Store } from '../../engine/store/store.ts'
import { matcher } from './store.ts'

/** A process of its own that runs one scan, so that a fault point can kill it: scan-once DIRECTORY ORGANIZATION NOW_MS */
const [directory = '', organizationId = '', nowMs = ''] = process.argv.slice(2)
const store = new Store(directory)
runScan(store, matcher, organizationId, 'administrator', { nowMs: () => Number(nowMs) })
await store.close()
