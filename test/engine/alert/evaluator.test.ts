import t from 'tap'
import { readGroups, storedGroups } from '../../../engine/admin/client-groups.ts'
import type { CoverageCounters } from '../../../engine/kernel/event/coverage-report.ts'
import { DAY_MS, HOUR_MS, isoSeconds, MINUTE_MS } from '../../../engine/kernel/process/clock.ts'
import { clientHash, clientsOf } from '../../../engine/store/alerts.ts'
import type { SourceDelta } from '../../../engine/store/sources.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { type AlertSite, alertSite } from '../../support/alerts.ts'
import { content } from '../../support/assessments.ts'
import { report } from '../../support/coverage.ts'
import { makeOrganization, Sender } from '../../support/store.ts'

const catalog = loadCatalog()

t.test('a platform raises one alert, however often it is evaluated', async (t) => {
  const site = alertSite(t)
  site.scan(['claude.ai'])
  t.same(site.evaluate(), { 'new-platform': 1 })
  t.same(site.evaluate(), {})
  site.scan(['claude.ai'])
  t.same(site.evaluate(), {}, 'the same platform in the next scan')
  site.scan(['chatgpt.com'])
  t.same(site.evaluate(), { 'new-platform': 1 })
  const [second, first] = site.store.alerts.newest(site.organization.id, 10)
  t.match([first?.sequence, second?.sequence], [1, 2])
  t.match(second, { rule: 'new-platform', severity: 'low', subject: { kind: 'platform', name: 'ChatGPT' } })
  t.match(second?.id, /^[0-9a-f]{32}$/)
  t.not(first?.id, second?.id)
})

t.test('a platform that left the window and returned is not new', async (t) => {
  const site = alertSite(t)
  site.scan(['claude.ai'])
  site.evaluate()
  site.clock.add(60 * DAY_MS)
  site.scan([])
  t.same(site.evaluate(), {})
  site.scan(['claude.ai'])
  t.same(site.evaluate(), {})
})

t.test('an unapproved platform above the risk raises one alert, again after its approval ended', async (t) => {
  const site = alertSite(t)
  const { administration, organization } = site
  administration.alerts.setThreshold(organization, 'unapproved-platform', 1)
  site.scan(['claude.ai'])
  t.same(site.evaluate(), { 'unapproved-platform': 1 }, 'and not new-platform as well')
  administration.approvals.add(organization, catalog, ['claude'])
  site.scan([])
  t.same(site.evaluate(), {})
  administration.approvals.remove(organization, catalog, ['claude'])
  site.scan([])
  t.same(site.evaluate(), { 'unapproved-platform': 1 })
  const ids = site.store.alerts.newest(organization.id, 2).map(({ id }) => id)
  t.equal(new Set(ids).size, 2, 'the second one has another id')
})

t.test('another formula of the risk raises no alert about platforms that were there', async (t) => {
  const site = alertSite(t)
  const { store, administration, organization } = site
  site.scan(['claude.ai'])
  t.same(site.evaluate(), { 'new-platform': 1 })
  administration.alerts.setThreshold(organization, 'unapproved-platform', 30)
  store.environment.write(() => {
    const state = store.scanStates.get(organization.id)
    store.scanStates.put(organization.id, { ...state, riskFormula: 1 })
  })
  t.same(site.evaluate(), {})
  site.scan(['claude.ai', 'chatgpt.com'])
  t.same(site.evaluate(), { 'unapproved-platform': 1 }, 'a new one is reported all the same')
  t.match(store.alerts.newest(organization.id, 1), [{ subject: { name: 'ChatGPT' } }])
})

t.test('a lower threshold reports the platforms that it adds', async (t) => {
  const site = alertSite(t)
  site.scan(['claude.ai', 'chatgpt.com'])
  t.same(site.evaluate(), { 'new-platform': 2 })
  site.administration.alerts.setThreshold(site.organization, 'unapproved-platform', 0)
  t.same(site.evaluate(), { 'unapproved-platform': 2 })
})

t.test('use of a rejected platform is reported once a day', async (t) => {
  const site = alertSite(t)
  const { administration, organization, clock } = site
  site.scan(['claude.ai'])
  site.evaluate()
  administration.approvals.reject(organization, catalog, ['claude'])
  site.scan([])
  t.same(site.evaluate(), {}, 'used only before')
  clock.add(MINUTE_MS)
  site.scan(['claude.ai'])
  t.same(site.evaluate(), { 'rejected-platform': 1 })
  clock.add(MINUTE_MS)
  site.scan(['claude.ai'])
  t.same(site.evaluate(), {}, 'again on the same day')
  clock.add(DAY_MS)
  site.scan(['claude.ai'])
  t.same(site.evaluate(), { 'rejected-platform': 1 })
})

t.test('blocked requests for a rejected platform are reported once a day, and never as use', async (t) => {
  const site = alertSite(t)
  const { administration, organization, clock, store } = site
  administration.approvals.reject(organization, catalog, ['kimi'])
  const blocked = (): void => {
    const event = new Sender().event('kimi.com', clock.nowMs(), { method: 'log', blocked: 1 })
    store.environment.write(() => store.buffer.append(organization.id, [event]))
    site.scan([])
  }
  clock.add(MINUTE_MS)
  blocked()
  t.same(site.evaluate(), { 'rejected-platform-blocked': 1 })
  clock.add(MINUTE_MS)
  blocked()
  t.same(site.evaluate(), {}, 'again on the same day')
  clock.add(DAY_MS)
  blocked()
  t.same(site.evaluate(), { 'rejected-platform-blocked': 1 })
  site.scan(['kimi.com'])
  t.match(site.evaluate(), { 'rejected-platform': 1 })
})

t.test('software with AI features is reported only after its rejection', async (t) => {
  const site = alertSite(t)
  const { administration, organization, clock } = site
  administration.alerts.setThreshold(organization, 'unapproved-platform', 0)
  administration.alerts.setThreshold(organization, 'platform-volume', 1)
  site.scan(['canva.com', 'canva.com', 'www.notion.so'])
  t.same(site.evaluate(), {})
  administration.approvals.reject(organization, catalog, ['canva'])
  clock.add(MINUTE_MS)
  site.scan(['canva.com'])
  t.same(site.evaluate(), { 'rejected-platform': 1 })
  site.scan(['notion.ai'])
  t.same(
    site.evaluate(),
    { 'unapproved-platform': 1, 'platform-volume': 1 },
    'a name of its AI makes it an AI platform',
  )
})

t.test('hosts that are no use raise no alert', async (t) => {
  const site = alertSite(t)
  const { administration, organization, clock } = site
  administration.alerts.setThreshold(organization, 'platform-volume', 2)
  const pixel = 'bzr.openai.com'
  site.scan([pixel, pixel, pixel, 'acme.ada.support'])
  t.same(site.evaluate(), {})
  site.scan(['chatgpt.com'])
  t.same(site.evaluate(), { 'new-platform': 1 }, 'and not the volume of the pixel')
  administration.approvals.reject(organization, catalog, ['chatgpt'])
  clock.add(MINUTE_MS)
  site.scan([pixel])
  t.same(site.evaluate(), {}, 'a pixel is no use of a rejected platform')
})

t.test('a high volume is reported once per platform and day', async (t) => {
  const site = alertSite(t)
  site.administration.alerts.setThreshold(site.organization, 'platform-volume', 2)
  site.scan(['claude.ai', 'claude.ai'])
  t.same(site.evaluate(), { 'new-platform': 1 })
  site.scan(['claude.ai'])
  t.same(site.evaluate(), { 'platform-volume': 1 })
  site.scan(['claude.ai'])
  t.same(site.evaluate(), {})
  t.match(site.store.alerts.newest(site.organization.id, 1), [{ details: { matches_of_day: 3, day: '2026-11-20' } }])
  site.administration.approvals.add(site.organization, catalog, ['claude'])
  site.scan([])
  t.same(site.evaluate(), {})
  site.administration.approvals.remove(site.organization, catalog, ['claude'])
  site.scan(['claude.ai'])
  t.same(site.evaluate(), {}, 'it was approved for a moment')
})

t.test('much data sent is reported by platform, group and number of clients, and names no client', async (t) => {
  const site = alertSite(t)
  const { store, clock, organization, administration } = site
  const people = ['ada', 'bob', 'cyd', 'dan', 'eve']
  const member = (name: string): string => `${name},Finance\n`
  // One person, as logs write the name.
  const board = ['fay', 'Fay', 'FAY', 'fAY', 'faY']
  const file = `${people.map(member).join('')}${board.map((name) => `${name},Board\n`).join('')}`
  const groups = readGroups(file, 'groups')
  administration.clientGroups.replace(organization, await storedGroups(store, organization, groups))
  administration.alerts.setThreshold(organization, 'bytes-sent', 10)
  const sender = new Sender()
  const sends = (name: string, megabytes: number, users: readonly string[], days = 0) => {
    const events = users.map((user) => {
      return sender.event(name, clock.nowMs() - days * DAY_MS, { user, bytesSent: megabytes * 1_000_000 })
    })
    store.environment.write(() => store.buffer.append(organization.id, events))
    site.scan([])
    const { 'bytes-sent': count = 0 } = site.evaluate()
    return store.alerts
      .newest(organization.id, count)
      .map(({ title }) => title)
      .sort()
  }
  t.same(sends('claude.ai', 2, people), [], 'as much as the threshold')
  t.same(sends('claude.ai', 0.1, ['ada']), [
    'Clients of Claude sent more than 10 MB on 2026-11-20',
    'The group Finance sent more than 10 MB on 2026-11-20',
  ])
  t.same(sends('chatgpt.com', 0.1, board), [])
  t.same(sends('chatgpt.com', 10.5, ['fay']), [
    'A client sent more than 10 MB on 2026-11-20',
    'Clients of ChatGPT sent more than 10 MB on 2026-11-20',
  ])
  const another = ['A client sent more than 10 MB on 2026-11-20']
  t.same(sends('chatgpt.com', 10.5, ['fay', 'eve']), another, 'another client on the same day')
  t.same(sends('chatgpt.com', 10.5, ['fay', 'eve']), [], 'each client once a day')
  const rememberedClients = () => {
    const reports = [...store.alerts.reported(organization.id, 'bytes-sent').values()]
    return reports.map((report) => clientsOf(report)).filter((clients) => clients.length > 0)
  }
  const [fay, eve] = ['fay', 'eve'].map((client) => clientHash(organization.id, client))
  t.same(rememberedClients(), [[fay, eve]], 'one report for a day')
  administration.persons.erase(organization, ['eve'])
  t.same(rememberedClients(), [[fay]])
  t.same(site.evaluate(), {})
  for (const _step of administration.organizations.eraseClients(organization));
  t.same(site.evaluate(), {}, 'the clients that were not erased are not reported again')
  const both = [
    '2 clients each sent more than 10 MB on 2026-11-19',
    'Clients of ChatGPT sent more than 10 MB on 2026-11-19',
  ]
  t.same(sends('chatgpt.com', 10.5, ['fay', 'gil'], 1), both)
  t.same(sends('chatgpt.com', 1, ['fay']), [], 'once a day')
  administration.approvals.add(organization, catalog, ['chatgpt'])
  t.same(sends('chatgpt.com', 11, ['fay'], 3), ['A client sent more than 10 MB on 2026-11-17'], 'it is approved')
  administration.approvals.remove(organization, catalog, ['chatgpt'])
  t.same(sends('chatgpt.com', 1, ['fay']), [], 'the days before and of the approval are not reported again')
  t.same(sends('chatgpt.com', 11, ['fay'], 9), [], 'too late')
  t.notMatch(JSON.stringify(store.alerts.newest(organization.id, 100)), /\b(fay|ada|Board)\b|10\.0\.0/)
})

t.test('more than so many times the usual day is reported with the usual day', async (t) => {
  const days = (megabytes: readonly number[], last: number) => [...megabytes, last]
  const usual = [1, 2, 3, 2, 1]
  const [date, usualDay] = ['2026-11-20', 'the usual 2 MB']
  for (const [name, sent, thresholds, expected] of [
    ['ten times', days(usual, 20), {}, []],
    [
      'more than ten times',
      days(usual, 21),
      {},
      [
        `A client sent 21 MB on ${date}, 10 times ${usualDay}`,
        `Clients of Claude sent 21 MB on ${date}, 10 times ${usualDay}`,
      ],
    ],
    ['four days before', days([0, 1, 2, 3, 2], 21), {}, []],
    ['a little, however unusual', days([0.1, 0.1, 0.1, 0.1, 0.1], 9), {}, []],
    ['another threshold', days(usual, 21), { 'bytes-unusual': 11 }, []],
    ['bytes-sent reports it', days(usual, 21), { 'bytes-sent': 20 }, []],
  ] as const) {
    const site = alertSite(t)
    const { store, clock, organization, administration } = site
    for (const [rule, threshold] of Object.entries(thresholds))
      administration.alerts.setThreshold(organization, rule as 'bytes-unusual', threshold)
    const sender = new Sender()
    const events = sent.map((megabytes, at) => {
      const timeMs = clock.nowMs() - (sent.length - 1 - at) * DAY_MS
      return sender.event('claude.ai', timeMs, {
        user: 'ada',
        ...(megabytes > 0 && { bytesSent: megabytes * 1_000_000 }),
      })
    })
    store.environment.write(() => store.buffer.append(organization.id, events))
    site.scan([])
    site.evaluate()
    const alerts = store.alerts.newest(organization.id, 9).filter(({ rule }) => rule === 'bytes-unusual')
    t.same(alerts.map(({ title }) => title).sort(), expected, name)
    for (const { details } of alerts)
      t.match(details, { usual_bytes_sent: 2_000_000, bytes_sent: 21_000_000, usual_day: /median/ })
  }
})

t.test('several clients above their usual day are one alert', async (t) => {
  const site = alertSite(t)
  const { store, clock, organization, administration } = site
  administration.organizations.set(organization, { alertPeople: true })
  const sender = new Sender()
  for (const user of ['ada', 'bob', 'cyd']) {
    const events = [0, 1, 2, 3, 4, 5].map((ago) => {
      const bytesSent = ago === 0 && user !== 'cyd' ? 50_000_000 : 1_000_000
      return sender.event('claude.ai', clock.nowMs() - ago * DAY_MS, { user, bytesSent })
    })
    store.environment.write(() => store.buffer.append(organization.id, events))
  }
  site.scan([])
  t.equal(site.evaluate()['bytes-unusual'], 2, 'of the clients, and of the platform')
  t.match(
    store.alerts.newest(organization.id, 9).find(({ subject }) => subject.kind === 'organization'),
    { title: '2 clients each sent more than 10 times their usual day on 2026-11-20', people: ['ada', 'bob'] },
  )
})

t.test('a high volume in logs that arrive up to 7 days late is reported for its day, once', async (t) => {
  const site = alertSite(t)
  const { store, clock, organization, administration } = site
  administration.alerts.setThreshold(organization, 'platform-volume', 2)
  site.scan(['claude.ai'])
  site.evaluate()
  const sender = new Sender()
  const arrives = (days: number): Readonly<Record<string, number>> => {
    store.environment.write(() => {
      store.buffer.append(organization.id, [sender.event('claude.ai', clock.nowMs() - days * DAY_MS, { count: 3 })])
    })
    site.scan([])
    return site.evaluate()
  }
  for (const days of [1, 3, 7]) {
    t.same(arrives(days), { 'platform-volume': 1 }, `${days} days late`)
    const [alert] = store.alerts.newest(organization.id, 1)
    t.match(alert, { details: { day: isoSeconds(clock.nowMs() - days * DAY_MS).slice(0, 10), matches_of_day: 3 } })
  }
  t.same(arrives(3), {}, 'more of the same day')
  t.same(arrives(8), {})
  clock.add(DAY_MS)
  site.scan([])
  t.same(site.evaluate(), {}, 'a day that is too old is not reported again')
})

function source(site: AlertSite, more: Partial<SourceDelta> = {}): SourceDelta {
  return {
    organizationId: site.organization.id,
    tokenId: '11111111-1111-4111-8111-111111111111',
    listener: 'tls',
    address: '192.0.2.1',
    host: 'proxy-1',
    lastSeenMs: site.clock.nowMs(),
    received: 1,
    counts: [1],
    formats: {},
    sample: '',
    zoneMinutes: 0,
    timesUnread: 0,
    hasUnknownToken: false,
    ...more,
  }
}

function hear(site: AlertSite, more: Partial<SourceDelta> = {}): void {
  site.store.environment.write(() => site.store.sources.add([source(site, more)]))
}

t.test('a sender that stops is reported once, and again after it returned', async (t) => {
  const site = alertSite(t)
  hear(site)
  hear(site, { listener: 'file', host: '', address: 'old.log' })
  site.clock.add(2 * DAY_MS)
  t.same(site.evaluate(), {}, 'it had sent for a moment only')
  hear(site)
  site.clock.add(23 * HOUR_MS)
  t.same(site.evaluate(), {})
  site.clock.add(HOUR_MS)
  t.same(site.evaluate(), { 'source-silent': 1 })
  site.clock.add(HOUR_MS)
  t.same(site.evaluate(), {})
  hear(site)
  t.same(site.evaluate(), {})
  site.clock.add(25 * HOUR_MS)
  t.same(site.evaluate(), { 'source-silent': 1 })
  t.match(site.store.alerts.newest(site.organization.id, 1), [{ subject: { name: 'proxy-1' } }])
})

t.test('a sender that is not understood is reported once until most is understood', async (t) => {
  const site = alertSite(t)
  const counts = (unknown: number): Partial<SourceDelta> => {
    return { received: 200, counts: [200 - unknown, 0, 0, 0, 0, 0, unknown] }
  }
  hear(site, counts(90))
  t.same(site.evaluate(), {})
  site.clock.add(2 * HOUR_MS)
  hear(site, counts(110))
  t.same(site.evaluate(), { 'source-degraded': 1 })
  site.clock.add(2 * HOUR_MS)
  hear(site, counts(90))
  t.same(site.evaluate(), {}, 'weaker, but not over')
  site.clock.add(2 * HOUR_MS)
  hear(site, counts(110))
  t.same(site.evaluate(), {})
  site.clock.add(2 * HOUR_MS)
  hear(site, counts(0))
  site.evaluate()
  site.clock.add(2 * HOUR_MS)
  hear(site, counts(110))
  t.same(site.evaluate(), { 'source-degraded': 1 })
})

function addReport(site: AlertSite, letter: string, counters: Partial<CoverageCounters>, ended = false): void {
  const { store, organization, clock } = site
  const made = { ...report({ counters }), instance: letter.repeat(16), madeMs: clock.nowMs(), ended }
  store.environment.write(() => store.coverage.add(organization.id, made, clock.nowMs()))
}

t.test('a sensor that stops without a last report is reported', async (t) => {
  const site = alertSite(t)
  addReport(site, 'a', {})
  addReport(site, 'b', {}, true)
  t.same(site.evaluate(), {})
  site.clock.add(HOUR_MS)
  t.same(site.evaluate(), { 'sensor-silent': 1 })
  t.match(site.store.alerts.newest(site.organization.id, 1), [{ subject: { id: 'a'.repeat(16) } }])
  addReport(site, 'a', {})
  t.same(site.evaluate(), {})
})

t.test('each sensor that loses packets or cannot read names is reported once, beside sensors that can', async (t) => {
  const site = alertSite(t)
  site.administration.alerts.mute(site.organization, 'sensor-silent', true)
  const good = { packets: 1_000_000, names: 1000 }
  addReport(site, 'a', good)
  addReport(site, 'b', { packets: 900, packets_lost: 99, names: 10, hellos_unnamed: 90 })
  t.same(site.evaluate(), {}, 'too few packets')
  site.clock.add(MINUTE_MS)
  addReport(site, 'b', { packets: 9000, packets_lost: 990, names: 10, hellos_unnamed: 90 })
  t.same(site.evaluate(), { 'sensor-degraded': 1, 'coverage-low': 1 })
  const [low, lost] = site.store.alerts.newest(site.organization.id, 2)
  const subject = { kind: 'sensor', id: 'b'.repeat(16) }
  t.match(low, { subject, title: `Sensor ${subject.id} can read 9% of its traffic, less than 50%` })
  t.match(lost, { subject, title: `Sensor ${subject.id} lost 9.9% of its packets` })
  site.clock.add(DAY_MS)
  addReport(site, 'b', { packets: 10_000, packets_lost: 1100, names: 20, hellos_unnamed: 190 })
  t.same(site.evaluate(), {}, 'no better on the next day: reported once')
  site.clock.add(2 * DAY_MS)
  addReport(site, 'b', { packets: 20_000, packets_lost: 1100, names: 2000, hellos_unnamed: 190 })
  t.same(site.evaluate(), {}, 'better')
  site.clock.add(2 * DAY_MS)
  addReport(site, 'b', { packets: 30_000, packets_lost: 3100, names: 2000, hellos_unnamed: 2190 })
  t.same(site.evaluate(), { 'sensor-degraded': 1, 'coverage-low': 1 }, 'worse again')
})

t.test('API keys and approvals are reported before they expire, and unused keys', async (t) => {
  const site = alertSite(t)
  const { administration, organization, clock } = site
  const inDays = (days: number): number => clock.nowMs() + days * DAY_MS
  administration.apiKeys.create(organization, 'soon', ['scores:read'], inDays(20))
  administration.apiKeys.create(organization, 'later', ['scores:read'], inDays(200))
  administration.approvals.add(organization, catalog, ['claude'], { expiresAtMs: inDays(20) })
  t.same(site.evaluate(), {})
  clock.add(7 * DAY_MS)
  t.same(site.evaluate(), { 'api-key-expiring': 1, 'approval-expiring': 1 })
  t.match(
    site.store.alerts.newest(organization.id, 10).find(({ rule }) => rule === 'approval-expiring'),
    { title: /^The approval of Claude expires at /, subject: { kind: 'approval', id: 'claude', name: 'Claude' } },
  )
  clock.add(DAY_MS)
  t.same(site.evaluate(), {})
  clock.add(90 * DAY_MS)
  t.same(site.evaluate(), { 'api-key-unused': 1 }, 'the expired one counts no more')
})

t.test('a score that fell and recommendations of a high priority are reported', async (t) => {
  const site = alertSite(t)
  const complete = (answer: 'yes' | 'no'): void => {
    const { categories, ...rest } = content('hipaa', { U1: answer, U2: answer })
    const urgent = categories.map((each) => ({ ...each, items: each.items.map((item) => ({ ...item, priority: 1 })) }))
    site.administration.assessments.import(site.organization, { ...rest, categories: urgent }, { complete: true })
  }
  complete('yes')
  t.same(site.evaluate(), {})
  complete('no')
  const { 'score-fell': fell, 'recommendation-opened': opened } = site.evaluate()
  t.same([fell, opened], [1, 1], 'one alert about all recommendations')
  t.match(site.store.alerts.newest(site.organization.id, 1), [
    { title: '2 recommendations opened: HIPAA', severity: 'medium', subject: { kind: 'framework', id: 'hipaa' } },
  ])
  t.same(site.evaluate(), {})
})

t.test('an item is reported once when it is past its due date, and so is its recommendation', async (t) => {
  const site = alertSite(t)
  const { administration, organization, clock } = site
  const made = administration.assessments.create(organization, 'cis-v8', 'Autumn', ['1.1', '1.2'])
  for (const item of ['1.1', '1.2']) {
    administration.assessments.assign(organization, made.id, item, { owner: 'Grace', dueOn: '2026-11-20' })
  }
  administration.assessments.answer(organization, made.id, '1.2', 'yes')
  t.same(site.evaluate(), {}, 'on its last day')
  clock.add(86_400_000)
  t.same(site.evaluate(), { 'item-overdue': 1 })
  t.match(site.store.alerts.newest(organization.id, 1)[0], {
    title: /^Overdue since 2026-11-20: 1.1 /,
    details: { owner: 'Grace', due_on: '2026-11-20' },
  })
  t.same(site.evaluate(), {})
  administration.assessments.answer(organization, made.id, '1.1', 'no')
  administration.assessments.complete(organization, made.id)
  t.match(site.evaluate(), { 'item-overdue': 1 })
  t.same(site.evaluate(), {})
})

t.test('a muted rule writes no alerts, also not when it is unmuted', async (t) => {
  const site = alertSite(t)
  site.administration.alerts.mute(site.organization, 'new-platform', true)
  site.scan(['claude.ai'])
  t.same(site.evaluate(), {})
  site.administration.alerts.mute(site.organization, 'new-platform', false)
  t.same(site.evaluate(), {})
  site.scan(['chatgpt.com'])
  t.same(site.evaluate(), { 'new-platform': 1 })
})

t.test('an organization never gets alerts of another', async (t) => {
  const site = alertSite(t)
  const other = makeOrganization(site, 'Other')
  site.scan(['claude.ai'], other)
  t.same(site.evaluate(), {})
  t.same(site.evaluate(other), { 'new-platform': 1 })
  t.same(site.store.alerts.newest(site.organization.id, 10), [])
})

t.test('an organization that was removed is not evaluated', async (t) => {
  const site = alertSite(t)
  site.scan(['claude.ai'])
  site.administration.organizations.remove(site.organization, () => {})
  t.same(site.evaluate(), {})
  for (const removal of site.store.removals.all()) [...site.store.removals.finish(removal)]
})
