import { isSessionOver } from '../../engine/admin/accounts.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import type { Session } from '../../engine/store/users.ts'
import { checkPassword } from '../confirmation.ts'
import { ActionButton, Field, Form } from '../design/form.tsx'
import { CsvLink } from '../design/list.tsx'
import { Card, PageHead, Tag } from '../design/parts.tsx'
import { type Column, Table, textColumn, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { newPasswordIn } from '../sign-in/passwords.ts'
import { PASSKEY_COLUMNS, Passkeys, passkeysView } from './passkeys.tsx'
import { NewPassword } from './sign-in.tsx'

interface SessionRow extends Session {
  readonly isCurrent: boolean
}

/**
 * The sessions of the user, most recently used first. A session of an identity provider shows only
 * sessions of that provider: the others are of other organizations, too.
 */
function sessionRows({ site, identity, nowMs }: Visit): SessionRow[] {
  const { user, session: current } = identity
  const { providerOrganizationId: only } = current
  return site.store.sessions
    .ofUser(user.id)
    .filter(({ providerOrganizationId }) => only === undefined || providerOrganizationId === only)
    .filter((session) => session.id === current.id || !isSessionOver(session, session.usedAtMs, nowMs))
    .sort((a, b) => b.usedAtMs - a.usedAtMs)
    .map((session) => ({ ...session, isCurrent: session.id === current.id }))
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
function Account({ visit, form }: { readonly visit: Visit; readonly form: FormState }) {
  const { user, session } = visit.identity
  const sessions = sessionRows(visit)
  const passkeys = passkeysView(visit)
  return (
    <>
      <PageHead title="Your account" about={user.name} />
      <Card title="Sessions" note={<CsvLink path="/sessions" />} bare>
        <Table visit={visit} id="sessions" label="Sessions" columns={COLUMNS} rows={sessions} />
        {sessions.length > 1 && (
          <form class="body" method="post" action="/account/sessions/end-others">
            <button type="submit">Sign out all other sessions</button>
          </form>
        )}
      </Card>
      {passkeys !== undefined && <Passkeys visit={visit} view={passkeys} />}
      <AccountProvider visit={visit} />
      {user.passwordHash !== '' && session.providerOrganizationId === undefined && (
        <section class="card narrow">
          <header>
            <h2>Change password</h2>
          </header>
          <div class="body">
            <Form action="/account/password" form={form} submit="Change password">
              <input type="hidden" name="username" autoComplete="username" value={user.name} />
              <Field
                name="current"
                label="Current password"
                type="password"
                form={form}
                required
                autoComplete="current-password"
              />
              <NewPassword label="New password" form={form} />
            </Form>
          </div>
        </section>
      )}
    </>
  )
}

const COLUMNS: readonly Column<SessionRow>[] = [
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
  { ...timeColumn('created', 'Signed in', ({ createdAtMs }: SessionRow) => createdAtMs), wide: true },
  { ...timeColumn('used', 'Last used', ({ usedAtMs }: SessionRow) => usedAtMs), wide: true },
  {
    id: 'end',
    name: 'Revoke',
    quiet: true,
    cell: ({ id, browser, isCurrent }) =>
      isCurrent ? null : (
        <ActionButton action={`/account/sessions/${id}/end`} look="danger" label={`Revoke the session of ${browser}`}>
          Revoke
        </ActionButton>
      ),
  },
]

/** Lets a user with a password also sign in with the organization's identity provider. */
function AccountProvider({ visit: { site, organization, identity } }: { readonly visit: Visit }) {
  const { identityProviders, federatedIdentities } = site.store
  const provider = identityProviders.get(organization.id)
  if (provider === undefined) return null
  const { name, issuer } = provider
  const isOfSession = identity.session.providerOrganizationId !== undefined
  const identities = federatedIdentities.ofUser(organization.id, identity.user.id)
  const isConnected = identities.some((each) => each.issuer === issuer)
  return (
    <Card title={`Sign-in with ${name}`}>
      <div class="stack">
        <p class="muted">
          {isOfSession
            ? `You signed in with ${name}. Your role follows your groups there, at each sign-in.`
            : isConnected
              ? `You can sign in with ${name} or your password. With ${name}, your role follows your groups there.`
              : `Connect your account of ${name} to sign in with it. Your role then follows your groups there.`}
        </p>
        {!isOfSession && (
          <ActionButton action="/account/provider">
            {isConnected ? `Connect another account of ${name}` : `Connect ${name}`}
          </ActionButton>
        )}
      </div>
    </Card>
  )
}

export const ACCOUNT_ROUTES: readonly Route[] = [
  page('/account', 'signed-in', (visit) => accountPage(visit, EMPTY_FORM)),
  csvFile('/sessions', 'signed-in', COLUMNS, sessionRows),
  csvFile('/passkeys', 'signed-in', PASSKEY_COLUMNS, (visit) => passkeysView(visit)?.passkeys ?? []),
  form('/account/password', 'signed-in', changePassword, { again: (visit, state) => accountPage(visit, state) }),
  form('/account/sessions/end-others', 'signed-in', async ({ site, identity }) => {
    const { id: keptId, userId, providerOrganizationId } = identity.session
    await site.changes.account('session.end-others', { userId, keptId, providerOrganizationId })
    return redirect('/account?done=others')
  }),
  form('/account/sessions/:id/end', 'signed-in', async ({ site, identity }, { id }) => {
    const { userId, providerOrganizationId } = identity.session
    await site.changes.account('session.end', { userId, id, providerOrganizationId })
    return redirect('/account?done=session')
  }),
  form('/organization', 'signed-in', async ({ site, request, identity }) => {
    const organizationId = request.fields.text('organization')
    await site.changes.account('session.organization', { hash: identity.session.hash, organizationId })
    return redirect('/')
  }),
]

function accountPage(visit: Visit, form: FormState): Answer {
  return visit.page('Your account', '/account', Account({ visit, form }), { form, done: DONE })
}

/**
 * Requires the current password, with the same rate limits as sign-in. Refused in a session of an
 * identity provider, as changes of passkeys are.
 */
async function changePassword(visit: Visit): Promise<Answer> {
  const { site, request, identity } = visit
  const { user, session } = identity
  if (session.providerOrganizationId !== undefined) {
    throw new Fault('NOT_ALLOWED', 'Sign in with your password or a passkey to change the password')
  }
  const password = newPasswordIn(request.fields, [user.name])
  const current = { name: user.name, user, password: request.fields.text('current') }
  await checkPassword(visit, current, { current: 'This password is wrong' })
  const passwordHash = await site.passwords.hash(password)
  await site.changes.account('password.set', { userId: user.id, passwordHash, keptHash: session.hash })
  return redirect('/account?done=password')
}
