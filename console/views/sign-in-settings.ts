import type { Role } from '../../engine/store/members.ts'
import { isDomainConfirmed } from '../../engine/store/organizations.ts'
import type { Visit } from '../http/visit.ts'
import { callbackPath } from '../sign-in/oidc-flow.ts'

/** The stored settings, without the client secret. */
export interface ProviderView {
  readonly name: string
  readonly issuer: string
  readonly clientId: string
  readonly scopes: string
  readonly nameClaim: string
  readonly groupsClaim: string
  readonly groups: readonly { readonly group: string; readonly role: Role }[]
  readonly defaultRole: Role | 'none'
  readonly changedAtMs: number
  /** Why the client secret cannot be decrypted; '' if it can. */
  readonly keyProblem: string
}

export interface SignInSettingsView {
  readonly provider: ProviderView | undefined
  /** The address that the provider must know. */
  readonly redirectUri: string
  /** The address of the page for sign-in, with the organization filled in. */
  readonly signInUrl: string
  /** Whether e-mail addresses of the domain lead to this sign-in. undefined if nobody types one. */
  readonly domain: { readonly name: string; readonly isConfirmed: boolean } | undefined
  /** Members who have signed in with the provider. */
  readonly membersCount: number
}

export function signInSettingsView({ site, organization, request }: Visit): SignInSettingsView {
  const { identityProviders, federatedIdentities, organizations } = site.store
  const stored = identityProviders.get(organization.id)
  const isOnly = organizations.single() !== undefined
  const query = isOnly ? '' : `?${new URLSearchParams({ organization: organization.name })}`
  return {
    provider: stored && {
      name: stored.name,
      issuer: stored.issuer,
      clientId: stored.clientId,
      scopes: stored.scopes.join(' '),
      nameClaim: stored.nameClaim,
      groupsClaim: stored.groupsClaim,
      groups: stored.groups,
      defaultRole: stored.defaultRole,
      changedAtMs: stored.changedAtMs,
      keyProblem: site.secrets.problem(stored.clientSecret.keyId),
    },
    redirectUri: `${request.origin}${callbackPath(organization.id)}`,
    signInUrl: `${request.origin}/sign-in${query}`,
    domain: isOnly ? undefined : { name: organization.domain, isConfirmed: isDomainConfirmed(organization) },
    membersCount: federatedIdentities.ofOrganization(organization.id).length,
  }
}
