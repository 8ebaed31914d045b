import type { ReadFramework } from '../assess/framework-file.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import type { Organization } from '../store/organizations.ts'
import type { OwnFramework } from '../store/own-frameworks.ts'
import { AuditedChanges } from './audited-changes.ts'

/** Each may have megabytes of items. */
export const OWN_FRAMEWORKS_MAX = 20

/** Adds, replaces and removes the frameworks of an organization. */
export class FrameworkChanges extends AuditedChanges {
  /**
   * Adds a framework, or replaces the one with the same id. Assessments keep the items that they
   * have. @throws Fault CONFLICT at the limit, NOT_ALLOWED.
   */
  add(organization: Organization, { id, name, template }: ReadFramework): OwnFramework {
    const { store, clock } = this
    return this.audited('framework.add', organization.id, () => {
      const before = store.ownFrameworks.get(organization.id, id)
      const count = store.ownFrameworks.ofOrganization(organization.id).length
      if (before === undefined && count >= OWN_FRAMEWORKS_MAX) {
        throw new Fault('CONFLICT', `${organization.name} has ${count} own frameworks already; remove one first`)
      }
      const { version, categories } = template
      const items = categories.reduce((sum, category) => sum + category.items.length, 0)
      const result: OwnFramework = {
        ...{ id, organizationId: organization.id, name, version },
        ...{ categories: categories.length, items, addedAtMs: clock.nowMs() },
      }
      store.ownFrameworks.put(result, categories)
      const was = before === undefined ? {} : { was: before.version }
      return { organizationId: organization.id, subject: name, details: { id, version, ...was, items }, result }
    })
  }

  /** Assessments of the framework stay. @throws Fault NOT_FOUND, NOT_ALLOWED. */
  remove(organization: Organization, id: string): OwnFramework {
    const { store } = this
    return this.audited('framework.remove', organization.id, () => {
      const result = store.ownFrameworks.get(organization.id, id)
      if (result === undefined) throw new Fault('NOT_FOUND', `${organization.name} has no own framework ${id}`)
      store.ownFrameworks.remove(result)
      const { name, version } = result
      return { organizationId: organization.id, subject: name, details: { id, version }, result }
    })
  }
}
