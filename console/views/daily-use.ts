import { dayOf } from '../../engine/process/clock.ts'
import { DistinctClients } from '../../engine/scan/distinct-clients.ts'
import type { Store } from '../../engine/store/store.ts'
import type { DayBar } from '../design/chart.tsx'
import type { Visit } from '../http/visit.ts'

/**
 * Maximum number of organizations with a cached result. At the limit, the oldest result is removed.
 */
const KEPT_MAX = 100

interface Kept {
  /** Identifies the inputs of the result: the evidence, the decisions and the window. */
  readonly inputs: string
  readonly days: readonly DayBar[]
}

const kept = new WeakMap<Store, Map<string, Kept>>()

/**
 * Distinct clients per day of the evidence window: clients of platforms that are not approved, and
 * clients of approved platforms only. The function reads all evidence, so the result is cached
 * until a scan or an approval changes it.
 */
export function dailyUse({ site, organization, nowMs }: Visit): readonly DayBar[] {
  const { store } = site
  const { id, approvedPlatformIds, evidenceWindowDays } = organization
  const { generation, firstDay: firstCounted } = store.scanStates.get(id)
  const today = dayOf(nowMs)
  const firstDay = Math.max(firstCounted, today - evidenceWindowDays + 1)
  const inputs = JSON.stringify([generation, firstDay, today, approvedPlatformIds])
  const ofStore = kept.get(store) ?? new Map<string, Kept>()
  kept.set(store, ofStore)
  const before = ofStore.get(id)
  if (before?.inputs === inputs) return before.days
  const days = computed(store, id, { firstDay, today, approved: new Set(approvedPlatformIds) })
  ofStore.delete(id)
  ofStore.set(id, { inputs, days })
  const [oldest] = ofStore.keys()
  if (ofStore.size > KEPT_MAX && oldest !== undefined) ofStore.delete(oldest)
  return days
}

interface Range {
  readonly firstDay: number
  readonly today: number
  readonly approved: ReadonlySet<string>
}

function computed(store: Store, organizationId: string, { firstDay, today, approved }: Range): DayBar[] {
  const sketches = new Map<number, { readonly all: DistinctClients; readonly notApproved: DistinctClients }>()
  for (let day = firstDay; day <= today; day++) {
    sketches.set(day, { all: new DistinctClients(), notApproved: new DistinctClients() })
  }
  for (const { day, platformId, evidence } of store.evidence.since(organizationId, firstDay)) {
    const sketch = sketches.get(day)
    sketch?.all.mergeBytes(evidence.clients)
    if (!approved.has(platformId)) sketch?.notApproved.mergeBytes(evidence.clients)
  }
  return Array.from(sketches, ([day, { all, notApproved }]) => {
    // An estimate of a part can exceed the estimate of the whole.
    return { day, notApproved: notApproved.estimate, approved: Math.max(0, all.estimate - notApproved.estimate) }
  })
}
