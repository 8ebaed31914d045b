import { Administration } from '../../engine/admin/administration.ts'
import type { Browser, TestConsole } from './console.ts'

export const PASSWORD = 'correct horse battery staple'

/** An owner who set up an account with a link, and is signed in with this password. */
export async function setUp(site: TestConsole, name = 'ada@acme.example'): Promise<Browser> {
  const { secret } = new Administration(site.store, site.clock).accountLinks.setup(site.organization)
  const browser = site.browser()
  const answer = await browser.post('/setup/account', { secret, name, password: PASSWORD, repeated: PASSWORD })
  if (answer.status !== 303) throw new Error(answer.text)
  return browser
}

/** Whether the browser has a session. */
export async function isSignedIn(browser: Browser): Promise<boolean> {
  return (await browser.get('/platforms')).status === 200
}
