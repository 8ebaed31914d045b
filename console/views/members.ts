import type { Member } from '../../engine/store/members.ts'
import type { RemovedMember } from '../../engine/store/removed-members.ts'
import { type Paged, paged } from '../design/paged.ts'
import type { Visit } from '../http/visit.ts'

export interface MemberRow extends Member {
  readonly canSignIn: boolean
  /** When the link of the invitation expires, or has expired; 0 if there is none. */
  readonly invitedUntilMs: number
  /** The name of the identity provider that the member signs in with; '' if none. */
  readonly provider: string
}

export interface MembersView {
  readonly members: Paged<MemberRow>
  /** Those who have not opened their link. */
  readonly waiting: Paged<MemberRow>
  /** Removed members, by name, whatever the search. */
  readonly removed: Paged<RemovedMember>
  /** The text that the names contain; '' for all. */
  readonly search: string
  /** The number of members, whatever the search. */
  readonly total: number
}

/** The members that the query's `q` finds, on the pages `page`, `waiting` and `removed`. */
export function membersView(visit: Visit): MembersView {
  const { query } = visit.request
  const search = (query.get('q') ?? '').trim().slice(0, 100)
  const all = allMembers(visit)
  const found = all.filter(({ name }) => name.toLowerCase().includes(search.toLowerCase()))
  return {
    members: paged(found, query),
    waiting: paged(
      found.filter(({ canSignIn }) => !canSignIn),
      query,
      'waiting',
    ),
    removed: paged(visit.site.store.removedMembers.ofOrganization(visit.organization.id), query, 'removed'),
    search,
    total: all.length,
  }
}

/** Members by name, with their invitations. */
export function allMembers({ site, organization }: Visit): readonly MemberRow[] {
  const { members, accountLinks, identityProviders, federatedIdentities } = site.store
  const provider = identityProviders.get(organization.id)?.name ?? ''
  const federated = new Set(federatedIdentities.ofOrganization(organization.id).map(({ userId }) => userId))
  const invitations = accountLinks.invitations(organization.id)
  return members.ofOrganization(organization.id).map((member) => {
    const invitedUntilMs = invitations.get(member.name)?.expiresAtMs ?? 0
    const { userId } = member
    return {
      ...member,
      canSignIn: userId !== undefined,
      invitedUntilMs,
      provider: userId !== undefined && federated.has(userId) ? provider : '',
    }
  })
}
