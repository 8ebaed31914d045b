import { Fault } from '../kernel/process/error-codes.ts'
import { makeBlockListSecret } from '../store/access-key.ts'
import type { Organization } from '../store/organizations.ts'
import type { BlockListLink, BlockListSelection } from '../store/secrets.ts'
import { AuditedChanges, checkText } from './audited-changes.ts'
import { chosen, newSecret } from './secrets.ts'

/** One for each device or group of devices. */
export const ACTIVE_LINKS_MAX = 100

/** Links by which devices download block lists from the console's port. */
export class BlockListLinkChanges extends AuditedChanges {
  /**
   * @returns the link's record, and its secret, which is stored nowhere
   * @throws Fault CONFLICT at the limit, USAGE, NOT_ALLOWED
   */
  create(
    organization: Organization,
    label: string,
    { blocks, riskMin }: BlockListSelection,
  ): { record: BlockListLink; raw: string } {
    checkText('label', label)
    const { store, clock } = this
    const raw = makeBlockListSecret()
    const record: BlockListLink = { ...newSecret(organization, label, raw, clock.nowMs()), blocks, riskMin }
    return this.audited('block-list-link.create', organization.id, () => {
      if (store.blockListLinks.activeCount(organization.id, clock.nowMs()) >= ACTIVE_LINKS_MAX) {
        throw new Fault(
          'CONFLICT',
          `${organization.name} has ${ACTIVE_LINKS_MAX} active links already; revoke one first`,
        )
      }
      store.blockListLinks.add(record)
      return { ...about(record), result: { record, raw } }
    })
  }

  /** @throws Fault NOT_FOUND, CONFLICT if it was already revoked, NOT_ALLOWED */
  revoke(organization: Organization, idOrVisible: string): BlockListLink {
    const { store, clock } = this
    return this.audited('block-list-link.revoke', organization.id, () => {
      const links = store.blockListLinks.ofOrganization(organization.id)
      const link = chosen(links, idOrVisible, 'block list link', clock.nowMs())
      return { ...about(link), result: store.blockListLinks.revoke(link, clock.nowMs()) }
    })
  }
}

function about({ organizationId, id, label, visible, blocks, riskMin }: BlockListLink) {
  return { organizationId, subject: label, details: { id, prefix: visible, blocks, min_risk: riskMin } }
}
