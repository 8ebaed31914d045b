import { SIGN_IN_DEFAULTS } from '../../engine/admin/sign-in.ts'
import { IDENTITY_PROVIDER_GROUPS_MAX } from '../../engine/limits.ts'
import { ROLES } from '../../engine/store/members.ts'
import { Field, FieldError, FormError, Select } from '../design/form.tsx'
import { Card, countText, KeyProblem, Notice, PageHead, Secret, Time } from '../design/parts.tsx'
import type { FormState } from '../form.ts'
import type { ProviderView, SignInSettingsView } from '../views/sign-in-settings.ts'

export interface TestResult {
  readonly tone: 'good' | 'bad'
  readonly title: string
  readonly about: string
}

export interface SignInSettingsProps {
  readonly view: SignInSettingsView
  readonly form: FormState
  /** The groups that were typed. */
  readonly rows: readonly { readonly group: string; readonly role: string }[]
  readonly nowMs: number
  /** The user has confirmed their identity, so the form is shown. */
  readonly isOpen: boolean
  readonly result: TestResult | undefined
  readonly done: string
}

const DONE: Readonly<Record<string, string>> = {
  set: 'The settings are saved. They apply to the next sign-in',
  removed: 'The identity provider is removed, and its sessions have ended',
}
const EMPTY_ROWS = 3

/** The identity provider of the organization. */
export function SignInSettingsPage(props: SignInSettingsProps) {
  const { view, isOpen, result, done } = props
  const { provider } = view
  const title = DONE[done]
  return (
    <>
      <PageHead
        title="Sign-in"
        about="Members sign in with the identity provider of your organization (OpenID Connect)"
      >
        {provider !== undefined && (
          <form method="post" action="/sign-in-settings/test">
            <button type="submit">Test connection</button>
          </form>
        )}
      </PageHead>
      {title !== undefined && result === undefined && <Notice title={title} />}
      {result !== undefined && (
        <Notice tone={result.tone} title={result.title}>
          <p>{result.about}</p>
        </Notice>
      )}
      <KeyProblem problem={provider?.keyProblem ?? ''} />
      <Addresses view={view} />
      {provider !== undefined && !isOpen && <Summary provider={provider} {...props} />}
      {isOpen ? <SettingsForm {...props} /> : <Open isNew={provider === undefined} form={props.form} />}
      {provider !== undefined && <Remove name={provider.name} />}
    </>
  )
}

function Addresses({ view: { redirectUri, signInUrl, domain, provider } }: { readonly view: SignInSettingsView }) {
  return (
    <Card title="Addresses of this console" note="Enter the first one at your provider">
      <div class="stack">
        <div>
          <p class="small muted">Redirect URI, also called callback URL</p>
          <Secret id="redirect-uri" value={redirectUri} />
        </div>
        {provider !== undefined && (
          <div>
            <p class="small muted">Where your members sign in</p>
            <Secret id="sign-in-url" value={signInUrl} />
            {domain !== undefined && (
              <p class="small muted">
                {domain.isConfirmed
                  ? `Or they type the organization's name, or an e-mail address of ${domain.name}, on the sign-in page.`
                  : `Or they type the organization's name on the sign-in page. For e-mail addresses of ${domain.name}, the operator of the service must confirm the domain.`}
              </p>
            )}
          </div>
        )}
      </div>
    </Card>
  )
}

function Summary({ provider, view, nowMs }: SignInSettingsProps & { readonly provider: ProviderView }) {
  const rows = [
    ['Name', provider.name],
    ['Issuer', <span class="mono">{provider.issuer}</span>],
    ['Client ID', <span class="mono">{provider.clientId}</span>],
    ['Client secret', 'stored, encrypted'],
    ['Scopes', provider.scopes],
    ['Claims', `name: ${provider.nameClaim}, groups: ${provider.groupsClaim}`],
    ['Groups', provider.groups.map(({ group, role }) => `${group}: ${role}`).join(', ') || 'none'],
    ['Everyone else', provider.defaultRole === 'none' ? 'no access' : provider.defaultRole],
    ['Members', `${countText(view.membersCount)} signed in with it so far`],
    ['Changed', <Time ms={provider.changedAtMs} nowMs={nowMs} />],
  ] as const
  return (
    <Card title={provider.name}>
      <dl class="settings">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  )
}

/** The form opens after a confirmation, so that it is not asked for when a secret is typed. */
function Open({ isNew, form }: { readonly isNew: boolean; readonly form: FormState }) {
  const open = (
    <form class="stack" method="post" action="/sign-in-settings/edit">
      <FormError form={form} />
      {isNew && (
        <p class="muted">
          Members sign in with passwords now. Register this console at Entra ID, Okta, Keycloak, Google or another
          OpenID provider, then enter its settings here.
        </p>
      )}
      <div>
        <button class="first" type="submit">
          {isNew ? 'Set up sign-in' : 'Change settings'}
        </button>
      </div>
    </form>
  )
  return isNew ? <Card title="No identity provider yet">{open}</Card> : open
}

function SettingsForm(props: SignInSettingsProps) {
  const { view, form } = props
  const { provider } = view
  const isNew = provider === undefined
  return (
    <Card title={isNew ? 'Set up an identity provider' : 'Settings'}>
      <form class="stack" method="post" action="/sign-in-settings">
        <FormError form={form} />
        <Field
          name="name"
          label="Name"
          form={form}
          value={provider?.name ?? ''}
          required
          maxLength={100}
          hint="For the button “Sign in with …”."
        />
        <Field
          name="issuer"
          label="Issuer URL"
          form={form}
          value={provider?.issuer ?? ''}
          required
          maxLength={500}
          hint="Such as https://login.example.com, without /.well-known."
        />
        <Field
          name="clientId"
          label="Client ID"
          form={form}
          value={provider?.clientId ?? ''}
          required
          maxLength={500}
        />
        <Field
          name="clientSecret"
          label="Client secret"
          type="password"
          form={form}
          required={isNew}
          autoComplete="off"
          hint={
            isNew
              ? 'Stored encrypted. No page shows it.'
              : 'Leave it empty to keep the stored one. A new issuer needs a new one.'
          }
        />
        <Groups {...props} />
        <Select
          name="defaultRole"
          label="Users in none of these groups"
          form={form}
          value={provider?.defaultRole ?? SIGN_IN_DEFAULTS.defaultRole}
          options={[['none', 'have no access'], ...ROLES.map((role) => [role, `are ${role}s`] as const)]}
        />
        <details>
          <summary>Scopes and claims</summary>
          <div class="stack">
            <Field
              name="scopes"
              label="Scopes"
              form={form}
              value={provider?.scopes ?? SIGN_IN_DEFAULTS.scopes}
              required
              hint="Separated by spaces."
            />
            <Field
              name="nameClaim"
              label="Claim with the name of a new member"
              form={form}
              value={provider?.nameClaim ?? SIGN_IN_DEFAULTS.nameClaim}
              required
            />
            <Field
              name="groupsClaim"
              label="Claim with the groups"
              form={form}
              value={provider?.groupsClaim ?? SIGN_IN_DEFAULTS.groupsClaim}
              required
              hint="A path is possible, such as realm_access.roles."
            />
          </div>
        </details>
        <div class="field">
          <label class="check">
            <input type="checkbox" name="unchecked" value="yes" aria-describedby="unchecked-hint" />
            Save without a connection to the provider
          </label>
          <p id="unchecked-hint" class="hint">
            For a provider that this service cannot reach yet. A mistake in the settings then shows at the first
            sign-in. Keep a password until it works.
          </p>
        </div>
        <div>
          <button class="first" type="submit">
            Save
          </button>
        </div>
      </form>
    </Card>
  )
}

/** One row per group, and empty rows for more. */
function Groups({ view, form, rows }: SignInSettingsProps) {
  const known = rows.length > 0 ? rows : (view.provider?.groups ?? [])
  const empty = Array.from({ length: EMPTY_ROWS }, () => ({ group: '', role: 'viewer' }))
  const all = [...known, ...empty].slice(0, IDENTITY_PROVIDER_GROUPS_MAX)
  return (
    <fieldset class="pairs">
      <legend>Groups and their roles</legend>
      {all.map(({ group, role: chosen }, at) => (
        <div class="pair" key={at}>
          <input name="group" value={group} maxLength={500} aria-label={`Group ${at + 1}`} placeholder="Group" />
          <select name="role" aria-label={`Role of group ${at + 1}`}>
            {ROLES.map((role) => (
              <option key={role} value={role} selected={role === chosen}>
                {role}
              </option>
            ))}
          </select>
        </div>
      ))}
      <p class="hint">The highest role counts, at each sign-in. Save to get more rows.</p>
      <FieldError id="groups-error" error={form.errors['groups']} />
    </fieldset>
  )
}

function Remove({ name }: { readonly name: string }) {
  return (
    <details class="confirm">
      <summary>Remove {name}</summary>
      <form method="post" action="/sign-in-settings/remove">
        <p class="small muted">Its sessions end. Members without a password cannot sign in any more.</p>
        <button class="danger" type="submit">
          Confirm: remove {name}
        </button>
      </form>
    </details>
  )
}
