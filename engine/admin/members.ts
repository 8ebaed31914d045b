import { Fault } from '../kernel/process/error-codes.ts'
import { MEMBERS_MAX, REMOVED_MEMBERS_MAX } from '../limits.ts'
import type { Member, ProviderIdentity, RemovedMember, Role } from '../store/members.ts'
import type { Organization } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import { AuditedChanges, checkText } from './audited-changes.ts'

/**
 * Persons at identity providers that one removed member was, over all its removals. Beyond the
 * limit, the one of the earliest removal is forgotten.
 */
export const REMOVED_MEMBER_IDENTITIES_MAX = 20

export class MemberChanges extends AuditedChanges {
  /**
   * Also allows a removed member of this name again.
   *
   * @throws Fault CONFLICT if the name is taken or the limit is reached, USAGE, NOT_ALLOWED
   */
  add(organization: Organization, name: string, role: Role): Member {
    checkText('name', name)
    const { store, clock } = this
    const organizationId = organization.id
    return this.audited('member.add', organizationId, () => {
      const members = store.members.ofOrganization(organizationId)
      if (store.members.get({ organizationId, name }) !== undefined) {
        throw new Fault('CONFLICT', `${name} is a member of ${organization.name} already`)
      }
      if (members.length >= MEMBERS_MAX) {
        throw new Fault('CONFLICT', `${organization.name} has ${MEMBERS_MAX} members already; remove one first`)
      }
      const member: Member = { organizationId, name, role, createdAtMs: clock.nowMs() }
      putAllowed(store, member)
      return { organizationId, subject: name, details: { role }, result: member }
    })
  }

  /** @throws Fault NOT_FOUND, CONFLICT if no owner would remain, NOT_ALLOWED */
  setRole(organization: Organization, name: string, role: Role): Member {
    const { store } = this
    const organizationId = organization.id
    return this.audited('member.role', organizationId, () => {
      const before = this.#existing(organization, name)
      if (role !== 'owner') this.#assertOwnerWithout(organization, before)
      const member: Member = { ...before, role }
      store.members.put(member)
      return { organizationId, subject: before.name, details: { role, was: before.role }, result: member }
    })
  }

  /**
   * Removes a member, whom no sign-in with the identity provider adds again until allow().
   *
   * @throws Fault NOT_FOUND, CONFLICT if other members would remain without an owner, NOT_ALLOWED
   */
  remove(organization: Organization, name: string): Member {
    const { store, clock } = this
    const organizationId = organization.id
    return this.audited('member.remove', organizationId, () => {
      const member = this.#existing(organization, name)
      if (store.members.ofOrganization(organizationId).length > 1) this.#assertOwnerWithout(organization, member)
      remember(store, member, clock.nowMs())
      removeMember(store, member)
      return { organizationId, subject: member.name, details: { was: member.role }, result: member }
    })
  }

  /**
   * Lets a removed member become a member again by a sign-in with the identity provider.
   *
   * @throws Fault NOT_FOUND, NOT_ALLOWED
   */
  allow(organization: Organization, name: string): RemovedMember {
    const { store } = this
    const { id: organizationId } = organization
    return this.audited('member.allow', organizationId, () => {
      const result = store.removedMembers.get({ organizationId, name })
      if (result === undefined) {
        const shows = 'posture-admin member list --removed shows all'
        throw new Fault('NOT_FOUND', `${organization.name} has no removed member ${JSON.stringify(name)}; ${shows}`)
      }
      store.removedMembers.remove(result)
      return { organizationId, subject: result.name, details: { was: result.role }, result }
    })
  }

  #existing(organization: Organization, name: string): Member {
    const member = this.store.members.get({ organizationId: organization.id, name })
    if (member !== undefined) return member
    throw new Fault(
      'NOT_FOUND',
      `${organization.name} has no member ${JSON.stringify(name)}; posture-admin member list shows all`,
    )
  }

  /** Only an owner can make others owners. */
  #assertOwnerWithout(organization: Organization, leaving: Member): void {
    if (leaving.role !== 'owner') return
    const owners = this.store.members.ofOrganization(organization.id).filter(({ role }) => role === 'owner')
    if (owners.length > 1) return
    throw new Fault(
      'CONFLICT',
      `${leaving.name} is the only owner of ${organization.name}; make someone else an owner first`,
    )
  }
}

/**
 * Stores a member inside a transaction of the caller. Removals of this member end, but the
 * member keeps their identities: a person who is removed again keeps the identity.
 *
 * @param removals if absent, the one of the member's name
 */
export function putAllowed(store: Store, member: Member, removals?: readonly RemovedMember[]): void {
  const byName =
    removals ?? [store.removedMembers.get({ organizationId: member.organizationId, name: member.name }) ?? []].flat()
  for (const removed of byName) store.removedMembers.remove(removed)
  const identities = distinct([...(member.identitiesBefore ?? []), ...byName.flatMap((removed) => removed.identities)])
  store.members.put(identities.length === 0 ? member : { ...member, identitiesBefore: identities })
}

/** In the order given, without repetitions; only the last ones up to the limit. */
function distinct(identities: readonly ProviderIdentity[]): ProviderIdentity[] {
  const byKey = new Map(identities.map(({ issuer, subject }) => [`${issuer}\n${subject}`, { issuer, subject }]))
  return [...byKey.values()].slice(-REMOVED_MEMBER_IDENTITIES_MAX)
}

/** Inside a transaction of the caller, before the member is removed. */
function remember(store: Store, member: Member, removedAtMs: number): void {
  const { organizationId, name, role, userId, identitiesBefore = [] } = member
  const identities = userId === undefined ? [] : store.federatedIdentities.ofUser(organizationId, userId)
  const all = store.removedMembers.ofOrganization(organizationId)
  const [oldest] = all.length < REMOVED_MEMBERS_MAX ? [] : all.sort((a, b) => a.removedAtMs - b.removedAtMs)
  if (oldest !== undefined) store.removedMembers.remove(oldest)
  store.removedMembers.put({
    ...{ organizationId, name, role, removedAtMs },
    identities: distinct([...identitiesBefore, ...identities]),
  })
}

/**
 * Removes a member inside a transaction of the caller. A user who then belongs to no organization
 * is removed as well, so that the name becomes free.
 */
export function removeMember(store: Store, member: Member): void {
  store.members.remove(member)
  const { organizationId, userId } = member
  // Otherwise the link would make its holder the next member with this name.
  store.accountLinks.removeInvitation(organizationId, member.name)
  if (userId !== undefined) {
    for (const identity of store.federatedIdentities.ofUser(organizationId, userId)) {
      store.federatedIdentities.remove(identity)
    }
  }
  const user = userId === undefined ? undefined : store.users.get(userId)
  if (user === undefined || store.members.ofUser(user.id).length > 0) return
  for (const session of store.sessions.ofUser(user.id)) store.sessions.remove(session)
  for (const passkey of store.passkeys.ofUser(user.id)) store.passkeys.remove(passkey)
  // Otherwise the link would set the password of the next user with this name.
  if (user.isFederated !== true) store.accountLinks.removePasswordLinks(user.name)
  store.users.remove(user)
}
