import type { Member } from '../../engine/store/members.ts'
import type { Visit } from '../http/visit.ts'

export interface MemberRow extends Member {
  readonly canSignIn: boolean
  /** When the link of the invitation expires, or has expired; 0 if there is none. */
  readonly invitedUntilMs: number
}

/** Members by name, with their invitations. */
export function membersView({ site, organization }: Visit): readonly MemberRow[] {
  const { members, accountLinks } = site.store
  const invitations = accountLinks.invitations(organization.id)
  return members.ofOrganization(organization.id).map((member) => {
    const invitedUntilMs = invitations.get(member.name)?.expiresAtMs ?? 0
    return { ...member, canSignIn: member.userId !== undefined, invitedUntilMs }
  })
}
