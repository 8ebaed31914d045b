import type { Organizations } from './organizations.ts'
import type { ScanStates } from './scan-states.ts'
import { requestedAtMs, type Scans } from './scans.ts'

/**
 * Version 1: organizations, secrets, buffer, evidence, scans, published lists. 2: sources, bindings, read lines; chunks in the buffer.
 * 3: members, audit log, assessments, coverage, requested scans, scan states.
 */
export const SCHEMA_VERSION = 3

/** The families that a step reads or writes. */
interface Families {
  readonly organizations: Organizations
  readonly scans: Scans
  readonly scanStates: ScanStates
}

/**
 * Writes what a version of the schema has that the one before had not, beside new tables, which are made when they are opened. What stands in old ones
 * is read as it is. Inside a transaction of the caller; see Environment.migrate.
 */
export function migrateTo(version: number, families: Families): void {
  switch (version) {
    case 1:
    case 2:
      return
    case 3:
      return makeScanStates(families)
    default:
      throw new Error(`no way to version ${version} of the schema`)
  }
}

/** Until then the scans themselves were asked when the last one on the schedule was. */
function makeScanStates({ organizations, scans, scanStates }: Families): void {
  for (const { id } of organizations.all()) {
    const stored = scans.ofOrganization(id)
    const scheduledAtMs = stored.findLast(({ trigger }) => trigger === 'schedule')?.startedAtMs ?? 0
    const running = stored.findLast(({ status }) => status === 'running')
    scanStates.put(id, {
      ...scanStates.get(id),
      stored: stored.length,
      scheduledAtMs,
      ...(running === undefined ? {} : { running: { id: running.id, requestedAtMs: requestedAtMs(running) } }),
    })
  }
}
