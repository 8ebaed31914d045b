import { isSignedIn, setUp } from './accounts.ts'
import { Authenticator, type CreationOptions, type Deviation, type RequestOptions } from './authenticator.ts'
import { type Browser, serveConsole, type TestConsole } from './console.ts'
import type { Answer } from './https.ts'

export const ORIGIN = 'https://posture.example'

/** The console at a host name, where passkeys work. */
export function servePasskeys(t: Parameters<typeof serveConsole>[0]): Promise<TestConsole> {
  return serveConsole(t, { origin: ORIGIN })
}

/** The options of the ceremony that a page asks for. */
export function optionsIn<T>(page: Answer): T {
  const [, escaped] = /data-options="([^"]*)"/.exec(page.text) ?? []
  if (escaped === undefined) throw new Error(`no options of a passkey in ${page.status} ${page.text}`)
  return JSON.parse(escaped.replaceAll('&quot;', '"').replaceAll('&amp;', '&')) as T
}

/** Registers a passkey for the user of a browser. Returns the answer to the form. */
export async function addPasskey(
  browser: Browser,
  authenticator: Authenticator,
  deviation: Deviation = {},
  name = 'laptop',
): Promise<Answer> {
  const options = optionsIn<CreationOptions>(await browser.post('/account/passkeys/new'))
  return browser.post('/account/passkeys', { name, passkey: authenticator.create(options, deviation) })
}

/** A user with a passkey: the browser with which the user added it, and the authenticator. */
export async function withPasskey(
  site: TestConsole,
  name = 'ada@acme.example',
  options: { readonly isSynced?: boolean } = {},
): Promise<{ readonly owner: Browser; readonly authenticator: Authenticator }> {
  const owner = await setUp(site, name)
  const authenticator = new Authenticator(ORIGIN, options)
  const answer = await addPasskey(owner, authenticator)
  if (answer.status !== 303) throw new Error(answer.text)
  return { owner, authenticator }
}

export async function signInOptions(browser: Browser): Promise<RequestOptions> {
  return (await browser.get('/sign-in/passkey')).body as RequestOptions
}

/** Signs in by passkey, in a browser that need not be known. */
export async function signInByPasskey(
  browser: Browser,
  authenticator: Authenticator,
  deviation: Deviation = {},
  to = '/platforms',
): Promise<Answer> {
  return browser.post('/sign-in/passkey', { to, passkey: authenticator.get(await signInOptions(browser), deviation) })
}

/** Whether a new browser can sign in with the passkey. */
export async function opens(site: TestConsole, authenticator: Authenticator): Promise<boolean> {
  const browser = site.browser()
  await signInByPasskey(browser, authenticator)
  return isSignedIn(browser)
}
