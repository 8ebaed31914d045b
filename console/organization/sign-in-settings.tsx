import { SIGN_IN_DEFAULTS, type SignInSettings, signInSettings } from '../../engine/admin/sign-in.ts'
import { isFault } from '../../engine/kernel/process/error-codes.ts'
import { CLIENT_SECRET_BYTES_MAX, IDENTITY_PROVIDER_GROUPS_MAX } from '../../engine/limits.ts'
import { clientSecretContext } from '../../engine/store/identity-providers.ts'
import { ROLES, type Role } from '../../engine/store/members.ts'
import { isDomainConfirmed } from '../../engine/store/organizations.ts'
import { isConfirmed } from '../confirmation.ts'
import { Field, FieldError, FormError, Select } from '../design/form.tsx'
import { Card, countText, KeyProblem, Notice, PageHead, SecretText, Time } from '../design/parts.tsx'
import { EMPTY_FORM, type FormFields, type FormState, refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import type { ClientCheck, ProviderClient } from '../sign-in/oidc-client.ts'
import { callbackPath } from '../sign-in/oidc-flow.ts'
import { ProviderError } from '../sign-in/provider-http.ts'

/** The stored settings, without the client secret. */
interface ProviderView {
  readonly name: string
  readonly issuer: string
  readonly clientId: string
  readonly scopes: string
  readonly nameClaim: string
  readonly groupsClaim: string
  readonly groups: readonly { readonly group: string; readonly role: Role }[]
  readonly defaultRole: Role | 'none'
  readonly changedAtMs: number
  /** Why the client secret cannot be decrypted; '' if it can. */
  readonly keyProblem: string
}

interface SignInSettingsView {
  readonly provider: ProviderView | undefined
  /** The address that the provider must know. */
  readonly redirectUri: string
  /** The address of the page for sign-in, with the organization filled in. */
  readonly signInUrl: string
  /** Whether e-mail addresses of the domain lead to this sign-in. undefined if nobody types one. */
  readonly domain: { readonly name: string; readonly isConfirmed: boolean } | undefined
  /** Members who have signed in with the provider. */
  readonly membersCount: number
}

function signInSettingsView({ site, organization, request }: Visit): SignInSettingsView {
  const { identityProviders, federatedIdentities, organizations } = site.store
  const stored = identityProviders.get(organization.id)
  const isOnly = organizations.single() !== undefined
  const query = isOnly ? '' : `?${new URLSearchParams({ organization: organization.name })}`
  return {
    provider: stored && {
      name: stored.name,
      issuer: stored.issuer,
      clientId: stored.clientId,
      scopes: stored.scopes.join(' '),
      nameClaim: stored.nameClaim,
      groupsClaim: stored.groupsClaim,
      groups: stored.groups,
      defaultRole: stored.defaultRole,
      changedAtMs: stored.changedAtMs,
      keyProblem: site.secrets.problem(stored.clientSecret.keyId),
    },
    redirectUri: `${request.origin}${callbackPath(organization.id)}`,
    signInUrl: `${request.origin}/sign-in${query}`,
    domain: isOnly ? undefined : { name: organization.domain, isConfirmed: isDomainConfirmed(organization) },
    membersCount: federatedIdentities.ofOrganization(organization.id).length,
  }
}

interface TestResult {
  readonly tone: 'good' | 'bad'
  readonly title: string
  readonly about: string
}

interface SignInSettingsProps {
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
function SignInSettingsPage(props: SignInSettingsProps) {
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
          <SecretText id="redirect-uri" value={redirectUri} />
        </div>
        {provider !== undefined && (
          <div>
            <p class="small muted">Where your members sign in</p>
            <SecretText id="sign-in-url" value={signInUrl} />
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

const PATH = '/sign-in-settings'
/** No page repeats its value. */
const SECRET_FIELD = 'clientSecret'

export const SIGN_IN_SETTINGS_ROUTES: readonly Route[] = [
  page(PATH, 'sign-in.read', (visit) => settingsPage(visit, EMPTY_FORM, 200)),
  // Asks for the confirmation first, because a secret would have to be typed again.
  form(`${PATH}/edit`, 'sign-in.set', () => redirect(PATH), { confirmed: true }),
  form(PATH, 'sign-in.set', save, { confirmed: true, secretFields: [SECRET_FIELD] }),
  form(`${PATH}/test`, 'sign-in.set', test, { confirmed: true }),
  form(
    `${PATH}/remove`,
    'sign-in.remove',
    async (visit) => {
      await visit.change('sign-in.remove', {})
      return redirect(`${PATH}?done=removed`)
    },
    { confirmed: true },
  ),
]

/** The rows of the table of groups. Empty rows are left out. */
function groupRows(fields: FormFields) {
  const roles = fields.all('role')
  return fields
    .all('group')
    .map((group, at) => ({ group: group.trim(), role: roles[at] ?? '' }))
    .filter(({ group }) => group !== '')
}

async function save(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const again = (errors: FormState['errors'], status: number): Answer =>
    settingsPage(visit, { values: fields, errors }, status)
  const parsed = signInSettings.safeParse({ ...fields.toObject(), groups: groupRows(fields) })
  if (!parsed.success) {
    const errors: Record<string, string> = {}
    for (const { path, message } of parsed.error.issues) errors[String(path[0] ?? '')] ??= message
    return again(errors, 400)
  }
  const settings = parsed.data
  const typed = fields.text(SECRET_FIELD).trim()
  if (Buffer.byteLength(typed) > CLIENT_SECRET_BYTES_MAX) {
    return again({ [SECRET_FIELD]: `Expected at most ${CLIENT_SECRET_BYTES_MAX} bytes` }, 400)
  }
  try {
    const client = clientOf(visit, settings, typed)
    if (client === undefined) return again({ [SECRET_FIELD]: 'Enter the client secret' }, 400)
    const errors = fields.text('unchecked') === 'yes' ? undefined : await clientErrors(visit, client)
    if (errors !== undefined) return again(errors, 400)
    const { secrets } = visit.site
    const clientSecret = typed === '' ? undefined : secrets.seal(typed, clientSecretContext(client))
    await visit.change('sign-in.set', { settings, clientSecret })
    return redirect(`${PATH}?done=set`)
  } catch (error) {
    if (isFault(error, 'SECRETS_KEY')) return again({ [SECRET_FIELD]: error.message }, 503)
    const { state, status } = refusedForm(error, fields)
    return settingsPage(visit, state, status)
  }
}

/** With the secret that was typed, else the stored one, which is for the same issuer only. */
function clientOf(
  { site, organization }: Visit,
  { name, issuer, clientId }: SignInSettings,
  typed: string,
): ProviderClient | undefined {
  const given = { organizationId: organization.id, name, issuer, clientId }
  if (typed !== '') return { ...given, clientSecret: typed }
  const stored = site.store.identityProviders.get(organization.id)
  if (stored === undefined || stored.issuer !== issuer) return undefined
  return { ...given, clientSecret: site.oidc.clientOf(stored).clientSecret }
}

/** Errors by field; undefined if the provider can be used. */
async function clientErrors({ site }: Visit, client: ProviderClient): Promise<FormState['errors'] | undefined> {
  try {
    const found = await site.oidc.check(client)
    return found === 'refused'
      ? { [SECRET_FIELD]: `${client.name} refused the client ID or the client secret` }
      : undefined
  } catch (error) {
    if (error instanceof ProviderError) return { issuer: error.message }
    throw error
  }
}

const RESULTS: Readonly<Record<ClientCheck, TestResult>> = {
  accepted: {
    tone: 'good',
    title: 'The connection works',
    about: 'The provider accepted the client ID and the secret.',
  },
  refused: {
    tone: 'bad',
    title: 'The provider refused the client ID or the client secret',
    about:
      'Compare the client ID with the one at the provider, and enter the secret again. Secrets expire at some providers.',
  },
  unknown: {
    tone: 'good',
    title: 'The provider answers',
    about: 'Whether the client secret is right shows only when somebody signs in.',
  },
}

/** Tests the stored settings. */
async function test(visit: Visit): Promise<Answer> {
  const { site, organization } = visit
  const stored = site.store.identityProviders.get(organization.id)
  if (stored === undefined) {
    const state: FormState = { values: EMPTY_FORM.values, errors: { '': 'Save the settings first' } }
    return settingsPage(visit, state, 409)
  }
  try {
    return settingsPage(visit, EMPTY_FORM, 200, RESULTS[await site.oidc.check(site.oidc.clientOf(stored))])
  } catch (error) {
    if (!(error instanceof ProviderError) && !isFault(error, 'SECRETS_KEY')) throw error
    const title = 'The provider cannot be used'
    return settingsPage(visit, EMPTY_FORM, 200, { tone: 'bad', title, about: error.message })
  }
}

function settingsPage(visit: Visit, state: FormState, status: number, result?: TestResult): Answer {
  const { site, nowMs, request } = visit
  const content = SignInSettingsPage({
    view: site.store.environment.read(() => signInSettingsView(visit)),
    form: state,
    rows: groupRows(state.values),
    nowMs,
    isOpen: isConfirmed(visit),
    result,
    done: request.query.get('done') ?? '',
  })
  return visit.page('Sign-in', PATH, content, { status })
}
