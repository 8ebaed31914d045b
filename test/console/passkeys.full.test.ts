import { join } from 'node:path'
import type { CDPSession, Page } from 'puppeteer-core'
import t from 'tap'
import { Store } from '../../engine/store/store.ts'
import { PASSWORD } from '../support/accounts.ts'
import { freePort } from '../support/free-port.ts'
import { admin, startService } from '../support/programs.ts'
import { until } from '../support/wait.ts'
import { openWebBrowser } from '../support/web-browser.ts'

const NAME = 'ada@acme.example'

const heading = (page: Page): Promise<string> => page.$eval('h1', (element) => element.textContent ?? '')

/** Clicks, and waits for the next page. */
async function follow(page: Page, selector: string): Promise<void> {
  // The button that confirms appears a moment after the first one was pressed.
  await until(selector, async () => (await page.$(selector))?.isVisible())
  await Promise.all([page.waitForNavigation(), page.click(selector)])
}

/** Chromium's authenticator in software, with a user who always agrees. */
async function addAuthenticator(page: Page): Promise<{ readonly cdp: CDPSession; readonly authenticatorId: string }> {
  const cdp = await page.createCDPSession()
  await cdp.send('WebAuthn.enable')
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return { cdp, authenticatorId }
}

t.test('Chromium adds a passkey, signs in with it and confirms a change', async (t) => {
  const directory = join(t.testdir(), 'service')
  const data = ['--data-dir', directory]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const port = await freePort()
  const origin = `https://localhost:${port}`
  const service = await startService(directory, [
    ...['--ingest-port', 'off', '--console-port', `${port}`, '--console-origin', origin],
  ])
  t.teardown(async () => {
    service.child.kill('SIGTERM')
    await service.ended
  })
  const [link] = await admin('setup-link', '--console-origin', origin, ...data)
  const { page, faults } = await openWebBrowser(t, 'chrome')
  const { cdp, authenticatorId } = await addAuthenticator(page)
  const credentials = async () => (await cdp.send('WebAuthn.getCredentials', { authenticatorId })).credentials

  await page.goto(String(link?.['url']))
  await follow(page, 'form[action="/setup"] button')
  for (const [field, text] of [
    ['name', NAME],
    ['password', PASSWORD],
    ['repeated', PASSWORD],
  ]) {
    await page.type(`#${field}`, String(text))
  }
  await follow(page, 'form[action="/setup/account"] button.first')
  await page.goto(`${origin}/account`)
  await follow(page, 'form[action="/account/passkeys/new"] button')
  t.match(await heading(page), 'Add a passkey')
  await page.$eval('#name', (field) => {
    ;(field as HTMLInputElement).value = 'virtual'
  })
  await follow(page, 'form[data-passkey] button.first')
  t.match(page.url(), /\/account\?done=passkey$/)
  t.match(await page.$eval('#passkeys', (table) => table.textContent ?? ''), 'virtual')
  t.match(await credentials(), [{ isResidentCredential: true, rpId: 'localhost', userName: NAME }])

  // The name field offers the passkey, and the user of the authenticator accepts at once.
  const overview = page.waitForResponse((response) => new URL(response.url()).pathname === '/overview')
  await follow(page, '.rail form[action="/sign-out"] button')
  await overview
  await page.waitForFunction(() => document.querySelector('h1')?.textContent === 'Overview')

  // Without the offer in the name field: the button.
  await page.evaluateOnNewDocument(() => {
    PublicKeyCredential.isConditionalMediationAvailable = async () => false
  })
  await follow(page, '.rail form[action="/sign-out"] button')
  t.match(await heading(page), 'Sign in')
  await follow(page, 'form[action="/sign-in/passkey"] button')
  t.match(await heading(page), 'Overview')

  const store = new Store(directory)
  store.environment.write(() => {
    for (const session of store.sessions.all()) store.sessions.put({ ...session, confirmedAtMs: 0 })
  })
  await store.close()
  await page.goto(`${origin}/monitoring-tokens`)
  await page.type('#label', 'fw-01')
  await follow(page, 'form[action="/monitoring-tokens"] button.first')
  t.match(await heading(page), 'Confirm your identity')
  await follow(page, 'form[data-passkey] button')
  t.match(await page.$eval('main', (element) => element.textContent ?? ''), /svc_mt_[0-9a-f]{48}/)

  await page.goto(`${origin}/account`)
  await page.click('#passkeys details.confirm summary')
  await follow(page, '#passkeys form[action$="/remove"] button')
  t.match(page.url(), /\/account\?done=passkey-removed$/)
  t.equal(await page.$('#passkeys'), null)
  t.same(faults, [])
})
