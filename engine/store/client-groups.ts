import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { textKey, uuidBytes } from './keys.ts'

/** A department or team of an organization. */
export interface ClientGroup {
  /** Unique regardless of case. */
  readonly name: string
  /** User names and addresses as they are stored (storedClient), or their pseudonyms. */
  readonly members: readonly string[]
  /** Distinct user names without regard to case, and addresses. Not in the first form. */
  readonly people?: number
  /** The mail address of the manager. Absent: none is known. */
  readonly manager?: string
}

/** The groups of the clients of each organization. */
export class ClientGroups {
  readonly #groups: Family<ClientGroup>

  constructor(environment: Environment) {
    this.#groups = new Family(environment.table('client-groups'), 'group of clients')
  }

  /** By name. */
  ofOrganization(organizationId: string): ClientGroup[] {
    return Array.from(this.#groups.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  put(organizationId: string, group: ClientGroup): void {
    this.#groups.put(groupKey(organizationId, group), group)
  }

  /** There are at most CLIENT_GROUPS_MAX. */
  removeAll(organizationId: string): void {
    for (const group of this.ofOrganization(organizationId)) this.#groups.remove(groupKey(organizationId, group))
  }
}

export function groupKey(organizationId: string, { name }: Pick<ClientGroup, 'name'>): Buffer {
  return textKey(organizationId, name.toLowerCase())
}
