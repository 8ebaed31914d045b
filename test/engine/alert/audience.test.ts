import t from 'tap'
import { readGroups, storedGroups } from '../../../engine/admin/client-groups.ts'
import { storedClients } from '../../../engine/admin/client-use.ts'
import { personRows } from '../../../engine/admin/persons.ts'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import type { ClientMode } from '../../../engine/store/organizations.ts'
import { applyRetention } from '../../../engine/store/retention.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { type AlertSite, alertSite, webhookReceiver } from '../../support/alerts.ts'
import { Sender } from '../../support/store.ts'

const ORIGIN = 'https://posture.example'
const FINANCE = ['ada', 'bea', 'cid', 'dan', 'eve']

/** Each user uses the platform of a name once. */
function use(site: AlertSite, name: string, users: readonly string[], more: Record<string, unknown> = {}): void {
  const sender = new Sender()
  const events = users.map((user) => sender.event(name, site.clock.nowMs(), { client: '10.9.8.1', user, ...more }))
  site.store.environment.write(() => site.store.buffer.append(site.organization.id, events))
  site.scan([])
  site.evaluate()
}

/** Groups of five people each: `Sales-1`, and so on. */
async function setGroups({ administration, organization, store }: AlertSite, names: readonly string[]): Promise<void> {
  const rows = names.flatMap((name) => [1, 2, 3, 4, 5].map((at) => `${name}-${at},${name}`))
  const groups = await storedGroups(store, organization, readGroups(rows.join('\n'), ''))
  administration.clientGroups.replace(organization, groups)
}

function erase(site: AlertSite, person: readonly string[]): void {
  site.administration.persons.erase(site.organization, person)
  site.scan([])
}

t.test('a message links to the console and names the groups; people only if the organization allows it', async (t) => {
  const receiver = await webhookReceiver(t)
  const site = alertSite(t, { consoleOrigin: ORIGIN })
  const { administration, organization, store } = site
  const members = [...FINANCE.map((each) => `${each},Finance`), 'fay,Board']
  administration.clientGroups.replace(
    organization,
    await storedGroups(store, organization, readGroups(members.join('\n'), '')),
  )
  site.addChannel({ kind: 'webhook', url: receiver.url })
  use(site, 'claude.ai', ['ada', 'fay'])
  await site.deliver()
  administration.organizations.set(organization, { alertPeople: true })
  use(site, 'perplexity.ai', ['gil'])
  await site.deliver()
  const [claude, perplexity] = receiver.received.map(({ message }) => message.alerts[0])
  t.match(receiver.received[0]?.message, { url: `${ORIGIN}/platforms/Claude` })
  t.match(claude, { number: 1, groups: ['Finance'], url: `${ORIGIN}/platforms/Claude` })
  t.equal(claude?.people, undefined)
  t.match(perplexity, { number: 2, groups: undefined, people: ['gil'] })
})

t.test('the people of a rejected platform are those who used it after the decision', async (t) => {
  const site = alertSite(t)
  const { administration, organization, store, clock } = site
  administration.organizations.set(organization, { alertPeople: true })
  use(site, 'claude.ai', ['ada'])
  clock.add(60_000)
  administration.approvals.reject(organization, loadCatalog(), ['claude'])
  clock.add(60_000)
  use(site, 'claude.ai', ['ada', 'bea'])
  const newest = () => store.alerts.newest(organization.id, 1)
  t.match(newest(), [{ rule: 'rejected-platform', people: ['bea'] }], 'ada used it before the decision, too')
  clock.add(DAY_MS)
  use(site, 'claude.ai', ['ada'])
  use(site, 'claude.ai', ['cid'], { count: 5, blocked: 5 })
  t.match(newest(), [{ rule: 'rejected-platform', people: ['ada'] }])
})

const CHANGES: readonly (readonly [name: string, change: (site: AlertSite) => void, left: readonly string[]])[] = [
  ['nothing', () => {}, ['ada', 'bea']],
  ['one person is erased', (site) => erase(site, ['ada']), ['bea']],
  [
    'clients are no longer kept',
    (site) => {
      const changed = site.administration.organizations.set(site.organization, { clients: 'off' })
      for (const _step of site.administration.organizations.eraseClients(changed));
    },
    [],
  ],
  [
    'alerts no longer name people',
    (site) => site.administration.organizations.set(site.organization, { alertPeople: false }),
    [],
  ],
  [
    'clients are no longer kept for so long',
    (site) => {
      site.clock.add(40 * DAY_MS)
      for (const _step of applyRetention(site.store, site.organization.id, site.clock.nowMs()));
    },
    [],
  ],
]
for (const [name, change, left] of CHANGES) {
  t.test(`a message that waits, and a dead letter: ${name}`, async (t) => {
    const receiver = await webhookReceiver(t)
    const site = alertSite(t)
    const { administration, organization, store } = site
    administration.organizations.set(organization, { alertPeople: true })
    site.addChannel({ kind: 'webhook', url: `${receiver.url}/waits` }, { name: 'waits' })
    site.addChannel({ kind: 'webhook', url: `${receiver.url}/dead` }, { name: 'dead' })
    receiver.answer = ({ path }) => ({ status: path.endsWith('/dead') ? 422 : 503 })
    use(site, 'claude.ai', ['ada', 'bea'])
    await site.deliver()
    receiver.received.length = 0
    receiver.answer = () => ({ status: 204 })
    change(site)
    administration.alerts.retry(organization, 'dead')
    site.clock.add(DAY_MS / 2)
    await site.deliver()
    const people = receiver.received.map(({ message }) => message.alerts[0]?.people ?? [])
    t.same(people, [left, left])
    const kept = new Set(store.alerts.newest(organization.id, 9).flatMap((alert) => alert.people ?? []))
    t.same([...kept], left)
    const rows = store.environment.read(() => personRows(store, organization, ['ada']))
    t.equal(rows.filter(({ kind }) => kind === 'alert').length, left.includes('ada') ? 1 : 0)
  })
}

for (const [mode, pattern] of [
  ['full', /^ada$/],
  ['pseudonym', /^u-[\w-]{22,}$/],
  ['off', undefined],
] as const satisfies readonly (readonly [ClientMode, RegExp | undefined])[]) {
  t.test(`people in alerts are named as they are kept: ${mode}`, async (t) => {
    const site = alertSite(t)
    const { administration, organization, store } = site
    administration.organizations.set(organization, { clients: mode, alertPeople: true })
    const stored = mode === 'off' ? 'ada' : storedClients(store, administration.organization('Acme'))('ada')
    use(site, 'claude.ai', [stored])
    const [alert] = store.alerts.newest(organization.id, 1)
    if (pattern === undefined) t.equal(alert?.people, undefined)
    else t.match(alert?.people, [pattern])
  })
}

t.test('an alert about a day names the groups with use on it, and of bytes those who sent the most', async (t) => {
  const site = alertSite(t)
  const { administration, organization, store, clock } = site
  administration.organizations.set(organization, { alertPeople: true })
  await setGroups(site, ['Finance', 'Sales', 'Board'])
  const sender = new Sender()
  const [nowMs, user] = [clock.nowMs(), 'Finance-1']
  const events = [
    sender.event('claude.ai', nowMs - DAY_MS, { user, count: 9, bytesSent: 1 }),
    sender.event('claude.ai', nowMs - DAY_MS, { user: 'gil', count: 20_000, bytesSent: 2e9 }),
    sender.event('claude.ai', nowMs - DAY_MS, { user: 'Board-1', count: 3, blocked: 3 }),
    sender.event('claude.ai', nowMs, { user: 'Sales-1' }),
  ]
  const busy = Array.from({ length: 10 }, (_, at) =>
    sender.event('claude.ai', nowMs - DAY_MS, { user: `busy ${at}`, count: 30_000, bytesSent: 2 }),
  )
  store.environment.write(() => store.buffer.append(organization.id, [...events, ...busy]))
  site.scan([])
  site.evaluate()
  const found = store.alerts.newest(organization.id, 9).filter(({ subject }) => subject.kind === 'platform')
  const groups = Object.fromEntries(found.map((alert) => [alert.rule, alert.groups]))
  t.same(groups, {
    'new-platform': ['Finance', 'Sales'],
    'platform-volume': ['Finance'],
    'bytes-sent': ['Finance'],
  })
  t.equal(found.find(({ rule }) => rule === 'bytes-sent')?.people?.[0], 'gil')
})

t.test('of many groups an alert names some, and channels select it by any', async (t) => {
  const receiver = await webhookReceiver(t)
  const site = alertSite(t)
  const { organization, store } = site
  const names = Array.from({ length: 500 }, (_, at) => String(at).padEnd(240, 'x'))
  await setGroups(site, names)
  for (const name of names.slice(-2)) {
    site.addChannel({ kind: 'webhook', url: receiver.url }, { name: name.slice(0, 9), groups: [name] })
  }
  const use500 = names.map((name) => `${name}-1`)
  use(site, 'claude.ai', use500)
  await site.deliver()
  t.same(
    receiver.received.map(({ message }) => message.alerts[0]?.groups?.length),
    [20, 20],
  )
  t.equal(store.alerts.newest(organization.id, 1)[0]?.groups?.length, 20)
})

t.test('no person is kept if the setting changes during the evaluation', (t) => {
  const site = alertSite(t)
  const { administration, organization, store } = site
  const { environment } = store
  administration.organizations.set(organization, { alertPeople: true })
  site.scan(['claude.ai'])
  const write = environment.write.bind(environment)
  environment.write = (work) => {
    environment.write = write
    administration.organizations.set(organization, { alertPeople: false })
    return write(work)
  }
  t.same(site.evaluate(), {})
  t.same(site.evaluate(), { 'new-platform': 1 })
  t.equal(store.alerts.newest(organization.id, 1)[0]?.people, undefined)
  t.end()
})

t.test('a channel gets only the alerts of its rules and groups', async (t) => {
  const receiver = await webhookReceiver(t)
  const site = alertSite(t)
  const { administration, organization, store } = site
  const members = [...FINANCE.map((each) => `${each},Finance`), 'hal,Sales'].join('\n')
  administration.clientGroups.replace(organization, await storedGroups(store, organization, readGroups(members, '')))
  const add = (name: string, filter: object) =>
    site.addChannel({ kind: 'webhook', url: `${receiver.url}/${name}` }, { name, ...filter })
  add('all', {})
  add('finance', { groups: ['finance'] })
  add('sales', { groups: ['Sales'] })
  t.throws(() => add('typo', { groups: ['Finance', 'Sale'] }), { code: 'NOT_FOUND', message: /no group "Sale"/ })
  add('keys', { rules: ['api-key-expiring'] })
  add('new', { rules: ['new-platform', 'api-key-expiring'], groups: ['Finance', 'Sales'] })
  use(site, 'claude.ai', ['ada'])
  use(site, 'chatgpt.com', ['gil'])
  await site.deliver()
  const got = receiver.received.map(
    ({ path, message }) => `${path.split('/').at(-1)} ${message.alerts[0]?.subject.name}`,
  )
  t.same(got.sort(), ['all ChatGPT', 'all Claude', 'finance Claude', 'new Claude'])
  const [chatgpt, claude] = store.alerts.newest(organization.id, 2)
  t.same([claude?.messages.length, chatgpt?.messages.length], [3, 1])
})
