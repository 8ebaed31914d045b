import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** Roles in ascending order of permissions. admin/actions.ts lists the permissions. */
export const ROLES = ['member', 'admin', 'owner'] as const
export type Role = (typeof ROLES)[number]

/** A person in an organization. */
export interface Member {
  readonly organizationId: string
  /** An e-mail address or another name, unique in the organization regardless of case. */
  readonly name: string
  readonly role: Role
  readonly createdAtMs: number
}

/** The members of each organization. */
export class Members {
  readonly #members: Family<Member>

  constructor(environment: Environment) {
    this.#members = new Family(environment.table('members'), 'member')
  }

  get(organizationId: string, name: string): Member | undefined {
    return this.#members.get(keyOf(organizationId, name))
  }

  /** Sorted by name. */
  ofOrganization(organizationId: string): Member[] {
    return Array.from(this.#members.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** Requires a write transaction. */
  put(member: Member): void {
    this.#members.put(keyOf(member.organizationId, member.name), member)
  }

  /** Requires a write transaction. */
  remove(member: Member): void {
    this.#members.remove(keyOf(member.organizationId, member.name))
  }
}

function keyOf(organizationId: string, name: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(name.toLowerCase())])
}
