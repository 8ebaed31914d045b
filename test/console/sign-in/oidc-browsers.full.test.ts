import { setTimeout as later } from 'node:timers/promises'
import type { Page } from 'puppeteer-core'
import t from 'tap'
import { callbackPath } from '../../../console/sign-in/oidc-flow.ts'
import { serveConsole } from '../../support/console.ts'
import { openidProvider } from '../../support/openid-provider.ts'
import { until } from '../../support/wait.ts'
import { openWebBrowser, WEB_BROWSERS } from '../../support/web-browser.ts'
import { barriers, submit } from '../../support/web-page.ts'

const PATH = '/sign-in-settings'
const SIZES = [
  { width: 1280, height: 1000 },
  { width: 390, height: 844 },
]
/** A folder for pictures of the pages, for people who change them. */
const PICTURES = process.env['CONSOLE_PICTURES'] ?? ''

/** Several pages follow each other by themselves, until one has this heading. */
async function arrive(page: Page, heading: string): Promise<void> {
  await until(`no page ${heading}`, async () => {
    const found = await page.$eval('h1', (element) => element.textContent ?? '').catch(() => '')
    if (found === heading) return true
    if (found !== '' && !/^Opening/.test(found)) throw new Error(`${found}: ${page.url()} ${await page.content()}`)
    return later(100, false)
  })
}

for (const name of WEB_BROWSERS) {
  t.test(`${name}: set up a provider, sign in with it, and confirm a change there`, async (t) => {
    const site = await serveConsole(t)
    const { store, origin, organization } = site
    site.clock.set(Date.now())
    const provider = await openidProvider(t, { redirectUri: origin + callbackPath(organization.id) })
    provider.account = {
      subject: 'ada',
      claims: { email: 'ada@acme.example', email_verified: true, groups: ['security'] },
    }
    const { page, faults } = await openWebBrowser(t, name)
    const look = async (path: string, picture: string, open = async (): Promise<void> => {}): Promise<void> => {
      if (name !== 'chrome') return
      for (const viewport of SIZES) {
        for (const theme of ['light', 'dark']) {
          await page.setViewport(viewport)
          await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }])
          await page.goto(origin + path)
          await open()
          t.same(await barriers(page), [], `${picture} ${theme} ${viewport.width}`)
          const width = await page.evaluate('document.documentElement.scrollWidth')
          t.ok(Number(width) <= viewport.width, `${picture} does not scroll sideways: ${width}`)
          if (PICTURES === '') continue
          const file = `${PICTURES}/${picture}-${theme}-${viewport.width}.png` as const
          await page.screenshot({ path: file as `${string}.png`, fullPage: true })
        }
      }
      await page.setViewport(SIZES[0] ?? null)
    }
    const olga = site.signIn('olga@acme.example', 'owner')
    const session = { name: '__Host-session', value: String(olga.cookies.get('__Host-session')) }
    const cookie = { ...session, domain: 'localhost', path: '/', secure: true, httpOnly: true }
    await page.browserContext().setCookie({ ...cookie, sameSite: 'Strict' })
    await look(PATH, 'settings-new')
    await page.goto(origin + PATH)
    await page.type('#name', 'Okta')
    await page.type('#issuer', provider.issuer)
    await page.type('#clientId', provider.clientId)
    await page.type('#clientSecret', provider.clientSecret)
    await page.type('input[name="group"]', 'security')
    await page.select('select[name="role"]', 'admin')
    await page.$eval('#scopes', (input) => {
      const details = input.closest('details')
      if (details !== null) details.open = true
      ;(input as HTMLInputElement).value = 'openid email groups'
    })
    await submit(page, 'Save')
    t.match(await page.$eval('.notice', (element) => element.textContent), /The settings are saved/)
    await submit(page, 'Test connection')
    t.match(await page.$eval('.notice', (element) => element.textContent), /The connection works/)
    await look(PATH, 'settings-open')
    await look('/account', 'account')
    store.environment.write(() => {
      for (const each of store.sessions.all()) store.sessions.put({ ...each, confirmedAtMs: 0 })
    })
    await look(PATH, 'settings')
    await page.goto(origin)
    await submit(page, 'Sign out')
    await look('/sign-in', 'sign-in')
    await page.goto(`${origin}/platforms`)
    await submit(page, 'Sign in with Okta')
    await arrive(page, 'Platforms')
    t.equal(page.url(), `${origin}/platforms`, 'the requested page')
    t.match(store.members.get({ organizationId: organization.id, name: 'ada@acme.example' }), { role: 'admin' })
    store.environment.write(() => {
      for (const each of store.sessions.all()) store.sessions.put({ ...each, confirmedAtMs: 0 })
    })
    await page.goto(`${origin}/api-keys`)
    await page.type('#label', 'grafana')
    await page.click('input[value="scores:read"]')
    await submit(page, 'Create Key')
    await arrive(page, 'Confirm your identity')
    if (name === 'chrome') t.same(await barriers(page), [], 'confirm')
    if (PICTURES !== '' && name === 'chrome') await page.screenshot({ path: `${PICTURES}/confirm.png` })
    await submit(page, 'Confirm with Okta')
    await arrive(page, 'You are confirmed')
    if (PICTURES !== '' && name === 'chrome') await page.screenshot({ path: `${PICTURES}/confirmed.png` })
    await submit(page, 'Continue')
    t.match(await page.$eval('main', (element) => element.textContent), /Copy the key “grafana” now/)
    t.same(faults, [])
  })
}
