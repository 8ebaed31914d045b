import type { FormState } from '../form.ts'
import { type Answer, isLocalPath, pageAnswer } from '../http/answer.ts'
import type { Guest } from '../http/visit.ts'
import { SignIn } from '../pages/sign-in.tsx'

/** The requested page, which the visitor sees after signing in. */
export function targetOf(to: string): string {
  return isLocalPath(to) ? to : '/'
}

export function signInPage(
  { site, theme }: Guest,
  form: FormState,
  to: string,
  status: number,
  fields: readonly string[] = [],
): Answer {
  const isNew = site.store.users.isEmpty()
  const hasPasskeys = site.passkeys !== undefined && !site.store.passkeys.isEmpty()
  return pageAnswer(SignIn({ theme, form, to, isNew, hasPasskeys }), { status, fields })
}
