import { Field } from '../design/form.tsx'
import { PageHead } from '../design/parts.tsx'
import type { FormState } from '../form.ts'

export interface ConfirmProps {
  /** The path of the change. The form is posted to it. */
  readonly action: string
  /** The fields of the change. */
  readonly kept: readonly (readonly [string, string])[]
  readonly form: FormState
  readonly hasPassword: boolean
  readonly field: string
}

/** Asks for the password before a sensitive change. */
export function Confirm({ action, kept, form, hasPassword, field }: ConfirmProps) {
  if (!hasPassword) {
    return (
      <>
        <PageHead title="Sign in again" about="This change needs a sign-in in the last ten minutes." />
        <form method="post" action="/sign-out">
          <button class="first" type="submit">
            Sign out
          </button>
        </form>
      </>
    )
  }
  return (
    <>
      <PageHead title="Confirm your password" about="This change needs your password once in ten minutes." />
      <section class="card narrow">
        <form class="stack body" method="post" action={action}>
          {kept.map(([name, value], at) => (
            <input key={at} type="hidden" name={name} value={value} />
          ))}
          <Field name={field} label="Password" type="password" form={form} required autoComplete="current-password" />
          <div class="row">
            <button class="first" type="submit">
              Confirm
            </button>
            <a class="button" href="/">
              Cancel
            </a>
          </div>
        </form>
      </section>
    </>
  )
}
