import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { tryHold } from '../../../engine/kernel/process/exclusive.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import type { MonitoringToken } from '../../../engine/store/secrets.ts'
import { type Browser, serveConsole, type TestConsole } from '../../support/console.ts'
import { registries } from '../../support/store.ts'
import { squid } from '../../support/syslog-service.ts'

const HOUR_MS = 3_600_000
/** Two matches and another line; the last line has no line feed, as in many exports. */
const log = [
  squid('claude.ai', '10.1.2.3', Date.now() - HOUR_MS),
  squid('www.example.com', '10.1.2.3', Date.now() - HOUR_MS),
  squid('chatgpt.com', '10.1.2.4', Date.now() - HOUR_MS),
].join('\n')

const text = (html: string): string => html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')
const fileIn = (html: string): string => /name="file" value="([0-9a-f]+)"/.exec(html)?.[1] ?? ''

function token({ store, clock, organization }: TestConsole, label = 'branch proxy'): MonitoringToken {
  return new Administration(store, clock).tokens.generate(organization, label).record
}

/** Tries the file, and returns the page. */
async function tried(browser: Browser, file = log): Promise<string> {
  return (await browser.postFile('/try-file', Buffer.from(file), 'proxy.log')).text
}

const copies = ({ directory }: TestConsole): string[] => {
  const folder = join(directory, 'uploads')
  return existsSync(folder) ? readdirSync(folder) : []
}

t.test('a log that was tried is added by a click, once', async (t) => {
  const site = await serveConsole(t, { startMs: Date.now() })
  const { id: tokenId } = token(site)
  const browser = site.signIn('ada@acme.example', 'admin')
  const page = await tried(browser)
  t.match(text(page), 'Add 2 events to Acme')
  t.equal(site.store.buffer.count(site.organization.id), 0, 'nothing is stored before')
  const added = await browser.submit('/try-file/add', { file: fileIn(page), token: tokenId })
  t.match(text(added.text), /2 events added proxy\.log\. The next scan counts them\./)
  t.same(copies(site), [], 'the copy is removed')
  const entry = site.store.auditLog.ofOrganization(site.organization.id).at(-1)
  t.match(entry, { action: 'ingest.file', actor: 'ada@acme.example', subject: 'proxy.log', details: { matched: 2 } })
  t.match(site.store.sources.ofOrganization(site.organization.id), [
    { tokenId, listener: 'file', address: 'proxy.log' },
  ])
  runScan(site.store, registries, site.organization.id, 'schedule', site.clock)
  t.match(text((await browser.get('/platforms')).text), /Claude.*ChatGPT|ChatGPT.*Claude/)
  const again = await browser.submit('/try-file/add', { file: fileIn(await tried(browser)), token: tokenId })
  t.match(text(again.text), /No new event was added proxy\.log: 2 matches were added before\./)
})

t.test('only the member who sent the file adds it, and only while it is kept', async (t) => {
  const site = await serveConsole(t, { startMs: Date.now() })
  const { id } = token(site)
  const ada = site.signIn('ada@acme.example', 'admin')
  const first = fileIn(await tried(ada))
  const other = await site.signIn('bob@acme.example', 'admin').submit('/try-file/add', { file: first, token: id })
  t.match(text(other.text), 'NOT_FOUND: the file is not kept any more. Choose it again')
  const second = fileIn(await tried(ada))
  t.equal(copies(site).length, 1, 'a newer file replaces the older one of the organization')
  t.match(text((await ada.submit('/try-file/add', { file: first, token: id })).text), 'not kept any more')
  t.match(text((await ada.submit('/try-file/add', { file: second, token: 'none' })).text), 'The file was not added')
  new Administration(site.store, site.clock).tokens.revoke(site.organization, id)
  const revoked = await ada.submit('/try-file/add', { file: second, token: id })
  t.match(text(revoked.text), 'NOT_FOUND: the monitoring token is not active any more')
  t.equal(site.store.buffer.count(site.organization.id), 0)
  const member = site.signIn('eve@acme.example', 'member')
  t.equal((await member.post('/try-file/add', { file: second, token: id })).status, 403)
})

t.test('one file is added at a time, and a click adds again what failed', async (t) => {
  const site = await serveConsole(t, { startMs: Date.now() })
  const { id } = token(site)
  const ada = site.signIn('ada@acme.example', 'admin')
  const file = fileIn(await tried(ada))
  const release = await tryHold(site.store.environment.path, 'ingest file')
  const form = { file, token: id }
  const pages = await Promise.all([1, 2, 3].map(() => ada.submit('/try-file/add', form)))
  const problems = pages.map(({ text: page }) => /STORE_IN_USE: (another \w+)/.exec(page)?.[1])
  t.same(problems.sort(), ['another file', 'another file', 'another process'])
  await release?.()
  const [page = ''] = pages.map(({ text: page }) => page)
  t.match(page, 'Add it again')
  const again = await ada.submit('/try-file/add', {
    file: fileIn(page),
    token: /name="token" value="(.*?)"/.exec(page)?.[1] ?? '',
  })
  t.match(text(again.text), '2 events added')
  t.notMatch(again.text, 'Add it again')
})

t.test('what cannot be added is not kept', async (t) => {
  const site = await serveConsole(t, { startMs: Date.now() })
  const member = site.signIn('eve@acme.example', 'member')
  t.notMatch(await tried(member), '/try-file/add', 'a member who may not')
  const admin = site.signIn('ada@acme.example', 'admin')
  t.notMatch(await tried(admin, squid('www.example.com', '10.1.2.3', Date.now())), '/try-file/add', 'no match')
  t.match(text(await tried(admin, '')), 'The file is empty')
  t.same(copies(site), [])
  t.match(text(await tried(admin)), 'To add this log to Acme, create a monitoring token first')
})

t.test('a copy that cannot be written is said, and the file is shown nevertheless', async (t) => {
  const site = await serveConsole(t, { startMs: Date.now() })
  token(site)
  writeFileSync(join(site.directory, 'uploads'), 'a file where the folder would be')
  const page = text(await tried(site.signIn('ada@acme.example', 'admin')))
  t.match(page, 'This file cannot be added here It could not be kept: ')
  t.match(page, 'Platforms that would be found')
})
