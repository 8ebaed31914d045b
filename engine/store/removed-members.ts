import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import type { ProviderIdentity } from './federated-identities.ts'
import { uuidBytes } from './keys.ts'
import type { Role } from './members.ts'

/**
 * A member whom somebody removed. The identity provider may still vouch for the person, who does
 * not become a member again by a sign-in there until an owner allows it.
 */
export interface RemovedMember {
  readonly organizationId: string
  readonly name: string
  /** The role before the removal. */
  readonly role: Role
  readonly removedAtMs: number
  /** The person at identity providers. Empty if the member never signed in with one. */
  readonly identities: readonly ProviderIdentity[]
}

/** Removed members by organization and name. */
export class RemovedMembers {
  readonly #records: Family<RemovedMember>

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('removed-members'), 'removed member')
  }

  get(organizationId: string, name: string): RemovedMember | undefined {
    return this.#records.get(removedMemberKey({ organizationId, name }))
  }

  /** Sorted by name. */
  ofOrganization(organizationId: string): RemovedMember[] {
    return Array.from(this.#records.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** The removed members with this name or this identity. */
  ofPerson(person: Pick<RemovedMember, 'organizationId' | 'name'> & ProviderIdentity): RemovedMember[] {
    const name = person.name.toLowerCase()
    return this.ofOrganization(person.organizationId).filter(
      (removed) =>
        removed.name.toLowerCase() === name ||
        removed.identities.some(({ issuer, subject }) => issuer === person.issuer && subject === person.subject),
    )
  }

  /** Requires a write transaction. */
  put(removed: RemovedMember): void {
    this.#records.put(removedMemberKey(removed), removed)
  }

  /** Requires a write transaction. */
  remove(removed: Pick<RemovedMember, 'organizationId' | 'name'>): void {
    this.#records.remove(removedMemberKey(removed))
  }
}

/** As the key of a member: the case of the name does not matter. */
export function removedMemberKey({ organizationId, name }: Pick<RemovedMember, 'organizationId' | 'name'>): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(name.toLowerCase())])
}
