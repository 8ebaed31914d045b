import type { IdentityProvider } from '../../engine/store/identity-providers.ts'
import { isDomainConfirmed } from '../../engine/store/organizations.ts'
import type { Store } from '../../engine/store/store.ts'

/** What the page for sign-in offers in addition to passwords. */
export type ProviderChoice =
  | { readonly kind: 'none' }
  /** The provider of the only organization, by the name of its button. */
  | { readonly kind: 'one'; readonly name: string }
  /** The visitor names the organization: a list would show the customers of the service. */
  | { readonly kind: 'by organization' }

/** Call it inside Environment.read. */
export function providerChoice({ organizations, identityProviders }: Store): ProviderChoice {
  if (identityProviders.isEmpty()) return { kind: 'none' }
  const only = organizations.single()
  if (only === undefined) return { kind: 'by organization' }
  const provider = identityProviders.get(only.id)
  return provider === undefined ? { kind: 'none' } : { kind: 'one', name: provider.name }
}

/**
 * The provider that a visitor chooses. `typed` is the name of an organization, its domain, or an
 * e-mail address in this domain. Only a domain that the operator confirmed counts, and before a
 * name: members can give their organization any domain and any free name, and no organization may
 * draw the users of another to its provider, or keep them from theirs. A domain that the operator
 * confirmed for several organizations leads to none of them.
 */
export function chosenProvider(
  { organizations, identityProviders }: Store,
  typed: string,
): IdentityProvider | undefined {
  const only = organizations.single()
  if (only !== undefined) return identityProviders.get(only.id)
  const text = typed.trim().toLowerCase()
  const domain = text.slice(text.lastIndexOf('@') + 1)
  const owners = organizations.all().filter((each) => each.domain === domain && isDomainConfirmed(each))
  const [found = organizations.find(text), ...others] = owners
  return found === undefined || others.length > 0 ? undefined : identityProviders.get(found.id)
}
