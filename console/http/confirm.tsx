import { Field, FieldError, PasskeyForm, SubmitOrCancel } from '../design/form.tsx'
import { PageHead } from '../design/parts.tsx'
import type { FormState } from '../form.ts'

export type KeptFields = readonly (readonly [name: string, value: string])[]

export interface ConfirmProps {
  /** The path of the change. The form is posted to it. */
  readonly action: string
  /** The fields of the change. */
  readonly kept: KeptFields
  readonly form: FormState
  /** The identity provider with which the user signed in, and the id of the kept form. */
  readonly provider: { readonly name: string; readonly formId: string } | undefined
  /** undefined if the user has no password. */
  readonly passwordField: string | undefined
  /** undefined if the user has no passkey for this console. */
  readonly passkey: { readonly field: string; readonly options: object } | undefined
}

/** Asks who the user is before a sensitive change: one form for each way to confirm. */
export function Confirm({ action, kept, form, provider, passwordField, passkey }: ConfirmProps) {
  const isOnlyPassword = provider === undefined && passkey === undefined
  if (isOnlyPassword && passwordField === undefined) return <SignInAgain />
  return (
    <>
      <PageHead
        title={isOnlyPassword ? 'Confirm your password' : 'Confirm your identity'}
        about="This change needs a confirmation once in ten minutes. What you typed is kept."
      />
      <section class="card narrow">
        {provider !== undefined && (
          <form class="stack body" method="post" action="/sign-in/confirm">
            <input type="hidden" name="form" value={provider.formId} />
            <SubmitOrCancel cancel="/">Confirm with {provider.name}</SubmitOrCancel>
          </form>
        )}
        {passwordField !== undefined && (
          <form class={provider === undefined ? 'stack body' : 'stack body alternative'} method="post" action={action}>
            <Kept fields={kept} />
            <Field
              name={passwordField}
              label="Password"
              type="password"
              form={form}
              required
              autoComplete="current-password"
            />
            <SubmitOrCancel cancel="/">Confirm</SubmitOrCancel>
          </form>
        )}
        {passkey !== undefined && (
          <PasskeyForm {...passkey} action={action} ceremony="get" kept={kept} class="stack body alternative" hidden>
            <FieldError id="passkey-error" error={form.errors[passkey.field]} />
            <div class="row">
              <button type="submit">Confirm with a passkey</button>
            </div>
          </PasskeyForm>
        )}
      </section>
    </>
  )
}

interface ContinueFormProps {
  readonly action: string
  readonly kept: KeptFields
  readonly isConfirmed: boolean
}

/** After the confirmation at a provider: the form, to be sent with one click. */
export function ContinueForm({ action, kept, isConfirmed }: ContinueFormProps) {
  return (
    <>
      <PageHead
        title={isConfirmed ? 'You are confirmed' : 'You are not confirmed yet'}
        about="Continue with what you were doing. What you typed is kept."
      />
      <section class="card narrow">
        <form class="stack body" method="post" action={action}>
          <Kept fields={kept} />
          <SubmitOrCancel cancel="/">Continue</SubmitOrCancel>
        </form>
      </section>
    </>
  )
}

/** Hidden fields. */
export function Kept({ fields }: { readonly fields: KeptFields }) {
  return (
    <>
      {fields.map(([name, value], at) => (
        <input key={at} type="hidden" name={name} value={value} />
      ))}
    </>
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
