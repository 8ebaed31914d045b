import type { Page } from 'puppeteer-core'
import t from 'tap'
import { linkOf, startBrowserSite } from '../support/browser-site.ts'
import { admin } from '../support/programs.ts'
import { until } from '../support/wait.ts'
import { WEB_BROWSERS } from '../support/web-browser.ts'
import { fill, follow, heading, submit, textOf } from '../support/web-page.ts'

const GUEST = 'vic@acme.example'
const PASSWORD = 'violet harbor 71 lanterns'

/** As if the browser had no JavaScript: puppeteer itself needs it in the page. */
async function blockScripts(page: Page): Promise<void> {
  await page.setRequestInterception(true)
  page.on('request', (request) =>
    /\.js$/.test(new URL(request.url()).pathname) ? request.abort() : request.continue(),
  )
}

for (const name of WEB_BROWSERS) {
  t.test(`${name}: without JavaScript, sign-in by a pasted secret, a token and an approval`, async (t) => {
    const { web, origin, data, send } = await startBrowserSite(t, name)
    await admin('member', 'add', GUEST, '--role', 'owner', '--org', 'Acme', ...data)
    const link = await linkOf('member', 'invite', GUEST, '--org', 'Acme', '--console-origin', origin, ...data)
    const page = await web.openPage()
    await blockScripts(page)
    await page.goto(`${origin}/setup`)
    await fill(page, { secret: link.split('#')[1] ?? '' })
    await submit(page, 'Continue')
    t.match(await heading(page), 'Accept the invitation')
    await fill(page, { password: PASSWORD, repeated: PASSWORD })
    await submit(page, 'Continue')

    await page.goto(`${origin}/monitoring-tokens`)
    await fill(page, { label: 'firewall' })
    await submit(page, 'Generate Token')
    const token = await page.$eval('#secret', (element) => element.textContent ?? '')
    t.equal(await send(['chat.deepseek.com'], token), 200)
    await page.goto(`${origin}/overview`)
    await submit(page, 'Scan now')
    await until('the first finding', async () => {
      await page.goto(`${origin}/platforms`)
      return /DeepSeek/.test(await textOf(page))
    })
    await follow(page, 'DeepSeek')
    await submit(page, 'Approve')
    t.match(await textOf(page), /DeepSeek is approved/)
    // The browsers report the blocked script itself, and nothing else.
    t.same(
      web.faults.filter((fault) => !/\.js\b|ERR_FAILED|blocked/i.test(fault)),
      [],
    )
    t.ok(web.faults.length > 0, 'the script was blocked')
  })

  t.test(`${name}: the check of the content security policy reports an injected style`, async (t) => {
    const { web, page, origin } = await startBrowserSite(t, name)
    await page.goto(`${origin}/overview`)
    t.same(web.faults, [])
    await page.evaluate(() => {
      const style = document.createElement('style')
      style.append('h1 { display: none }')
      document.head.append(style)
    })
    await until('the report of the violation', () => web.faults.some((fault) => /Content.Security.Policy/i.test(fault)))
    t.equal(await page.$eval('h1', (element) => getComputedStyle(element).display !== 'none'), true)
  })
}
