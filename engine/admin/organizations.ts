import { canonicalName, hostNameFault, NAME_CHARS_MAX } from '../../registry/domain-name.ts'
import { clientKeyFile, createClientKey } from '../kernel/process/client-key.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { ALERTS_MAX, EVIDENCE_WINDOW_DAYS_MAX, RETENTION_DAYS_MAX } from '../limits.ts'
import { beginErasure, finishErasure } from '../scan/erase-clients.ts'
import { requestScan } from '../scan/scan-runner.ts'
import type { AuditEntry } from '../store/audit-log.ts'
import {
  type ClientMode,
  clientModeOf,
  keepsLess,
  mayNamePeople,
  type Organization,
  type Plan,
  type Retention,
  type ScanFrequency,
} from '../store/organizations.ts'
import type { Removal } from '../store/removals.ts'
import { applyRetention, RETENTION_DAYS_MIN, type Removed, retentionOf } from '../store/retention.ts'
import type { Scan } from '../store/scans.ts'
import { AuditedChanges, checkText } from './audited-changes.ts'
import { removeMember } from './members.ts'

/** The settings of an organization that its administrators can change. */
export interface OrganizationSettings {
  /** Only the operator can change the plan. */
  readonly plan?: Plan
  readonly domain?: string
  readonly scanFrequency?: ScanFrequency
  readonly evidenceWindowDays?: number
  /** Only an owner can change what is kept of clients, and whether API responses and alerts name them. */
  readonly clients?: ClientMode
  readonly apiClients?: boolean
  readonly alertPeople?: boolean
}

export class OrganizationChanges extends AuditedChanges {
  /**
   * @throws Fault CONFLICT if the name is taken; USAGE if the name is empty, too long or has
   * several
   *   lines, or the domain is not a domain; NOT_ALLOWED
   */
  create(given: { name: string; domain: string; plan: Plan }): Organization {
    checkText('name', given.name)
    const checked = { ...given, domain: domainOf(given.domain) }
    const { store, clock } = this
    return this.audited('organization.create', undefined, () => {
      const organization = store.organizations.create({ ...checked, confirmedDomain: checked.domain }, clock.nowMs())
      const { id: organizationId, name: subject, domain, plan } = organization
      return { organizationId, subject, details: { domain, plan }, result: organization }
    })
  }

  /**
   * Changes all settings in one transaction. Only the operator may include the plan, which takes
   * effect with the next request of an API key. A domain that the operator enters is confirmed.
   *
   * @throws Fault USAGE, NOT_ALLOWED.
   */
  set(organization: Organization, given: OrganizationSettings): Organization {
    const settings = given.domain === undefined ? given : { ...given, domain: domainOf(given.domain) }
    const days = settings.evidenceWindowDays
    if (days !== undefined && !(Number.isInteger(days) && days >= 1 && days <= EVIDENCE_WINDOW_DAYS_MAX)) {
      throw new Fault('USAGE', `--window: expected a whole number from 1 to ${EVIDENCE_WINDOW_DAYS_MAX}, found ${days}`)
    }
    const { plan, clients, apiClients, alertPeople } = settings
    if (plan !== undefined) return this.#update(organization, 'organization.plan', settings)
    const isOfClients = clients !== undefined || apiClients !== undefined || alertPeople !== undefined
    return this.#update(organization, isOfClients ? 'client.set' : 'organization.set', settings)
  }

  /**
   * Erases what the organization has decided not to keep of clients, in bounded transactions.
   * Otherwise the next scan does so.
   *
   * @throws Fault STORE_FULL
   */
  *eraseClients({ id }: Organization): Generator<void> {
    yield* finishErasure(this.store, id)
  }

  /** @throws Fault CONFLICT where the name is taken, USAGE, NOT_ALLOWED. */
  rename(organization: Organization, name: string): Organization {
    checkText('new name', name)
    const { store } = this
    const { id: organizationId, name: was } = organization
    return this.audited('organization.rename', organizationId, () => {
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
    const { store, clock } = this
    const { id: organizationId } = organization
    const before = store.auditLog.ofOrganization(organizationId)
    audit(before)
    const exported = before.at(-1)?.sequence ?? 0
    let rest: readonly AuditEntry[] = []
    const removal = this.audited(
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
    return { clientKeyId: createClientKey(this.store.dataDirectory, id) }
  }

  #existing({ id, name }: Organization): Organization {
    const found = this.store.organizations.get(id)
    if (found === undefined) throw new Fault('NOT_FOUND', `no organization ${name}`)
    return found
  }

  #update(
    organization: Organization,
    action: 'organization.plan' | 'organization.set' | 'client.set',
    change: OrganizationSettings,
  ): Organization {
    const { store, clock } = this
    const { id: organizationId, name: subject } = organization
    return this.audited(action, organizationId, () => {
      const before = this.#existing(organization)
      const isConfirmed = change.domain !== undefined && this.isOperator
      const confirmed = isConfirmed ? { confirmedDomain: change.domain } : {}
      const result = { ...before, ...change, ...confirmed, ...this.#keyOf(organization, change) }
      store.organizations.update(result)
      if (keepsLess(before, result)) beginErasure(store, organizationId)
      if (mayNamePeople(before) && !mayNamePeople(result))
        store.alerts.erasePeople(organizationId, 0, ALERTS_MAX, () => true)
      // Their members are of the setting before.
      if (clientModeOf(before) !== clientModeOf(result)) store.clientGroups.removeAll(organizationId)
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

export class RetentionChanges extends AuditedChanges {
  /** Changes the given days and keeps the others. @throws Fault USAGE, NOT_ALLOWED. */
  set(organization: Organization, days: Partial<Retention>): Organization {
    for (const [name, min] of Object.entries(RETENTION_DAYS_MIN)) {
      const found = days[name as keyof Retention]
      if (found === undefined || (Number.isInteger(found) && found >= min && found <= RETENTION_DAYS_MAX)) continue
      throw new Fault('USAGE', `${name}: expected a whole number from ${min} to ${RETENTION_DAYS_MAX}, found ${found}`)
    }
    const { store } = this
    const { id: organizationId, name: subject } = organization
    return this.audited('retention.set', organizationId, () => {
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
    const { store, clock } = this
    const { id: organizationId, name: subject } = organization
    this.audited('retention.apply', organizationId, () => {
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

export class ScanChanges extends AuditedChanges {
  /** Requests a scan, or returns the one that is already pending. @throws Fault NOT_ALLOWED. */
  request(organization: Organization): Scan {
    const { store, clock } = this
    const organizationId = organization.id
    return this.audited('scan.request', organizationId, () => {
      const scan = requestScan(store, organization, clock)
      return { organizationId, subject: scan.id, result: scan }
    })
  }
}
