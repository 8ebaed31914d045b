import { isSessionOver } from '../../engine/admin/accounts.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { Field, FormError } from '../design/form.tsx'
import { CsvLink } from '../design/list.tsx'
import { Card, Notice, PageHead, retryText, Tag } from '../design/parts.tsx'
import { type Column, Table, textColumn, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, FormFields, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { passwordFault } from '../sign-in/passwords.ts'
import { trustedBrowser } from '../sign-in/secrets.ts'
import { Passkeys, type PasskeysView, passkeyColumns, passkeysView } from './passkeys.tsx'
import { NewPassword } from './sign-in.tsx'

interface SessionRow {
  readonly id: string
  readonly browser: string
  readonly address: string
  readonly createdAtMs: number
  readonly usedAtMs: number
  readonly isCurrent: boolean
}

interface AccountView {
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
function accountView(visit: Visit): AccountView {
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
interface AccountProvider {
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

interface AccountProps {
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
function Account({ view, form, done, nowMs }: AccountProps) {
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

function sessionColumns(nowMs: number): readonly Column<SessionRow>[] {
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

export const ACCOUNT_ROUTES: readonly Route[] = [
  page('/account', 'signed-in', (visit) => accountPage(visit, EMPTY_FORM, 200)),
  csvFile({
    path: '/sessions',
    access: 'signed-in',
    columns: ({ nowMs }) => sessionColumns(nowMs),
    rows: (visit) => accountView(visit).sessions,
  }),
  csvFile({
    path: '/passkeys',
    access: 'signed-in',
    columns: ({ nowMs }) => passkeyColumns(nowMs),
    rows: (visit) => passkeysView(visit)?.passkeys ?? [],
  }),
  form('/account/password', 'signed-in', changePassword),
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

function accountPage(visit: Visit, state: FormState, status: number, fields: readonly string[] = []): Answer {
  const { nowMs, request, site } = visit
  const view = site.store.environment.read(() => accountView(visit))
  const content = Account({ view, form: state, done: request.query.get('done') ?? '', nowMs })
  return visit.page('Your account', '/account', content, { status, fields })
}

/**
 * Requires the current password, with the same rate limits as sign-in. Refused in a session of an
 * identity provider, as changes of passkeys are.
 */
async function changePassword(visit: Visit): Promise<Answer> {
  const { site, request, identity, nowMs } = visit
  const { user, session } = identity
  if (session.providerOrganizationId !== undefined) {
    throw new Fault('NOT_ALLOWED', 'Sign in with your password or a passkey to change the password')
  }
  const again = (errors: FormState['errors'], status: number, fields: readonly string[] = []): Answer =>
    accountPage(visit, { values: new FormFields(), errors }, status, fields)
  const password = request.fields.text('password')
  const fault = passwordFault(password, [user.name])
  if (fault !== undefined) return again({ password: fault }, 400)
  if (password !== request.fields.text('repeated')) return again({ repeated: 'The two passwords differ' }, 400)
  const known = trustedBrowser(user, request.cookies.get('browser'))
  const attempt = { name: user.name, of: 'account', address: request.address, trustedBrowser: known } as const
  const verdict = site.attempts.begin(attempt, nowMs)
  if (!verdict.allowed) {
    const seconds = verdict.retryAfterSeconds
    const error = `Too many attempts. ${retryText(seconds)}`
    return again({ '': error }, 429, ['retry-after', String(seconds)])
  }
  if (!(await site.passwords.verify(user.passwordHash, request.fields.text('current')))) {
    return again({ current: 'This password is wrong' }, 403)
  }
  verdict.succeeded()
  const passwordHash = await site.passwords.hash(password)
  await site.changes.account('password.set', { userId: user.id, passwordHash, keptHash: session.hash })
  return redirect('/account?done=password')
}
