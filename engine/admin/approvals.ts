import type { Catalog } from '../../registry/catalog.ts'
import { platformId } from '../../registry/platform.ts'
import { APPROVALS_MAX } from '../limits.ts'
import { Fault } from '../process/error-codes.ts'
import { requestScan } from '../scan/scan-runner.ts'
import type { Organization } from '../store/organizations.ts'
import type { Scan } from '../store/scans.ts'
import type { Changes } from './changes.ts'

/** The result of changing approvals, and the scan that will show it. */
export interface ApprovalChange {
  readonly organization: Organization
  readonly scan: Scan
}

export class ApprovalChanges {
  readonly #changes: Changes

  constructor(changes: Changes) {
    this.#changes = changes
  }

  /**
   * Approves platforms by their id or name in the registry, and requests a scan that shows the
   * result. Approving a platform again changes nothing.
   *
   * @throws Fault NOT_FOUND if the registry does not contain a platform, CONFLICT at the limit,
   *   NOT_ALLOWED
   */
  add(organization: Organization, catalog: Catalog, platforms: readonly string[]): ApprovalChange {
    const added = platforms.map((named) => registered(catalog, named))
    return this.#change('approval.add', organization, platforms, (approved) => {
      const all = [...new Set([...approved, ...added])]
      if (all.length > APPROVALS_MAX) {
        throw new Fault('CONFLICT', `${organization.name} would have more than ${APPROVALS_MAX} approved platforms`)
      }
      return all
    })
  }

  /** @throws Fault NOT_FOUND if a platform is not approved, NOT_ALLOWED */
  remove(organization: Organization, catalog: Catalog, platforms: readonly string[]): ApprovalChange {
    return this.#change('approval.remove', organization, platforms, (approved) => {
      const removed = platforms.map((named) => {
        // A platform that was removed from the registry is known only by its id.
        const id = approved.includes(named) ? named : found(catalog, named)
        if (id === undefined || !approved.includes(id)) {
          throw new Fault(
            'NOT_FOUND',
            `${JSON.stringify(named)} is not approved; posture-admin approval list shows all`,
          )
        }
        return id
      })
      return approved.filter((id) => !removed.includes(id))
    })
  }

  #change(
    action: 'approval.add' | 'approval.remove',
    { id: organizationId, name }: Organization,
    platforms: readonly string[],
    next: (approved: readonly string[]) => readonly string[],
  ): ApprovalChange {
    const { store, clock } = this.#changes
    return this.#changes.make(action, organizationId, () => {
      const before = store.organizations.get(organizationId)
      if (before === undefined) throw new Fault('NOT_FOUND', `no organization ${name}`)
      const organization = { ...before, approvedPlatformIds: next(before.approvedPlatformIds) }
      store.organizations.update(organization)
      const scan = requestScan(store, organization, clock)
      return { organizationId, subject: platforms.join(', '), result: { organization, scan } }
    })
  }
}

function registered(catalog: Catalog, named: string): string {
  const id = found(catalog, named)
  if (id !== undefined) return id
  throw new Fault(
    'NOT_FOUND',
    `no platform ${JSON.stringify(named)} in the registry; posture-admin registry search finds some like it`,
  )
}

/** By id, or by name ignoring case. */
function found({ platforms }: Catalog, named: string): string | undefined {
  const isId = platformId.safeParse(named).success
  const wanted = named.toLowerCase()
  const platform =
    (isId ? platforms.find(({ id }) => id === named) : undefined) ??
    platforms.find(({ name }) => name.toLowerCase() === wanted)
  return platform?.id
}
