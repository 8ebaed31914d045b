import { callbackPath } from '../../console/sign-in/oidc-flow.ts'
import { Administration } from '../../engine/admin/administration.ts'
import { type SignInSettings, signInSettings } from '../../engine/admin/sign-in.ts'
import { SecretsKey, secretsKeyFile } from '../../engine/kernel/process/secrets-key.ts'
import { clientSecretContext } from '../../engine/store/members.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import { type Browser, type ConsoleOptions, serveConsole, type TestConsole } from './console.ts'
import type { Answer } from './https.ts'
import { type OpenidProvider, openidProvider, type ProviderBrowser, type ProviderOptions } from './openid-provider.ts'

/** A provider sends the browser back from another site: without SameSite=Strict cookies. */
const FROM_PROVIDER = { 'sec-fetch-site': 'cross-site' }

export const ADA = {
  subject: 'ada',
  claims: { email: 'ada@acme.example', email_verified: true, groups: ['it', 'security'] },
}
export const BOB = { subject: 'bob', claims: { email: 'bob@acme.example', email_verified: true, groups: ['staff'] } }

export interface OidcSite extends TestConsole {
  readonly provider: OpenidProvider
}

export function redirectUriOf({ origin, organization }: Pick<TestConsole, 'origin' | 'organization'>): string {
  return origin + callbackPath(organization.id)
}

/** A console and a provider, at which Ada is signed in. */
export async function serveBoth(
  t: Parameters<typeof serveConsole>[0],
  options: ConsoleOptions & Partial<ProviderOptions> = {},
): Promise<OidcSite> {
  const site = await serveConsole(t, options)
  // ID tokens have the time of this machine.
  site.clock.set(Date.now())
  const provider = await openidProvider(t, { ...options, redirectUri: redirectUriOf(site) })
  provider.account = ADA
  setProvider(site, provider)
  return { ...site, provider }
}

const GROUPS = [
  { group: 'security', role: 'admin' },
  { group: 'it', role: 'member' },
]

export function setProvider(
  site: TestConsole,
  { issuer, clientId, clientSecret }: Pick<OpenidProvider, 'issuer' | 'clientId' | 'clientSecret'>,
  more: Partial<Record<keyof SignInSettings, unknown>> = {},
  organization: Organization = site.organization,
): void {
  const settings = signInSettings.parse({
    ...{ name: 'Okta', issuer, clientId, scopes: 'openid email groups', nameClaim: 'email', groupsClaim: 'groups' },
    ...{ groups: GROUPS, defaultRole: 'none' },
    ...more,
  })
  const context = clientSecretContext({ organizationId: organization.id, issuer: settings.issuer })
  const sealed = new SecretsKey(secretsKeyFile('', site.directory)).seal(clientSecret, context)
  new Administration(site.store, site.clock).signIn.set(organization, settings, sealed)
}

/** The address at the provider to which a page sends the browser. */
export function addressIn({ text, status }: Answer): string {
  const [, address] = /http-equiv="refresh" content="0;url=([^"]+)"/.exec(text) ?? []
  if (address === undefined) throw new Error(`${status} ${text}`)
  return address.replaceAll('&amp;', '&')
}

export async function start(browser: Browser, fields: Record<string, string> = {}): Promise<string> {
  return addressIn(await browser.post('/sign-in/provider', fields))
}

/** Strict cookies are missing in the request that the provider causes. */
export function comeBack(browser: Browser, path: string): Promise<Answer> {
  const flow = browser.cookies.get('__Host-oidc')
  return browser.get(path, { ...FROM_PROVIDER, cookie: flow === undefined ? '' : `__Host-oidc=${flow}` })
}

export async function signIn(
  { provider, browser: newBrowser }: OidcSite,
  options: { browser?: Browser; atProvider?: ProviderBrowser; fields?: Record<string, string> } = {},
): Promise<{ browser: Browser; answer: Answer; callback: string }> {
  const { browser = newBrowser(), atProvider = provider.browser(), fields = {} } = options
  const callback = await atProvider.signIn(await start(browser, fields))
  return { browser, callback, answer: await comeBack(browser, callback) }
}

export const isSignedIn = async (browser: Browser): Promise<boolean> => (await browser.get('/platforms')).status === 200
