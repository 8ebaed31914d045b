import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'puppeteer-core'
import t from 'tap'
import { NAVIGATION } from '../../console/design/navigation.ts'
import { admin, startService } from '../support/programs.ts'
import { openWebBrowser, submit, WEB_BROWSERS } from '../support/web-browser.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const NAME = 'ada@acme.example'
const PASSWORD = 'correct horse battery staple'
const PAGES = NAVIGATION.flatMap(({ entries }) => entries.map(({ path }) => path))
const SIZES = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
]

const heading = (page: Page): Promise<string> => page.$eval('h1', (element) => element.textContent ?? '')

/** What axe-core finds: WCAG 2.2 AA and best practices. */
async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> }
    }
    const { violations } = await axe.run()
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
  })
}

for (const name of WEB_BROWSERS) {
  t.test(`${name}: setup, every page, themes, sign-out, sign-in`, async (t) => {
    const directory = join(t.testdir(), 'service')
    const data = ['--data-dir', directory]
    await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
    const service = await startService(directory, ['--ingest-port', 'off'])
    t.teardown(async () => {
      service.child.kill('SIGTERM')
      await service.ended
    })
    const origin = `https://localhost:${service.consolePort}`
    const [link] = await admin('setup-link', '--console-origin', origin, ...data)
    const { page, faults } = await openWebBrowser(t, name)
    await page.goto(`${origin}/platforms`)
    t.match(await heading(page), 'Sign in')
    await page.goto(String(link?.['url']))
    t.equal(new URL(page.url()).hash, '', 'the secret is no longer in the address')
    await submit(page, 'Continue')
    t.match(await heading(page), 'Become the first owner')
    await page.type('#name', NAME)
    await page.type('#password', PASSWORD)
    await page.type('#repeated', PASSWORD)
    await submit(page, 'Continue')
    t.match(await heading(page), 'Setup', 'the next step without a monitoring token')
    t.ok(await page.$eval('.rail a[href="/platforms"]', (link) => link.checkVisibility()))
    // Firefox ESR 140 takes no size over WebDriver BiDi.
    for (const viewport of name === 'chrome' ? SIZES : []) {
      await page.setViewport(viewport)
      for (const theme of ['light', 'dark']) {
        for (const path of [...PAGES, '/account']) {
          await page.goto(origin + path)
          await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }])
          t.same(await barriers(page), [], `${path} ${theme} ${viewport.width}`)
          const width = await page.evaluate('document.documentElement.scrollWidth')
          t.ok(Number(width) <= viewport.width, `${path} does not scroll sideways: ${width}`)
        }
      }
    }
    if (name === 'chrome') await page.setViewport({ width: 1280, height: 800 })
    await submit(page, 'Theme: System')
    await submit(page, 'Theme: Light')
    t.equal(await page.$eval('html', (element) => element.getAttribute('data-theme')), 'dark')
    await submit(page, 'Sign out')
    t.match(await heading(page), 'Sign in')
    if (name === 'chrome') t.same(await barriers(page), [], 'sign-in')
    await page.type('#name', NAME)
    await page.type('#password', PASSWORD)
    await submit(page, 'Sign in')
    t.match(await heading(page), 'Overview')
    t.same(faults, [])
  })
}
