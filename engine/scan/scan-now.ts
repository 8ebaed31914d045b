import type { Clock } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { tryHold } from '../kernel/process/exclusive.ts'
import type { Registries } from '../store/registry-in-force.ts'
import type { Scan } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { INTERRUPTED, requestScan, runScan } from './scan-runner.ts'

/**
 * The lock (process/exclusive.ts) of the process that runs scans on a store: the service while it
 * runs, or a command.
 */
export const SCANS = 'scans'

const POLL_EVERY_MS = 100

/**
 * Waits until a requested scan has ended. The running service runs it; without a service, this
 * process does. If the process that ran the scan was killed, requests another scan.
 *
 * @returns undefined if `signal` is aborted first; the scan stays pending
 * @throws Fault SCAN_FAILED with the reason; NOT_PRIMARY if another store is in the place of this
 *   one
 */
export async function scanNow(
  store: Store,
  registries: Registries,
  requested: Scan,
  clock: Clock,
  signal: AbortSignal,
): Promise<Scan | undefined> {
  let wanted = requested
  while (!signal.aborted) {
    const scan = store.environment.read(() => store.scans.current(wanted))
    if (scan?.status === 'completed') return scan
    if (scan?.status === 'failed' && scan.failure !== INTERRUPTED) throw new Fault('SCAN_FAILED', scan.failure)
    if (scan === undefined || scan.status === 'failed') wanted = requestAgain(store, wanted.organizationId, clock)
    const release = await tryHold(store.environment.path, SCANS)
    if (release === undefined) {
      // The service that has the lock runs the scans of the other store.
      if (!store.environment.isInPlace) {
        throw new Fault(
          'NOT_PRIMARY',
          'the store was replaced meanwhile, and the scan discarded; run the command again',
        )
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_EVERY_MS))
      continue
    }
    try {
      // The scan may have ended before this process got the lock. Otherwise no other process can
      // run it now.
      const status = store.environment.read(() => store.scans.current(wanted))?.status
      if (status === 'pending' || status === 'running') {
        return runScan(store, registries, wanted.organizationId, 'administrator', clock)
      }
    } finally {
      await release()
    }
  }
  return undefined
}

function requestAgain(store: Store, organizationId: string, clock: Clock): Scan {
  return store.environment.shrink(() => {
    const organization = store.organizations.get(organizationId)
    if (organization === undefined) throw new Fault('NOT_FOUND', `no organization ${organizationId}`)
    return requestScan(store, organization, clock)
  })
}
