import type { IdentityProvider } from '../../engine/store/members.ts'
import { isDomainConfirmed } from '../../engine/store/organizations.ts'
import type { Store } from '../../engine/store/store.ts'
import type { AccountLinkKind } from '../../engine/store/users.ts'
import { Field, Form, FormError, Hidden, PasskeyForm } from '../design/form.tsx'
import { PlainPage, type Theme } from '../design/layout.tsx'
import type { FormState } from '../form.ts'
import { PASSWORD_LENGTH_MIN } from '../sign-in/passwords.ts'

/** What the page for sign-in offers in addition to passwords. */
type ProviderChoice =
  | { readonly kind: 'none' }
  /** The provider of the only organization, by the name of its button. */
  | { readonly kind: 'one'; readonly name: string }
  /** The visitor names the organization: a list would show the customers of the service. */
  | { readonly kind: 'by organization' }

/** Call it inside Environment.read. */
export function providerChoice({ organizations, identityProviders }: Store): ProviderChoice {
  if (identityProviders.isEmpty()) return { kind: 'none' }
  const only = organizations.single()
  if (only === undefined) return { kind: 'by organization' }
  const provider = identityProviders.get(only.id)
  return provider === undefined ? { kind: 'none' } : { kind: 'one', name: provider.name }
}

/**
 * The provider that a visitor chooses. `typed` is the name of an organization, its domain, or an
 * e-mail address in this domain. Only a domain that the operator confirmed counts, and before a
 * name: members can give their organization any domain and any free name, and no organization may
 * draw the users of another to its provider, or keep them from theirs. A domain that the operator
 * confirmed for several organizations leads to none of them.
 */
export function chosenProvider(
  { organizations, identityProviders }: Store,
  typed: string,
): IdentityProvider | undefined {
  const only = organizations.single()
  if (only !== undefined) return identityProviders.get(only.id)
  const text = typed.trim().toLowerCase()
  const domain = text.slice(text.lastIndexOf('@') + 1)
  const owners = organizations.all().filter((each) => each.domain === domain && isDomainConfirmed(each))
  const [found = organizations.find(text), ...others] = owners
  return found === undefined || others.length > 0 ? undefined : identityProviders.get(found.id)
}

/** The fields of a new password: `password` and `repeated`. */
export function NewPassword({ label, form }: { readonly label: string; readonly form: FormState }) {
  return (
    <>
      <Field
        name="password"
        label={label}
        type="password"
        form={form}
        required
        minLength={PASSWORD_LENGTH_MIN}
        autoComplete="new-password"
        hint={`At least ${PASSWORD_LENGTH_MIN} characters.`}
      />
      <Field
        name="repeated"
        label={`Repeat the ${label[0]?.toLowerCase()}${label.slice(1)}`}
        type="password"
        form={form}
        required
        autoComplete="new-password"
      />
    </>
  )
}

interface SignInProps {
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
      <Form action="/sign-in" submit="Sign in">
        <Hidden fields={[['to', to]]} />
        <Field
          name="name"
          label="Name or e-mail address"
          form={form}
          required
          maxLength={255}
          autoComplete={hasPasskeys ? 'username webauthn' : 'username'}
        />
        <Field name="password" label="Password" type="password" form={form} required autoComplete="current-password" />
      </Form>
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
      <Form
        action="/sign-in/provider"
        submit={choice.kind === 'one' ? `Sign in with ${choice.name}` : 'Sign in with your organization'}
        look="plain"
      >
        <Hidden fields={[['to', to]]} />
        {choice.kind !== 'one' && (
          <Field
            name="organization"
            label="Organization, or your e-mail address there"
            form={form}
            value={organization}
            required
            maxLength={255}
            autoComplete="organization"
          />
        )}
      </Form>
      <p class="or">or with a password</p>
    </>
  )
}

/**
 * Sends the browser to the provider. A redirect would not do: the policy `form-action 'self'` also
 * covers redirects after a form.
 */
export function AtProvider({ theme, name, url }: { theme: Theme; name: string; url: string }) {
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

interface SetupProps {
  readonly theme: Theme
  readonly form: FormState
}

/**
 * The first step: the form with the link's secret, which the browser script takes from the address.
 */
export function Setup({ theme, form }: SetupProps) {
  return (
    <PlainPage title="Set up your account" theme={theme} path="/setup">
      <h1>Set up your account</h1>
      <Form action="/setup" form={form} submit="Continue">
        <Field
          name="secret"
          label="Setup secret"
          form={form}
          required
          maxLength={200}
          fromFragment
          hint="The part of the link after #. It works once."
        />
      </Form>
    </PlainPage>
  )
}

interface SetupAccountProps extends SetupProps {
  readonly secret: string
  readonly kind: AccountLinkKind
  /** '' if the user of the link creates the organization. */
  readonly organizationName: string
  /** The name that the link specifies; '' if the user chooses one. */
  readonly name: string
  /**
   * The name of the signed-in user, who can use the link with the existing account; '' if nobody is
   * signed in.
   */
  readonly signedInAs: string
}

const TITLES: Readonly<Record<AccountLinkKind, string>> = {
  setup: 'Become the first owner',
  invitation: 'Accept the invitation',
  password: 'Set a new password',
}

/** The second step: the user's name and password. */
export function SetupAccount(props: SetupAccountProps) {
  const { theme, form, secret, kind, organizationName, name, signedInAs } = props
  const createsOrganization = kind === 'setup' && organizationName === ''
  return (
    <PlainPage title={TITLES[kind]} theme={theme} path="/setup">
      <h1>{TITLES[kind]}</h1>
      {organizationName !== '' && <p class="muted">Organization: {organizationName}</p>}
      {name !== '' && <p class="muted">Name for sign-in: {name}</p>}
      <Form action="/setup/account" form={form} submit="Continue">
        <Hidden fields={[['secret', secret]]} />
        {createsOrganization && (
          <>
            <Field name="organization" label="Organization" form={form} required maxLength={255} />
            <Field
              name="domain"
              label="Domain"
              form={form}
              required
              maxLength={255}
              hint="The domain of the organization, such as acme.example. Scans report it."
            />
          </>
        )}
        {kind !== 'password' && signedInAs !== '' ? (
          <p>You are signed in as {signedInAs} and stay the same user.</p>
        ) : (
          <>
            {name === '' && (
              <Field
                name="name"
                label="Name or e-mail address"
                form={form}
                required
                maxLength={255}
                autoComplete="username"
              />
            )}
            {name !== '' && <input type="hidden" name="username" autoComplete="username" value={name} />}
            <NewPassword label="Password" form={form} />
          </>
        )}
      </Form>
    </PlainPage>
  )
}
