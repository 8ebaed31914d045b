import { Field, FieldError } from '../design/form.tsx'
import { PageHead } from '../design/parts.tsx'
import { PasskeyForm } from '../design/passkey-form.tsx'
import type { FormState } from '../form.ts'

export interface ConfirmProps {
  /** The path of the change. The form is posted to it. */
  readonly action: string
  /** The fields of the change. */
  readonly kept: readonly (readonly [string, string])[]
  readonly form: FormState
  /** undefined if the user has no password. */
  readonly passwordField: string | undefined
  /** undefined if the user has no passkey for this console. */
  readonly passkey: { readonly field: string; readonly options: object } | undefined
}

/** Asks for the password or a passkey before a sensitive change. */
export function Confirm({ action, kept, form, passwordField, passkey }: ConfirmProps) {
  if (passwordField === undefined && passkey === undefined) return <SignInAgain />
  const title = passkey === undefined ? 'Confirm your password' : 'Confirm your identity'
  const needed = passkey === undefined ? 'your password' : 'your password or passkey'
  return (
    <>
      <PageHead title={title} about={`This change needs ${needed} once in ten minutes.`} />
      <section class="card narrow">
        {passwordField !== undefined && (
          <form class="stack body" method="post" action={action}>
            <Kept fields={kept} />
            <Field
              name={passwordField}
              label="Password"
              type="password"
              form={form}
              required
              autoComplete="current-password"
            />
            <div class="row">
              <button class="first" type="submit">
                Confirm
              </button>
              <Cancel />
            </div>
          </form>
        )}
        {passkey !== undefined && (
          <PasskeyForm {...passkey} action={action} ceremony="get" kept={kept} class="stack body alternative" hidden>
            <FieldError id="passkey-error" error={form.errors[passkey.field]} />
            <div class="row">
              <button class={passwordField === undefined ? 'first' : undefined} type="submit">
                Confirm with a passkey
              </button>
              {passwordField === undefined && <Cancel />}
            </div>
          </PasskeyForm>
        )}
      </section>
    </>
  )
}

function Kept({ fields }: { readonly fields: ConfirmProps['kept'] }) {
  return (
    <>
      {fields.map(([name, value], at) => (
        <input key={at} type="hidden" name={name} value={value} />
      ))}
    </>
  )
}

function Cancel() {
  return (
    <a class="button" href="/">
      Cancel
    </a>
  )
}

function SignInAgain() {
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
