import type { Page } from 'puppeteer-core'
import type { Test } from 'tap'
import type { AskServer } from './https.ts'
import { admin } from './programs.ts'
import { type ServiceSite, startSite } from './service-site.ts'
import { openWebBrowser, type WebBrowser, type WebBrowserName } from './web-browser.ts'
import { signUp } from './web-page.ts'

/** A new service, and a browser in which its first owner signed in. */
export interface BrowserSite extends ServiceSite {
  readonly web: WebBrowser
  readonly page: Page
  readonly api: AskServer
}

/** The URL in the output of a command that makes a link. */
export async function linkOf(...command: string[]): Promise<string> {
  return String((await admin(...command))[0]?.['url'])
}

export async function startBrowserSite(t: Test, name: WebBrowserName): Promise<BrowserSite> {
  const site = await startSite(t)
  const web = await openWebBrowser(t, name)
  await signUp(web.page, await site.setupLink())
  return { ...site, web, page: web.page, api: site.client(site.service.apiPort) }
}
