import type { Accounts, LinkUse, SignInBrowser } from '../engine/admin/accounts.ts'
import type { FederatedClaims } from '../engine/admin/federation.ts'
import type { NewPasskey, PasskeyOfUser, PasskeyUse } from '../engine/admin/passkeys.ts'

type AccountCommand<P, R> = (accounts: Accounts, parameters: P) => R

/** Changes to users and sessions, which belong to no single organization. */
export const ACCOUNT_COMMANDS = {
  'link.use': (accounts, use: LinkUse) => accounts.useLink(use),
  'password.set': (
    accounts,
    given: { readonly userId: string; readonly passwordHash: string; readonly keptHash: string },
  ) => accounts.setPassword(given),
  'session.create': (accounts, given: { readonly userId: string; readonly from: SignInBrowser }) =>
    accounts.signIn(given.userId, given.from),
  'federation.sign-in': (accounts, claims: FederatedClaims) => accounts.federation.signIn(claims),
  'federation.connect': (accounts, given: { readonly claims: FederatedClaims; readonly userId: string }) =>
    accounts.federation.connect(given.claims, given.userId),
  'session.confirm': (accounts, given: { readonly hash: string; readonly nextHash: string }) =>
    accounts.confirmSession(given),
  'session.organization': (accounts, given: { readonly hash: string; readonly organizationId: string }) =>
    accounts.switchOrganization(given),
  'session.end': (accounts, given: { readonly userId: string; readonly id: string }) => accounts.endSession(given),
  'session.end-others': (accounts, given: { readonly userId: string; readonly keptId: string }) =>
    accounts.endOtherSessions(given),
  'passkey.add': (accounts, given: NewPasskey) => accounts.passkeys.add(given),
  'passkey.rename': (accounts, given: PasskeyOfUser & { readonly name: string }) => accounts.passkeys.rename(given),
  'passkey.remove': (accounts, given: PasskeyOfUser) => accounts.passkeys.remove(given),
  'passkey.use': (accounts, given: PasskeyUse) => accounts.passkeys.use(given),
  'sessions.used': (accounts, uses: readonly { readonly hash: string; readonly usedAtMs: number }[]) =>
    accounts.noteUses(uses),
} as const satisfies Record<string, AccountCommand<never, unknown>>

export type AccountCommandName = keyof typeof ACCOUNT_COMMANDS
export type AccountParameters<N extends AccountCommandName> = Parameters<(typeof ACCOUNT_COMMANDS)[N]>[1]
export type AccountResult<N extends AccountCommandName> = ReturnType<(typeof ACCOUNT_COMMANDS)[N]>

export function runAccountCommand(accounts: Accounts, command: AccountCommandName, parameters: unknown): unknown {
  const run = ACCOUNT_COMMANDS[command] as (accounts: Accounts, parameters: unknown) => unknown
  return run(accounts, parameters)
}
