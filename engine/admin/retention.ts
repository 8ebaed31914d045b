import { RETENTION_DAYS_MAX } from '../limits.ts'
import { Fault } from '../process/error-codes.ts'
import type { Organization, Retention } from '../store/organizations.ts'
import { applyRetention, RETENTION_DAYS_MIN, type Removed, retentionOf } from '../store/retention.ts'
import type { Changes } from './changes.ts'

export class RetentionChanges {
  readonly #changes: Changes

  constructor(changes: Changes) {
    this.#changes = changes
  }

  /** Changes the given days and keeps the others. @throws Fault USAGE, NOT_ALLOWED. */
  set(organization: Organization, days: Partial<Retention>): Organization {
    for (const [name, min] of Object.entries(RETENTION_DAYS_MIN)) {
      const found = days[name as keyof Retention]
      if (found === undefined || (Number.isInteger(found) && found >= min && found <= RETENTION_DAYS_MAX)) continue
      throw new Fault('USAGE', `${name}: expected a whole number from ${min} to ${RETENTION_DAYS_MAX}, found ${found}`)
    }
    const { store } = this.#changes
    const { id: organizationId, name: subject } = organization
    return this.#changes.make('retention.set', organizationId, () => {
      const before = store.organizations.get(organizationId)
      if (before === undefined) throw new Fault('NOT_FOUND', `no organization ${subject}`)
      const result = { ...before, retention: { ...before.retention, ...days } }
      store.organizations.update(result)
      return { organizationId, subject, details: { ...days }, result }
    })
  }

  /**
   * Applies the retention now instead of waiting for the daily run. Writes the audit log entry
   * first, because the removal takes several transactions. @throws Fault NOT_ALLOWED.
   */
  apply(organization: Organization): Removed {
    const { store, clock } = this.#changes
    const { id: organizationId, name: subject } = organization
    this.#changes.make('retention.apply', organizationId, () => {
      return { organizationId, subject, details: { ...retentionOf(organization) }, result: undefined }
    })
    const removed: Removed = { scans: 0, auditEntries: 0, sources: 0, clientRecords: 0 }
    for (const step of applyRetention(store, organizationId, clock.nowMs())) {
      removed.scans += step.scans
      removed.auditEntries += step.auditEntries
      removed.sources += step.sources
      removed.clientRecords += step.clientRecords
    }
    return removed
  }
}
