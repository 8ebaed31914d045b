import type { Visit } from '../http/visit.ts'

/** The identity provider of the organization, as the signed-in user sees it. */
export interface AccountProvider {
  readonly name: string
  /** 'session': the user signed in with it. 'connected': the user can. 'none': not yet. */
  readonly state: 'session' | 'connected' | 'none'
}

/** undefined: the organization has no identity provider. */
export function accountProvider({ site, organization, identity }: Visit): AccountProvider | undefined {
  const { identityProviders, federatedIdentities } = site.store
  const provider = identityProviders.get(organization.id)
  if (provider === undefined) return undefined
  const { name, issuer } = provider
  if (identity.session.providerOrganizationId !== undefined) return { name, state: 'session' }
  const identities = federatedIdentities.ofUser(organization.id, identity.user.id)
  return { name, state: identities.some((each) => each.issuer === issuer) ? 'connected' : 'none' }
}
