import type { Clock } from '../process/clock.ts'
import { Fault } from '../process/error-codes.ts'
import { tryHold } from '../process/exclusive.ts'
import type { Registries } from '../store/registry-in-force.ts'
import type { Scan } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { INTERRUPTED, requestScan, runScan } from './fold.ts'

/** What one process at a time does on a store (process/exclusive.ts): the service as long as it runs, or a command that scans. */
export const SCANS = 'scans'

const POLL_EVERY_MS = 100

/**
 * Waits until a scan that was asked for has ended: the running service has it run, and where there is none, we do. Where its runner was killed in the
 * middle, another is asked for.
 *
 * @returns undefined where `givenUp` is aborted before: the scan then stays pending.
 * @throws Fault SCAN_FAILED with the reason.
 */
export async function scanNow(
  store: Store,
  registries: Registries,
  asked: Scan,
  clock: Clock,
  givenUp: AbortSignal,
): Promise<Scan | undefined> {
  let wanted = asked
  while (!givenUp.aborted) {
    const scan = store.environment.read(() => store.scans.current(wanted))
    if (scan?.status === 'completed') return scan
    if (scan?.status === 'failed' && scan.failure !== INTERRUPTED) throw new Fault('SCAN_FAILED', scan.failure)
    if (scan === undefined || scan.status === 'failed') wanted = askAgain(store, wanted.organizationId, clock)
    const release = await tryHold(store.environment.path, SCANS)
    if (release === undefined) {
      await new Promise((resolve) => setTimeout(resolve, POLL_EVERY_MS))
      continue
    }
    try {
      // It may have ended between our look and now; what has not is nobody's but ours.
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

function askAgain(store: Store, organizationId: string, clock: Clock): Scan {
  return store.environment.shrink(() => {
    const organization = store.organizations.get(organizationId)
    if (organization === undefined) throw new Fault('NOT_FOUND', `no organization ${organizationId}`)
    return requestScan(store, organization, clock)
  })
}
