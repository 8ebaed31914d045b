import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'puppeteer-core'
import { Administration } from '../../engine/admin/administration.ts'
import { readHostNames } from '../../engine/admin/host-names-file.ts'
import type { Event } from '../../engine/kernel/event/event.ts'
import { DAY_MS, HOUR_MS } from '../../engine/kernel/process/clock.ts'
import { runScan } from '../../engine/scan/scan-runner.ts'
import { serveConsole, type TestConsole } from '../../test/support/console.ts'
import { crawl, routesOf } from '../../test/support/console-crawl.ts'
import { plainWords, populate, type Words } from '../../test/support/console-data.ts'
import type { Answer } from '../../test/support/https.ts'
import { Sender } from '../../test/support/store.ts'
import { openWebBrowser } from '../../test/support/web-browser.ts'

/*
 * Takes the pictures of the console that the documentation shows in Chromium, with sample data.
 * WebP of this quality is a third of the size of PNG. Arguments, such as `/alerts`, are other pages
 * to take.
 */
const SHOWN = ['/overview', '/platforms', '/platforms/:name/clients', '/alerts', '/block-lists/preview']
const CHOSEN: ReadonlySet<string> = new Set(process.argv.length > 2 ? process.argv.slice(2) : SHOWN)
const FOLDER = fileURLToPath(new URL('../../../docs/images/console/', import.meta.url))
const QUALITY = 80
const DESKTOP = { width: 1280, height: 800 }
const ALSO_DARK: ReadonlySet<string> = new Set(['/overview', '/platforms'])
/** Of several pages of a route, the picture shows one with this text. */
const CHOSEN_TEXT: Readonly<Record<string, string>> = {
  '/platforms/:name': '<h1>DeepSeek</h1>',
  '/monitoring-tokens/:id/verify': 'Events arrive',
}

/** The sample data in words that readers expect. */
const NAMES: Readonly<Record<string, string>> = {
  owner: 'ada@acme.example',
  'other viewer': 'vic@acme.example',
  'other member': 'mia@acme.example',
  'other admin': 'ann@acme.example',
  'other owner': 'olga@acme.example',
  invited: 'ines@acme.example',
  dashboard: 'Grafana',
  report: 'Weekly report',
  laptop: 'Laptop',
  'security team': 'Security team',
  'revoked key': 'Trial',
  firewalls: 'Firewalls',
  'unused token': 'Branch Hamburg',
  'revoked token': 'Old proxy',
  'Custom platform': 'Acme Assistant',
  Spring: 'Spring 2026',
  Summer: 'Summer 2026',
  Autumn: 'Autumn 2026',
  Evidence: 'Not in place yet',
  soc: 'Security operations',
  mail: 'Mail to the SOC',
  firewall: 'Firewall Berlin',
  'revoked link': 'Old firewall',
}
/** Names that clients used, with the number of clients per day. */
const USES: readonly (readonly [name: string, clients: number])[] = [
  ['chatgpt.com', 34],
  ['claude.ai', 21],
  ['gemini.google.com', 17],
  ['chat.deepseek.com', 9],
  ['www.perplexity.ai', 8],
  ['huggingface.co', 6],
  ['suno.com', 3],
  ['character.ai', 2],
]
const DAYS = 21
const USERS = ['jdoe', 'ada', 'mlee', 'kurt', 'sofia']

function sampleWords(): Words {
  const words = plainWords()
  const hosts = ['fw-berlin-01', 'proxy-01', 'dns-02']
  let host = 0
  return { ...words, text: (what) => NAMES[what] ?? what, host: () => `${hosts[host++ % hosts.length]}.acme.example` }
}

/** Three weeks of use, less at weekends, with a scan a week ago. */
function addUse(site: TestConsole): void {
  const { store, clock, organization, registry } = site
  const sender = new Sender()
  const nowMs = clock.nowMs()
  for (let ago = DAYS; ago >= 0; ago--) {
    const timeMs = nowMs - ago * DAY_MS - HOUR_MS
    const weekday = new Date(timeMs).getUTCDay()
    const share = (weekday === 0 || weekday === 6 ? 0.3 : 1) * (0.6 + (0.4 * (DAYS - ago)) / DAYS)
    clock.set(timeMs)
    const events = USES.flatMap(([name, clients], at) =>
      // The last ones are new this week.
      at >= 6 && ago > 5
        ? []
        : Array.from({ length: Math.max(1, Math.round(clients * share)) }, (_, client) =>
            sender.event(name, timeMs, useBy(client, at)),
          ),
    )
    store.environment.write(() => store.buffer.append(organization.id, events))
    if (ago % 7 === 0) runScan(store, registry, organization.id, 'schedule', clock)
  }
  clock.set(nowMs)
}

/** The use of a platform by a client: a proxy knows the users of some, and the bytes. */
function useBy(client: number, platform: number): Partial<Event> {
  const count = 1 + ((client * 7 + platform) % 23)
  const user = USERS[client % 12]
  const traffic = user === undefined ? {} : { user, bytesSent: count * 18_400, bytesReceived: count * 246_000 }
  return { client: `198.51.100.${client + 1}`, count, ...traffic }
}

/** Two offices, and some of their hosts. */
function addNames({ store, clock, organization }: TestConsole): void {
  const { clientNames } = new Administration(store, clock)
  clientNames.addNetwork(organization, '198.51.100.0/28', 'Berlin office')
  clientNames.addNetwork(organization, '198.51.100.16/28', 'Hamburg office')
  const hosts = ['lt-0412', 'lt-0398', 'ws-design-02', 'lt-0420', 'build-07', 'lt-0377', 'ws-legal-01', 'lt-0405']
  // A first day, because the sample data has imported other names before.
  const rows = hosts.map((name, at) => `198.51.100.${at * 3 + 1},${name},2026-01-01`)
  clientNames.importHosts(organization, readHostNames(['address,name,from', ...rows].join('\n'), 'names').names)
}

/** The picture of a page, without its extension: `/platforms/:name` has `platforms-name`. */
function pictureOf(path: string): string {
  return path.slice(1).replaceAll('/:', '-').replaceAll('/', '-')
}

async function takePicture(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: join(FOLDER, `${name}.webp`) as `${string}.webp`, type: 'webp', quality: QUALITY })
}

async function takePictures(site: TestConsole, page: Page, paths: ReadonlyMap<string, string>): Promise<void> {
  for (const [route, path] of paths) {
    if (!CHOSEN.has(route)) continue
    const name = pictureOf(route)
    await page.setViewport(DESKTOP)
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }])
    await page.goto(site.origin + path)
    await takePicture(page, `${name}-light`)
    if (ALSO_DARK.has(route)) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
      await takePicture(page, `${name}-dark`)
    }
  }
}

/** One path of each page of a crawl, by its route. */
function onePathEach(crawled: Awaited<ReturnType<typeof crawl>>): Map<string, string> {
  const paths = new Map<string, string>()
  for (const [route, found] of routesOf(crawled)) {
    const [method, pattern = ''] = route.split(' ')
    const pages = method === 'GET' ? found.filter((path) => isPage(crawled.answers.get(path))) : []
    const chosen = CHOSEN_TEXT[pattern] ?? ''
    const path = pages.find((each) => crawled.answers.get(each)?.text.includes(chosen)) ?? pages[0]
    if (path === undefined) continue
    const [plain = ''] = path.split('?')
    // Some pages need a query: without it, they redirect.
    paths.set(pattern, pages.includes(plain) ? plain : path)
  }
  return paths
}

/** A browser saves an attachment instead of showing it. */
function isPage(answer: Answer | undefined): boolean {
  const { 'content-type': type, 'content-disposition': disposition } = answer?.headers ?? {}
  return answer?.status === 200 && String(type).startsWith('text/html') && disposition === undefined
}

const directory = mkdtempSync(join(tmpdir(), 'console-pictures-'))
const cleanups: (() => unknown)[] = []
const t = { testdir: () => directory, teardown: (work: () => unknown) => cleanups.unshift(work) }
try {
  const site = await serveConsole(t, { hasOrigin: true })
  addUse(site)
  const owner = populate(site, site.organization, sampleWords(), { platforms: 3, sources: 3 })
  addNames(site)
  const { browser, page } = await openWebBrowser(t, 'chrome')
  mkdirSync(FOLDER, { recursive: true })
  await takePictures(site, page, onePathEach(await crawl(site.browser(), ['/setup'])))
  const [[name, value] = ['', '']] = owner.cookies
  await browser.setCookie({ name, value, domain: 'localhost', path: '/', secure: true })
  await takePictures(site, page, onePathEach(await crawl(owner)))
} finally {
  for (const cleanUp of cleanups) await cleanUp()
  rmSync(directory, { recursive: true, force: true })
}
