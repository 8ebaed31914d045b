import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import puppeteer, { type Browser, type Page } from 'puppeteer-core'

/** A real browser that reports what a page must not cause. */
export interface WebBrowser {
  readonly browser: Browser
  readonly page: Page
  /** Opens a page that shares no cookies with the others. */
  openPage(): Promise<Page>
  /**
   * Messages of the console of errors, exceptions, violations of the content security policy and
   * failed requests.
   */
  readonly faults: string[]
}

export const WEB_BROWSERS = ['chrome', 'firefox'] as const
export type WebBrowserName = (typeof WEB_BROWSERS)[number]

const PROGRAMS: Readonly<Record<WebBrowserName, string>> = {
  chrome: '/usr/bin/chromium',
  firefox: '/usr/bin/firefox-esr',
}
/** Nothing but the console is asked for anything. */
const CHROMIUM_WORDS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync'],
]

/** Debian's Chromium or Firefox ESR with an empty profile, until the test ends. */
export async function openWebBrowser(
  t: { teardown(work: () => unknown): void },
  name: WebBrowserName,
): Promise<WebBrowser> {
  const profile = mkdtempSync(join(tmpdir(), 'browser-'))
  const browser = await puppeteer.launch({
    browser: name,
    executablePath: PROGRAMS[name],
    headless: true,
    acceptInsecureCerts: true,
    userDataDir: profile,
    protocolTimeout: 120_000,
    ...(name === 'chrome' ? { args: CHROMIUM_WORDS } : {}),
  })
  t.teardown(async () => {
    await browser.close()
    rmSync(profile, { recursive: true, force: true })
  })
  const faults: string[] = []
  const page = watched(await browser.newPage(), faults)
  return {
    ...{ browser, page, faults },
    openPage: async () => watched(await (await browser.createBrowserContext()).newPage(), faults),
  }
}

function watched(page: Page, faults: string[]): Page {
  page.setDefaultTimeout(60_000)
  page.on('console', (message) => {
    if (message.type() === 'error' || /Content.Security.Policy/i.test(message.text())) faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('requestfailed', (request) => {
    const fault = `${request.url()}: ${request.failure()?.errorText}`
    // Firefox abandons the icon of a page that leads to the next one at once.
    if (!/icon\..*: NS_BINDING_ABORTED$/.test(fault)) faults.push(fault)
  })
  return page
}
