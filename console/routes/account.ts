import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { retryText } from '../design/parts.tsx'
import { EMPTY_FORM, FormFields, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { Account, sessionColumns } from '../pages/account.tsx'
import { passkeyColumns } from '../pages/passkeys.tsx'
import { passwordFault } from '../sign-in/passwords.ts'
import { trustedBrowser } from '../sign-in/secrets.ts'
import { accountView } from '../views/account.ts'
import { passkeysView } from '../views/passkeys.ts'
import { csvFile } from './csv.ts'

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
