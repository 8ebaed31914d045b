import type { Page } from 'puppeteer-core'
import t, { type Test } from 'tap'
import { Administration } from '../../engine/admin/administration.ts'
import { SENDERS } from '../../engine/admin/senders.ts'
import { EventAcceptor } from '../../engine/ingest/accept.ts'
import { HOUR_MS, MINUTE_MS } from '../../engine/kernel/process/clock.ts'
import { runScan } from '../../engine/scan/scan-runner.ts'
import { ALERT_CHANNEL_KINDS } from '../../engine/store/alert-channels.ts'
import { type Browser, serveConsole, type TestConsole } from '../support/console.ts'
import { crawl, routesOf } from '../support/console-crawl.ts'
import { plainWords, populate, type Words } from '../support/console-data.ts'
import { quietLog, Sender } from '../support/store.ts'
import { openWebBrowser } from '../support/web-browser.ts'
import { barriers } from '../support/web-page.ts'

const DESKTOP = { width: 1280, height: 800 }
const PHONE = { width: 390, height: 844 }
/** WCAG 2.2, 1.4.10: without sideways scrolling at 320 CSS pixels. */
const NARROWEST = { width: 320, height: 640 }
const THEMES = ['light', 'dark'] as const

interface Setting {
  readonly site: TestConsole
  readonly owner: Browser
  readonly page: Page
  readonly faults: string[]
}

/** A console with data of every kind, and Chromium as its owner. */
async function start(t: Test, words = plainWords()): Promise<Setting> {
  const site = await serveConsole(t, { hasOrigin: true })
  const owner = populate(site, site.organization, words)
  const { browser, page, faults } = await openWebBrowser(t, 'chrome')
  const [[name, value] = ['', '']] = owner.cookies
  await browser.setCookie({ name, value, domain: 'localhost', path: '/', secure: true })
  return { site, owner, page, faults }
}

/** One path of each page: files are no pages, and redirects lead to other pages. */
async function pagesOf({ owner, site }: Setting): Promise<string[]> {
  const inside = await crawl(owner)
  const outside = await crawl(site.browser(), ['/setup'])
  const paths = [...routesOf(inside), ...routesOf(outside)]
    .filter(([route]) => route.startsWith('GET '))
    .map(([, [path = '']]) => path)
  const isPage = (path: string): boolean =>
    [inside, outside].some(({ answers }) => {
      const answer = answers.get(path)
      // A browser saves an attachment.
      const isShown = answer?.headers['content-disposition'] === undefined
      return answer?.status === 200 && isShown && String(answer.headers['content-type']).startsWith('text/html')
    })
  return [...new Set(paths)].filter(isPage)
}

/** Checks the page that is open, in both themes, and at the widths of a desk and a phone. */
async function assertAccessible(t: Test, page: Page, what: string): Promise<void> {
  for (const viewport of [DESKTOP, PHONE]) {
    await page.setViewport(viewport)
    for (const theme of THEMES) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }])
      // The other theme changes colours only.
      const rule = theme === 'dark' ? 'color-contrast' : undefined
      t.same(await barriers(page, rule), [], `${what}, ${theme}, ${viewport.width} px`)
    }
    await assertNoSidewaysScroll(t, page, what, viewport.width)
  }
  await page.setViewport(NARROWEST)
  await assertNoSidewaysScroll(t, page, what, NARROWEST.width)
}

async function assertNoSidewaysScroll(t: Test, page: Page, what: string, width: number): Promise<void> {
  const found = Number(await page.evaluate('document.documentElement.scrollWidth'))
  t.ok(found <= width, `${what} does not scroll sideways at ${width} px: ${found}`)
}

/**
 * Marks each element that a keyboard must reach, and returns their number. A group of radio buttons
 * is one.
 */
function markFocusable(page: Page): Promise<number> {
  return page.evaluate(() => {
    const all = document.querySelectorAll<HTMLElement>('a[href], button, input, select, textarea, summary, [tabindex]')
    const radios = new Set<string>()
    let count = 0
    for (const element of all) {
      const { type, name } = element as HTMLInputElement
      const isHidden = !element.checkVisibility({ visibilityProperty: true }) || type === 'hidden'
      if (isHidden || element.matches(':disabled') || element.tabIndex < 0) continue
      if (type === 'radio') {
        if (radios.has(name)) continue
        radios.add(name)
      }
      element.dataset['reach'] = String(count++)
      if (type === 'radio') {
        const group = document.querySelectorAll<HTMLElement>(`input[type=radio][name="${name}"]`)
        for (const each of group) each.dataset['reach'] = element.dataset['reach']
      }
    }
    return count
  })
}

/** Submits a form of the page with other values, whatever the browser says about them. */
async function submitForm(page: Page, action: string, values: Readonly<Record<string, string>>): Promise<void> {
  await Promise.all([
    page.waitForNavigation(),
    page.$eval(
      `form[action="${action}"]`,
      (element, given) => {
        const target = element as HTMLFormElement
        for (const [name, value] of Object.entries(given)) {
          const field = target.elements.namedItem(name)
          if (field instanceof HTMLInputElement) field.value = value
        }
        target.noValidate = true
        target.requestSubmit()
      },
      values,
    ),
  ])
}

interface Focused {
  readonly reach: string | undefined
  readonly html: string
  readonly isVisible: boolean
}

/** The element with the focus, and whether a person can see where the focus is. */
function focused(page: Page): Promise<Focused> {
  return page.evaluate(() => {
    const element = document.activeElement as HTMLElement
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element)
    const box = element.getBoundingClientRect()
    const isInView = box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth
    const isMarked = (outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2) || boxShadow !== 'none'
    return { reach: element.dataset['reach'], html: element.outerHTML.slice(0, 160), isVisible: isInView && isMarked }
  })
}

t.test('axe-core finds no barrier on any page, in both themes, at every width', async (t) => {
  const setting = await start(t)
  const { page, site, faults } = setting
  const paths = await pagesOf(setting)
  t.ok(paths.length > 12, paths.join(' '))
  for (const path of paths) {
    await page.goto(site.origin + path)
    await assertAccessible(t, page, path)
  }
  t.same(faults, [])
})

/** Each name is one word of 77 characters; names of custom platforms have at most 80. */
const LONG_WORDS: Words = {
  ...plainWords(),
  text: (what) => `${what.replaceAll(/\W+/g, '-')}.`.padEnd(52, 'abcdefghij').concat('@long-company.example.com'),
  host: (what) => `${what}.${'long-host-name.'.repeat(8)}example`,
}

t.test('with long names, no page scrolls sideways, and a phone shows every column of people', async (t) => {
  const setting = await start(t, LONG_WORDS)
  const { page, site, faults } = setting
  for (const path of await pagesOf(setting)) {
    await page.goto(site.origin + path)
    for (const { width, height } of [PHONE, NARROWEST]) {
      await page.setViewport({ width, height })
      await assertNoSidewaysScroll(t, page, path, width)
    }
  }
  for (const [path, tables] of [
    ['/members', ['members', 'waiting', 'removed']],
    ['/audit-log', ['audit']],
  ] as const) {
    await page.goto(site.origin + path)
    await assertAccessible(t, page, `${path} with long names`)
    for (const { width, height } of [PHONE, NARROWEST]) {
      await page.setViewport({ width, height })
      for (const id of tables) {
        const { scrolls, share, hidden } = await page.$eval(`#${id}`, (table) => {
          const around = table.parentElement as HTMLElement
          const longest = table.querySelector('td strong, td .break') as HTMLElement
          const cells = [...table.querySelectorAll('tbody tr:first-child td')]
          return {
            scrolls: around.scrollWidth - around.clientWidth,
            share: (longest.closest('td') as HTMLElement).clientWidth / around.clientWidth,
            hidden: cells.filter((cell) => !cell.matches('.wide-only') && !cell.checkVisibility()).length,
          }
        })
        t.equal(scrolls, 0, `${path} #${id} at ${width} px does not scroll sideways in its card`)
        t.ok(share > 0.8, `${path} #${id} at ${width} px: a long name has the width of the card: ${share}`)
        t.equal(hidden, 0)
      }
    }
  }
  await page.setViewport(PHONE)
  const actor = await page.$eval('#audit tbody td:nth-child(2)', (cell) => cell.checkVisibility() && cell.textContent)
  t.match(actor, /^(?:member|operator|identity provider) /, 'who changed it')
  t.same(faults, [])
})

t.test('axe-core finds no barrier on answers to forms and on error pages', async (t) => {
  const { page, site, owner } = await start(t)
  const submitAt = async (path: string, form: string, values: Readonly<Record<string, string>>): Promise<void> => {
    await page.goto(site.origin + path)
    await submitForm(page, form, values)
  }
  await submitAt('/api-keys', '/api-keys', { label: '' })
  await assertAccessible(t, page, 'a form with errors')
  await submitAt('/monitoring-tokens', '/monitoring-tokens', { label: 'one more' })
  await assertAccessible(t, page, 'a secret')
  await page.goto(`${site.origin}/nothing`)
  await assertAccessible(t, page, 'an unknown address')
  const { secret } = new Administration(site.store, site.clock).accountLinks.setup(undefined)
  await submitAt('/setup', '/setup', { secret })
  await assertAccessible(t, page, 'the setup of an account')
  site.clock.add(HOUR_MS / 4)
  await owner.get('/account')
  await submitAt('/monitoring-tokens', '/monitoring-tokens', { label: 'later' })
  await assertAccessible(t, page, 'the confirmation of a password')
})

t.test('so have pages about clients, alert channels and block lists, in each state', async (t) => {
  const { page, site, owner, faults } = await start(t)
  const { store, clock, organization, origin } = site
  const open = async (path: string, what: string): Promise<void> => {
    await page.goto(origin + path)
    await assertAccessible(t, page, what)
  }
  for (const kind of ALERT_CHANNEL_KINDS) {
    await open(`/alerts/channels/new?kind=${kind}`, `the form of ${kind}`)
    await submitForm(page, '/alerts/channels/new', { name: '' })
    await assertAccessible(t, page, `the form of ${kind} with errors`)
  }
  await page.goto(`${origin}/alerts/channels/new?kind=webhook`)
  await submitForm(page, '/alerts/channels/new', { name: 'tickets', url: 'https://tickets.example/posture' })
  await assertAccessible(t, page, 'a signing secret')
  await page.goto(`${origin}/alerts/channels`)
  await submitForm(page, `/alerts/channels/${store.alertChannels.ofOrganization(organization.id).at(-1)?.id}/test`, {})
  await assertAccessible(t, page, 'a test that failed')
  await page.goto(`${origin}/alerts/rules`)
  await submitForm(page, '/alerts/rules/unapproved-platform', { threshold: '101' })
  await assertAccessible(t, page, 'a wrong threshold')
  await page.goto(`${origin}/block-lists`)
  await submitForm(page, '/block-lists', { label: 'proxy' })
  await assertAccessible(t, page, 'the secret of a link')
  await open('/clients?q=laptop', 'a search by host name')
  await open('/clients?q=nobody', 'a search without a result')
  const { organizations } = new Administration(store, clock)
  for (const _step of organizations.eraseClients(organizations.set(organization, { clients: 'pseudonym' })));
  const event = new Sender().event('claude.ai', clock.nowMs() - MINUTE_MS, { client: '192.0.2.200', user: 'ada' })
  await new EventAcceptor(store, clock, quietLog, () => {}).accept(organization.id, [event])
  runScan(store, site.registry, organization.id, 'administrator', clock)
  await open('/platforms/Claude/clients', 'pseudonyms')
  const { text } = await owner.get('/platforms/Claude/clients')
  const path = /href="(\/clients\/p-[^"]+)"/.exec(text)?.[1] ?? ''
  await open(path, 'a pseudonym')
  await submitForm(page, `${path}/reveal`, {})
  await assertAccessible(t, page, 'a revealed pseudonym')
  t.match(await page.content(), '192.0.2.200')
  await page.goto(`${origin}/organization-settings`)
  await page.click('input[name=mode][value=off]')
  await submitForm(page, '/organization-settings/clients', {})
  await assertAccessible(t, page, 'the question before clients are erased')
  for (const _step of organizations.eraseClients(organizations.set(organization, { clients: 'off' })));
  await open('/platforms/Claude/clients', 'no clients are kept')
  // Forms with errors are answered with 400.
  t.same(
    faults.filter((fault) => !fault.includes('status of 400')),
    [],
  )
})

t.test(
  'so have Setup with the instructions of each sender, and Verify in each state',
  { timeout: 300_000 },
  async (t) => {
    const { page, site, faults } = await start(t)
    const { store, clock, organization, origin } = site
    const [token, unused] = store.monitoringTokens.ofOrganization(organization.id)
    for (const { id } of SENDERS) {
      await page.goto(`${origin}/setup-guide?token=${token?.id}&sender=${id}`)
      await assertAccessible(t, page, `Setup, ${id}`)
    }
    const nowMs = clock.nowMs()
    for (const [state, id, startedMs] of [
      ['waiting', unused?.id, nowMs],
      ['nothing yet', unused?.id, nowMs - MINUTE_MS],
      ['nothing in time', unused?.id, nowMs - 6 * MINUTE_MS],
      ['arrived', token?.id, nowMs - MINUTE_MS],
      ['over', token?.id, nowMs - 6 * MINUTE_MS],
    ] as const) {
      await page.goto(`${origin}/monitoring-tokens/${id}/verify?started=${startedMs}`)
      await assertAccessible(t, page, `Verify, ${state}`)
    }
    t.same(faults, [])
  },
)

t.test('a keyboard reaches everything, and the focus is visible', async (t) => {
  const setting = await start(t)
  const { page, site } = setting
  await page.setViewport(DESKTOP)
  for (const path of await pagesOf(setting)) {
    await page.goto(site.origin + path)
    const count = await markFocusable(page)
    const reached = new Set<string>()
    // A date has up to four stops: day, month, year and the calendar.
    const dates = (await page.$$('input[type=date]')).length
    for (let pressed = 0; pressed < count + 3 * dates && reached.size < count; pressed++) {
      await page.keyboard.press('Tab')
      const { reach, html, isVisible } = await focused(page)
      t.ok(isVisible, `${path}: the focus is visible on ${html}`)
      if (reach !== undefined) reached.add(reach)
    }
    const missing = await page.$$eval(
      '[data-reach]',
      (all, of) =>
        all.filter((each) => !of.includes((each as HTMLElement).dataset['reach'] ?? '')).map((each) => each.outerHTML),
      [...reached],
    )
    t.same(missing, [], `${path}: the keyboard reaches all ${count} elements`)
  }
})

t.test('the skip link leads to the content, and the menu of a phone opens by keyboard', async (t) => {
  const { page, site } = await start(t)
  await page.setViewport(DESKTOP)
  await page.goto(`${site.origin}/platforms`)
  await page.keyboard.press('Tab')
  t.match((await focused(page)).html, /class="skip"/)
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  t.ok(
    await page.evaluate(() => document.activeElement?.closest('main') !== null),
    'the next element is in the content',
  )

  await page.setViewport(PHONE)
  await page.goto(`${site.origin}/platforms`)
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  t.match((await focused(page)).html, /^<summary/)
  await page.keyboard.press('Enter')
  t.same(await barriers(page), [], 'the open menu')
  await page.keyboard.press('Tab')
  t.match((await focused(page)).html, /^<input name="q" type="search"/)
})
