import { canonicalName, hostNameFault, NAME_CHARS_MAX } from '../../registry/domain-name.ts'
import { EVIDENCE_WINDOW_DAYS_MAX } from '../limits.ts'
import { clientKeyFile, createClientKey } from '../process/client-key.ts'
import { Fault } from '../process/error-codes.ts'
import { beginErasure, finishErasure } from '../scan/erase-clients.ts'
import { requestScan } from '../scan/scan-runner.ts'
import type { AuditEntry } from '../store/audit-log.ts'
import { type ClientMode, keepsLess, type Organization, type Plan, type ScanFrequency } from '../store/organizations.ts'
import type { Removal } from '../store/removals.ts'
import { type Changes, checkText } from './changes.ts'
import { removeMember } from './members.ts'

/** The settings of an organization that its administrators can change. */
export interface OrganizationSettings {
  /** Only the operator can change the plan. */
  readonly plan?: Plan
  readonly domain?: string
  readonly scanFrequency?: ScanFrequency
  readonly evidenceWindowDays?: number
  /** Only an owner can change what is kept of clients, and whether API responses name them. */
  readonly clients?: ClientMode
  readonly apiClients?: boolean
}

export class OrganizationChanges {
  readonly #changes: Changes

  constructor(changes: Changes) {
    this.#changes = changes
  }

  /**
   * @throws Fault CONFLICT if the name is taken; USAGE if the name is empty, too long or has
   * several
   *   lines, or the domain is not a domain; NOT_ALLOWED
   */
  create(given: { name: string; domain: string; plan: Plan }): Organization {
    checkText('name', given.name)
    const checked = { ...given, domain: domainOf(given.domain) }
    const { store, clock } = this.#changes
    return this.#changes.make('organization.create', undefined, () => {
      const organization = store.organizations.create({ ...checked, confirmedDomain: checked.domain }, clock.nowMs())
      const { id: organizationId, name: subject, domain, plan } = organization
      return { organizationId, subject, details: { domain, plan }, result: organization }
    })
  }

  /** Takes effect with the next request of an API key. @throws Fault NOT_ALLOWED. */
  setPlan(organization: Organization, plan: Plan): Organization {
    return this.set(organization, { plan })
  }

  /**
   * Changes all settings in one transaction. Only the operator may include the plan. A domain that
   * the operator enters is confirmed.
   *
   * @throws Fault USAGE, NOT_ALLOWED.
   */
  set(organization: Organization, given: OrganizationSettings): Organization {
    const settings = given.domain === undefined ? given : { ...given, domain: domainOf(given.domain) }
    const days = settings.evidenceWindowDays
    if (days !== undefined && !(Number.isInteger(days) && days >= 1 && days <= EVIDENCE_WINDOW_DAYS_MAX)) {
      throw new Fault('USAGE', `--window: expected a whole number from 1 to ${EVIDENCE_WINDOW_DAYS_MAX}, found ${days}`)
    }
    const { plan, clients, apiClients } = settings
    if (plan !== undefined) return this.#update(organization, 'organization.plan', settings)
    const isOfClients = clients !== undefined || apiClients !== undefined
    return this.#update(organization, isOfClients ? 'client.set' : 'organization.set', settings)
  }

  /**
   * Erases what the organization has decided not to keep of clients, in bounded transactions.
   * Otherwise the next scan does so.
   *
   * @throws Fault STORE_FULL
   */
  *eraseClients({ id }: Organization): Generator<void> {
    yield* finishErasure(this.#changes.store, id)
  }

  /** @throws Fault CONFLICT where the name is taken, USAGE, NOT_ALLOWED. */
  rename(organization: Organization, name: string): Organization {
    checkText('new name', name)
    const { store } = this.#changes
    const { id: organizationId, name: was } = organization
    return this.#changes.make('organization.rename', organizationId, () => {
      const result = store.organizations.rename(this.#existing(organization), name)
      return { organizationId, subject: name, details: { was }, result }
    })
  }

  /**
   * Removes an organization permanently: its keys and tokens become unknown at once. Its records
   * are left to store.removals.finish(). `audit` gets the audit log before anything changes,
   * and then what was added to it until the removal.
   *
   * @throws Fault NOT_ALLOWED, STORE_FULL, and what `audit` throws: then nothing was changed.
   */
  remove(organization: Organization, audit: (entries: readonly AuditEntry[]) => void): Removal {
    const { store, clock } = this.#changes
    const { id: organizationId } = organization
    const before = store.auditLog.ofOrganization(organizationId)
    audit(before)
    const exported = before.at(-1)?.sequence ?? 0
    let rest: readonly AuditEntry[] = []
    const removal = this.#changes.make(
      'organization.remove',
      organizationId,
      () => {
        const found = this.#existing(organization)
        const result: Removal = { organizationId, name: found.name, removedAtMs: clock.nowMs() }
        return { organizationId, subject: found.name, details: { domain: found.domain }, result }
      },
      (result) => {
        rest = store.auditLog.ofOrganization(organizationId).filter(({ sequence }) => sequence > exported)
        store.apiKeys.removeHashes(organizationId)
        store.monitoringTokens.removeHashes(organizationId)
        store.blockListLinks.removeHashes(organizationId)
        store.accountLinks.removeOfOrganization(organizationId)
        // With the index from users to members, whose keys begin with the user.
        for (const member of store.members.ofOrganization(organizationId)) removeMember(store, member)
        store.identityProviders.remove(organizationId)
        store.organizations.remove(this.#existing(organization))
        store.removals.put(result)
      },
    )
    clientKeyFile(store.dataDirectory, organizationId).remove()
    audit(rest)
    return removal
  }

  #keyOf({ id }: Organization, { clients }: OrganizationSettings): Pick<Organization, 'clientKeyId'> {
    if (clients !== 'pseudonym') return {}
    return { clientKeyId: createClientKey(this.#changes.store.dataDirectory, id) }
  }

  #existing({ id, name }: Organization): Organization {
    const found = this.#changes.store.organizations.get(id)
    if (found === undefined) throw new Fault('NOT_FOUND', `no organization ${name}`)
    return found
  }

  #update(
    organization: Organization,
    action: 'organization.plan' | 'organization.set' | 'client.set',
    change: OrganizationSettings,
  ): Organization {
    const { store, clock } = this.#changes
    const { id: organizationId, name: subject } = organization
    return this.#changes.make(action, organizationId, () => {
      const before = this.#existing(organization)
      const isConfirmed = change.domain !== undefined && this.#changes.isOperator
      const confirmed = isConfirmed ? { confirmedDomain: change.domain } : {}
      const result = { ...before, ...change, ...confirmed, ...this.#keyOf(organization, change) }
      store.organizations.update(result)
      if (keepsLess(before, result)) beginErasure(store, organizationId)
      // The published result may have clients, or lack them.
      if (change.clients !== undefined || change.apiClients !== undefined) requestScan(store, result, clock)
      return { organizationId, subject, details: { ...change }, result }
    })
  }
}

/** The domain in its canonical form. @throws Fault USAGE */
export function domainOf(given: string): string {
  const domain = canonicalName(given)
  if (domain !== undefined && hostNameFault(domain) === undefined) return domain
  const found = JSON.stringify(given.slice(0, NAME_CHARS_MAX))
  throw new Fault(
    'USAGE',
    `domain: expected a domain such as acme.example, labels of letters, digits and hyphens joined by dots; found ${found}`,
  )
}
