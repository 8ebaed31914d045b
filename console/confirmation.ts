import { MINUTE_MS } from '../engine/kernel/process/clock.ts'
import type { Passkey } from '../engine/store/passkeys.ts'
import { retryText } from './design/parts.tsx'
import { FormFields, type FormState } from './form.ts'
import { type Answer, withCookies } from './http/answer.ts'
import { Confirm, type ConfirmProps, type KeptFields } from './http/confirm.tsx'
import { setCookie } from './http/cookies.ts'
import { type Guest, Visit } from './http/visit.ts'
import { type Answerer, type PasskeySignIn, WRONG } from './sign-in/passkeys.ts'
import { newSecret, secretHash, trustedBrowser } from './sign-in/secrets.ts'
import { readAssertion } from './sign-in/webauthn.ts'

interface PasskeyRefusal {
  readonly error: string
  readonly status: number
  /** Additional header fields. */
  readonly fields: readonly string[]
}

/**
 * Authenticates a visitor by the response of an authenticator, with the same limits as passwords.
 * They are counted by credential and not by user, so that known and unknown credentials get equal
 * answers.
 *
 * @throws OverloadError.
 */
export async function authenticateByPasskey(
  { site, request, nowMs }: Guest,
  passkeys: PasskeySignIn,
  text: string,
  answerer: Answerer,
): Promise<Passkey | PasskeyRefusal> {
  const assertion = readAssertion(text)
  if (assertion === undefined) return { error: WRONG.refused, status: 403, fields: [] }
  const named = site.store.passkeys.byCredential(assertion.id)
  const user = named && site.store.users.get(named.userId)
  const attempt = {
    // No user's name contains a tab.
    name: `passkey\t${assertion.id}`,
    of: named === undefined ? 'unknown passkey' : 'account',
    address: request.address,
    trustedBrowser: trustedBrowser(user, request.cookies.get('browser')),
  } as const
  const verdict = site.attempts.begin(attempt, nowMs)
  if (!verdict.allowed) {
    const seconds = verdict.retryAfterSeconds
    const error = `Too many attempts. ${retryText(seconds)}`
    return { error, status: 429, fields: ['retry-after', String(seconds)] }
  }
  const outcome = await passkeys.authenticate(assertion, answerer, nowMs)
  if ('refused' in outcome) return { error: outcome.refused, status: 403, fields: [] }
  verdict.succeeded()
  return outcome
}

/** A confirmed identity allows sensitive changes for this long. */
const CONFIRMATION_MS = 10 * MINUTE_MS
/** The names of the fields in the confirmation form. */
export const PASSWORD_FIELD = 'confirm-password'
const PASSKEY_FIELD = 'confirm-passkey'

/** Why the user is asked again. */
interface Refusal {
  readonly errors: FormState['errors']
  readonly status: number
  /** Additional header fields. */
  readonly fields?: readonly string[]
}

/** Whether the user may make sensitive changes without another confirmation. */
export function isConfirmed({ identity, nowMs }: Visit): boolean {
  return nowMs - identity.session.confirmedAtMs < CONFIRMATION_MS
}

/**
 * Handles a sensitive change if the user proved their identity in the last ten minutes. Otherwise
 * asks for the password or a passkey, in a form that also contains all fields of the change, so
 * that the user types nothing twice. A confirmed session continues with a new cookie value. A user
 * who signed in with an identity provider confirms there (routes/oidc.ts), and the form waits
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
  const refusal = await refusalOf(visit)
  if (refusal !== undefined) {
    const kept = request.fields.without(PASSWORD_FIELD, PASSKEY_FIELD, ...secretFields)
    return site.store.environment.read(() => ask(visit, kept, refusal))
  }
  const fields = new FormFields(request.fields.without(PASSWORD_FIELD, PASSKEY_FIELD))
  const next = newSecret()
  const hashes = { hash: session.hash, nextHash: secretHash(next) }
  const confirmedSession = await site.changes.account('session.confirm', hashes)
  const now = new Visit(site, { ...request, fields }, { ...identity, session: confirmedSession })
  return withCookies(await handle(now), [setCookie('session', next)])
}

/** Returns undefined if the form confirms who the user is. */
async function refusalOf(visit: Visit): Promise<Refusal | undefined> {
  const { fields } = visit.request
  const password = fields.text(PASSWORD_FIELD)
  const passkey = fields.text(PASSKEY_FIELD)
  if (passkey !== '') return passkeyRefusal(visit, passkey)
  return password === '' ? { errors: {}, status: 200 } : passwordRefusal(visit, password)
}

async function passwordRefusal({ identity, nowMs, request, site }: Visit, password: string) {
  const { user } = identity
  const attempt = {
    name: user.name,
    of: 'account',
    address: request.address,
    trustedBrowser: trustedBrowser(user, request.cookies.get('browser')),
  } as const
  const verdict = site.attempts.begin(attempt, nowMs)
  if (!verdict.allowed) {
    const error = `Too many wrong passwords. ${retryText(verdict.retryAfterSeconds)}`
    const fields = ['retry-after', String(verdict.retryAfterSeconds)]
    return { errors: { [PASSWORD_FIELD]: error }, status: 429, fields }
  }
  if (!(await site.passwords.verify(user.passwordHash, password))) {
    return { errors: { [PASSWORD_FIELD]: 'This password is wrong' }, status: 403 }
  }
  verdict.succeeded()
  return undefined
}

async function passkeyRefusal(visit: Visit, text: string): Promise<Refusal | undefined> {
  const { passkeys } = visit.site
  if (passkeys === undefined) return { errors: {}, status: 403 }
  const outcome = await authenticateByPasskey(visit, passkeys, text, answererOf(visit))
  if (!('error' in outcome)) return undefined
  const { error, status, fields } = outcome
  return { errors: { [PASSKEY_FIELD]: error }, status, fields }
}

function answererOf({ identity }: Visit): Answerer {
  return { purpose: 'confirm', sessionId: identity.session.id, userId: identity.user.id }
}

function ask(visit: Visit, kept: KeptFields, { errors, status, fields = [] }: Refusal): Answer {
  const { identity, nowMs, request, site } = visit
  const { user } = identity
  const hasPasskeys = site.passkeys !== undefined && site.passkeys.usable(user.id).length > 0
  const content = Confirm({
    action: request.path,
    kept,
    form: { values: new FormFields(), errors },
    provider: providerOf(visit, kept),
    passwordField: user.passwordHash === '' ? undefined : PASSWORD_FIELD,
    passkey: hasPasskeys
      ? { field: PASSKEY_FIELD, options: site.passkeys.requestOptions(answererOf(visit), nowMs) }
      : undefined,
  })
  return visit.page('Confirm your identity', '', content, { status, fields })
}

/** The provider with which the user signed in, and the id under which the form waits. */
function providerOf({ site, identity, request, nowMs }: Visit, fields: KeptFields): ConfirmProps['provider'] {
  const { id: sessionId, providerOrganizationId } = identity.session
  if (providerOrganizationId === undefined) return undefined
  const provider = site.store.identityProviders.get(providerOrganizationId)
  if (provider === undefined) return undefined
  return { name: provider.name, formId: site.pendingForms.keep({ sessionId, action: request.path, fields }, nowMs) }
}
