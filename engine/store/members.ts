import { createHash } from 'node:crypto'
import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import type { SealedSecret } from '../kernel/process/secrets-key.ts'
import { Family, OrganizationCollection } from './family.ts'
import { endOfPrefix, ownKey, textKey, uuidBytes } from './keys.ts'

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

type MemberName = Pick<Member, 'organizationId' | 'name'>

/** The case of the name does not matter. */
export function memberKey({ organizationId, name }: MemberName): Buffer {
  return textKey(organizationId, name.toLowerCase())
}

/** The members of each organization, sorted by name, with an index from user to members. */
export class Members extends OrganizationCollection<MemberName, Member> {
  readonly #memberships: Table

  constructor(environment: Environment) {
    super(environment.table('members'), 'member', memberKey)
    this.#memberships = environment.table('memberships')
  }

  /** The members that this user is: at most one in each organization. */
  ofUser(userId: string): Member[] {
    const prefix = uuidBytes(userId)
    const members: Member[] = []
    for (const { value } of this.#memberships.getRange({ start: prefix, end: endOfPrefix(prefix) })) {
      const member = this.records.get(value)
      if (member !== undefined) members.push(member)
    }
    return members
  }

  /** The member of the organization that this user is. */
  ofUserIn(userId: string, organizationId: string): Member | undefined {
    const key = this.#memberships.get(ownKey(userId, organizationId))
    return key === undefined ? undefined : this.records.get(key)
  }

  override put(member: Member): void {
    const { organizationId, userId } = member
    const before = this.get(member)?.userId
    if (before !== undefined && before !== userId) this.#memberships.removeSync(ownKey(before, organizationId))
    super.put(member)
    if (userId !== undefined) this.#memberships.putSync(ownKey(userId, organizationId), memberKey(member))
  }

  override remove(member: Member): void {
    super.remove(member)
    if (member.userId !== undefined) this.#memberships.removeSync(ownKey(member.userId, member.organizationId))
  }
}

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
export class RemovedMembers extends OrganizationCollection<MemberName, RemovedMember> {
  constructor(environment: Environment) {
    super(environment.table('removed-members'), 'removed member', memberKey)
  }

  /** The removed members with this name or this identity. */
  ofPerson(person: MemberName & ProviderIdentity): RemovedMember[] {
    const name = person.name.toLowerCase()
    return this.ofOrganization(person.organizationId).filter(
      (removed) =>
        removed.name.toLowerCase() === name ||
        removed.identities.some(({ issuer, subject }) => issuer === person.issuer && subject === person.subject),
    )
  }
}

/**
 * A person at the identity provider of an organization. The issuer and the subject identify the
 * person (OpenID Connect Core 1.0 §5.7), not a name or an e-mail address, which can change hands.
 */
export interface FederatedIdentity {
  readonly organizationId: string
  readonly issuer: string
  /** The claim `sub`. */
  readonly subject: string
  readonly userId: string
  readonly createdAtMs: number
  readonly signedInAtMs: number
}

/** A person at the identity provider of an organization that is known from elsewhere. */
export type ProviderIdentity = Pick<FederatedIdentity, 'issuer' | 'subject'>

type Subject = ProviderIdentity & Pick<FederatedIdentity, 'organizationId'>

/** A subject has up to 255 characters, so the key has a hash. A newline is in no issuer. */
export function federatedIdentityKey({ organizationId, issuer, subject }: Subject): Buffer {
  const hash = createHash('sha256').update(`${issuer}\n${subject}`).digest()
  return Buffer.concat([uuidBytes(organizationId), hash])
}

/** Federated identities by organization, issuer and subject. */
export class FederatedIdentities extends OrganizationCollection<Subject, FederatedIdentity> {
  constructor(environment: Environment) {
    super(environment.table('federated-identities'), 'federated identity', federatedIdentityKey)
  }

  /** The identities of a user at the provider of an organization. */
  ofUser(organizationId: string, userId: string): FederatedIdentity[] {
    return this.ofOrganization(organizationId).filter((identity) => identity.userId === userId)
  }
}

/** Members of this group of the provider get this role. */
export interface GroupRole {
  readonly group: string
  readonly role: Role
}

/**
 * The OpenID provider with which members of an organization sign in to the console (OpenID Connect
 * Core 1.0).
 */
export interface IdentityProvider {
  readonly organizationId: string
  /** The text of the button for sign-in. */
  readonly name: string
  /** Exactly as in the provider's metadata. */
  readonly issuer: string
  readonly clientId: string
  /** Encrypted for this organization and issuer. */
  readonly clientSecret: SealedSecret
  readonly scopes: readonly string[]
  /** The claim that names a new member, such as `email`. */
  readonly nameClaim: string
  /** The claim with the list of groups. */
  readonly groupsClaim: string
  readonly groups: readonly GroupRole[]
  /** The role of users in none of the groups. `none`: they cannot sign in. */
  readonly defaultRole: Role | 'none'
  readonly changedAtMs: number
}

/** What an encrypted client secret is bound to: moved elsewhere, it cannot be decrypted. */
export function clientSecretContext({
  organizationId,
  issuer,
}: Pick<IdentityProvider, 'organizationId' | 'issuer'>): string {
  return `client secret ${organizationId} ${issuer}`
}

/** At most one identity provider per organization. */
export class IdentityProviders {
  readonly #records: Family<IdentityProvider>

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('identity-providers'), 'identity provider')
  }

  get(organizationId: string): IdentityProvider | undefined {
    return this.#records.get(uuidBytes(organizationId))
  }

  isEmpty(): boolean {
    return this.#records.firstKey(Buffer.alloc(0)) === undefined
  }

  put(provider: IdentityProvider): void {
    this.#records.put(uuidBytes(provider.organizationId), provider)
  }

  remove(organizationId: string): void {
    this.#records.remove(uuidBytes(organizationId))
  }
}
