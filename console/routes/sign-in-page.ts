import type { FormState } from '../form.ts'
import { type Answer, isLocalPath, pageAnswer } from '../http/answer.ts'
import type { Guest } from '../http/visit.ts'
import { SignIn } from '../pages/sign-in.tsx'
import { canSomebodySignIn } from '../setup-offer.ts'
import { providerChoice } from '../views/sign-in.ts'

/** The requested page, which the visitor sees after signing in. */
export function targetOf(to: string): string {
  return isLocalPath(to) ? to : '/'
}

/** The page for sign-in: with a password, a passkey, or an identity provider. */
export function signInPage(
  { site, theme, request }: Guest,
  form: FormState,
  to: string,
  status: number,
  fields: readonly string[] = [],
): Answer {
  const organization = request.query.get('organization') ?? ''
  const props = site.store.environment.read(() => {
    const { passkeys } = site.store
    const hasPasskeys = site.passkeys !== undefined && !passkeys.isEmpty()
    return { isNew: !canSomebodySignIn(site.store), hasPasskeys, provider: providerChoice(site.store) }
  })
  return pageAnswer(SignIn({ theme, form, to, organization, ...props }), { status, fields })
}
