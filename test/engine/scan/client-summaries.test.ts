import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { type ClientFilter, clientList } from '../../../engine/admin/client-list.ts'
import { readHostNames } from '../../../engine/admin/host-names-file.ts'
import { checkStore } from '../../../engine/check/check.ts'
import { NO_CLIENT } from '../../../engine/kernel/event/client.ts'
import type { Event } from '../../../engine/kernel/event/event.ts'
import { DAY_MS, dayOf, HOUR_MS } from '../../../engine/kernel/process/clock.ts'
import { CLIENT_SUMMARIES_CHANGED_MAX, CLIENT_SUMMARIES_MAX } from '../../../engine/limits.ts'
import { SummaryUpdate } from '../../../engine/scan/client-summaries.ts'
import { finishErasure } from '../../../engine/scan/erase-clients.ts'
import { ScanBudget } from '../../../engine/scan/scan-budget.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { type ClientSummary, type SummaryTotals, sumOfDays } from '../../../engine/store/client-summaries.ts'
import type { Organization } from '../../../engine/store/organizations.ts'
import { applyRetention } from '../../../engine/store/retention.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { NOON, registries, Sender, type TestStore } from '../../support/store.ts'

const PLATFORMS = loadCatalog().platforms

function scan({ store, clock }: TestStore, id: string, events: readonly Event[]): void {
  store.environment.write(() => store.buffer.append(id, events))
  runScan(store, registries, id, 'schedule', clock)
}

function listOf({ store, clock }: TestStore, organization: Organization, filter: ClientFilter = {}) {
  return store.environment.read(() => clientList(store, organization, PLATFORMS, filter, clock.nowMs()))
}

/** Two addresses of a user, one of them with requests without the user, and another client. */
function office(sender: Sender): Event[] {
  const jdoe = { user: 'jdoe', bytesSent: 1000, bytesReceived: 50 }
  return [
    sender.event('claude.ai', NOON, { client: '10.23.0.7', ...jdoe, count: 2 }),
    sender.event('chat.deepseek.com', NOON - 9 * DAY_MS, { client: '10.23.0.8', ...jdoe }),
    sender.event('chatgpt.com', NOON - HOUR_MS, { client: '10.23.0.8', count: 3 }),
    sender.event('chatgpt.com', NOON, { client: '10.2.3.9', count: 4, blocked: 4 }),
    sender.event('claude.ai', NOON, { client: NO_CLIENT }),
  ]
}

t.test('a scan keeps one summary for each client, which later scans add to', async (t) => {
  const opened = acmeSite(t)
  const { store, organization } = opened
  t.equal(listOf(opened, organization).isMade, false)
  const sender = new Sender()
  scan(opened, organization.id, office(sender))
  scan(opened, organization.id, [sender.event('claude.ai', NOON - DAY_MS, { client: '10.23.0.9', user: 'jdoe' })])
  const { clients, total, others } = listOf(opened, organization)
  t.same([total, others.matches], [3, 0])
  t.match(
    clients.map(({ riskiest, ...each }) => ({ ...each, riskiest: riskiest()?.name })),
    [
      { client: '10.2.3.9', isUser: false, platforms: 0, riskiest: undefined, matches: 4, blocked: 4, bytesSent: 0 },
      { client: '10.23.0.8', platforms: 1, riskiest: 'ChatGPT', matches: 3 },
      {
        ...{ client: 'jdoe', isUser: true, addresses: ['10.23.0.8', '10.23.0.9', '10.23.0.7'], platforms: 2 },
        ...{ riskiest: 'DeepSeek', matches: 4, bytesSent: 2000, bytesReceived: 100 },
        ...{ firstSeenMs: NOON - 9 * DAY_MS, lastSeenMs: NOON },
      },
    ],
  )
  t.equal(listOf(opened, organization, { platformId: 'claude' }).clients.length, 1)
  t.match(listOf(opened, organization, { platformId: 'deepseek' }).clients, [{ client: 'jdoe', bytesSent: 1000 }])
  const isNew = listOf(opened, organization, { sinceMs: NOON - 7 * DAY_MS }).clients.map(({ client }) => client)
  t.same(isNew, ['10.2.3.9', '10.23.0.8'])
  t.same(checkStore(store).findings, [])
})

t.test('a search finds a part of a name, an address, or a network', async (t) => {
  const opened = acmeSite(t)
  const { store, clock, organization } = opened
  scan(opened, organization.id, office(new Sender()))
  const { clientNames } = new Administration(store, clock)
  clientNames.importHosts(organization, readHostNames('10.2.3.9,laptop-42', 'names').names)
  clientNames.addNetwork(organization, '10.23.0.0/16', 'Berlin office')
  for (const [search, found] of [
    ['JDO', ['jdoe']],
    ['10.23.0.7', ['jdoe']],
    ['10.23.0', ['10.23.0.8', 'jdoe']],
    ['10.23', ['10.23.0.8', 'jdoe']],
    ['10.2', ['10.2.3.9']],
    ['10.2.', ['10.2.3.9']],
    ['10.23.0.0/29', ['jdoe']],
    ['10.0.0.0/8', ['10.2.3.9', '10.23.0.8', 'jdoe']],
    ['laptop', ['10.2.3.9']],
    ['berlin', ['10.23.0.8', 'jdoe']],
    ['::ffff:10.2.3.9', ['10.2.3.9']],
    ['nobody', []],
    ['10.9', []],
  ] as const) {
    const clients = listOf(opened, organization, { search }).clients.map(({ client }) => client)
    t.same(clients, found, search)
  }
})

t.test('of pseudonyms, a whole user name or address finds its own; a change of mode erases', async (t) => {
  const opened = acmeSite(t)
  const { store, organization, administration } = opened
  scan(opened, organization.id, office(new Sender()))
  const pseudonymous = administration.organizations.set(organization, { clients: 'pseudonym' })
  t.equal(listOf(opened, pseudonymous).isMade, false)
  for (const _step of finishErasure(store, organization.id)) t.ok(true)
  t.same([...store.clientSummaries.all(organization.id)], [])
  t.equal(store.clientSummaries.totals(organization.id), undefined)
  scan(opened, organization.id, [])
  t.match(listOf(opened, pseudonymous), { isMade: true, total: 0 })
  t.same(checkStore(store).findings, [])
})

t.test('the first scan after an earlier release makes the list from the client records', async (t) => {
  const opened = acmeSite(t)
  const { store, organization, sender } = opened
  scan(opened, organization.id, office(sender))
  const namesIn = () =>
    listOf(opened, organization).clients.map((each) => ({ ...each, riskiest: each.riskiest()?.name }))
  const before = namesIn()
  store.environment.write(() => store.clientSummaries.removeAll(organization.id, Number.POSITIVE_INFINITY))
  scan(opened, organization.id, [])
  t.same(namesIn(), before)
})

t.test('a list of an earlier form is made again by the next scan', async (t) => {
  const opened = acmeSite(t)
  const { store, organization } = opened
  scan(opened, organization.id, office(new Sender()))
  const { id } = organization
  const totals = store.clientSummaries.totals(id)
  const put = Array.from(store.clientSummaries.all(id), ({ addressesSeenMs: _, ...earlier }) => earlier)
  const { form: _, ...earlierTotals } = totals as SummaryTotals
  store.environment.write(() => {
    const change = { put: put as unknown as ClientSummary[], removed: [], isRebuild: true, totals: earlierTotals }
    store.clientSummaries.write(id, change)
  })
  t.equal(listOf(opened, organization).isMade, false)
  for (const _step of applyRetention(store, id, opened.clock.nowMs() + 60 * DAY_MS)) t.ok(true)
  scan(opened, id, [])
  t.equal(listOf(opened, organization).total, 3)
  t.match(store.clientSummaries.get(id, 'jdoe', true)?.addressesSeenMs, [NOON - 9 * DAY_MS, NOON])
})

t.test('addresses and the first time leave with the days, and the last address is the last used', async (t) => {
  const opened = acmeSite(t)
  const { clock, organization, sender } = opened
  const scanUse = (client: string): void =>
    scan(opened, organization.id, [sender.event('claude.ai', clock.nowMs(), { client, user: 'ada' })])
  scanUse('10.1.1.1')
  scanUse('10.9.9.9')
  clock.add(HOUR_MS)
  scanUse('10.1.1.1')
  t.same(listOf(opened, organization).clients[0]?.addresses, ['10.9.9.9', '10.1.1.1'])
  for (let day = 0; day < 70; day += 10) {
    clock.add(10 * DAY_MS)
    scanUse('10.1.1.1')
  }
  t.same(listOf(opened, organization, { search: '10.9' }).clients, [])
  const [ada] = listOf(opened, organization).clients
  t.same(ada?.addresses, ['10.1.1.1'])
  t.ok((ada?.firstSeenMs ?? 0) > clock.nowMs() - 45 * DAY_MS)
  t.same(checkStore(opened.store).findings, [])
})

t.test('one new client beside many stored ones costs little, and stored ones may leave', async (t) => {
  const opened = acmeSite(t)
  const { store, id, sender } = opened
  const address = (at: number): string => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`
  scan(
    opened,
    id,
    Array.from({ length: CLIENT_SUMMARIES_MAX }, (_, at) =>
      sender.event('claude.ai', NOON, { client: address(at), count: 1 }),
    ),
  )
  let checks = 0
  const scope = { store, organizationId: id, generation: store.scanStates.get(id).generation }
  const day = dayOf(NOON)
  const update = new SummaryUpdate({
    ...{ ...scope, firstDay: day, lastDay: day },
    budget: new ScanBudget(() => {
      checks++
      return 0
    }),
  })
  const numbers = { methods: 1, access: 1, firstSeenMs: NOON, lastSeenMs: NOON, bytesSent: 0, bytesReceived: 0 }
  const add = (at: number, matches: number): void =>
    update.add(day, 'claude', address(at), '', { ...numbers, matches, blocked: 0, touched: 0 })
  store.environment.read(() => {
    for (let at = 0; at < CLIENT_SUMMARIES_MAX; at++) add(at, 1)
    for (let at = 0; at < CLIENT_SUMMARIES_MAX + 1000; at++) add(CLIENT_SUMMARIES_MAX + at, 9)
    // Of these, 20,000 stored and 1 new one were left out, and stored ones return with nothing.
    add(0, 100)
    t.ok(checks > 2 * CLIENT_SUMMARIES_MAX, 'each new client checks the budget')
    const { put, removed, totals } = update.change()
    t.equal(put.length, CLIENT_SUMMARIES_MAX)
    t.equal(removed.length, CLIENT_SUMMARIES_MAX + 999)
    t.equal(totals.clients, CLIENT_SUMMARIES_MAX)
    const others = sumOfDays(totals.others, 0).matches
    const kept = put.reduce((sum, { days }) => sum + sumOfDays(days, 0).matches, 0)
    t.equal(others + kept, 2 * CLIENT_SUMMARIES_MAX + 9 * (CLIENT_SUMMARIES_MAX + 1000) + 100)
  })
})

t.test('days leave with the evidence window', async (t) => {
  const opened = acmeSite(t)
  const { store, clock, organization, sender } = opened
  scan(opened, organization.id, office(sender))
  clock.add(25 * DAY_MS)
  t.match(listOf(opened, organization).clients.at(-1), { client: 'jdoe', platforms: 1, matches: 2, bytesSent: 1000 })
  scan(opened, organization.id, [])
  clock.add(DAY_MS)
  scan(opened, organization.id, [])
  const kept = store.clientSummaries.get(organization.id, 'jdoe', true)
  t.match(kept, { platformIds: 'claude', platformDays: [dayOf(NOON)] })
  t.equal(kept?.days.length, 40)
  clock.add(10 * DAY_MS)
  scan(opened, organization.id, [])
  clock.add(DAY_MS)
  scan(opened, organization.id, [])
  t.match(store.clientSummaries.totals(organization.id), { clients: 0 })
  t.same(checkStore(store).findings, [])
})

t.test('the retention removes the old days of all clients, where a scan has left some', async (t) => {
  const opened = acmeSite(t)
  const { store, clock, organization, sender } = opened
  const users = Array.from({ length: CLIENT_SUMMARIES_CHANGED_MAX + 500 }, (_, at) => `user${at}`)
  const scanDay = (): void =>
    scan(
      opened,
      organization.id,
      users.map((user) => sender.event('claude.ai', clock.nowMs(), { client: NO_CLIENT, user })),
    )
  const daysKept = (): number[] => {
    const counts = Array.from(store.clientSummaries.all(organization.id), ({ days }) => days.length / 40)
    return [Math.min(...counts), Math.max(...counts)]
  }
  scanDay()
  clock.add(29 * DAY_MS)
  scanDay()
  for (let day = 0; day < 3; day++) {
    clock.add(DAY_MS)
    scanDay()
  }
  // Two scans reach the last client. The third has begun again, three days after the first day.
  t.same(daysKept(), [4, 5])
  for (const _step of applyRetention(store, organization.id, clock.nowMs())) t.ok(true)
  t.same(daysKept(), [4, 4])
  t.same(checkStore(store).findings, [])
})

t.test('of too many clients, those with the most matches are kept, and the others are summed', async (t) => {
  const opened = acmeSite(t)
  const { store, organization, sender } = opened
  const address = (at: number): string => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`
  const events = (from: number, to: number, count: number): Event[] =>
    Array.from({ length: to - from }, (_, at) => sender.event('claude.ai', NOON, { client: address(from + at), count }))
  scan(opened, organization.id, events(0, CLIENT_SUMMARIES_MAX - 10, 2))
  scan(opened, organization.id, [
    ...events(CLIENT_SUMMARIES_MAX, CLIENT_SUMMARIES_MAX + 100, 9),
    ...events(CLIENT_SUMMARIES_MAX + 100, CLIENT_SUMMARIES_MAX + 150, 1),
  ])
  const { clients, total, others } = listOf(opened, organization)
  t.equal(total, CLIENT_SUMMARIES_MAX)
  t.equal(clients.filter(({ matches }) => matches === 9).length, 100)
  t.equal(others.matches, 90 * 2 + 50)
  t.same(checkStore(store).findings, [])
})
