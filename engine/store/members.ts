import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import type { ProviderIdentity } from './federated-identities.ts'
import { endOfPrefix, uuidBytes } from './keys.ts'

/** Roles in ascending order of permissions. admin/actions.ts lists the permissions. */
export const ROLES = ['viewer', 'member', 'admin', 'owner'] as const
export type Role = (typeof ROLES)[number]

/** A person in an organization. */
export interface Member {
  readonly organizationId: string
  /** An e-mail address or another name, unique in the organization regardless of case. */
  readonly name: string
  readonly role: Role
  readonly createdAtMs: number
  /** The user of the console who is this member; absent until the member's link was used. */
  readonly userId?: string
  /**
   * The person at identity providers before a removal that was undone, so that the next removal
   * concerns the same person.
   */
  readonly identitiesBefore?: readonly ProviderIdentity[]
}

/** The members of each organization, with an index from user to members. */
export class Members {
  readonly #members: Family<Member>
  readonly #memberships: Table

  constructor(environment: Environment) {
    this.#members = new Family(environment.table('members'), 'member')
    this.#memberships = environment.table('memberships')
  }

  get(organizationId: string, name: string): Member | undefined {
    return this.#members.get(keyOf(organizationId, name))
  }

  /** Sorted by name. */
  ofOrganization(organizationId: string): Member[] {
    return Array.from(this.#members.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** The members that this user is: at most one in each organization. */
  ofUser(userId: string): Member[] {
    const prefix = uuidBytes(userId)
    const members: Member[] = []
    for (const { value } of this.#memberships.getRange({ start: prefix, end: endOfPrefix(prefix) })) {
      const member = this.#members.get(value)
      if (member !== undefined) members.push(member)
    }
    return members
  }

  /** The member of the organization that this user is. */
  ofUserIn(userId: string, organizationId: string): Member | undefined {
    const key = this.#memberships.get(membershipKey(userId, organizationId))
    return key === undefined ? undefined : this.#members.get(key)
  }

  /** Requires a write transaction. */
  put(member: Member): void {
    const { organizationId, name, userId } = member
    const before = this.get(organizationId, name)?.userId
    if (before !== undefined && before !== userId) this.#memberships.removeSync(membershipKey(before, organizationId))
    this.#members.put(keyOf(organizationId, name), member)
    if (userId !== undefined)
      this.#memberships.putSync(membershipKey(userId, organizationId), keyOf(organizationId, name))
  }

  /** Requires a write transaction. */
  remove(member: Member): void {
    this.#members.remove(keyOf(member.organizationId, member.name))
    if (member.userId !== undefined) this.#memberships.removeSync(membershipKey(member.userId, member.organizationId))
  }
}

function membershipKey(userId: string, organizationId: string): Buffer {
  return Buffer.concat([uuidBytes(userId), uuidBytes(organizationId)])
}

function keyOf(organizationId: string, name: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(name.toLowerCase())])
}
