import t from 'tap'
import { Administration } from '../../engine/admin/administration.ts'
import { readGroups, storedGroups } from '../../engine/admin/client-groups.ts'
import { serveConsole } from '../support/console.ts'
import { makeOrganization, Sender, scanEvents } from '../support/store.ts'

t.test('search finds platforms, clients, groups, pages and settings that the role may see', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  const sender = new Sender()
  const events = ['ada', 'deepa'].map((user, at) =>
    sender.event('claude.ai', clock.nowMs(), { user, client: `10.2.0.${at}` }),
  )
  scanEvents(site, organization, events)
  const { clientGroups } = new Administration(store, clock)
  clientGroups.replace(
    organization,
    await storedGroups(store, organization, readGroups('ada,Deep Learning\n', 'groups')),
  )
  const admin = site.signIn('a', 'admin')
  const viewer = site.signIn('v', 'viewer')
  const find = async (by: typeof admin, text: string): Promise<string> =>
    (await by.get(`/search?${new URLSearchParams({ q: text })}`)).text
  const found = await find(admin, 'DEEP')
  t.match(found, /Platforms<.*href="\/platforms\/DeepSeek">DeepSeek<.*not seen/s)
  t.match(found, /Clients<.*href="\/clients\/deepa">deepa<.*user/s)
  t.match(found, /Groups<.*href="\/clients\?group=Deep\+Learning">Deep Learning</s)
  t.match(await find(admin, 'claude'), /Claude<\/a><\/span><[^>]+>Anthropic, risk \d+, waiting/)
  t.match(await find(admin, '10.2.0.1'), /href="\/clients\/deepa"/)
  t.match(await find(admin, 'frequency'), /Pages<.*href="\/scan-frequency">Scan Frequency</s)
  t.match(await find(admin, 'evidence w'), /Settings<.*href="\/organization-settings">Evidence window</s)
  t.match(await find(admin, '<nothing>'), /Nothing matches [^<]*&lt;nothing>/)
  t.notMatch(await find(viewer, 'deep'), /deepa|Deep Learning/)
  t.notMatch(await find(viewer, 'groups'), /href="\/client-groups"/)
  const other = site.signIn('g', 'owner', makeOrganization(site, 'Globex'))
  t.notMatch(await find(other, 'deep'), /deepa|Deep Learning/)
  t.match((await admin.get('/search')).text, /Keys: <kbd>\/<\/kbd> search/)
  t.match((await admin.get('/overview')).text, /<form class="search" method="get" action="\/search">/)
  const reads = store.auditLog.ofOrganization(organization.id).filter(({ action }) => action === 'client.read')
  t.match(reads[0], { subject: 'DEEP', actor: 'member a', details: { kind: 'client' } })
  t.ok(reads.every(({ actor }) => actor === 'member a'))
})
