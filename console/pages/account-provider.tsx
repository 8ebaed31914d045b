import { Card } from '../design/parts.tsx'
import type { AccountProvider } from '../views/account-provider.ts'

/** Lets a user with a password also sign in with the organization's identity provider. */
export function AccountProviderCard({ provider }: { readonly provider: AccountProvider | undefined }) {
  if (provider === undefined) return null
  const { name, state } = provider
  return (
    <Card title={`Sign-in with ${name}`}>
      <div class="stack">
        <p class="muted">{ABOUT[state](name)}</p>
        {state !== 'session' && (
          <form method="post" action="/account/provider">
            <button type="submit">{state === 'none' ? `Connect ${name}` : `Connect another account of ${name}`}</button>
          </form>
        )}
      </div>
    </Card>
  )
}

const ABOUT: Readonly<Record<AccountProvider['state'], (name: string) => string>> = {
  session: (name) => `You signed in with ${name}. Your role follows your groups there, at each sign-in.`,
  connected: (name) =>
    `You can sign in with ${name} or your password. With ${name}, your role follows your groups there.`,
  none: (name) => `Connect your account of ${name} to sign in with it. Your role then follows your groups there.`,
}
