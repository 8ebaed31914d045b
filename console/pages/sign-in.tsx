import { Field, FormError } from '../design/form.tsx'
import { PlainPage, type Theme } from '../design/layout.tsx'
import { PasskeyForm } from '../design/passkey-form.tsx'
import type { FormState } from '../form.ts'
import type { ProviderChoice } from '../views/sign-in.ts'

export interface SignInProps {
  readonly theme: Theme
  readonly form: FormState
  /** The requested page. */
  readonly to: string
  /** A user has a passkey for this console. */
  readonly hasPasskeys: boolean
  /** No user can sign in yet. */
  readonly isNew: boolean
  readonly provider: ProviderChoice
  /** The organization or e-mail address that a link gives; '' if none. */
  readonly organization: string
}

export function SignIn({ theme, form, to, isNew, hasPasskeys, provider, organization }: SignInProps) {
  return (
    <PlainPage title="Sign in" theme={theme} path="/sign-in">
      <h1>Sign in</h1>
      {isNew && (
        <p class="muted">
          Nobody can sign in yet. Run <code>posture-admin setup-link</code> on the server and open the link.
        </p>
      )}
      <FormError form={form} />
      <ProviderForm choice={provider} form={form} to={to} organization={organization} />
      <form class="stack" method="post" action="/sign-in">
        <input type="hidden" name="to" value={to} />
        <Field
          name="name"
          label="Name or e-mail address"
          form={form}
          required
          maxLength={255}
          autoComplete={hasPasskeys ? 'username webauthn' : 'username'}
        />
        <Field name="password" label="Password" type="password" form={form} required autoComplete="current-password" />
        <button class="first" type="submit">
          Sign in
        </button>
      </form>
      {hasPasskeys && (
        <PasskeyForm
          action="/sign-in/passkey"
          ceremony="get"
          field="passkey"
          options="/sign-in/passkey"
          kept={[['to', to]]}
          class="stack alternative"
          hidden
        >
          <button type="submit">Sign in with a passkey</button>
        </PasskeyForm>
      )}
    </PlainPage>
  )
}

interface ProviderFormProps {
  readonly choice: ProviderChoice
  readonly form: FormState
  readonly to: string
  readonly organization: string
}

/** Leads to the identity provider of an organization. */
function ProviderForm({ choice, form, to, organization }: ProviderFormProps) {
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
