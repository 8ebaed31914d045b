import type { Page } from 'puppeteer-core'
import t from 'tap'
import { Administration } from '../../engine/admin/administration.ts'
import { serveConsole } from '../support/console.ts'
import { until } from '../support/wait.ts'
import { openWebBrowser, WEB_BROWSERS } from '../support/web-browser.ts'

for (const name of WEB_BROWSERS) {
  t.test(`${name} saves an item without leaving it, and loses no text`, { timeout: 60_000 }, async (t) => {
    const site = await serveConsole(t, { hasOrigin: true })
    const { store, organization, clock, origin } = site
    const { assessments } = new Administration(store, clock)
    const made = assessments.create(organization, 'cis-v8', 'Autumn', ['1.1', '1.2'])
    const ada = site.signIn('ada', 'member')
    const { browser, page, faults } = await openWebBrowser(t, name)
    const signIn = async (): Promise<void> => {
      const [[cookie, value] = ['', '']] = ada.cookies
      await browser.setCookie({ name: cookie, value, domain: 'localhost', path: '/', secure: true })
    }
    await signIn()
    const path = `${origin}/assessments/${made.id}/categories/0/items/0`
    const itemNow = () => store.assessments.categories(made)[0]?.items[0]
    const pressed = (answer: string) => page.waitForSelector(`#answer-${answer}[aria-pressed="true"]`)
    await page.goto(path)

    await page.click('#answer-partial')
    await pressed('partial')
    t.equal(itemNow()?.answer, 'partial')
    t.match(await page.$eval('#items', (list) => list.textContent), /1 of 2 answered.*Partial/)
    t.equal(await page.evaluate(() => document.activeElement?.id), 'answer-partial', 'the focus stays')

    await page.type('#note', 'seen')
    t.equal(itemNow()?.note, '', 'typing saves nothing yet')
    await page.keyboard.press('Tab')
    await until('the note', async () => itemNow()?.note === 'seen')
    await page.type('#owner', '12')
    t.equal(itemNow()?.answer, 'partial', 'keys are text in a field')

    await page.focus('#answer-yes')
    await page.keyboard.press('3')
    await pressed('no')
    t.match(itemNow(), { answer: 'no', note: 'seen', work: { owner: '12' } })
    t.equal(page.url(), path, 'the page is the same')

    assessments.answer(organization, made.id, '1.1', 'no', 'of somebody else')
    await page.type('#note', ' again')
    await page.click('#answer-yes')
    await page.waitForSelector('.notice.bad')
    t.match(await page.$eval('#rejected', (part) => part.textContent), /changed in the meantime.*“of somebody else”/)
    t.equal(await page.$eval('#note', (field) => (field as HTMLTextAreaElement).value), 'seen again')
    await page.click('#answer-yes')
    await pressed('yes')
    t.match(itemNow(), { answer: 'yes', note: 'seen again' })

    await turnKeysOff(page)
    await page.keyboard.press('1')
    await page.keyboard.press('n')
    t.equal(await page.evaluate(() => localStorage.getItem('keys')), 'off')
    t.equal(page.url(), path, 'keys that are off do nothing')

    // A link leaves the page while the text is not saved yet.
    await page.type('#note', 'left, ')
    await Promise.all([page.waitForNavigation(), page.click('#categories a')])
    await until('the note', async () => itemNow()?.note.includes('left') === true)

    await page.goto(path)
    await page.type('#note', 'ended, ')
    await browser.deleteCookie(...(await browser.cookies()))
    await Promise.all([page.waitForNavigation(), page.click('#answer-no')])
    t.match(await page.$eval('main', (main) => main.textContent), /Nothing is lost/)
    t.match(await page.$eval('input[name=note]', (field) => (field as HTMLInputElement).value), /ended/)
    t.same(
      faults.filter((fault) => !/status of (401|409)|ABORTED$/.test(fault)),
      [],
    )
  })
}

async function turnKeysOff(page: Page): Promise<void> {
  await page.click('[data-keys] input')
  await page.focus('#answer-no')
}
