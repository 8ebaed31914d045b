import { MINUTE_MS } from '../engine/kernel/process/clock.ts'
import type { Passkey, User } from '../engine/store/users.ts'
import type { Fields } from './design/form.tsx'
import { retryText } from './design/parts.tsx'
import { FormFields, type FormState, RejectedForm, rejectedForm } from './form.ts'
import { type Answer, withCookies } from './http/answer.ts'
import { Confirm, type ConfirmProps } from './http/confirm.tsx'
import { setCookie } from './http/cookies.ts'
import { type Guest, Visit } from './http/visit.ts'
import type { Verdict } from './sign-in/attempts.ts'
import { type Answerer, type PasskeySignIn, WRONG } from './sign-in/passkeys.ts'
import { isPossiblePassword } from './sign-in/passwords.ts'
import { newSecret, secretHash, trustedBrowser } from './sign-in/secrets.ts'
import { readAssertion } from './sign-in/webauthn.ts'

/** @throws RejectedForm if the attempt is not allowed */
export function allowed(verdict: Verdict): () => void {
  if (verdict.allowed) return verdict.succeeded
  const seconds = verdict.retryAfterSeconds
  throw new RejectedForm({ '': `Too many attempts. ${retryText(seconds)}` }, 429, ['retry-after', String(seconds)])
}

/**
 * Authenticates a visitor by the response of an authenticator, with the same limits as passwords.
 * They are counted by credential and not by user, so that known and unknown credentials get equal
 * answers.
 *
 * @throws RejectedForm, OverloadError.
 */
export async function authenticateByPasskey(
  { site, request, nowMs }: Guest,
  passkeys: PasskeySignIn,
  text: string,
  answerer: Answerer,
): Promise<Passkey> {
  const assertion = readAssertion(text)
  if (assertion === undefined) throw new RejectedForm({ '': WRONG.refused }, 403)
  const named = site.store.passkeys.byCredential(assertion.id)
  const user = named && site.store.users.get(named.userId)
  const attempt = {
    // No user's name contains a tab.
    name: `passkey\t${assertion.id}`,
    of: named === undefined ? 'unknown passkey' : 'account',
    address: request.address,
    trustedBrowser: trustedBrowser(user, request.cookies.get('browser')),
  } as const
  const succeeded = allowed(site.attempts.begin(attempt, nowMs))
  const outcome = await passkeys.authenticate(assertion, answerer, nowMs)
  if ('refused' in outcome) throw new RejectedForm({ '': outcome.refused }, 403)
  succeeded()
  return outcome
}

/**
 * Checks the password of a user, within limits. A name without a user takes the same time.
 *
 * @param wrong the errors of the form if the password is wrong
 * @throws RejectedForm, OverloadError.
 */
export async function checkPassword(
  { site, request, nowMs }: Guest,
  { name, user, password }: { readonly name: string; readonly user: User | undefined; readonly password: string },
  wrong: FormState['errors'],
): Promise<void> {
  const attempt = {
    name,
    of: user === undefined ? 'unknown name' : 'account',
    address: request.address,
    trustedBrowser: trustedBrowser(user, request.cookies.get('browser')),
  } as const
  // Before it is counted: an answer that costs no hash must not displace counters.
  if (!isPossiblePassword(password)) throw new RejectedForm(wrong, 403)
  const succeeded = allowed(site.attempts.begin(attempt, nowMs))
  if (!(await site.passwords.verify(user?.passwordHash, password))) throw new RejectedForm(wrong, 403)
  succeeded()
}

/** A confirmed identity allows sensitive changes for this long. */
const CONFIRMATION_MS = 10 * MINUTE_MS
/** The names of the fields in the confirmation form. */
export const PASSWORD_FIELD = 'confirm-password'
const PASSKEY_FIELD = 'confirm-passkey'

/** Whether the user may make sensitive changes without another confirmation. */
export function isConfirmed({ identity, nowMs }: Visit): boolean {
  return nowMs - identity.session.confirmedAtMs < CONFIRMATION_MS
}

/**
 * Handles a sensitive change if the user proved their identity in the last ten minutes. Otherwise
 * asks for the password or a passkey, in a form that also contains all fields of the change, so
 * that the user types nothing twice. A confirmed session continues with a new cookie value. A user
 * who signed in with an identity provider confirms there (account/oidc-routes.ts), and the form waits
 * meanwhile.
 *
 * @param secretFields fields that no page repeats; their values must be typed again
 */
export async function confirmed(
  visit: Visit,
  handle: (visit: Visit) => Answer | Promise<Answer>,
  secretFields: readonly string[] = [],
): Promise<Answer> {
  if (isConfirmed(visit)) return handle(visit)
  const { identity, request, site } = visit
  const { session } = identity
  try {
    await confirm(visit)
  } catch (error) {
    if (!(error instanceof RejectedForm)) throw error
    const kept = request.fields.without(PASSWORD_FIELD, PASSKEY_FIELD, ...secretFields)
    return site.store.environment.read(() => ask(visit, kept, rejectedForm(error, new FormFields())))
  }
  const fields = new FormFields(request.fields.without(PASSWORD_FIELD, PASSKEY_FIELD))
  const next = newSecret()
  const hashes = { hash: session.hash, nextHash: secretHash(next) }
  const confirmedSession = await site.changes.account('session.confirm', hashes)
  const now = new Visit(site, { ...request, fields }, { ...identity, session: confirmedSession })
  return withCookies(await handle(now), [setCookie('session', next)])
}

/** Confirms who the user is by the form. @throws RejectedForm */
async function confirm(visit: Visit): Promise<void> {
  const { fields } = visit.request
  const { user } = visit.identity
  const password = fields.text(PASSWORD_FIELD)
  const passkey = fields.text(PASSKEY_FIELD)
  const { passkeys } = visit.site
  if (passkey !== '' && passkeys !== undefined) {
    await authenticateByPasskey(visit, passkeys, passkey, answererOf(visit))
  } else if (password !== '') {
    const wrong = { [PASSWORD_FIELD]: 'This password is wrong' }
    await checkPassword(visit, { name: user.name, user, password }, wrong)
  } else throw new RejectedForm({}, 200)
}

function answererOf({ identity }: Visit): Answerer {
  return { purpose: 'confirm', sessionId: identity.session.id, userId: identity.user.id }
}

function ask(visit: Visit, kept: Fields, form: FormState): Answer {
  const { identity, nowMs, request, site } = visit
  const { user } = identity
  const hasPasskeys = site.passkeys !== undefined && site.passkeys.usable(user.id).length > 0
  const content = Confirm({
    action: request.path,
    kept,
    form,
    provider: providerOf(visit, kept),
    passwordField: user.passwordHash === '' ? undefined : PASSWORD_FIELD,
    passkey: hasPasskeys
      ? { field: PASSKEY_FIELD, options: site.passkeys.requestOptions(answererOf(visit), nowMs) }
      : undefined,
  })
  return visit.page('Confirm your identity', '', content, { form })
}

/** The provider with which the user signed in, and the id under which the form waits. */
function providerOf({ site, identity, request, nowMs }: Visit, fields: Fields): ConfirmProps['provider'] {
  const { id: sessionId, providerOrganizationId } = identity.session
  if (providerOrganizationId === undefined) return undefined
  const provider = site.store.identityProviders.get(providerOrganizationId)
  if (provider === undefined) return undefined
  return { name: provider.name, formId: site.pendingForms.keep({ sessionId, action: request.path, fields }, nowMs) }
}
