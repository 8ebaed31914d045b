import type { Clock } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { MEMBERS_MAX } from '../limits.ts'
import { newUuid } from '../store/keys.ts'
import { type FederatedIdentity, type IdentityProvider, type Member, ROLES, type Role } from '../store/members.ts'
import type { Store } from '../store/store.ts'
import type { User } from '../store/users.ts'
import type { Action } from './actions.ts'
import { checkText } from './audited-changes.ts'
import { putAllowed } from './members.ts'

/** The settings by which an identity provider was asked. */
export type AskedProvider = Pick<IdentityProvider, 'organizationId' | 'issuer' | 'clientId'>

/** What an identity provider says about a person who signed in there. */
export interface FederatedClaims extends AskedProvider {
  readonly subject: string
  readonly name: string
  readonly groups: readonly string[]
}

/** The highest role of these groups, else the default. undefined: no access. */
export function roleOf(
  { groups: known, defaultRole }: Pick<IdentityProvider, 'groups' | 'defaultRole'>,
  groups: readonly string[],
): Role | undefined {
  const roles = known.filter(({ group }) => groups.includes(group)).map(({ role }) => role)
  if (defaultRole !== 'none') roles.push(defaultRole)
  return [...ROLES].reverse().find((role) => roles.includes(role))
}

/**
 * Users and members that an identity provider vouches for. The caller has verified what the
 * provider says. Each change is one transaction with its entries in the audit log.
 */
export class Federation {
  readonly #store: Store
  readonly #clock: Clock

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /**
   * The user of a person who signed in with the organization's provider. A new person becomes a
   * member with a new user. The role follows the groups at each sign-in.
   *
   * @throws Fault NOT_ALLOWED if no group gives a role, or the member was removed; CONFLICT if the
   *   name is taken, the organization is full, or the settings changed meanwhile; USAGE if the name
   *   cannot be one
   */
  signIn(claims: FederatedClaims): { readonly userId: string } {
    // In one transaction, because another process can change the settings between two.
    const signedIn = this.#store.environment.write(() => {
      const role = roleOf(this.#provider(claims), claims.groups)
      if (role === undefined) {
        // An error here would abort the transaction.
        this.#endSessions(claims)
        return undefined
      }
      const known = this.#known(claims)
      const identity = known ?? this.#addMember(claims, role)
      if (known !== undefined) this.#setRole(known, role)
      this.#store.federatedIdentities.put({ ...identity, signedInAtMs: this.#clock.nowMs() })
      return { userId: identity.userId }
    })
    if (signedIn === undefined) throw new Fault('NOT_ALLOWED', noAccess(claims.groups))
    return signedIn
  }

  /**
   * Inside a transaction of the caller, which starts a session for a user who signed in with the
   * provider before.
   *
   * @throws Fault CONFLICT if the settings changed meanwhile, NOT_FOUND if the member was removed
   */
  assertUnchanged(provider: AskedProvider, userId: string): void {
    this.#provider(provider)
    this.#memberOf(provider, userId)
  }

  /**
   * Lets a signed-in user also sign in with the provider of an organization.
   *
   * @throws Fault CONFLICT if the person at the provider is another user already, or the user is
   *   another person; NOT_FOUND if the user is not a member
   */
  connect(claims: FederatedClaims, userId: string): void {
    const { environment, federatedIdentities, removedMembers } = this.#store
    const { organizationId, issuer, subject } = claims
    environment.write(() => {
      this.#provider(claims)
      const member = this.#memberOf(claims, userId)
      const known = this.#known(claims)
      if (known?.userId === userId) return
      if (known !== undefined) throw new Fault('CONFLICT', `${claims.name} at the provider is another user already`)
      for (const other of federatedIdentities.ofUser(organizationId, userId)) federatedIdentities.remove(other)
      const createdAtMs = this.#clock.nowMs()
      federatedIdentities.put({ organizationId, issuer, subject, userId, createdAtMs, signedInAtMs: createdAtMs })
      // An owner has added the person since, perhaps by another name.
      putAllowed(this.#store, member, removedMembers.ofPerson({ ...claims, name: member.name }))
      this.#note('sign-in.connect', member, { provider_name: claims.name })
    })
  }

  #memberOf({ organizationId }: AskedProvider, userId: string): Member {
    const member = this.#store.members.ofUserIn(userId, organizationId)
    if (member === undefined) throw new Fault('NOT_FOUND', 'You are no longer a member of the organization')
    return member
  }

  #provider({ organizationId, issuer, clientId }: AskedProvider): IdentityProvider {
    const provider = this.#store.identityProviders.get(organizationId)
    if (provider !== undefined && provider.issuer === issuer && provider.clientId === clientId) return provider
    throw new Fault('CONFLICT', 'The sign-in settings of the organization changed meanwhile. Sign in again')
  }

  /** An identity whose member was removed is gone, too. */
  #known(claims: FederatedClaims): FederatedIdentity | undefined {
    return this.#store.federatedIdentities.get(claims)
  }

  #addMember({ organizationId, issuer, subject, name }: FederatedClaims, role: Role): FederatedIdentity {
    checkText('The name from the provider', name)
    const { members, removedMembers, users, identityProviders } = this.#store
    // A name is no proof of who somebody is, but it is enough to ask an owner.
    if (removedMembers.ofPerson({ organizationId, issuer, subject, name }).length > 0) {
      throw new Fault('NOT_ALLOWED', `${name} was removed from the organization. An owner can allow the sign-in again`)
    }
    const provider = identityProviders.get(organizationId)?.name ?? 'the provider'
    const before = members.get({ organizationId, name })
    if (before !== undefined) throw new Fault('CONFLICT', nameTaken(before, provider))
    if (members.ofOrganization(organizationId).length >= MEMBERS_MAX) {
      throw new Fault('CONFLICT', `The organization has ${MEMBERS_MAX} members already. An owner must remove one first`)
    }
    const createdAtMs = this.#clock.nowMs()
    const user: User = { id: newUuid(), name, isFederated: true, passwordHash: '', createdAtMs, browsers: [] }
    users.put(user)
    const member: Member = { organizationId, name, role, createdAtMs, userId: user.id }
    members.put(member)
    this.#note('member.add', member, { role })
    return { organizationId, issuer, subject, userId: user.id, createdAtMs, signedInAtMs: createdAtMs }
  }

  /** The only owner stays owner: nobody else could change the settings. */
  #setRole({ organizationId, userId }: FederatedIdentity, role: Role): void {
    const { members } = this.#store
    const member = members.ofUserIn(userId, organizationId)
    if (member === undefined || member.role === role) return
    const owners = members.ofOrganization(organizationId).filter((each) => each.role === 'owner')
    if (member.role === 'owner' && owners.length === 1) return
    members.put({ ...member, role })
    this.#note('member.role', member, { role, was: member.role })
  }

  /** Of a person who lost access at the provider. */
  #endSessions(claims: FederatedClaims): void {
    const { members, sessions } = this.#store
    const userId = this.#known(claims)?.userId
    if (userId === undefined) return
    const ending = sessions
      .ofUser(userId)
      .filter(({ providerOrganizationId }) => providerOrganizationId === claims.organizationId)
    for (const session of ending) sessions.remove(session)
    const member = members.ofUserIn(userId, claims.organizationId)
    if (member !== undefined && ending.length > 0) this.#note('session.end', member, { sessions: ending.length })
  }

  #note(action: Action, { organizationId, name }: Member, details: Readonly<Record<string, string | number>>): void {
    const provider = this.#store.identityProviders.get(organizationId)?.name ?? ''
    const actor = `identity provider ${provider}`
    this.#store.auditLog.append({ organizationId, timeMs: this.#clock.nowMs(), actor, action, subject: name, details })
  }
}

function noAccess(groups: readonly string[]): string {
  const found = groups.length === 0 ? 'the provider sent no groups' : 'none of your groups has access'
  return `You have no access: ${found}. Ask an owner of the organization`
}

function nameTaken({ name, userId }: Member, provider: string): string {
  const who = `${name} is a member of the organization already, but not with this account of ${provider}`
  return userId === undefined
    ? `${who}. Use your invitation link first, then connect ${provider} under Your account`
    : `${who}. Sign in as before, and connect ${provider} under Your account; or ask an owner to remove the member`
}
