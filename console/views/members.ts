import type { Member } from '../../engine/store/members.ts'
import type { Visit } from '../http/visit.ts'

export interface MemberRow extends Member {
  readonly canSignIn: boolean
  /** When the link of the invitation expires, or has expired; 0 if there is none. */
  readonly invitedUntilMs: number
  /** The name of the identity provider that the member signs in with; '' if none. */
  readonly provider: string
}

/** Members by name, with their invitations. */
export function membersView({ site, organization }: Visit): readonly MemberRow[] {
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
