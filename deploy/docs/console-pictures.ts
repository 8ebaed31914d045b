import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Page } from 'puppeteer-core'
import { openWebBrowser } from '../../test/support/web-browser.ts'

/*
 * Takes pictures of the web console with the data of `npm start`, in Chromium:
 * docs/images/console*-light.png and console*-dark.png.
 */
const REPOSITORY = new URL('../../../', import.meta.url)
const DEMO = fileURLToPath(new URL('../demo.js', import.meta.url))
const DEMO_READY = 'serving until Ctrl-C'
const VIEWPORT = { width: 1280, height: 800 }
const OWNER = 'ada@demo.example'
const PASSWORD = 'correct horse battery staple'
/** File names by the path of the page. */
const PICTURES = { '/': 'console', '/platforms': 'console-platforms' } as const

/** The setup link that the demo prints. Rejects if the demo ends first. */
async function setupLink(output: Readable): Promise<string> {
  let text = ''
  for await (const chunk of output.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    text += chunk as string
    const [link] = /https:\/\/\S+\/setup#\S+/.exec(text) ?? []
    if (link !== undefined && text.includes(DEMO_READY)) return link
  }
  throw new Error(`npm start ended early: ${text}`)
}

/** Submits the form of the page, and waits for the next page. */
async function submit(page: Page): Promise<void> {
  await Promise.all([page.waitForNavigation(), page.click('main form button')])
}

/** Creates the first owner, who is signed in afterwards. */
async function signIn(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await submit(page)
  await page.type('#name', OWNER)
  await page.type('#password', PASSWORD)
  await page.type('#repeated', PASSWORD)
  await submit(page)
}

async function takePictures(page: Page, origin: string): Promise<void> {
  await page.setViewport(VIEWPORT)
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }])
    for (const [path, name] of Object.entries(PICTURES)) {
      await page.goto(origin + path)
      const file = fileURLToPath(new URL(`docs/images/${name}-${theme}.png`, REPOSITORY))
      await page.screenshot({ path: file as `${string}.png` })
    }
  }
}

const directory = mkdtempSync(join(tmpdir(), 'console-pictures-'))
const ports = ['--api-port', '0', '--console-port', '0', '--ingest-port', '0', '--syslog-port', 'off']
const demo = spawn(process.execPath, [DEMO, '--data-dir', directory, ...ports], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
const ended = once(demo, 'exit')
const cleanups: (() => unknown)[] = []
try {
  const link = await setupLink(demo.stdout)
  const { page } = await openWebBrowser({ teardown: (work) => cleanups.push(work) }, 'chrome')
  await signIn(page, link)
  await takePictures(page, new URL(link).origin)
} finally {
  for (const cleanUp of cleanups) await cleanUp()
  demo.kill('SIGTERM')
  await ended
  rmSync(directory, { recursive: true, force: true })
}
