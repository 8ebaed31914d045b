import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { authenticateByPasskey } from '../confirmation.ts'
import { EMPTY_FORM, type FormState, RejectedForm } from '../form.ts'
import { type Answer, fileAnswer, redirect } from '../http/answer.ts'
import { type FormOptions, form, openForm, openPage, type Parameters, type Route } from '../http/router.ts'
import type { Guest, Visit } from '../http/visit.ts'
import type { Answerer, PasskeySignIn } from '../sign-in/passkeys.ts'
import { AddPasskey } from './passkeys.tsx'
import { browserName, signInPage, startSession, targetOf } from './sign-in-routes.ts'

/** Nobody is signed in yet: the passkey names its user. */
const SIGN_IN: Answerer = { purpose: 'sign-in', sessionId: '', userId: '' }

export const PASSKEY_ROUTES: readonly Route[] = [
  // Changes nothing, so it needs no form. The browser script asks for it before each sign-in.
  openPage('/sign-in/passkey', (guest) => {
    const options = passkeysOf(guest).requestOptions(SIGN_IN, guest.nowMs)
    return fileAnswer('application/json', 'answer.json', JSON.stringify(options))
  }),
  openForm('/sign-in/passkey', signInByPasskey),
  ownForm('/account/passkeys/new', (visit) => addPage(visit, EMPTY_FORM), { confirmed: true }),
  ownForm('/account/passkeys', addPasskey, { confirmed: true, again: addPage }),
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
  options: FormOptions<Path> = {},
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
  return guest.submit(
    (form) => signInPage(guest, form, to),
    async () => {
      const { userId } = await authenticateByPasskey(guest, passkeysOf(guest), fields.text('passkey'), SIGN_IN)
      return startSession(guest, userId, to)
    },
  )
}

function addPage(visit: Visit, form: FormState): Answer {
  const { identity, request, nowMs } = visit
  const passkeys = passkeysOf(visit)
  const options = passkeys.creationOptions(identity.user, identity.session.id, nowMs)
  const suggestedName = browserName(request.userAgent)
  const content = AddPasskey({ form, options, host: passkeys.relyingParty.id, suggestedName })
  return visit.page('Add a passkey', '/account', content, { form })
}

async function addPasskey(visit: Visit): Promise<Answer> {
  const { identity, request, nowMs, site } = visit
  const { user, session } = identity
  const name = request.fields.text('name').trim()
  // A user without a password signs in elsewhere, where access can be withdrawn.
  if (user.passwordHash === '') throw new Fault('CONFLICT', 'Only users with a password can add passkeys')
  if (name === '') throw new RejectedForm({ name: 'Enter a name' })
  const made = await passkeysOf(visit).register(request.fields.text('passkey'), { user, sessionId: session.id }, nowMs)
  if ('refused' in made) throw new RejectedForm({ '': made.refused }, 403)
  await site.changes.account('passkey.add', { ...made, name })
  return redirect('/account?done=passkey')
}
