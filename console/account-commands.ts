import type { Clock } from '../engine/process/clock.ts'
import type { Store } from '../engine/store/store.ts'

/** What a change of users and sessions works with, in the thread that writes. */
export interface AccountContext {
  readonly store: Store
  readonly clock: Clock
}

type AccountCommand<P, R> = (context: AccountContext, parameters: P) => R

/** Changes of users and sessions, which belong to no single organization. */
export const ACCOUNT_COMMANDS = {
  /** Notes when sessions were used last. */
  'sessions.used': ({ store }, uses: readonly { readonly hash: string; readonly usedAtMs: number }[]) =>
    store.environment.write(() => {
      for (const { hash, usedAtMs } of uses) {
        const session = store.sessions.byHash(Buffer.from(hash, 'hex'))
        if (session !== undefined && usedAtMs > session.usedAtMs) store.sessions.put({ ...session, usedAtMs })
      }
    }),
  /** Shows another of the user's organizations in a session. */
  'session.organization': ({ store }, given: { readonly hash: string; readonly organizationId: string }) =>
    store.environment.write(() => {
      const session = store.sessions.byHash(Buffer.from(given.hash, 'hex'))
      if (session === undefined || store.members.ofUserIn(session.userId, given.organizationId) === undefined) return
      store.sessions.put({ ...session, organizationId: given.organizationId })
    }),
} as const satisfies Record<string, AccountCommand<never, unknown>>

export type AccountCommandName = keyof typeof ACCOUNT_COMMANDS
export type AccountParameters<N extends AccountCommandName> = Parameters<(typeof ACCOUNT_COMMANDS)[N]>[1]
export type AccountResult<N extends AccountCommandName> = ReturnType<(typeof ACCOUNT_COMMANDS)[N]>

export function runAccountCommand(context: AccountContext, command: AccountCommandName, parameters: unknown): unknown {
  const run = ACCOUNT_COMMANDS[command] as (context: AccountContext, parameters: unknown) => unknown
  return run(context, parameters)
}
