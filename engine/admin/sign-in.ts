import { z } from 'zod'
import { Fault } from '../kernel/process/error-codes.ts'
import { isLoopbackHost } from '../kernel/process/network.ts'
import type { SealedSecret } from '../kernel/process/secrets-key.ts'
import {
  IDENTITY_PROVIDER_GROUPS_MAX,
  IDENTITY_PROVIDER_SCOPES_MAX,
  IDENTITY_PROVIDER_TEXT_BYTES_MAX,
} from '../limits.ts'
import { type IdentityProvider, ROLES } from '../store/members.ts'
import type { Organization } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import { AuditedChanges } from './audited-changes.ts'

const MAX = IDENTITY_PROVIDER_TEXT_BYTES_MAX
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

function line(what: string) {
  return z
    .string()
    .trim()
    .min(1, `${what} is required`)
    .refine(
      (text) => Buffer.byteLength(text) <= MAX && !INVISIBLE.test(text),
      `Expected one line of at most ${MAX} bytes`,
    )
}

/** OpenID Connect Discovery 1.0 §3: a URL without query and fragment. */
const issuer = line('The issuer').superRefine((text, context) => {
  const fault = issuerFault(text)
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
})

function issuerFault(text: string): string | undefined {
  const example = 'such as https://login.example.com'
  if (!URL.canParse(text)) return `Expected a URL ${example}`
  const { protocol, hostname, search, hash, username, password } = new URL(text)
  const isLocal = protocol === 'http:' && isLoopbackHost(hostname)
  if (protocol !== 'https:' && !isLocal) return `Expected https ${example}; http is for localhost only`
  if (search !== '' || hash !== '' || username !== '' || password !== '') {
    return `Expected a URL without query, fragment and user name, ${example}`
  }
  if (text.includes('/.well-known/')) return 'Give the issuer itself, without /.well-known/openid-configuration'
  return undefined
}

const scopes = z
  .string()
  .transform((text) => text.split(/\s+/).filter((scope) => scope !== ''))
  .pipe(
    z
      .array(z.string().regex(SCOPE, 'Expected names separated by spaces').max(MAX))
      .max(IDENTITY_PROVIDER_SCOPES_MAX, `Expected at most ${IDENTITY_PROVIDER_SCOPES_MAX} scopes`)
      .refine((all) => all.includes('openid'), 'The scope openid is required'),
  )

const groups = z
  .array(z.object({ group: line('The group'), role: z.enum(ROLES, `Expected a role: ${ROLES.join(', ')}`) }))
  .max(IDENTITY_PROVIDER_GROUPS_MAX, `Expected at most ${IDENTITY_PROVIDER_GROUPS_MAX} groups`)
  .refine((all) => new Set(all.map(({ group }) => group)).size === all.length, 'A group has two roles')

/** The sign-in settings that a person enters, except the client secret. */
export const signInSettings = z
  .object({
    name: line('The name'),
    issuer,
    clientId: line('The client ID'),
    scopes,
    nameClaim: line('The claim'),
    groupsClaim: line('The claim'),
    groups,
    defaultRole: z.enum(['none', ...ROLES], `Expected none or a role: ${ROLES.join(', ')}`),
  })
  .refine(({ groups: all, defaultRole }) => all.length > 0 || defaultRole !== 'none', {
    path: ['groups'],
    message: 'Nobody could sign in: enter a group, or choose a role for everyone',
  })
export type SignInSettings = z.output<typeof signInSettings>

/** The values of new settings. */
export const SIGN_IN_DEFAULTS = {
  scopes: 'openid profile email',
  nameClaim: 'email',
  groupsClaim: 'groups',
  defaultRole: 'none',
} as const

/** The sign-in settings of organizations: their identity provider. */
export class SignInChanges extends AuditedChanges {
  /**
   * Sets the identity provider. Without `clientSecret`, the stored one stays. A new issuer needs a
   * new secret: otherwise the secret of one provider could be sent to another. With another issuer
   * or client, sessions that began with the provider end.
   *
   * @throws Fault USAGE, NOT_ALLOWED.
   */
  set(organization: Organization, given: SignInSettings, clientSecret: SealedSecret | undefined): IdentityProvider {
    const { store, clock } = this
    const { id: organizationId } = organization
    return this.audited('sign-in.set', organizationId, () => {
      const before = store.identityProviders.get(organizationId)
      const kept = before?.issuer === given.issuer ? before.clientSecret : undefined
      const secret = clientSecret ?? kept
      if (secret === undefined) {
        const why = before === undefined ? 'there is none yet' : 'the stored one is for another issuer'
        throw new Fault('USAGE', `The client secret is required, because ${why}`)
      }
      const result: IdentityProvider = { ...given, organizationId, clientSecret: secret, changedAtMs: clock.nowMs() }
      store.identityProviders.put(result)
      const isOther = before !== undefined && (before.issuer !== given.issuer || before.clientId !== given.clientId)
      if (isOther) endProviderSessions(store, organizationId)
      const details = { ...auditDetails(given), secret: clientSecret === undefined ? 'kept' : 'set' }
      return { organizationId, subject: given.name, details, result }
    })
  }

  /**
   * Removes the identity provider. Sessions that began with it end. Users who have no password
   * cannot sign in any more. @throws Fault NOT_FOUND, NOT_ALLOWED.
   */
  remove(organization: Organization): IdentityProvider {
    const { store } = this
    const { id: organizationId, name } = organization
    return this.audited('sign-in.remove', organizationId, () => {
      const result = store.identityProviders.get(organizationId)
      if (result === undefined) throw new Fault('NOT_FOUND', `${name} has no identity provider`)
      store.identityProviders.remove(organizationId)
      endProviderSessions(store, organizationId)
      return { organizationId, subject: result.name, result }
    })
  }
}

function auditDetails({ issuer: url, clientId, scopes: wanted, nameClaim, groupsClaim, ...rest }: SignInSettings) {
  return {
    issuer: url,
    client_id: clientId,
    scopes: wanted.join(' '),
    name_claim: nameClaim,
    groups_claim: groupsClaim,
    groups: rest.groups.map(({ group, role }) => `${group}: ${role}`).join(', '),
    default_role: rest.defaultRole,
  }
}

/** Inside a transaction of the caller. */
function endProviderSessions(store: Store, organizationId: string): void {
  for (const { userId } of store.members.ofOrganization(organizationId)) {
    if (userId === undefined) continue
    for (const session of store.sessions.ofUser(userId)) {
      if (session.providerOrganizationId === organizationId) store.sessions.remove(session)
    }
  }
}
