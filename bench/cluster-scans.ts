import { join } from 'node:path'
import { SCANS_PER_TRANSACTION_MAX } from '../engine/limits.ts'
import { systemClock } from '../engine/process/clock.ts'
import { ScanRunner } from '../engine/scan/scan-runner.ts'
import { EVENTS_FOR_IMMEDIATE_SCAN } from '../engine/scan/schedule.ts'
import { Store } from '../engine/store/store.ts'
import { NameMatcher } from '../registry/match.ts'
import { createOrganizations } from './cluster-site.ts'
import { median, print, shown } from './compare.ts'
import { ScanEvents } from './workload/scan-events.ts'

const ROUNDS = 3
const BYTES_MAX = 2 ** 30

/** What a scan costs a primary, which starts one for each 5,000 events of an organization. */
export async function scanCosts(directory: string, toy: boolean): Promise<void> {
  const dataDirectory = join(directory, 'scans')
  const organizations = await createOrganizations(dataDirectory, toy ? 2 : 100)
  const store = new Store(dataDirectory)
  try {
    const { environment } = store
    const ids = organizations.map(({ id }) => id).toSorted()
    const work = new ScanEvents(Date.now())
    const matcher = new NameMatcher(work.catalog)
    const runner = new ScanRunner(store, { matcherOf: () => matcher }, systemClock)
    const times: number[] = []
    const sizes: number[] = []
    const node = { mode: 'primary', node: 'bench', primary: 'bench', generation: 1, created: '' } as const
    const state = { ...node, change: 0, unpublishedBytes: 0, sequence: 1 }
    for (let round = 0; round < ROUNDS; round++) {
      const first = round * EVENTS_FOR_IMMEDIATE_SCAN
      // Only the scans are recorded.
      environment.writeUnrecorded(() => environment.replication.forget())
      work.fill(store, ids, first, first + EVENTS_FOR_IMMEDIATE_SCAN)
      environment.writeUnrecorded(() => environment.replication.putState(state))
      const before = process.cpuUsage()
      for (let from = 0; from < ids.length; from += SCANS_PER_TRANSACTION_MAX) {
        const group = ids.slice(from, from + SCANS_PER_TRANSACTION_MAX)
        for (const { scan } of runner.run(group.map((organizationId) => ({ organizationId, trigger: 'buffer' }))))
          if (scan.status !== 'completed' || scan.eventsAdded !== EVENTS_FOR_IMMEDIATE_SCAN)
            throw new Error(`${scan.status}, ${scan.eventsAdded} events`)
      }
      const { user, system } = process.cpuUsage(before)
      const changes = environment.read(() => environment.replication.unpublished(0, BYTES_MAX))
      times.push((user + system) / 1000 / ids.length)
      sizes.push(changes.reduce((sum, { writes }) => sum + writes.length, 0) / ids.length)
    }
    print(
      `scan of ${shown(EVENTS_FOR_IMMEDIATE_SCAN)} events, ${ids.length} organizations with 40 platforms  ${median(times).toFixed(1)} ms CPU, ${shown(median(sizes) / 1000)} kB of changes`,
    )
  } finally {
    await store.close()
  }
}
