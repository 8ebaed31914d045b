import { isSessionOver } from '../../engine/admin/accounts.ts'
import type { Visit } from '../http/visit.ts'
import { type AccountProvider, accountProvider } from './account-provider.ts'
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
  readonly hasPassword: boolean
  readonly passkeys: PasskeysView | undefined
  readonly provider: AccountProvider | undefined
  /** Most recently used first. */
  readonly sessions: readonly SessionRow[]
}

/** The account of the signed-in user. */
export function accountView(visit: Visit): AccountView {
  const { site, identity, nowMs } = visit
  const { user, session: current } = identity
  const sessions = site.store.sessions
    .ofUser(user.id)
    .filter((session) => session.id === current.id || !isSessionOver(session, session.usedAtMs, nowMs))
    .sort((a, b) => b.usedAtMs - a.usedAtMs)
    .map(({ id, browser, address, createdAtMs, usedAtMs }) => {
      return { id, browser, address, createdAtMs, usedAtMs, isCurrent: id === current.id }
    })
  const hasPassword = user.passwordHash !== ''
  return { name: user.name, hasPassword, passkeys: passkeysView(visit), provider: accountProvider(visit), sessions }
}
