import { Field } from '../design/form.tsx'
import { PlainPage, type Theme } from '../design/layout.tsx'
import type { FormState } from '../form.ts'
import type { ProviderChoice } from '../views/sign-in.ts'

export interface ProviderFormProps {
  readonly choice: ProviderChoice
  readonly form: FormState
  readonly to: string
  readonly organization: string
}

/** Leads to the identity provider of an organization. */
export function ProviderForm({ choice, form, to, organization }: ProviderFormProps) {
  if (choice.kind === 'none') return null
  return (
    <>
      <form class="stack" method="post" action="/sign-in/provider">
        <input type="hidden" name="to" value={to} />
        {choice.kind === 'one' ? (
          <button type="submit">Sign in with {choice.name}</button>
        ) : (
          <>
            <Field
              name="organization"
              label="Organization, or your e-mail address there"
              form={form}
              value={organization}
              required
              maxLength={255}
              autoComplete="organization"
            />
            <button type="submit">Sign in with your organization</button>
          </>
        )}
      </form>
      <p class="or">or with a password</p>
    </>
  )
}

/**
 * Sends the browser to the provider. A redirect would not do: the policy `form-action 'self'` also
 * covers redirects after a form.
 */
export function AtProvider({
  theme,
  name,
  url,
}: {
  readonly theme: Theme
  readonly name: string
  readonly url: string
}) {
  return (
    <PlainPage title={`Opening ${name}`} theme={theme} path="/sign-in" refreshTo={url}>
      <h1>Opening {name}</h1>
      <p class="muted">You come back here after you signed in there.</p>
      <p>
        <a class="button" href={url} rel="noreferrer">
          Continue
        </a>
      </p>
    </PlainPage>
  )
}
