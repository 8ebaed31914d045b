import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { authenticateByPasskey } from '../confirmation.ts'
import { EMPTY_FORM, FormFields, type FormState, refusedForm } from '../form.ts'
import { type Answer, jsonAnswer, redirect } from '../http/answer.ts'
import { form, openForm, openPage, type Parameters, type Route, type RouteOptions } from '../http/router.ts'
import type { Guest, Visit } from '../http/visit.ts'
import type { Answerer, PasskeySignIn } from '../sign-in/passkeys.ts'
import { AddPasskey } from './passkeys.tsx'
import { browserName, signInPage, startSession, targetOf } from './sign-in-routes.ts'

/** Nobody is signed in yet: the passkey names its user. */
const SIGN_IN: Answerer = { purpose: 'sign-in', sessionId: '', userId: '' }

export const PASSKEY_ROUTES: readonly Route[] = [
  // Changes nothing, so it needs no form. The browser script asks for it before each sign-in.
  openPage('/sign-in/passkey', (guest) => jsonAnswer(passkeysOf(guest).requestOptions(SIGN_IN, guest.nowMs))),
  openForm('/sign-in/passkey', signInByPasskey),
  ownForm('/account/passkeys/new', (visit) => addPage(visit, EMPTY_FORM, 200), { confirmed: true }),
  ownForm('/account/passkeys', addPasskey, { confirmed: true }),
  ownForm('/account/passkeys/:id/name', async ({ site, request, identity }, { id }) => {
    const name = request.fields.text('name').trim()
    await site.changes.account('passkey.rename', { userId: identity.user.id, id, name })
    return redirect('/account?done=passkey-name')
  }),
  ownForm(
    '/account/passkeys/:id/remove',
    async ({ site, identity }, { id }) => {
      await site.changes.account('passkey.remove', { userId: identity.user.id, id })
      return redirect('/account?done=passkey-removed')
    },
    { confirmed: true },
  ),
]

/**
 * A form that is refused in a session of an identity provider. The provider could sign in as any of
 * its users, and a passkey would reach the other organizations of the user.
 */
function ownForm<Path extends string>(
  path: Path,
  handle: (visit: Visit, parameters: Parameters<Path>) => Answer | Promise<Answer>,
  options: RouteOptions = {},
): Route {
  const own = (visit: Visit, parameters: Parameters<Path>): Answer | Promise<Answer> => {
    if (visit.identity.session.providerOrganizationId === undefined) return handle(visit, parameters)
    throw new Fault('NOT_ALLOWED', 'Sign in with your password or a passkey to change passkeys')
  }
  return form(path, 'signed-in', own, options)
}

/** @throws Fault NOT_FOUND if passkeys do not work at the console's origin. */
function passkeysOf({ site }: Guest): PasskeySignIn {
  if (site.passkeys !== undefined) return site.passkeys
  throw new Fault('NOT_FOUND', 'Passkeys need --console-origin with https and a host name')
}

async function signInByPasskey(guest: Guest): Promise<Answer> {
  const { fields } = guest.request
  const to = targetOf(fields.text('to'))
  const outcome = await authenticateByPasskey(guest, passkeysOf(guest), fields.text('passkey'), SIGN_IN)
  if (!('error' in outcome)) return startSession(guest, outcome.userId, to)
  const state: FormState = { values: new FormFields(), errors: { '': outcome.error } }
  return signInPage(guest, state, to, outcome.status, outcome.fields)
}

function addPage(visit: Visit, state: FormState, status: number): Answer {
  const { identity, request, nowMs, site } = visit
  const options = site.store.environment.read(() =>
    passkeysOf(visit).creationOptions(identity.user, identity.session.id, nowMs),
  )
  const suggestedName = browserName(request.userAgent)
  const content = AddPasskey({ form: state, options, host: passkeysOf(visit).relyingParty.id, suggestedName })
  return visit.page('Add a passkey', '/account', content, { status })
}

async function addPasskey(visit: Visit): Promise<Answer> {
  const { identity, request, nowMs, site } = visit
  const { user, session } = identity
  const name = request.fields.text('name').trim()
  const typed = new FormFields([['name', name]])
  const again = (errors: FormState['errors'], status: number): Answer =>
    addPage(visit, { values: typed, errors }, status)
  // A user without a password signs in elsewhere, where access can be withdrawn.
  if (user.passwordHash === '') throw new Fault('CONFLICT', 'Only users with a password can add passkeys')
  if (name === '') return again({ name: 'Enter a name' }, 400)
  const made = await passkeysOf(visit).register(request.fields.text('passkey'), { user, sessionId: session.id }, nowMs)
  if ('refused' in made) return again({ '': made.refused }, 403)
  try {
    await site.changes.account('passkey.add', { ...made, name })
  } catch (error) {
    const { state, status } = refusedForm(error, typed)
    return addPage(visit, state, status)
  }
  return redirect('/account?done=passkey')
}
