import type { Passkey } from '../engine/store/passkeys.ts'
import { retryText } from './design/parts.tsx'
import type { Guest } from './http/visit.ts'
import { type Answerer, type PasskeySignIn, WRONG } from './sign-in/passkeys.ts'
import { trustedBrowser } from './sign-in/secrets.ts'
import { readAssertion } from './sign-in/webauthn.ts'

export interface PasskeyRefusal {
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
