import { DAY_MS, dayOf } from '../kernel/process/clock.ts'
import { AUDIT_DAYS_MIN, RETENTION_DAYS_DEFAULT, RETENTION_RECORDS_PER_STEP } from '../limits.ts'
import type { Organization, Retention } from './organizations.ts'
import type { Store } from './store.ts'

/** Minimum days of each setting. */
export const RETENTION_DAYS_MIN: Readonly<Record<keyof Retention, number>> = {
  scanDays: 1,
  auditDays: AUDIT_DAYS_MIN,
  sourceDays: 1,
  clientDays: 1,
}

/** Number of removed records. */
export interface Removed {
  scans: number
  auditEntries: number
  sources: number
  /** Each has the clients of one platform on one day. */
  clientRecords: number
}

export function retentionOf({ retention, evidenceWindowDays }: Organization): Retention {
  return {
    scanDays: RETENTION_DAYS_DEFAULT,
    auditDays: RETENTION_DAYS_DEFAULT,
    sourceDays: RETENTION_DAYS_DEFAULT,
    ...retention,
    clientDays: Math.min(retention?.clientDays ?? evidenceWindowDays, evidenceWindowDays),
  }
}

/** The number of records that a retention would remove now. */
export function expiredNow(store: Store, organizationId: string, retention: Retention, nowMs: number): Removed {
  const before = (days: number): number => nowMs - days * DAY_MS
  return {
    scans: store.scans.countOldest(organizationId, before(retention.scanDays)),
    auditEntries: store.auditLog.countOlderThan(organizationId, before(retention.auditDays)),
    sources: store.sources.countSilent(organizationId, before(retention.sourceDays)),
    clientRecords: store.clientDays.countBefore(organizationId, firstClientDay(retention, nowMs)),
  }
}

/**
 * Removes expired records of an organization, one transaction per step. The caller can yield
 * between steps. Yields what each step removed.
 *
 * @throws Fault STORE_FULL
 */
export function* applyRetention(store: Store, organizationId: string, nowMs: number): Generator<Removed> {
  while (true) {
    const removed = store.environment.shrink(() => removeStep(store, organizationId, nowMs))
    yield removed
    if (countOf(removed) < RETENTION_RECORDS_PER_STEP) break
  }
  while (store.environment.shrink(() => removeOldDays(store, organizationId, nowMs)) > 0) yield NOTHING
  for (let next: number | undefined = 0; ; ) {
    const from: number = next
    next = store.environment.shrink(() => removeOldPeople(store, organizationId, from, nowMs))
    if (next === undefined) break
    yield NOTHING
  }
  while (store.environment.shrink(() => removeOldNames(store, organizationId, nowMs)) > 0) yield NOTHING
}

const NOTHING: Removed = { scans: 0, auditEntries: 0, sources: 0, clientRecords: 0 }

/** All removed records. */
export function countOf({ scans, auditEntries, sources, clientRecords }: Removed): number {
  return scans + auditEntries + sources + clientRecords
}

/** The first day whose clients are kept. */
function firstClientDay({ clientDays }: Retention, nowMs: number): number {
  return Math.max(0, dayOf(nowMs) - clientDays + 1)
}

function removeStep(store: Store, organizationId: string, nowMs: number): Removed {
  const organization = store.organizations.get(organizationId)
  if (organization === undefined) return NOTHING
  const retention = retentionOf(organization)
  const { scanDays, auditDays, sourceDays } = retention
  let left = RETENTION_RECORDS_PER_STEP
  const before = (days: number): number => nowMs - days * DAY_MS
  const scans = removeScans(store, organizationId, left, before(scanDays))
  left -= scans
  const auditEntries = store.auditLog.removeOlderThan(organizationId, before(auditDays), left)
  left -= auditEntries
  const sources = store.sources.removeSilent(organizationId, before(sourceDays), left)
  left -= sources
  const clientRecords = store.clientDays.removeBefore(organizationId, clientsFrom(organization, nowMs), left)
  return { scans, auditEntries, sources, clientRecords }
}

/** Without days of their own, clients leave with the evidence: a scan removes them. */
function clientsFrom(organization: Organization, nowMs: number): number {
  return organization.retention?.clientDays === undefined ? 0 : firstClientDay(retentionOf(organization), nowMs)
}

/** Removes old days of some summaries of clients, also those that a scan has left. Returns 0 at the end. */
function removeOldDays({ organizations, scanStates, clientSummaries }: Store, id: string, nowMs: number): number {
  const organization = organizations.get(id)
  // A scan writes the summaries that it has read.
  if (organization === undefined || scanStates.get(id).running !== undefined) return 0
  return clientSummaries.removeBefore(id, clientsFrom(organization, nowMs))
}

/** Removes the people of alerts that are older than the clients that are kept. Returns the next alert. */
function removeOldPeople(
  { organizations, alerts }: Store,
  id: string,
  from: number,
  nowMs: number,
): number | undefined {
  const organization = organizations.get(id)
  if (organization === undefined) return undefined
  const firstMs = firstClientDay(retentionOf(organization), nowMs) * DAY_MS
  return alerts.erasePeople(id, from, RETENTION_RECORDS_PER_STEP, (_, { createdAtMs }) => createdAtMs < firstMs)
}

/** Removes some names of addresses that ended before the clients that are kept. Returns 0 at the end. */
function removeOldNames({ organizations, clientNames }: Store, id: string, nowMs: number): number {
  const organization = organizations.get(id)
  if (organization === undefined) return 0
  return clientNames.removeEnded(id, firstClientDay(retentionOf(organization), nowMs) * DAY_MS)
}

/** Removes scans and updates the count of stored ones. */
function removeScans({ scans, scanStates }: Store, organizationId: string, countMax: number, beforeMs: number): number {
  const removed = scans.removeOldest(organizationId, countMax, beforeMs)
  if (removed > 0) {
    const state = scanStates.get(organizationId)
    scanStates.put(organizationId, { ...state, stored: state.stored - removed })
  }
  return removed
}
