import { type SignInSettings, signInSettings } from '../../engine/admin/sign-in.ts'
import { isFault } from '../../engine/kernel/process/error-codes.ts'
import { CLIENT_SECRET_BYTES_MAX } from '../../engine/limits.ts'
import { clientSecretContext } from '../../engine/store/identity-providers.ts'
import { isConfirmed } from '../confirmation.ts'
import { EMPTY_FORM, type FormFields, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { SignInSettingsPage, type TestResult } from '../pages/sign-in-settings.tsx'
import type { ClientCheck, ProviderClient } from '../sign-in/oidc-client.ts'
import { ProviderError } from '../sign-in/provider-http.ts'
import { signInSettingsView } from '../views/sign-in-settings.ts'
import { refusedForm } from './refused-form.ts'

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
