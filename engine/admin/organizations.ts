import { canonicalName, hostNameFault, NAME_CHARS_MAX } from '../../registry/domain-name.ts'
import { EVIDENCE_WINDOW_DAYS_MAX } from '../limits.ts'
import { Fault } from '../process/error-codes.ts'
import type { Organization, Plan, ScanFrequency } from '../store/organizations.ts'
import { type Changes, checkText } from './changes.ts'

/** The settings of an organization that its administrators can change. */
export interface OrganizationSettings {
  /** Only the operator can change the plan. */
  readonly plan?: Plan
  readonly domain?: string
  readonly scanFrequency?: ScanFrequency
  readonly evidenceWindowDays?: number
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
      const organization = store.organizations.create(checked, clock.nowMs())
      const { id: organizationId, name: subject, domain, plan } = organization
      return { organizationId, subject, details: { domain, plan }, result: organization }
    })
  }

  /** Takes effect with the next request of an API key. @throws Fault NOT_ALLOWED. */
  setPlan(organization: Organization, plan: Plan): Organization {
    return this.set(organization, { plan })
  }

  /**
   * Changes all settings in one transaction. Only the operator may include the plan. @throws Fault
   * USAGE, NOT_ALLOWED.
   */
  set(organization: Organization, given: OrganizationSettings): Organization {
    const settings = given.domain === undefined ? given : { ...given, domain: domainOf(given.domain) }
    const days = settings.evidenceWindowDays
    if (days !== undefined && !(Number.isInteger(days) && days >= 1 && days <= EVIDENCE_WINDOW_DAYS_MAX)) {
      throw new Fault('USAGE', `--window: expected a whole number from 1 to ${EVIDENCE_WINDOW_DAYS_MAX}, found ${days}`)
    }
    return this.#update(organization, settings.plan === undefined ? 'organization.set' : 'organization.plan', settings)
  }

  #update(
    organization: Organization,
    action: 'organization.plan' | 'organization.set',
    change: OrganizationSettings,
  ): Organization {
    const { store } = this.#changes
    const { id: organizationId, name: subject } = organization
    return this.#changes.make(action, organizationId, () => {
      const before = store.organizations.get(organizationId)
      if (before === undefined) throw new Fault('NOT_FOUND', `no organization ${subject}`)
      const result = { ...before, ...change }
      store.organizations.update(result)
      return { organizationId, subject, details: { ...change }, result }
    })
  }
}

/** The domain in its canonical form. @throws Fault USAGE */
function domainOf(given: string): string {
  const domain = canonicalName(given)
  if (domain !== undefined && hostNameFault(domain) === undefined) return domain
  const found = JSON.stringify(given.slice(0, NAME_CHARS_MAX))
  throw new Fault(
    'USAGE',
    `--domain: expected a domain such as acme.example, labels of letters, digits and hyphens joined by dots; found ${found}`,
  )
}
