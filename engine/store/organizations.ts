import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { Fault, isFault } from '../kernel/process/error-codes.ts'
import type { ApiVersions } from './api-versions.ts'
import { Family } from './family.ts'
import { newUuid, uuidBytes, uuidText } from './keys.ts'

export const PLANS = ['enterprise', 'business', 'free'] as const
export type Plan = (typeof PLANS)[number]

export const SCAN_FREQUENCIES = ['hourly', 'daily', 'weekly'] as const
export type ScanFrequency = (typeof SCAN_FREQUENCIES)[number]

/**
 * What an organization keeps of clients. `pseudonym`: an encrypted address or user name, that the
 * key file of the organization can decrypt. `off`: nothing, so that all clients count as one.
 */
export const CLIENT_MODES = ['full', 'pseudonym', 'off'] as const
export type ClientMode = (typeof CLIENT_MODES)[number]

/** Days for which an organization keeps records that have no other time limit. */
export interface Retention {
  /** Ended scans in the list of scans. */
  readonly scanDays: number
  /** Entries of the audit log. */
  readonly auditDays: number
  /** Inactive senders. Their messages remain in the sums. */
  readonly sourceDays: number
  /** Who used each platform. At most the evidence window. */
  readonly clientDays: number
}

export interface Organization {
  readonly id: string
  /** Unique regardless of case. */
  readonly name: string
  /** The domain of the discovery scans. */
  readonly domain: string
  /**
   * The domain that the operator entered last. If it is the organization's domain, e-mail addresses
   * in it lead to the organization's sign-in. A member can claim any domain.
   */
  readonly confirmedDomain?: string
  readonly plan: Plan
  readonly createdAtMs: number
  readonly scanFrequency: ScanFrequency
  readonly evidenceWindowDays: number
  /** Absent: full. */
  readonly clients?: ClientMode
  /** Identifies the key of the pseudonyms, see process/client-key.ts. */
  readonly clientKeyId?: string
  /** Whether API responses name clients. Absent: no. */
  readonly apiClients?: boolean
  /** Whether alerts name people. Absent: no. */
  readonly alertPeople?: boolean
  /** Overrides the defaults in retention.ts. */
  readonly retention?: Partial<Retention>
  /** When the last report was made, in milliseconds since 1970. Absent: never. */
  readonly lastReportAtMs?: number
}

/** Whether the operator has confirmed the domain of an organization. */
export function isDomainConfirmed({ domain, confirmedDomain }: Organization): boolean {
  return domain === confirmedDomain
}

const EVIDENCE_WINDOW_DAYS_DEFAULT = 30
/** A name is an LMDB key of at most 511 bytes, and case folding may lengthen it. */
export const NAME_BYTES_MAX = 255

export interface ClientSettings {
  readonly mode: ClientMode
  /** The key of pseudonyms. */
  readonly keyId: string
}

export function clientModeOf({ clients = 'full' }: Pick<Organization, 'clients'>): ClientMode {
  return clients
}

/** Whether a message about the organization may name people, or their pseudonyms. */
export function mayNamePeople(organization: Organization): boolean {
  return organization.alertPeople === true && clientModeOf(organization) !== 'off'
}

/** Whether a mail to a manager may name people. A pseudonym says nothing to a manager. */
export function mayNameToManager(organization: Organization): boolean {
  return mayNamePeople(organization) && clientModeOf(organization) === 'full'
}

/** Whether clients that were stored with the old setting must not be kept. */
export function keepsLess(before: Pick<Organization, 'clients'>, after: Pick<Organization, 'clients'>): boolean {
  return CLIENT_MODES.indexOf(clientModeOf(after)) > CLIENT_MODES.indexOf(clientModeOf(before))
}

export class Organizations {
  readonly #records: Family<Organization>
  readonly #names: Table
  readonly #versions: ApiVersions

  constructor(environment: Environment, versions: ApiVersions) {
    this.#versions = versions
    this.#records = new Family(environment.table('organizations'), 'organization')
    this.#names = environment.table('organization-names')
  }

  get(id: string): Organization | undefined {
    return this.#records.get(uuidBytes(id))
  }

  /** By name (ignoring case) or by id. */
  find(nameOrId: string): Organization | undefined {
    const key = nameKey(nameOrId)
    if (key.length === 0 || key.length > NAME_BYTES_MAX) return undefined
    const id = this.#names.get(key)
    if (id !== undefined) return this.#records.get(id)
    return /^[0-9a-f-]{36}$/.test(nameOrId) ? this.get(nameOrId) : undefined
  }

  /**
   * What to keep of the organization's clients. `off` if its record is damaged, so that no client
   * is kept by mistake.
   */
  clientSettings(id: string): ClientSettings {
    try {
      const organization = this.get(id)
      return {
        mode: organization === undefined ? 'off' : clientModeOf(organization),
        keyId: organization?.clientKeyId ?? '',
      }
    } catch (error) {
      if (!isFault(error, 'STORE_DAMAGED')) throw error
      return { mode: 'off', keyId: '' }
    }
  }

  /** Whether there is a record, which may be damaged. */
  exists(id: string): boolean {
    return this.#records.has(uuidBytes(id))
  }

  /** Whether the service has no other organization. */
  isOnly(id: string): boolean {
    for (const key of this.#records.keys(Buffer.alloc(0))) if (uuidText(key) !== id) return false
    return true
  }

  /** Includes organizations with a damaged record. */
  ids(): string[] {
    return Array.from(this.#records.keys(Buffer.alloc(0)), uuidText)
  }

  /** The organization, if there is exactly one. */
  single(): Organization | undefined {
    const ids: Buffer[] = []
    for (const id of this.#records.keys(Buffer.alloc(0))) if (ids.push(id) > 1) return undefined
    const [id] = ids
    return id && this.#records.get(id)
  }

  all(): Organization[] {
    return [...this.#records.range(Buffer.alloc(0))].map(({ value }) => value)
  }

  /** @throws Fault CONFLICT if the name is taken */
  create(given: Pick<Organization, 'name' | 'domain' | 'confirmedDomain' | 'plan'>, nowMs: number): Organization {
    this.#assertFree(given.name)
    const organization: Organization = {
      id: newUuid(),
      ...given,
      createdAtMs: nowMs,
      scanFrequency: 'daily',
      evidenceWindowDays: EVIDENCE_WINDOW_DAYS_DEFAULT,
    }
    this.#records.put(uuidBytes(organization.id), organization)
    this.#names.putSync(nameKey(given.name), uuidBytes(organization.id))
    return organization
  }

  /**
   * A change of case alone is a new name, too.
   *
   * @throws Fault CONFLICT where the name is taken.
   */
  rename(organization: Organization, name: string): Organization {
    if (!nameKey(name).equals(nameKey(organization.name))) this.#assertFree(name)
    this.#names.removeSync(nameKey(organization.name))
    const renamed = { ...organization, name }
    this.#names.putSync(nameKey(name), uuidBytes(organization.id))
    this.update(renamed)
    return renamed
  }

  /**
   * Inside a transaction of the caller, who also removes what leads to its other records
   * (removals.ts).
   */
  remove(organization: Organization): void {
    this.#names.removeSync(nameKey(organization.name))
    this.#records.remove(uuidBytes(organization.id))
    this.#versions.change(organization.id)
  }

  #assertFree(name: string): void {
    if (this.#names.get(nameKey(name)) === undefined) return
    throw new Fault('CONFLICT', `an organization named ${JSON.stringify(name)} already exists; choose another name`)
  }

  /** Cannot change the name. */
  update(organization: Organization): void {
    this.#records.put(uuidBytes(organization.id), organization)
    this.#versions.change(organization.id)
  }
}

function nameKey(name: string): Buffer {
  return Buffer.from(name.toLowerCase())
}
