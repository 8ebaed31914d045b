import { textColumn, timeColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { Field, FormError } from '../design/form.tsx'
import { Card, Notice, PageHead, Tag } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { FormState } from '../form.ts'
import type { AccountProvider, AccountView, SessionRow } from '../views/account.ts'
import { NewPassword } from './new-password.tsx'
import { Passkeys } from './passkeys.tsx'

export interface AccountProps {
  readonly view: AccountView
  readonly form: FormState
  readonly done: string
  readonly nowMs: number
}

const DONE: Readonly<Record<string, string>> = {
  password: 'The password is changed. Your other sessions have ended',
  passkey: 'The passkey is added. The next sign-in can use it',
  'passkey-name': 'The passkey is renamed',
  'passkey-removed': 'The passkey is removed. Remove it from the device as well',
  connected: 'You can sign in with the identity provider from now on',
  session: 'The session has ended',
  others: 'Your other sessions have ended',
}

/** The user's own account: sessions and password. */
export function Account({ view, form, done, nowMs }: AccountProps) {
  const title = DONE[done]
  return (
    <>
      <PageHead title="Your account" about={view.name} />
      {title !== undefined && <Notice title={title} />}
      <Card title="Sessions" note={<CsvLink path="/sessions" />} bare>
        <Table id="sessions" label="Sessions" columns={sessionColumns(nowMs)} rows={view.sessions} />
        {view.sessions.length > 1 && (
          <form class="body" method="post" action="/account/sessions/end-others">
            <button type="submit">Sign out all other sessions</button>
          </form>
        )}
      </Card>
      {view.passkeys !== undefined && <Passkeys view={view.passkeys} nowMs={nowMs} />}
      <AccountProviderCard provider={view.provider} />
      {view.hasPassword && (
        <section class="card narrow">
          <header>
            <h2>Change password</h2>
          </header>
          <form class="stack body" method="post" action="/account/password">
            <FormError form={form} />
            <input type="hidden" name="username" autoComplete="username" value={view.name} />
            <Field
              name="current"
              label="Current password"
              type="password"
              form={form}
              required
              autoComplete="current-password"
            />
            <NewPassword label="New password" form={form} />
            <div>
              <button class="first" type="submit">
                Change password
              </button>
            </div>
          </form>
        </section>
      )}
    </>
  )
}

export function sessionColumns(nowMs: number): readonly Column<SessionRow>[] {
  return [
    {
      id: 'browser',
      name: 'Browser',
      cell: ({ browser, isCurrent }) => (
        <>
          {browser} {isCurrent && <Tag tone="good">this browser</Tag>}
        </>
      ),
      csv: ({ browser }) => browser,
    },
    {
      ...textColumn('address', 'Address', ({ address }: SessionRow) => address),
      cell: ({ address }) => <span class="mono">{address}</span>,
    },
    { ...timeColumn('created', 'Signed in', nowMs, ({ createdAtMs }: SessionRow) => createdAtMs), wide: true },
    { ...timeColumn('used', 'Last used', nowMs, ({ usedAtMs }: SessionRow) => usedAtMs), wide: true },
    {
      id: 'end',
      name: 'Revoke',
      quiet: true,
      cell: ({ id, browser, isCurrent }) =>
        isCurrent ? null : (
          <form method="post" action={`/account/sessions/${id}/end`}>
            <button class="danger" type="submit" aria-label={`Revoke the session of ${browser}`}>
              Revoke
            </button>
          </form>
        ),
    },
  ]
}

/** Lets a user with a password also sign in with the organization's identity provider. */
function AccountProviderCard({ provider }: { readonly provider: AccountProvider | undefined }) {
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
