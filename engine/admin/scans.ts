import { requestScan } from '../scan/scan-runner.ts'
import type { Organization } from '../store/organizations.ts'
import type { Scan } from '../store/scans.ts'
import type { Changes } from './changes.ts'

export class ScanChanges {
  readonly #changes: Changes

  constructor(changes: Changes) {
    this.#changes = changes
  }

  /** Requests a scan, or returns the one that is already pending. @throws Fault NOT_ALLOWED. */
  request(organization: Organization): Scan {
    const { store, clock } = this.#changes
    const organizationId = organization.id
    return this.#changes.make('scan.request', organizationId, () => {
      const scan = requestScan(store, organization, clock)
      return { organizationId, subject: scan.id, result: scan }
    })
  }
}
