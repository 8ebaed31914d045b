import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** What a member may do grows from left to right; admin/actions.ts says what each may. */
export const ROLES = ['member', 'admin', 'owner'] as const
export type Role = (typeof ROLES)[number]

/** A person of an organization. */
export interface Member {
  readonly organizationId: string
  /** An e-mail address or another name, unique in the organization, whatever its case. */
  readonly name: string
  readonly role: Role
  readonly createdAtMs: number
}

/** The people of each organization. */
export class Members {
  readonly #members: Family<Member>

  constructor(environment: Environment) {
    this.#members = new Family(environment.table('members'), 'member')
  }

  get(organizationId: string, name: string): Member | undefined {
    return this.#members.get(keyOf(organizationId, name))
  }

  /** By name. */
  ofOrganization(organizationId: string): Member[] {
    return Array.from(this.#members.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** Inside a transaction of the caller. */
  put(member: Member): void {
    this.#members.put(keyOf(member.organizationId, member.name), member)
  }

  /** Inside a transaction of the caller. */
  remove(member: Member): void {
    this.#members.remove(keyOf(member.organizationId, member.name))
  }
}

function keyOf(organizationId: string, name: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(name.toLowerCase())])
}
