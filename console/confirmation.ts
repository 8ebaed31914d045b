import { MINUTE_MS } from '../engine/process/clock.ts'
import { FormFields, type FormState } from './form.ts'
import { type Answer, withCookies } from './http/answer.ts'
import { setCookie } from './http/cookies.ts'
import { Visit } from './http/visit.ts'
import { Confirm } from './pages/confirm.tsx'
import { newSecret, secretHash } from './sign-in/secrets.ts'
import { trustedBrowser } from './sign-in/trusted-browser.ts'

/** A confirmed password allows sensitive changes for this long. */
export const CONFIRMATION_MS = 10 * MINUTE_MS
/** The name of the password field in the confirmation form. */
const FIELD = 'confirm-password'

/**
 * Handles a sensitive change if the user confirmed the password in the last ten minutes. Otherwise
 * asks for the password, in a form that also contains all fields of the change, so that the user
 * types nothing twice. A confirmed session continues with a new cookie value.
 */
export async function confirmed(visit: Visit, handle: (visit: Visit) => Answer | Promise<Answer>): Promise<Answer> {
  const { identity, nowMs, request, site } = visit
  const { session, user } = identity
  if (nowMs - session.confirmedAtMs < CONFIRMATION_MS) return handle(visit)
  const password = request.fields.text(FIELD)
  const fields = new FormFields(request.fields.without(FIELD))
  if (password === '') return ask(visit, fields, {})
  const attempt = {
    name: user.name,
    address: request.address,
    trustedBrowser: trustedBrowser(user, request.cookies.get('browser')),
  }
  const verdict = site.attempts.begin(attempt, nowMs)
  if (!verdict.allowed) {
    const minutes = Math.ceil(verdict.retryAfterSeconds / 60)
    const error = `Too many wrong passwords. Try again in ${minutes} minutes`
    return ask(visit, fields, { [FIELD]: error }, 429, ['retry-after', String(verdict.retryAfterSeconds)])
  }
  if (!(await site.passwords.verify(user.passwordHash, password))) {
    return ask(visit, fields, { [FIELD]: 'This password is wrong' }, 403)
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
  fields: FormFields,
  errors: FormState['errors'],
  status = 200,
  responseFields: readonly string[] = [],
): Answer {
  const content = Confirm({
    action: visit.request.path,
    kept: fields.without(),
    form: { values: new FormFields(), errors },
    hasPassword: visit.identity.user.passwordHash !== '',
    field: FIELD,
  })
  return visit.page('Confirm your password', '', content, { status, fields: responseFields })
}
