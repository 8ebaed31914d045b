import type { AccountLinkKind } from '../../engine/store/account-links.ts'
import { Field, FormError } from '../design/form.tsx'
import { PlainPage, type Theme } from '../design/layout.tsx'
import type { FormState } from '../form.ts'
import { NewPassword } from './new-password.tsx'

export interface SetupProps {
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
      <form class="stack" method="post" action="/setup">
        <FormError form={form} />
        <Field
          name="secret"
          label="Setup secret"
          form={form}
          required
          maxLength={200}
          fromFragment
          hint="The part of the link after #. It works once."
        />
        <button class="first" type="submit">
          Continue
        </button>
      </form>
    </PlainPage>
  )
}

export interface SetupAccountProps extends SetupProps {
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
      <form class="stack" method="post" action="/setup/account">
        <FormError form={form} />
        <input type="hidden" name="secret" value={secret} />
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
        <button class="first" type="submit">
          Continue
        </button>
      </form>
    </PlainPage>
  )
}
