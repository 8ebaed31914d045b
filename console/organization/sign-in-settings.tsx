import { SIGN_IN_DEFAULTS, type SignInSettings, signInSettings } from '../../engine/admin/sign-in.ts'
import { isFault } from '../../engine/kernel/process/error-codes.ts'
import { CLIENT_SECRET_BYTES_MAX, IDENTITY_PROVIDER_GROUPS_MAX } from '../../engine/limits.ts'
import { clientSecretContext, type IdentityProvider, ROLES } from '../../engine/store/members.ts'
import { isDomainConfirmed } from '../../engine/store/organizations.ts'
import { isConfirmed } from '../confirmation.ts'
import { ActionButton, Field, FieldError, Form, Select } from '../design/form.tsx'
import { Card, countText, Facts, KeyProblem, Notice, PageHead, SecretText, Time } from '../design/parts.tsx'
import { EMPTY_FORM, type FormFields, type FormState, RejectedForm, validated } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { changeForm, form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import type { ClientCheck, ProviderClient } from '../sign-in/oidc-client.ts'
import { callbackPath } from '../sign-in/oidc-flow.ts'
import { ProviderError } from '../sign-in/provider-http.ts'

const PATH = '/sign-in-settings'
/** No page repeats its value. */
const SECRET_FIELD = 'clientSecret'

/** The addresses and the provider of the organization. */
function signInView({ site, organization, request }: Visit) {
  const { identityProviders, organizations } = site.store
  const provider = identityProviders.get(organization.id)
  const isOnly = organizations.single() !== undefined
  const query = isOnly ? '' : `?${new URLSearchParams({ organization: organization.name })}`
  return {
    provider,
    /** The address that the provider must know. */
    redirectUri: `${request.origin}${callbackPath(organization.id)}`,
    /** The address of the page for sign-in, with the organization filled in. */
    signInUrl: `${request.origin}/sign-in${query}`,
    isOnly,
  }
}

interface TestResult {
  readonly tone: 'good' | 'bad'
  readonly title: string
  readonly about: string
}

interface SignInSettingsProps {
  readonly visit: Visit
  readonly view: ReturnType<typeof signInView>
  readonly form: FormState
}

const DONE: Readonly<Record<string, string>> = {
  set: 'The settings are saved. They apply to the next sign-in',
  removed: 'The identity provider is removed, and its sessions have ended',
}
const EMPTY_ROWS = 3

/** The identity provider of the organization. */
function SignInSettingsPage(props: SignInSettingsProps & { readonly result: TestResult | undefined }) {
  const { visit, view, form, result } = props
  const { provider } = view
  const isOpen = isConfirmed(visit)
  return (
    <>
      <PageHead
        title="Sign-in"
        about="Members sign in with the identity provider of your organization (OpenID Connect)"
      >
        {provider !== undefined && <ActionButton action={`${PATH}/test`}>Test connection</ActionButton>}
      </PageHead>
      {result !== undefined && (
        <Notice tone={result.tone} title={result.title}>
          <p>{result.about}</p>
        </Notice>
      )}
      <KeyProblem problem={provider === undefined ? '' : visit.site.secrets.problem(provider.clientSecret.keyId)} />
      <Addresses {...props} />
      {provider !== undefined && !isOpen && <Summary visit={visit} provider={provider} />}
      {isOpen ? <SettingsForm {...props} /> : <Open isNew={provider === undefined} form={form} />}
      {provider !== undefined && <Remove name={provider.name} />}
    </>
  )
}

function Addresses({ visit, view: { redirectUri, signInUrl, isOnly, provider } }: SignInSettingsProps) {
  const { organization } = visit
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
            {!isOnly && (
              <p class="small muted">
                {isDomainConfirmed(organization)
                  ? `Or they type the organization's name, or an e-mail address of ${organization.domain}, on the sign-in page.`
                  : `Or they type the organization's name on the sign-in page. For e-mail addresses of ${organization.domain}, the operator of the service must confirm the domain.`}
              </p>
            )}
          </div>
        )}
      </div>
    </Card>
  )
}

function Summary({ visit, provider }: { readonly visit: Visit; readonly provider: IdentityProvider }) {
  const { organization, site, nowMs } = visit
  const members = site.store.federatedIdentities.ofOrganization(organization.id).length
  return (
    <Card title={provider.name}>
      <Facts
        rows={[
          ['Name', provider.name],
          ['Issuer', <span class="mono">{provider.issuer}</span>],
          ['Client ID', <span class="mono">{provider.clientId}</span>],
          ['Client secret', 'stored, encrypted'],
          ['Scopes', provider.scopes.join(' ')],
          ['Claims', `name: ${provider.nameClaim}, groups: ${provider.groupsClaim}`],
          ['Groups', provider.groups.map(({ group, role }) => `${group}: ${role}`).join(', ') || 'none'],
          ['Everyone else', provider.defaultRole === 'none' ? 'no access' : provider.defaultRole],
          ['Members', `${countText(members)} signed in with it so far`],
          ['Changed', <Time ms={provider.changedAtMs} nowMs={nowMs} />],
        ]}
      />
    </Card>
  )
}

/** The form opens after a confirmation, so that it is not asked for when a secret is typed. */
function Open({ isNew, form }: { readonly isNew: boolean; readonly form: FormState }) {
  const open = (
    <Form action={`${PATH}/edit`} form={form} submit={isNew ? 'Set up sign-in' : 'Change settings'}>
      {isNew && (
        <p class="muted">
          Members sign in with passwords now. Register this console at Entra ID, Okta, Keycloak, Google or another
          OpenID provider, then enter its settings here.
        </p>
      )}
    </Form>
  )
  return isNew ? <Card title="No identity provider yet">{open}</Card> : open
}

function SettingsForm(props: SignInSettingsProps) {
  const { view, form } = props
  const { provider } = view
  const isNew = provider === undefined
  return (
    <Card title={isNew ? 'Set up an identity provider' : 'Settings'}>
      <Form action={PATH} form={form} submit="Save">
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
              value={provider?.scopes.join(' ') ?? SIGN_IN_DEFAULTS.scopes}
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
      </Form>
    </Card>
  )
}

/** One row per group, and empty rows for more. */
function Groups({ view, form }: SignInSettingsProps) {
  const rows = groupRows(form.values)
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
      <form method="post" action={`${PATH}/remove`}>
        <p class="small muted">Its sessions end. Members without a password cannot sign in any more.</p>
        <button class="danger" type="submit">
          Confirm: remove {name}
        </button>
      </form>
    </details>
  )
}

const OPTIONS = { confirmed: true, again: (visit: Visit, form: FormState): Answer => settingsPage(visit, form) }

export const SIGN_IN_SETTINGS_ROUTES: readonly Route[] = [
  page(PATH, 'sign-in.read', (visit) => settingsPage(visit, EMPTY_FORM)),
  // Asks for the confirmation first, because a secret would have to be typed again.
  form(`${PATH}/edit`, 'sign-in.set', () => redirect(PATH), { confirmed: true }),
  form(PATH, 'sign-in.set', save, { ...OPTIONS, secretFields: [SECRET_FIELD] }),
  form(`${PATH}/test`, 'sign-in.set', test, OPTIONS),
  changeForm(`${PATH}/remove`, 'sign-in.remove', () => ({}), `${PATH}?done=removed`, { confirmed: true }),
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
  const settings = validated(signInSettings, { ...fields.toObject(), groups: groupRows(fields) })
  const typed = fields.text(SECRET_FIELD).trim()
  if (Buffer.byteLength(typed) > CLIENT_SECRET_BYTES_MAX) {
    throw new RejectedForm({ [SECRET_FIELD]: `Expected at most ${CLIENT_SECRET_BYTES_MAX} bytes` })
  }
  const client = clientOf(visit, settings, typed)
  if (fields.text('unchecked') !== 'yes') await checkClient(visit, client)
  const clientSecret = typed === '' ? undefined : visit.site.secrets.seal(typed, clientSecretContext(client))
  await visit.change('sign-in.set', { settings, clientSecret })
  return redirect(`${PATH}?done=set`)
}

/** With the secret that was typed, else the stored one, which is for the same issuer only. */
function clientOf(
  { site, organization }: Visit,
  { name, issuer, clientId }: SignInSettings,
  typed: string,
): ProviderClient {
  const given = { organizationId: organization.id, name, issuer, clientId }
  if (typed !== '') return { ...given, clientSecret: typed }
  const stored = site.store.identityProviders.get(organization.id)
  if (stored?.issuer !== issuer) throw new RejectedForm({ [SECRET_FIELD]: 'Enter the client secret' })
  return { ...given, clientSecret: site.oidc.clientOf(stored).clientSecret }
}

/** @throws RejectedForm if the provider cannot be used */
async function checkClient({ site }: Visit, client: ProviderClient): Promise<void> {
  const found = await site.oidc.check(client).catch((error: unknown) => {
    throw error instanceof ProviderError ? new RejectedForm({ issuer: error.message }) : error
  })
  if (found === 'refused') {
    throw new RejectedForm({ [SECRET_FIELD]: `${client.name} refused the client ID or the client secret` })
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
  if (stored === undefined) throw new RejectedForm({ '': 'Save the settings first' }, 409)
  try {
    return settingsPage(visit, EMPTY_FORM, RESULTS[await site.oidc.check(site.oidc.clientOf(stored))])
  } catch (error) {
    if (!(error instanceof ProviderError) && !isFault(error, 'SECRETS_KEY')) throw error
    const title = 'The provider cannot be used'
    return settingsPage(visit, EMPTY_FORM, { tone: 'bad', title, about: error.message })
  }
}

function settingsPage(visit: Visit, form: FormState, result?: TestResult): Answer {
  const view = visit.site.store.environment.read(() => signInView(visit))
  return visit.page('Sign-in', PATH, SignInSettingsPage({ visit, view, form, result }), { form, done: DONE })
}
