import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type BrowserSite, startBrowserSite } from '../support/browser-site.ts'
import { WEB_BROWSERS } from '../support/web-browser.ts'
import { fill, heading, submit, textOf } from '../support/web-page.ts'

const GUEST = 'vic@acme.example'
const GUEST_PASSWORD = 'amber quarry 19 pelicans'

const secretOn = ({ page }: BrowserSite): Promise<string> =>
  page.$eval('#secret', (element) => element.textContent?.trim() ?? '')

async function tryFile(t: Test, { page, origin }: BrowserSite): Promise<void> {
  const file = join(t.testdirName, 'dns.log')
  writeFileSync(file, 'Nov 20 09:15:00 dns dnsmasq[811]: query[A] chat.deepseek.com from 192.0.2.7\n')
  await page.goto(`${origin}/try-file`)
  const input = await page.$('input[type=file]')
  await (input as unknown as { uploadFile(path: string): Promise<void> }).uploadFile(file)
  await submit(page, 'Read the file')
  t.match(await textOf(page), /Platforms that would be found[\s\S]*DeepSeek/)
  await page.goto(`${origin}/platforms`)
  t.notMatch(await textOf(page), /DeepSeek/, 'nothing of the file is stored')
}

async function rotateKey(t: Test, site: BrowserSite): Promise<void> {
  const { page, origin, api } = site
  const statusOf = async (key: string): Promise<number> =>
    (await api('/api/v1/discovery', { headers: { 'x-api-key': key } })).status
  await page.goto(`${origin}/api-keys`)
  await fill(page, { label: 'grafana' })
  for (const box of await page.$$('input[name=scopes]')) {
    if (!(await box.evaluate((element) => (element as HTMLInputElement).checked))) await box.click()
  }
  await submit(page, 'Create Key')
  const before = await secretOn(site)
  t.equal(await statusOf(before), 200)
  await page.goto(`${origin}/api-keys`)
  await page.click('a[href$="/rotate"]')
  await page.waitForSelector('#grace')
  await page.select('#grace', '0')
  await submit(page, 'Rotate')
  const after = await secretOn(site)
  t.not(after, before)
  t.equal(await statusOf(after), 200)
  t.equal(await statusOf(before), 401)
  await page.goto(`${origin}/api-keys`)
  t.notMatch(await page.content(), after, 'the new key is shown once')
}

async function ownPlatforms(t: Test, { page, origin }: BrowserSite): Promise<void> {
  await page.goto(`${origin}/own-platforms`)
  await fill(page, { name: 'Corp LLM', domains: 'llm.corp.example', why: 'Runs in our data center' })
  await submit(page, 'Add Platform')
  t.match(await textOf(page), /The registry is changed[\s\S]*Corp LLM/)
  await page.click('summary[aria-label="Remove Corp LLM"]')
  await submit(page, 'Confirm: remove Corp LLM')
  t.match(await textOf(page), /The entry is removed/)
}

async function retention(t: Test, { page, origin }: BrowserSite): Promise<void> {
  await page.goto(`${origin}/retention`)
  const field = await page.$('form.stack input[type=number]')
  const name = (await field?.evaluate((element) => (element as HTMLInputElement).name)) ?? ''
  const type = async (days: string): Promise<void> => {
    await page.$eval(`#${name}`, (element) => {
      ;(element as HTMLInputElement).value = ''
    })
    await fill(page, { [name]: days })
  }
  await type('400')
  await submit(page, 'Preview')
  t.match(await textOf(page), /These days would delete nothing now/)
  await page.goto(`${origin}/retention`)
  await type('400')
  await submit(page, 'Save')
  t.match(await textOf(page), /The retention is saved/)
  t.equal(await page.$eval(`#${name}`, (element) => (element as HTMLInputElement).value), '400')
}

async function inviteMember(t: Test, { web, page, origin }: BrowserSite): Promise<void> {
  await page.goto(`${origin}/members`)
  await fill(page, { name: GUEST })
  await page.select('#role', 'viewer')
  await submit(page, 'Invite')
  const link = /https:\/\/localhost:\d+\/setup#[0-9a-f]{64}/.exec(await textOf(page))?.[0] ?? ''
  t.not(link, '', 'the page shows the link')
  const other = await web.openPage()
  await other.goto(link)
  await submit(other, 'Continue')
  await fill(other, { password: GUEST_PASSWORD, repeated: GUEST_PASSWORD })
  await submit(other, 'Continue')
  await other.goto(`${origin}/overview`)
  t.match(await heading(other), 'Overview')
  t.equal((await other.goto(`${origin}/api-keys`))?.status(), 403)
  await page.goto(`${origin}/members`)
  t.match(await textOf(page), GUEST)
}

for (const name of WEB_BROWSERS) {
  t.test(`${name}: try a file, rotate a key, custom platforms, retention, invitation`, async (t) => {
    const site = await startBrowserSite(t, name)
    await tryFile(t, site)
    await rotateKey(t, site)
    await ownPlatforms(t, site)
    await retention(t, site)
    await inviteMember(t, site)
    // Both browsers report the status of the page that the viewer may not read.
    t.same(
      site.web.faults.filter((fault) => !/403/.test(fault)),
      [],
    )
  })
}
