import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { ElementHandle, Page } from 'puppeteer-core'
import { until } from './wait.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Submits the form that has this button, by text or label, and waits for the next page. */
export async function submit(page: Page, button: string): Promise<void> {
  const found = await buttonOf(page, button)
  await Promise.all([page.waitForNavigation(), found.click()])
}

/** Waits: the button that confirms appears a moment after the first one was pressed. */
function buttonOf(page: Page, button: string): Promise<ElementHandle> {
  const labelled = `[contains(., "${button}") or contains(@aria-label, "${button}")]`
  return until(`a button ${button} at ${page.url()}`, async () => {
    // Not a locator, nor waitForSelector: in Firefox they wait in vain for a frame of animation.
    for (const found of await page.$$(`::-p-xpath(//button${labelled})`)) {
      if (await found.isVisible()) return found
    }
    return undefined
  })
}

/** Follows the link with this text. */
export async function follow(page: Page, link: string): Promise<void> {
  for (const found of await page.$$(`::-p-xpath(//a[normalize-space()="${link}"])`)) {
    if (!(await found.isVisible())) continue
    // A bar at the edge of the window may be over it.
    await found.evaluate((element) => element.scrollIntoView({ block: 'center' }))
    await Promise.all([page.waitForNavigation(), found.click()])
    return
  }
  throw new Error(`no link ${link} at ${page.url()}`)
}

/** Types into the fields with these ids. */
export async function fill(page: Page, values: Readonly<Record<string, string>>): Promise<void> {
  for (const [id, value] of Object.entries(values)) await page.type(`#${id}`, value)
}

export const heading = (page: Page): Promise<string> => page.$eval('h1', (element) => element.textContent ?? '')

/** The text of the content. */
export const textOf = (page: Page): Promise<string> => page.$eval('main', (element) => element.textContent ?? '')

/**
 * What axe-core finds: WCAG 2.2 AA and best practices.
 *
 * @param rule undefined: all rules
 */
export async function barriers(page: Page, rule?: 'color-contrast'): Promise<string[]> {
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(AXE)
  return page.evaluate(async (rule) => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> }
    }
    // axe-core has the rule of WCAG 2.2 (2.5.8) off by default.
    const all = { rules: { 'target-size': { enabled: true } } }
    const { violations } = await axe.run(rule === undefined ? all : { runOnly: rule })
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
  }, rule)
}

export const OWNER_PASSWORD = 'correct horse battery staple'

/** Opens a setup link, and becomes the first owner. */
export async function signUp(page: Page, link: string, name = 'ada@acme.example'): Promise<void> {
  await page.goto(link)
  await submit(page, 'Continue')
  await page.type('#name', name)
  await page.type('#password', OWNER_PASSWORD)
  await page.type('#repeated', OWNER_PASSWORD)
  await submit(page, 'Continue')
}
