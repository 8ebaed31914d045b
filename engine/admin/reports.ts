import { Fault } from '../process/error-codes.ts'
import type { Organization } from '../store/organizations.ts'
import type { Changes } from './changes.ts'

export class ReportChanges {
  readonly #changes: Changes

  constructor(changes: Changes) {
    this.#changes = changes
  }

  /**
   * Records that a report was made, so that the next one shows what changed since. `write` stores
   * the report: if it throws, nothing is recorded.
   *
   * @throws Fault NOT_ALLOWED, and what `write` throws
   */
  make({ id: organizationId, name }: Organization, madeAtMs: number, write: () => void): Organization {
    const { store } = this.#changes
    return this.#changes.make('report.create', organizationId, () => {
      const found = store.organizations.get(organizationId)
      if (found === undefined) throw new Fault('NOT_FOUND', `no organization ${name}`)
      write()
      const result = { ...found, lastReportAtMs: madeAtMs }
      store.organizations.update(result)
      return { organizationId, subject: found.name, result }
    })
  }
}
