import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { storedClient } from '../../../engine/admin/client-use.ts'
import { readHostNames } from '../../../engine/admin/host-names-file.ts'
import { EventAcceptor } from '../../../engine/ingest/accept.ts'
import { DAY_MS, HOUR_MS, isoSeconds } from '../../../engine/kernel/process/clock.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { PublishedList } from '../../../engine/store/published.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { admin, run, runAdmin } from '../../support/programs.ts'
import { makeOrganization, NOON, openStore, quietLog, registries, Sender, type TestStore } from '../../support/store.ts'

const NOW = Math.floor(Date.now() / 1000) * 1000

function scanned(opened: TestStore, id: string, clients: readonly (readonly [client: string, user?: string])[]): void {
  const { store, clock } = opened
  const sender = new Sender()
  const events = clients.map(([client, user = ''], at) =>
    sender.event(at % 2 === 0 ? 'claude.ai' : 'chatgpt.com', clock.nowMs(), {
      ...{ client, count: clients.length - at },
      ...(user === '' ? {} : { user, bytesSent: 100 }),
    }),
  )
  store.environment.write(() => store.buffer.append(id, events))
  runScan(store, registries, id, 'schedule', clock)
}

/** The published finding of each platform. */
function metadata({ store }: TestStore, id: string): Record<string, Record<string, unknown>> {
  const head = store.published.head(id, PublishedList.discovery)
  const runs = store.published.elements(id, PublishedList.discovery, head?.count ?? 0, 0, 100)
  const platforms = JSON.parse(`[${Buffer.concat(runs).toString()}]`) as { platform_name: string; metadata: object }[]
  return Object.fromEntries(platforms.map((each) => [each.platform_name, { ...each.metadata }]))
}

t.test('commands show who uses a platform, what a client uses, and names beside addresses', async (t) => {
  const opened = openStore(t, { startMs: NOW })
  const { id } = makeOrganization(opened, 'Acme')
  scanned(opened, id, [['10.2.0.7', 'jdoe'], ['10.2.0.7'], ['2001:db8::1'], ['10.9.0.1', 'ada']])
  const data = ['--data-dir', opened.directory]
  t.match(await admin('platform', 'list', ...data), [
    { platform_name: 'Claude', clients: 2, matches: 6, decision: 'waiting', first_found_at: isoSeconds(NOW) },
    { platform_name: 'ChatGPT', clients: 2, matches: 4 },
  ])
  t.match(await admin('platform', 'show', 'claude', ...data), [
    { platform_name: 'Claude', matches: 6, clients_total: 2, unlisted_matches: 0, names: ['claude.ai (6)'], days: 1 },
  ])
  await admin('network', 'add', '10.2.7.1/16', 'Berlin office', ...data)
  await admin('network', 'add', '10.0.0.0/8', 'Company', ...data)
  const file = join(opened.directory, 'names.csv')
  writeFileSync(file, 'address,name\n10.2.0.7,"Laptop of J. Doe"\n2001:DB8:0::1,printer\n')
  t.match(await admin('client', 'names', 'import', file, ...data), [{ file, format: 'csv', names: 2 }])
  const one = await run('admin', ['platform', 'show', 'Claude', '--clients', '--limit', '1', ...data])
  t.match(one.stderr, /^1 of 2 clients; for more: --limit 2$/m)
  t.match(await admin('platform', 'show', 'Claude', '--clients', ...data), [
    {
      client: '10.2.0.7',
      name: 'Laptop of J. Doe',
      network: 'Berlin office',
      user: 'jdoe',
      matches: 4,
      bytes_sent: 100,
    },
    { client: '2001:db8::1', name: 'printer', network: null, user: null, methods: ['dns'] },
  ])
  t.match(await admin('platform', 'show', 'Claude', '--days', ...data), [
    { clients: 2, used_matches: 6, blocked_matches: 0, touched_matches: 0 },
  ])
  t.match(await admin('platform', 'show', 'Claude', '--names', ...data), [{ name: 'claude.ai', matches: 6 }])
  t.match(await admin('client', 'show', '10.2.0.7', ...data), [
    { platform_name: 'Claude', user: 'jdoe', matches: 4 },
    { platform_name: 'ChatGPT', user: null, matches: 3 },
  ])
  t.match(await admin('client', 'show', 'ada', ...data), [{ platform_name: 'ChatGPT', client: '10.9.0.1' }])
  t.same(await admin('client', 'show', '10.0.0.99', ...data), [])
  t.match(await admin('network', 'list', ...data), [
    { network: '10.0.0.0/8', name: 'Company' },
    { network: '10.2.0.0/16', name: 'Berlin office' },
  ])
  t.match(await runAdmin(['network', 'remove', '10.3.0.0/16', ...data]), { stderr: /no named network 10\.3\.0\.0\/16/ })
  t.match(await runAdmin(['network', 'add', 'berlin', 'x', ...data]), { status: 2, stderr: /such as 10\.2\.0\.0\/16/ })
  t.match(await runAdmin(['platform', 'show', 'Gemini', ...data]), { stderr: /no match of .*Gemini/ })
  t.match(await runAdmin(['client', 'reveal', 'p-x', ...data]), { stderr: /has no pseudonyms/ })
})

t.test('a platform shows which logs and sensors saw its use', async (t) => {
  const { store, clock, directory, organization, administration, sender, scan } = acmeSite(t, { startMs: NOW })
  const { tokens } = administration
  const acceptor = new EventAcceptor(store, clock, quietLog, () => {})
  await acceptor.accept(organization.id, [sender.event('claude.ai', NOW, { count: 5 })])
  const data = ['--data-dir', directory]
  for (const [label, lines] of [
    ['Berlin proxy', 2],
    ['Paris proxy', 1],
  ] as const) {
    const file = join(directory, label)
    const [token, log] = [`${file}.token`, `${file}.log`]
    writeFileSync(token, tokens.generate(organization, label).raw, { mode: 0o600 })
    const line = (at: number): string =>
      `${NOW / 1000 - at}.000 ${300 + lines} 192.0.2.48 TCP_TUNNEL/200 6120 CONNECT claude.ai:443 - HIER_DIRECT/198.51.100.20 -\n`
    writeFileSync(log, Array.from({ length: lines }, (_, at) => line(at)).join(''))
    await admin('ingest', 'file', '--token-file', token, log, ...data)
  }
  scan('administrator')
  t.match(await admin('platform', 'show', 'claude', ...data), [
    { matches: 8, sources: [`sensor ${sender.instance} (5)`, 'log Berlin proxy (2)', 'log Paris proxy (1)'] },
  ])
  await acceptor.accept(organization.id, [sender.event('claude.ai', NOW)])
  scan('administrator')
  t.same(await admin('platform', 'show', 'claude', '--sources', ...data), [
    { kind: 'sensor', name: sender.instance, matches: 6 },
    { kind: 'log', name: 'Berlin proxy', matches: 2 },
    { kind: 'log', name: 'Paris proxy', matches: 1 },
  ])
})

t.test('one reading is one audit entry for each user, subject and hour', async (t) => {
  const opened = acmeSite(t)
  const { store, clock, organization, id } = opened
  scanned(opened, id, [['10.2.0.7']])
  const readers = ['root', 'ada'].map((name) => new Administration(store, clock, { kind: 'operator', name }))
  const read = (): void => {
    for (const { clients } of readers) {
      clients.ofPlatform(organization, 'claude', 'Claude')
      clients.ofClient(organization, '10.2.0.7')
    }
  }
  const entries = () =>
    store.auditLog.ofOrganization(id).map(({ actor, action, subject }) => `${actor} ${action} ${subject}`)
  read()
  read()
  t.same(entries(), [
    'operator root client.read Claude',
    'operator root client.read 10.2.0.7',
    'operator ada client.read Claude',
    'operator ada client.read 10.2.0.7',
  ])
  clock.add(HOUR_MS)
  read()
  t.equal(entries().length, 8)
  const members = new Administration(store, clock)
  members.members.add(organization, 'alice', 'member')
  members.members.add(organization, 'bob', 'admin')
  const as = (name: string): Administration => new Administration(store, clock, { kind: 'member', name })
  t.throws(() => as('alice').clients.ofPlatform(organization, 'claude', 'Claude'), { code: 'NOT_ALLOWED' })
  t.equal(as('bob').clients.ofPlatform(organization, 'claude', 'Claude').clients.length, 1)
  t.throws(() => as('bob').organizations.set(organization, { clients: 'off' }), { code: 'NOT_ALLOWED' })
  t.throws(() => as('bob').clients.reveal(organization, 'p-x'), { code: 'NOT_ALLOWED' })
})

t.test('a reading that began before a change of what is kept names no client', async (t) => {
  for (const { mode, subject } of [
    { mode: 'full', subject: '10.2.0.7' },
    { mode: 'pseudonym', subject: 'a client' },
    { mode: 'off', subject: 'a client' },
  ] as const) {
    const opened = acmeSite(t)
    const { organization: before, administration } = opened
    administration.organizations.set(before, { clients: mode })
    administration.clients.note(before, { client: '10.2.0.7' })
    const entries = opened.store.auditLog.ofOrganization(before.id)
    t.same(
      entries.filter(({ action }) => action === 'client.read').map((entry) => entry.subject),
      [subject],
      mode,
    )
  }
})

t.test('a revealed pseudonym leaves the audit log when clients are no longer kept', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const administration = new Administration(store, clock)
  const organization = administration.organizations.set(makeOrganization(opened, 'Acme'), { clients: 'pseudonym' })
  const pseudonym = storedClient(store, organization, '10.2.0.7')
  administration.clients.reveal(organization, pseudonym)
  const changed = administration.organizations.set(organization, { clients: 'off' })
  for (const _step of administration.organizations.eraseClients(changed));
  const entries = store.auditLog.ofOrganization(organization.id)
  t.notMatch(JSON.stringify(entries), pseudonym)
  t.match(
    entries.filter(({ action }) => action === 'client.reveal'),
    [{ subject: 'an erased client', actor: 'operator operator' }],
  )
})

t.test('a pseudonym is shown, found by its address, and revealed with an audit entry', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const administration = new Administration(store, clock)
  const organization = administration.organizations.set(makeOrganization(opened, 'Acme'), { clients: 'pseudonym' })
  const { id } = organization
  await new EventAcceptor(store, clock, quietLog, () => {}).accept(id, [
    new Sender().event('claude.ai', NOON, { client: '10.2.0.7', user: 'jdoe' }),
  ])
  runScan(store, registries, id, 'schedule', clock)
  const [use] = administration.clients.ofPlatform(organization, 'claude', 'Claude').clients
  t.match(use, { client: /^p-/, user: /^u-/ })
  t.match(administration.clients.ofClient(organization, '10.2.0.7').platforms, [{ platformId: 'claude' }])
  t.match(administration.clients.ofClient(organization, use?.client ?? '').platforms, [{ platformId: 'claude' }])
  t.same(administration.clients.reveal(organization, use?.user ?? ''), { kind: 'user', text: 'jdoe' })
  const entries = store.auditLog.ofOrganization(id)
  t.match(entries.at(-1), { action: 'client.reveal', subject: use?.user })
  t.notMatch(JSON.stringify(entries), /10\.2\.0\.7|jdoe/)
})

t.test('API responses name clients only if the organization has switched that on', async (t) => {
  const opened = acmeSite(t)
  const { organization, id, administration, scan } = opened
  const { organizations } = administration
  scanned(
    opened,
    id,
    Array.from({ length: 60 }, (_, at) => [`10.2.0.${at}`] as const),
  )
  t.notMatch(JSON.stringify(metadata(opened, id)), /10\.2\.0|top_clients/)
  organizations.set(organization, { apiClients: true })
  scan('administrator')
  const clients = metadata(opened, id)['Claude']?.['top_clients'] as { client: string; matches: number }[]
  t.equal(clients.length, 20)
  t.match(clients[0], { client: '10.2.0.0', matches: 60 })
  organizations.set(organization, { apiClients: false })
  scan('administrator')
  t.notMatch(JSON.stringify(metadata(opened, id)), /10\.2\.0|top_clients/)
})

t.test('the results of two days are compared', async (t) => {
  const opened = acmeSite(t, { startMs: NOW - DAY_MS })
  const { store, clock, id } = opened
  const data = ['--data-dir', opened.directory]
  scanned(opened, id, [['10.2.0.7']])
  t.match(await runAdmin(['scan', 'diff', ...data]), { stderr: /no two days with a completed scan/ })
  clock.add(DAY_MS)
  scanned(opened, id, [['10.2.0.7'], ['10.2.0.8'], ['10.2.0.9']])
  t.match(await admin('scan', 'diff', ...data), [
    { platform_name: 'ChatGPT', change: 'new', clients: 1, clients_before: 0 },
    { platform_name: 'Claude', change: 'use', clients: 2, clients_before: 1, matches: 5, matches_before: 1 },
  ])
  const [first, last] = store.history.days(id).map((day) => isoSeconds(day * DAY_MS).slice(0, 10)) as [string, string]
  t.match(await admin('scan', 'diff', last, first, ...data), [{ platform_name: 'ChatGPT', change: 'gone' }, {}])
  t.same(await admin('scan', 'diff', last, last, ...data), [])
  t.match(await runAdmin(['scan', 'diff', '2020-01-01', ...data]), { stderr: /no completed scan on 2020-01-01/ })
  clock.add(400 * DAY_MS)
  scanned(opened, id, [])
  t.equal(store.history.days(id).length, 1, 'older days are removed')
})

t.test('addresses get names only while clients are kept in full', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const { clientNames, organizations } = new Administration(store, clock)
  for (const mode of ['pseudonym', 'off'] as const) {
    const before = makeOrganization(opened, mode)
    organizations.set(before, { clients: mode })
    const conflict = { code: 'CONFLICT', message: new RegExp(`not with "${mode}"`) }
    t.throws(() => clientNames.importHosts(before, readHostNames('10.2.0.7,laptop', 'names').names), conflict)
    t.throws(() => clientNames.addNetwork(before, '10.2.0.7/32', 'laptop'), conflict)
    t.equal(store.clientNames.hostsCount(before.id), 0)
    t.same(store.clientNames.networks(before.id), [])
    clientNames.addNetwork(before, '10.2.0.0/31', 'Berlin office')
    clientNames.importHosts(before, new Map())
  }
})
