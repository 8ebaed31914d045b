import { runScan } from '../../engine/scan/scan-runner.ts'
import { Store } from '../../engine/store/store.ts'
import { registries } from './store.ts'

/**
 * Runs as a separate process: scan-once DIRECTORY ORGANIZATION NOW_MS. Runs one scan, so that a
 * fault point can kill the process.
 */
const [directory = '', organizationId = '', nowMs = ''] = process.argv.slice(2)
const store = new Store(directory)
runScan(store, registries, organizationId, 'administrator', { nowMs: () => Number(nowMs) })
await store.close()
