import { MINUTE_MS } from '../engine/process/clock.ts'
import { FormFields, type FormState } from './form.ts'
import { type Answer, withCookies } from './http/answer.ts'
import { setCookie } from './http/cookies.ts'
import { Visit } from './http/visit.ts'
import { Confirm } from './pages/confirm.tsx'
import { newSecret, secretHash } from './sign-in/secrets.ts'
import { trustedBrowser } from './sign-in/trusted-browser.ts'

/** A confirmed identity allows sensitive changes for this long. */
export const CONFIRMATION_MS = 10 * MINUTE_MS
/** The name of the password field in the confirmation form. */
const FIELD = 'confirm-password'

/** Whether the user may make sensitive changes without another confirmation. */
export function isConfirmed({ identity, nowMs }: Visit): boolean {
  return nowMs - identity.session.confirmedAtMs < CONFIRMATION_MS
}

/**
 * Handles a sensitive change if the user proved their identity in the last ten minutes. Otherwise
 * asks for the password, in a form that also contains all fields of the change, so that the user
 * types nothing twice. A confirmed session continues with a new cookie value. A user who signed in
 * with an identity provider confirms there (routes/oidc.ts), and the form waits meanwhile.
 *
 * @param secretFields fields that no page repeats; their values must be typed again
 */
export async function confirmed(
  visit: Visit,
  handle: (visit: Visit) => Answer | Promise<Answer>,
  secretFields: readonly string[] = [],
): Promise<Answer> {
  if (isConfirmed(visit)) return handle(visit)
  const { identity, nowMs, request, site } = visit
  const { session, user } = identity
  const password = request.fields.text(FIELD)
  const fields = new FormFields(request.fields.without(FIELD))
  const kept = request.fields.without(FIELD, ...secretFields)
  if (password === '') return ask(visit, kept, {})
  const attempt = {
    name: user.name,
    address: request.address,
    trustedBrowser: trustedBrowser(user, request.cookies.get('browser')),
  }
  const verdict = site.attempts.begin(attempt, nowMs)
  if (!verdict.allowed) {
    const minutes = Math.ceil(verdict.retryAfterSeconds / 60)
    const error = `Too many wrong passwords. Try again in ${minutes} minutes`
    return ask(visit, kept, { [FIELD]: error }, 429, ['retry-after', String(verdict.retryAfterSeconds)])
  }
  if (!(await site.passwords.verify(user.passwordHash, password))) {
    return ask(visit, kept, { [FIELD]: 'This password is wrong' }, 403)
  }
  verdict.succeeded()
  const next = newSecret()
  const hashes = { hash: session.hash, nextHash: secretHash(next) }
  const confirmedSession = await site.changes.account('session.confirm', hashes)
  const now = new Visit(site, { ...request, fields }, { ...identity, session: confirmedSession })
  return withCookies(await handle(now), [setCookie('session', next)])
}

function ask(
  visit: Visit,
  kept: readonly (readonly [string, string])[],
  errors: FormState['errors'],
  status = 200,
  responseFields: readonly string[] = [],
): Answer {
  const provider = providerOf(visit, kept)
  const content = Confirm({
    action: visit.request.path,
    kept,
    form: { values: new FormFields(), errors },
    hasPassword: visit.identity.user.passwordHash !== '',
    field: FIELD,
    provider,
  })
  return visit.page(provider === undefined ? 'Confirm your password' : 'Confirm your identity', '', content, {
    status,
    fields: responseFields,
  })
}

/** The provider with which the user signed in, and the id under which the form waits. */
function providerOf(
  { site, identity, request, nowMs }: Visit,
  fields: readonly (readonly [string, string])[],
): { readonly name: string; readonly formId: string } | undefined {
  const { id: sessionId, providerOrganizationId } = identity.session
  if (providerOrganizationId === undefined) return undefined
  const provider = site.store.identityProviders.get(providerOrganizationId)
  if (provider === undefined) return undefined
  return { name: provider.name, formId: site.pendingForms.keep({ sessionId, action: request.path, fields }, nowMs) }
}
