import t from 'tap'
import { Administration } from '../../engine/admin/administration.ts'
import { readHostNames } from '../../engine/admin/host-names-file.ts'
import { EventAcceptor } from '../../engine/ingest/accept.ts'
import { HOUR_MS } from '../../engine/kernel/process/clock.ts'
import { CLIENTS_PER_DAY_MAX } from '../../engine/limits.ts'
import { runScan } from '../../engine/scan/scan-runner.ts'
import { serveConsole, type TestConsole } from '../support/console.ts'
import { NOON, quietLog, registries, Sender, scanEvents } from '../support/store.ts'

const DAY_MS = 24 * HOUR_MS

/** Two clients use DeepSeek on two days, one of them Claude, too. */
async function use({ store, clock, organization }: TestConsole): Promise<void> {
  const sender = new Sender()
  const traffic = { user: 'jdoe', bytesSent: 1200, bytesReceived: 3_400_000 }
  await new EventAcceptor(store, clock, quietLog, () => {}).accept(organization.id, [
    sender.event('chat.deepseek.com', NOON - DAY_MS, { client: '10.2.0.7', count: 5, ...traffic }),
    sender.event('chat.deepseek.com', NOON - HOUR_MS, { client: '10.2.0.7', count: 2, ...traffic }),
    sender.event('chat.deepseek.com', NOON - HOUR_MS, { client: '2001:db8::1' }),
    sender.event('claude.ai', NOON - HOUR_MS, { client: '10.2.0.7', count: 3, ...traffic }),
  ])
  runScan(store, registries, organization.id, 'schedule', clock)
}

const entriesOf = ({ store, organization }: TestConsole) =>
  store.auditLog.ofOrganization(organization.id).map(({ actor, action, subject }) => `${actor} ${action} ${subject}`)

t.test('who uses a platform: clients with their names, users and bytes, in the audit log once an hour', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  await use(site)
  const { clientNames } = new Administration(store, clock)
  clientNames.addNetwork(organization, '10.2.0.0/16', 'Berlin office')
  clientNames.importHosts(organization, readHostNames('10.2.0.7,laptop-42', 'names').names)
  const before = entriesOf(site).length
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get('/platforms/DeepSeek')).text, /href="\/platforms\/DeepSeek\/clients"/)
  const { status, text } = await admin.get('/platforms/DeepSeek/clients')
  t.equal(status, 200)
  t.match(text, /2 clients, 8 matches in the last 30 days/)
  t.match(text, /href="\/clients\/10\.2\.0\.7">10\.2\.0\.7<\/a><p class="small muted break">laptop-42, Berlin office/)
  t.match(text, /href="\/clients\/jdoe">jdoe/)
  t.match(text, /2\.4.KB.*6\.8.MB/s)
  t.match(text, /19 Nov: 5 matches not approved.*20 Nov: 3 matches not approved/s)
  t.notMatch(text, /Others:/)
  t.match((await admin.get('/platforms/DeepSeek/clients?q=berlin')).text, /1 of 2/)
  t.match((await admin.get('/platforms/DeepSeek/clients?q=nobody')).text, /No client matches/)
  t.match(await admin.rows('/platforms/DeepSeek/clients.csv'), [
    { Client: '10.2.0.7', Name: 'laptop-42', Network: 'Berlin office', User: 'jdoe', Matches: '7', Days: '2' },
    { Client: '2001:db8::1', Name: '', User: '', Matches: '1', Sent: '' },
  ])
  t.match(await admin.rows('/platforms/DeepSeek/clients-days.csv'), [
    { Day: '2026-11-19', Clients: '1', Used: '5', Blocked: '0', Touched: '0' },
    { Day: '2026-11-20', Clients: '2', Used: '3', Blocked: '0', Touched: '0' },
  ])
  t.same(entriesOf(site).slice(before), ['member a client.read DeepSeek'])
  clock.add(HOUR_MS)
  await site.signIn('a', 'admin').get('/platforms/DeepSeek/clients')
  t.equal(entriesOf(site).length, before + 2)
  for (const role of ['viewer', 'member'] as const) {
    const browser = site.signIn(role, role)
    t.equal((await browser.get('/platforms/DeepSeek/clients')).status, 403)
    t.notMatch((await browser.get('/platforms/DeepSeek')).text, /\/clients"/)
  }
  const later = site.signIn('a', 'admin')
  t.equal((await later.get('/platforms/Nothing/clients')).status, 404)
  t.match((await later.get('/platforms/ChatGPT/clients')).text, /Nobody used ChatGPT/)
})

t.test('the file of the clients of a platform has the sum of those that are not listed', async (t) => {
  const site = await serveConsole(t)
  const { organization } = site
  const sender = new Sender()
  const events = Array.from({ length: CLIENTS_PER_DAY_MAX + 2 }, (_, at) =>
    sender.event('claude.ai', NOON - HOUR_MS, { client: `10.2.${at >> 8}.${at & 255}`, count: at === 0 ? 9 : 1 }),
  )
  scanEvents(site, organization, events)
  const admin = site.signIn('a', 'admin')
  const rows = await admin.rows('/platforms/Claude/clients.csv')
  t.equal(rows.length, CLIENTS_PER_DAY_MAX + 1)
  t.match(rows.at(-1), { Client: 'others', User: '', Matches: '2', 'First seen': '', 'Last seen': '' })
  t.equal(
    rows.reduce((sum, { Matches = '' }) => sum + Number(Matches), 0),
    CLIENTS_PER_DAY_MAX + 1 + 9,
  )
  t.equal((await admin.rows('/platforms/Claude/clients.csv?q=10.2.0.1')).at(-1)?.['Client'] === 'others', false)
})

t.test('the list of clients is sorted, searched, filtered and paged; each reading is in the audit log', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get('/clients')).text, /No client is listed yet.*The next scan makes the list/s)
  t.same(entriesOf(site).slice(0, 1), ['member a client.read list of clients'])
  await use(site)
  new Administration(store, clock).clientNames.importHosts(
    organization,
    readHostNames('2001:db8::1,laptop-42', 'names').names,
  )
  const before = entriesOf(site).length
  const { text } = await admin.get('/clients')
  t.match(text, /all 2/)
  t.match(text, /href="\/clients\/jdoe">jdoe<\/a><p class="small muted break">10\.2\.0\.7<\/p>.*3\.6.KB.*laptop-42/s)
  t.match(text, /aria-sort="descending"><a href="\?sort=matches">Matches/)
  for (const [query, found] of [
    ['q=jdo', ['jdoe']],
    ['q=10.2', ['jdoe']],
    ['q=10.2.0.0%2F16', ['jdoe']],
    ['q=2001:DB8:0::1', ['2001:db8::1']],
    ['q=LAPTOP', ['2001:db8::1']],
    ['platform=Claude', ['jdoe']],
    ['new=7', ['jdoe', '2001:db8::1']],
    ['sort=matches', ['2001:db8::1', 'jdoe']],
    ['sort=-sent', ['jdoe', '2001:db8::1']],
    ['sort=client', ['2001:db8::1', 'jdoe']],
  ] as const) {
    const rows = await admin.rows(`/clients.csv?${query}`)
    t.same(
      rows.map(({ Client }) => Client),
      found,
      query,
    )
  }
  t.match(await admin.rows('/clients.csv?platform=Claude'), [
    { Client: 'jdoe', Kind: 'user', Addresses: '10.2.0.7', Platforms: '2', Matches: '3', Sent: '1200' },
  ])
  const nothing = (await admin.get('/clients?q=Finance')).text
  t.match(
    nothing,
    /No client matches &quot;Finance&quot;.*Searched the users, addresses, host names and named networks/,
  )
  t.match((await admin.get('/clients?platform=ChatGPT')).text, /No client has a match of ChatGPT/)
  const subjects = ['jdo', '10.2', '10.2.0.0/16', '2001:db8::1', 'LAPTOP', 'Claude', 'Finance', 'ChatGPT']
  t.same(
    entriesOf(site).slice(before),
    subjects.map((subject) => `member a client.read ${subject}`),
    'once an hour',
  )
  t.equal((await site.signIn('v', 'viewer').get('/clients')).status, 403)
})

t.test('what a client uses', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  await use(site)
  new Administration(store, clock).clientNames.importHosts(
    organization,
    readHostNames('10.2.0.7,laptop-42', 'names').names,
  )
  const before = entriesOf(site).length
  const admin = site.signIn('a', 'admin')
  t.equal((await admin.get('/clients/10.9.9.9')).status, 404)
  const { text } = await admin.get('/clients/10.2.0.7')
  t.match(text, /<h1>10\.2\.0\.7<\/h1>.*laptop-42.*2 platforms in the last 30 days/s)
  t.match(text, /href="\/platforms\/DeepSeek">DeepSeek<\/a>.*>7<.*href="\/platforms\/Claude">Claude<\/a>.*>3</s)
  t.match(text, /20 Nov: 2 platforms not approved, 0 approved/)
  t.notMatch(text, /Reveal/)
  t.match(await admin.rows('/clients/jdoe/platforms.csv'), [
    { Platform: 'DeepSeek', Decision: 'waiting', Client: '10.2.0.7', User: 'jdoe', Matches: '7' },
    { Platform: 'Claude' },
  ])
  t.match(await admin.rows('/clients/jdoe/days.csv'), [{ Day: '2026-11-19' }, { Day: '2026-11-20' }])
  const read = ['10.9.9.9', '10.2.0.7', 'jdoe'].map((name) => `member a client.read ${name}`)
  t.same(entriesOf(site).slice(before), read, 'also those that found nothing')
})

t.test('names over time: the list, a platform and the page of an address show those of the time of use', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  await use(site)
  const { clientNames } = new Administration(store, clock)
  const text = `address,name,from,to
10.2.0.7,laptop-7,2026-11-03,2026-11-20
10.2.0.7,phone-9,2026-11-20,
2001:db8::1,old-tv,,2026-11-10
2001:db8::1,printer,2026-11-10,
`
  clientNames.importHosts(organization, readHostNames(text, 'names').names)
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get('/platforms/DeepSeek/clients')).text, /10\.2\.0\.7<\/a>.*>phone-9, \+1 earlier<.*>printer</s)
  const found = (search: string) => admin.rows(`/platforms/DeepSeek/clients.csv?q=${search}`)
  const earlier = 'laptop-7 from 2026-11-03 to 2026-11-20'
  t.match(await found('laptop'), [{ Client: '10.2.0.7', Name: 'phone-9', 'Earlier names': earlier }])
  t.same(await found('old-tv'), [])
  const list = (search: string) => admin.get(`/clients?q=${search}`).then(({ text }) => text)
  t.match(await list('old-tv'), />2001:db8::1<\/a><p class="small muted break">printer, was old-tv until 2026-11-10</)
  t.match(await list('printer'), />2001:db8::1<\/a><p class="small muted break">printer</)
  t.match(await list('laptop'), /No client matches/, 'when the user used the address last, it had another name')
  t.match(await list('phone'), />jdoe<\/a><p class="small muted break">phone-9, 10\.2\.0\.7</)
  const page = (await admin.get('/clients/10.2.0.7')).text
  t.match(page, /<h1>10\.2\.0\.7<\/h1>.*phone-9, \+1 earlier/s)
  t.match(page, /phone-9<.*>since 2026-11-20<.*laptop-7<.*>from 2026-11-03 to 2026-11-20</s)
  t.match(page, /Users at this address.*logs named them on these days.*href="\/clients\/jdoe">jdoe<.*19 Nov to 20 Nov/s)
  const user = (await admin.get('/clients/jdoe')).text
  t.notMatch(user, /Names of this address|Users at this address/)
})

t.test('the user of the last day is the first of an address', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  const sender = new Sender()
  const days = [
    ['ada', 3],
    ['bob', 2],
    ['ada', 1],
  ] as const
  const events = days.map(([user, ago]) =>
    sender.event('claude.ai', NOON - ago * DAY_MS, { client: '10.2.0.7', user, bytesSent: 1 }),
  )
  await new EventAcceptor(store, clock, quietLog, () => {}).accept(organization.id, events)
  runScan(store, registries, organization.id, 'schedule', clock)
  const page = (await site.signIn('a', 'admin').get('/clients/10.2.0.7')).text
  t.match(page, /Users at this address.*>ada<.*>17 Nov, 19 Nov<.*>bob<.*>18 Nov</s)
})

t.test('a pseudonym is shown as one; an owner reveals it, after a confirmation', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  new Administration(store, clock).organizations.set(organization, { clients: 'pseudonym' })
  await use(site)
  const admin = site.signIn('a', 'admin')
  const list = (await admin.get('/platforms/DeepSeek/clients')).text
  t.match(list, /stores clients as pseudonyms/)
  t.notMatch(list, /10\.2\.0\.7|jdoe/)
  const path = /href="(\/clients\/p-[^"]+)"/.exec(list)?.[1] ?? ''
  t.match((await admin.get('/clients?q=10.2.0.7')).text, /href="\/clients\/u-/)
  t.match((await admin.get('/clients?q=jdoe')).text, /1 of 2.*href="\/clients\/u-/s)
  t.notMatch((await admin.get(path)).text, /Reveal/)
  t.equal((await admin.submit(`${path}/reveal`)).status, 403)
  const owner = site.signIn('o', 'owner')
  t.match((await owner.get(path)).text, /pseudonym<\/span>.*action="\/clients\/p-[^"]+\/reveal"/s)
  const answer = await owner.submit(`${path}/reveal`, {}, { 'accept-encoding': 'gzip' })
  t.match(answer, { status: 200, headers: { 'cache-control': 'no-store', 'content-encoding': undefined } })
  t.match(answer.text, /This client is.*(10\.2\.0\.7|2001:db8::1)/s)
  t.notMatch((await owner.get(path)).text, /10\.2\.0\.7|2001:db8::1/)
  t.equal((await owner.submit('/clients/p-unknown/reveal')).status, 404)
  t.match(entriesOf(site).slice(-2), [/^member o client\.reveal p-/, /^member o client\.read u-/])
  t.notMatch(entriesOf(site).join(), /10\.2\.0\.7|jdoe/)
  clock.add(11 * 60_000)
  t.match((await owner.submit(`${path}/reveal`)).text, /Confirm/)
})

t.test('an owner sets what is kept of clients; less is asked about, and erases what is stored', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  await use(site)
  const path = '/organization-settings/clients'
  const owner = site.signIn('o', 'owner')
  const stored = () => store.organizations.get(organization.id)
  t.match(
    (await site.signIn('a', 'admin').get('/organization-settings')).text,
    /An owner of the organization can change/,
  )
  t.match((await owner.get('/organization-settings')).text, /value="full" checked/)
  t.match(await owner.post(path, { mode: 'full' }), { status: 303, headers: { location: '/organization-settings' } })
  t.equal((await owner.post(path, { mode: 'full', api: 'on' })).status, 303)
  t.match(stored(), { apiClients: true })
  const asked = (await owner.post(path, { mode: 'off' })).text
  t.match(asked, /Erase what is stored of clients\?.*Backups are not covered.*name="mode" value="off"/s)
  t.equal(stored()?.clients, undefined)
  t.equal((await owner.post(path, { mode: 'none' })).status, 400)
  t.match(await owner.post(path, { mode: 'off', erase: 'yes' }), { status: 303, headers: { location: /done=clients/ } })
  t.match(stored(), { clients: 'off', apiClients: false })
  runScan(store, registries, organization.id, 'administrator', clock)
  t.equal(store.clientDays.totals(organization.id).records, 0)
  const { text } = await owner.get('/platforms/DeepSeek/clients')
  t.match(text, /This organization keeps no clients.*href="\/organization-settings#clients"/s)
  t.equal((await owner.get('/clients/10.2.0.7')).status, 404)
  t.same(entriesOf(site).slice(0, 2), ['member o client.set Acme', 'member o client.set Acme'])
})

t.test('networks are named, host names imported', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const { id } = organization
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get('/client-names')).text, /No network has a name/)
  const add = (network: string, name: string) => admin.post('/client-names/networks', { network, name })
  t.equal((await add('10.2.7.1/16', 'Berlin office')).status, 303)
  t.same(store.clientNames.networks(id), [{ network: '10.2.0.0/16', name: 'Berlin office' }])
  t.match(await add('berlin', 'kept'), { status: 400, text: /such as 10\.2\.0\.0\/16.*value="kept"/s })
  t.match(await add('', ''), { status: 400, text: /Enter a network.*Enter a name/s })
  t.same(await admin.rows('/client-names/networks.csv'), [{ Network: '10.2.0.0/16', Name: 'Berlin office' }])
  t.equal((await admin.post('/client-names/networks/remove', { network: '10.2.0.0/16' })).status, 303)
  t.equal((await admin.post('/client-names/networks/remove', { network: '10.2.0.0/16' })).status, 404)
  const names = (text: string) => admin.post('/client-names/hosts', { text })
  t.equal((await names('10.2.0.7,laptop\r\n10.2.0.8,printer')).status, 303)
  t.match(store.clientNames.spansOf(id, '10.2.0.8'), [{ name: 'printer', fromMs: 0 }])
  t.match((await admin.get('/client-names?done=imported')).text, /2 addresses have one/)
  t.match(await names('nobody,laptop\n1,2'), { status: 400, text: /row 2: expected address,name.*nobody,laptop/s })
  t.match(await names(' '), { status: 400, text: /Choose a file/ })
  t.match(await names(`10.2.0.7,${'x'.repeat(600 * 1024)}`), { status: 400, text: /At most 512 KiB/ })
  t.match(store.clientNames.spansOf(id, '10.2.0.7'), [{ name: 'laptop', fromMs: 0 }])
  t.same(entriesOf(site), [
    'member a client.name 10.2.0.0/16',
    'member a client.name 10.2.0.0/16',
    'member a client.name names of clients',
  ])
})

t.test('clients are kept for days of their own, or as long as the evidence', async (t) => {
  const site = await serveConsole(t)
  const admin = site.signIn('a', 'admin')
  const days = { scanDays: '100', auditDays: '400', sourceDays: '50' }
  const retention = () => site.store.organizations.get(site.organization.id)?.retention
  t.equal((await admin.post('/retention', { ...days, clientDays: '30' })).status, 303)
  t.same(retention(), { scanDays: 100, auditDays: 400, sourceDays: 50 })
  t.equal((await admin.post('/retention', { ...days, clientDays: '7' })).status, 303)
  t.match(retention(), { clientDays: 7 })
  t.match((await admin.get('/retention')).text, /name="clientDays"[^>]*value="7"/)
  t.match(
    (await admin.get('/retention?scanDays=1&auditDays=400&sourceDays=1&clientDays=1')).text,
    /Who used each platform: 0/,
  )
})
