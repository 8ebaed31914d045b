import { isSessionOver } from '../../engine/admin/accounts.ts'
import type { Visit } from '../http/visit.ts'
import { type PasskeysView, passkeysView } from './passkeys.ts'

export interface SessionRow {
  readonly id: string
  readonly browser: string
  readonly address: string
  readonly createdAtMs: number
  readonly usedAtMs: number
  readonly isCurrent: boolean
}

export interface AccountView {
  readonly name: string
  /** The user has a password and may change it in this session. */
  readonly hasPassword: boolean
  readonly passkeys: PasskeysView | undefined
  readonly provider: AccountProvider | undefined
  /**
   * Most recently used first. A session of an identity provider shows only sessions of that
   * provider: the others are of other organizations, too.
   */
  readonly sessions: readonly SessionRow[]
}

/** The account of the signed-in user. */
export function accountView(visit: Visit): AccountView {
  const { site, identity, nowMs } = visit
  const { user, session: current } = identity
  const { providerOrganizationId: only } = current
  const sessions = site.store.sessions
    .ofUser(user.id)
    .filter(({ providerOrganizationId }) => only === undefined || providerOrganizationId === only)
    .filter((session) => session.id === current.id || !isSessionOver(session, session.usedAtMs, nowMs))
    .sort((a, b) => b.usedAtMs - a.usedAtMs)
    .map(({ id, browser, address, createdAtMs, usedAtMs }) => {
      return { id, browser, address, createdAtMs, usedAtMs, isCurrent: id === current.id }
    })
  const hasPassword = user.passwordHash !== '' && only === undefined
  return { name: user.name, hasPassword, passkeys: passkeysView(visit), provider: accountProvider(visit), sessions }
}

/** The identity provider of the organization, as the signed-in user sees it. */
export interface AccountProvider {
  readonly name: string
  /** 'session': the user signed in with it. 'connected': the user can. 'none': not yet. */
  readonly state: 'session' | 'connected' | 'none'
}

/** undefined: the organization has no identity provider. */
function accountProvider({ site, organization, identity }: Visit): AccountProvider | undefined {
  const { identityProviders, federatedIdentities } = site.store
  const provider = identityProviders.get(organization.id)
  if (provider === undefined) return undefined
  const { name, issuer } = provider
  if (identity.session.providerOrganizationId !== undefined) return { name, state: 'session' }
  const identities = federatedIdentities.ofUser(organization.id, identity.user.id)
  return { name, state: identities.some((each) => each.issuer === issuer) ? 'connected' : 'none' }
}
