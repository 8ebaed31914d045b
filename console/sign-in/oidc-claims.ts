import type { IdentityProvider } from '../../engine/store/members.ts'
import { ProviderError } from './provider-http.ts'

/** Groups that are read. More make the sign-in fail. */
const GROUPS_MAX = 2000
const GROUP_CHARS_MAX = 500
/** OpenID Connect Core 1.0 §2. */
const SUBJECT_CHARS_MAX = 255
const NAME_CHARS_MAX = 255

/** What a provider says about a person. */
export interface ProviderClaims {
  readonly subject: string
  readonly name: string
  readonly groups: readonly string[]
  /** When the person last authenticated there; 0 if the provider does not say. */
  readonly authTimeMs: number
}

type Claims = Readonly<Record<string, unknown>>

/**
 * Reads the claims that the settings name. Asks for the userinfo only if the ID token lacks one of
 * them.
 *
 * @throws ProviderError
 */
export async function providerClaims(
  provider: Pick<IdentityProvider, 'nameClaim' | 'groupsClaim' | 'groups'>,
  idToken: Claims,
  userinfo: (() => Promise<Claims>) | undefined,
): Promise<ProviderClaims> {
  const { nameClaim, groupsClaim } = provider
  const needsGroups = provider.groups.length > 0
  const isComplete =
    claimOf(idToken, nameClaim) !== undefined && (!needsGroups || claimOf(idToken, groupsClaim) !== undefined)
  const more = isComplete || userinfo === undefined ? {} : await userinfo()
  const claims: Claims = { ...more, ...idToken }
  const subject = claims['sub']
  if (typeof subject !== 'string' || subject === '' || subject.length > SUBJECT_CHARS_MAX) {
    throw new ProviderError('The provider sent no claim "sub"')
  }
  const authTime = idToken['auth_time']
  return {
    subject,
    name: nameOf(claims, nameClaim),
    groups: needsGroups ? groupsOf(claims, groupsClaim) : [],
    authTimeMs: typeof authTime === 'number' ? authTime * 1000 : 0,
  }
}

/** The claim of that name, or at that path, such as `realm_access.roles`. */
function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: unknown = claims
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
    value = (value as Claims)[part]
  }
  return value
}

function nameOf(claims: Claims, claim: string): string {
  const name = claimOf(claims, claim)
  if (typeof name !== 'string' || name.trim() === '') {
    throw new ProviderError(
      `The provider sent no claim ${JSON.stringify(claim)}. Let it send the claim, or name another in the sign-in settings`,
    )
  }
  if (name.length > NAME_CHARS_MAX) throw new ProviderError(`The claim ${JSON.stringify(claim)} is too long`)
  if (claim === 'email' && claims['email_verified'] === false) {
    throw new ProviderError('The provider has not verified your e-mail address. Verify it there first')
  }
  return name.trim()
}

function groupsOf(claims: Claims, claim: string): readonly string[] {
  const found = claimOf(claims, claim)
  const elsewhere = claims['_claim_names']
  // Entra ID sends a link instead of more than 200 groups (OpenID Connect Core 1.0 §5.6.2).
  if (found === undefined && typeof elsewhere === 'object' && elsewhere !== null && claim in elsewhere) {
    throw new ProviderError(
      'You are in too many groups for the token. Let the provider send assigned groups or app roles',
    )
  }
  if (found === undefined || found === null) return []
  const groups = Array.isArray(found) ? (found as unknown[]) : [found]
  if (groups.length > GROUPS_MAX) throw new ProviderError(`The provider sent more than ${GROUPS_MAX} groups`)
  return groups.filter((group): group is string => typeof group === 'string' && group.length <= GROUP_CHARS_MAX)
}
