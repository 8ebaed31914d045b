import { join } from 'node:path'
import type { Page } from 'puppeteer-core'
import t, { type Test } from 'tap'
import { type Receiver, webhookReceiver } from '../support/alerts.ts'
import { type AskServer, httpsClient } from '../support/https.ts'
import { admin, startService } from '../support/programs.ts'
import { until } from '../support/wait.ts'
import { openWebBrowser, WEB_BROWSERS, type WebBrowser, type WebBrowserName } from '../support/web-browser.ts'
import { fill, follow, heading, submit, textOf } from '../support/web-page.ts'

const NAME = 'ada@acme.example'
const GUEST = 'vic@acme.example'
const PASSWORD = 'violet harbor 71 lanterns'
const GUEST_PASSWORD = 'amber quarry 19 pelicans'
/** Two platforms of the registry. */
const NAMES = ['chat.deepseek.com', 'claude.ai']

/** A new service, the browser of its first owner, and what the flows made so far. */
interface Site {
  readonly web: WebBrowser
  readonly page: Page
  readonly origin: string
  readonly data: readonly string[]
  readonly ingest: AskServer
  /** Requests without a browser to the port of the console. */
  readonly console: AskServer
  readonly receiver: Receiver
  readonly api: (path: string, key: string) => Promise<{ readonly status: number; readonly body: unknown }>
}

async function startSite(t: Test, name: WebBrowserName): Promise<Site> {
  const directory = join(t.testdir(), 'service')
  const data = ['--data-dir', directory]
  const service = await startService(directory, ['--outbound-networks', '127.0.0.0/8'])
  const receiver = await webhookReceiver(t)
  const certificate = join(directory, 'tls/certificate.pem')
  const api = httpsClient(service.apiPort, certificate)
  const ingest = httpsClient(service.ingestPort, certificate)
  const consoleClient = httpsClient(service.consolePort, certificate)
  t.teardown(async () => {
    await api.close()
    await ingest.close()
    await consoleClient.close()
    service.child.kill('SIGTERM')
    await service.ended
  })
  const web = await openWebBrowser(t, name)
  return {
    ...{ web, page: web.page, data, ingest: ingest.ask, console: consoleClient.ask, receiver },
    origin: `https://localhost:${service.consolePort}`,
    api: (path, key) => api.ask(`/api/v1/${path}`, { headers: { 'x-api-key': key } }),
  }
}

const linkOf = async (...command: string[]): Promise<string> => String((await admin(...command))[0]?.['url'])

/** The secret that the page shows, and shows only this time. */
async function shownSecret(t: Test, page: Page): Promise<string> {
  const secret = await page.$eval('#secret', (element) => element.textContent ?? '')
  await page.goto(page.url())
  t.notMatch(await page.content(), secret, 'a secret is shown once')
  return secret
}

async function setUp(t: Test, { page, origin, data }: Site): Promise<void> {
  await page.goto(`${origin}/platforms`)
  t.match(await heading(page), 'Sign in')
  await page.goto(await linkOf('setup-link', '--console-origin', origin, ...data))
  t.equal(new URL(page.url()).hash, '', 'the secret is no longer in the address')
  await submit(page, 'Continue')
  t.match(await heading(page), 'Become the first owner')
  const password = { password: PASSWORD, repeated: PASSWORD }
  await fill(page, { organization: 'Acme', domain: 'acme.example', name: NAME, ...password })
  await submit(page, 'Continue')
  t.match(await page.title(), 'Acme')
}

/** From the token to the first finding. verification.full.test.ts has a real collector. */
async function firstFinding(t: Test, { page, origin, ingest }: Site): Promise<void> {
  await page.goto(`${origin}/monitoring-tokens`)
  await fill(page, { label: 'firewall' })
  await submit(page, 'Generate Token')
  const token = await shownSecret(t, page)
  t.match(token, /^svc_mt_[0-9a-f]{48}$/)
  const lines = NAMES.map((name, at) => eventOf(name, at))
  const sent = await ingest('/ingest/v1/events', {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ events: lines }),
  })
  t.match(sent.body, { accepted: NAMES.length }, sent.text)
  await page.goto(`${origin}/overview`)
  await submit(page, 'Scan now')
  await until('the first findings', async () => {
    await page.goto(`${origin}/overview`)
    return /DeepSeek/.test(await textOf(page))
  })
  t.match(await textOf(page), /Waiting for a decision/)
  await page.goto(`${origin}/sources`)
  t.match(await textOf(page), /firewall/)
  await page.goto(`${origin}/monitoring-tokens`)
  await revoke(page, 'firewall')
  t.match(await textOf(page), /The token is revoked/)
}

/** Reveals the button that confirms, and clicks it. */
async function revoke(page: Page, label: string): Promise<void> {
  await page.click(`summary[aria-label="Revoke ${label}"]`)
  await submit(page, `Confirm: revoke ${label} permanently`)
}

function eventOf(name: string, at: number): object {
  const now = new Date().toISOString()
  const id = `0011223344556677${String(at + 1).padStart(16, '0')}`
  return { id, name, client: '192.0.2.7', method: 'dns', first_seen: now, last_seen: now, count: 3 }
}

/** Creates a key, uses it, and returns a second one after the first is revoked. */
async function keyLife(t: Test, { page, origin, api }: Site): Promise<string> {
  const create = async (label: string): Promise<string> => {
    await page.goto(`${origin}/api-keys`)
    await fill(page, { label })
    for (const box of await page.$$('input[name=scopes]')) {
      if (!(await box.evaluate((element) => (element as HTMLInputElement).checked))) await box.click()
    }
    await submit(page, 'Create Key')
    return shownSecret(t, page)
  }
  const first = await create('dashboard')
  t.equal((await api('discovery', first)).status, 200)
  await page.goto(`${origin}/api-keys`)
  await revoke(page, 'dashboard')
  t.match(await textOf(page), /The key is revoked/)
  t.equal((await api('discovery', first)).status, 401)
  return create('report')
}

interface Discovery {
  readonly platforms: readonly { readonly platform_name: string; readonly metadata: { readonly approved: boolean } }[]
}

async function approve(t: Test, { page, origin, api }: Site, key: string): Promise<void> {
  const isApproved = async (): Promise<boolean | undefined> => {
    const { platforms } = (await api('discovery', key)).body as Discovery
    return platforms.find(({ platform_name: name }) => name === 'DeepSeek')?.metadata.approved
  }
  t.equal(await isApproved(), false)
  await page.goto(`${origin}/platforms`)
  await follow(page, 'DeepSeek')
  await submit(page, 'Approve')
  t.match(await textOf(page), /DeepSeek is approved/)
  // The API has a rate limit, so the pages are asked until the scan has run.
  await until('the scan that the approval requested', async () => {
    await page.goto(page.url())
    return /The decision is in the figures on this page/.test(await textOf(page))
  })
  t.equal(await isApproved(), true, 'the next answer of the API has the approval')
}

/** Answers every item by keys. The answers are saved without leaving the page of the item. */
async function answerAll(page: Page): Promise<void> {
  const assessment = page.url()
  await page.goto(`${assessment}/categories/0`)
  for (;;) {
    await page.keyboard.press('3')
    await page.waitForSelector('#answer-no[aria-pressed="true"]')
    if ((await page.$('[data-key="n"]')) === null) break
    await Promise.all([page.waitForNavigation(), page.keyboard.press('n')])
  }
  await page.goto(assessment)
}

async function assess(t: Test, { page, origin, api }: Site, key: string): Promise<void> {
  await page.goto(`${origin}/assessments`)
  await page.select('#framework', 'hipaa')
  await submit(page, 'Start')
  await answerAll(page)
  await submit(page, 'Complete')
  t.match(await textOf(page), /The assessment is completed[\s\S]*0 · F|0 · F[\s\S]*The assessment is completed/)
  t.match((await api('scores', key)).body, { scores: [{ framework_id: 'hipaa', grade: 'F' }] })

  await page.goto(`${origin}/recommendations`)
  const [select] = await page.$$('select[name=status][aria-label]')
  const title = await select?.evaluate((element) => element.ariaLabel?.replace('Status of: ', '') ?? '')
  await select?.select('in_progress')
  await submit(page, `Save the status, owner and due date of: ${title}`)
  const { recommendations } = (await api('recommendations', key)).body as {
    readonly recommendations: readonly { readonly title: string; readonly status: string }[]
  }
  t.same(
    recommendations.filter(({ status }) => status === 'in_progress').map((each) => each.title),
    [title],
  )
}

/** A viewer accepts an invitation in a browser of their own. */
async function invite(t: Test, { web, page, origin, data }: Site): Promise<void> {
  await admin('member', 'add', GUEST, '--role', 'viewer', ...data)
  const other = await web.openPage()
  await other.goto(await linkOf('member', 'invite', GUEST, '--console-origin', origin, ...data))
  await submit(other, 'Continue')
  await fill(other, { password: GUEST_PASSWORD, repeated: GUEST_PASSWORD })
  await submit(other, 'Continue')
  const linksOf = (of: Page): Promise<string[]> =>
    of.$$eval('.rail nav a', (all) => all.map((each) => each.getAttribute('href') ?? ''))
  t.ok((await linksOf(page)).includes('/api-keys'))
  t.notOk((await linksOf(other)).includes('/api-keys'))
  t.ok((await linksOf(other)).includes('/platforms'))
  await other.goto(`${origin}/platforms/DeepSeek`)
  t.notMatch(await textOf(other), /Withdraw/)
  await page.goto(`${origin}/members`)
  await page.select(`select[aria-label="Role of ${GUEST}"]`, 'admin')
  await submit(page, `Save the role of ${GUEST}`)
  await other.goto(`${origin}/api-keys`)
  t.match(await heading(other), 'API Keys', 'the new role applies to the next request')
}

/** Who uses a platform, and what the client uses. */
async function whoUsesIt(t: Test, { page, origin }: Site): Promise<void> {
  await page.goto(`${origin}/platforms?new=7`)
  await follow(page, 'DeepSeek')
  await follow(page, 'Who uses it')
  t.match(await heading(page), 'Who uses DeepSeek')
  await follow(page, '192.0.2.7')
  t.match(await textOf(page), /2 platforms in the last 30 days[\s\S]*Claude[\s\S]*DeepSeek/)
  await page.goto(`${origin}/client-names`)
  await fill(page, { network: '192.0.2.0/24', name: 'Berlin office' })
  await submit(page, 'Save Network')
  await fill(page, { text: '192.0.2.7,laptop-42' })
  await submit(page, 'Import Names')
  await page.goto(`${origin}/clients`)
  await fill(page, { q: 'laptop' })
  await submit(page, 'Filter')
  await follow(page, '192.0.2.7')
  t.match(await textOf(page), /laptop-42[\s\S]*Berlin office/)
  await page.goto(`${origin}/audit-log`)
  t.match(await textOf(page), /Clients read/)
  await page.goto(`${origin}/compare`)
  t.match(await textOf(page), /No two days with a completed scan/)
}

/** A webhook with a test message, a muted rule, and the list that a firewall downloads. */
async function respond(t: Test, { page, origin, receiver, console }: Site): Promise<void> {
  await page.goto(`${origin}/alerts`)
  await follow(page, 'Add a channel')
  await Promise.all([page.waitForNavigation(), page.click('a[aria-label="Add Webhook"]')])
  await fill(page, { name: 'soc', url: receiver.url })
  await submit(page, 'Add Channel')
  t.match(await page.$eval('#secret', (element) => element.textContent), /^whsec_/)
  await submit(page, 'Send test to soc')
  t.match(await textOf(page), /Test message delivered to soc/)
  // An alert about the completed assessment can come first.
  const test = receiver.received.find(({ message }) => message['type'] === 'test')
  t.match(test, { message: { organization: { name: 'Acme' } } })
  t.notMatch(await page.content(), /whsec_/)
  await follow(page, 'Rules')
  await submit(page, 'Mute source-silent')
  t.match(await textOf(page), /The rule is muted/)
  await follow(page, 'Alerts')
  // Rules are evaluated some time after the scan.
  await until('the alert about Claude', async () => {
    await page.goto(`${origin}/alerts?rule=new-platform`)
    return (await textOf(page)).includes('New AI platform: Claude')
  })

  await page.goto(`${origin}/platforms/Claude`)
  await submit(page, 'Reject')
  await page.goto(`${origin}/block-lists`)
  await fill(page, { label: 'Firewall Berlin' })
  await page.select('#blocks', 'rejected')
  await submit(page, 'Create Link')
  const address = await page.$eval('#address', (element) => element.textContent?.trim() ?? '')
  const secret = await shownSecret(t, page)
  const authorization = `Basic ${Buffer.from(`firewall:${secret}`).toString('base64')}`
  const device = () => console(new URL(address).pathname, { headers: { authorization } })
  t.match(await device(), { status: 200, text: /^claude\.ai$/m })
  await revoke(page, 'Firewall Berlin')
  t.match(await device(), { status: 401 })
}

async function themesAndSignOut(t: Test, { page, origin }: Site): Promise<void> {
  await page.goto(`${origin}/overview`)
  await submit(page, 'Theme: System')
  await submit(page, 'Theme: Light')
  t.equal(await page.$eval('html', (element) => element.getAttribute('data-theme')), 'dark')
  await submit(page, 'Sign out')
  t.match(await heading(page), 'Sign in')
  await fill(page, { name: NAME, password: PASSWORD })
  await submit(page, 'Sign in')
  t.match(await heading(page), 'Overview')
}

for (const name of WEB_BROWSERS) {
  t.test(`${name}: from setup to the first finding, keys, approval, clients, alerts, block lists`, async (t) => {
    const site = await startSite(t, name)
    await setUp(t, site)
    await firstFinding(t, site)
    const key = await keyLife(t, site)
    await approve(t, site, key)
    await assess(t, site, key)
    await invite(t, site)
    await whoUsesIt(t, site)
    await respond(t, site)
    await themesAndSignOut(t, site)
    t.same(site.web.faults, [])
  })
}
