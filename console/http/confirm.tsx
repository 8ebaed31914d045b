import { ActionButton, Field, type Fields, Form, FormError, Hidden, PasskeyForm } from '../design/form.tsx'
import { NarrowCard, PageHead } from '../design/parts.tsx'
import type { FormState } from '../form.ts'

export interface ConfirmProps {
  /** The path of the change. The form is posted to it. */
  readonly action: string
  /** The fields of the change. */
  readonly kept: Fields
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
      <NarrowCard>
        <FormError form={form} />
        {provider !== undefined && (
          <Form action="/sign-in/confirm" submit={`Confirm with ${provider.name}`} cancel="/">
            <Hidden fields={[['form', provider.formId]]} />
          </Form>
        )}
        {passwordField !== undefined && (
          <Form action={action} submit="Confirm" cancel="/">
            <Hidden fields={kept} />
            <Field
              name={passwordField}
              label="Password"
              type="password"
              form={form}
              required
              autoComplete="current-password"
            />
          </Form>
        )}
        {passkey !== undefined && (
          <PasskeyForm {...passkey} action={action} ceremony="get" kept={kept} hidden>
            <div class="row">
              <button type="submit">Confirm with a passkey</button>
            </div>
          </PasskeyForm>
        )}
      </NarrowCard>
    </>
  )
}

interface ContinueFormProps {
  readonly action: string
  readonly kept: Fields
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
      <NarrowCard>
        <Form action={action} submit="Continue" cancel="/">
          <Hidden fields={kept} />
        </Form>
      </NarrowCard>
    </>
  )
}

function SignInAgain() {
  return (
    <>
      <PageHead title="Sign in again" about="This change needs a sign-in in the last ten minutes." />
      <ActionButton action="/sign-out" look="first">
        Sign out
      </ActionButton>
    </>
  )
}
