import t from 'tap'
import { Administration } from '../../engine/admin/administration.ts'
import { readGroups, storedGroups } from '../../engine/admin/client-groups.ts'
import { dayOf } from '../../engine/kernel/process/clock.ts'
import { runScan } from '../../engine/scan/scan-runner.ts'
import { scanWith, serveConsole } from '../support/console.ts'
import { report } from '../support/coverage.ts'
import { makeOrganization, NOON, registries, Sender, scanEvents } from '../support/store.ts'

const DAY_MS = 86_400_000
const sender = new Sender()
const NONE = 'No log with byte counts'

t.test('before the first scan it shows the next step, which depends on the completed ones', async (t) => {
  const { signIn, store, organization } = await serveConsole(t)
  const admin = signIn('a', 'admin')
  const before = (await admin.get('/overview')).text
  t.match(before, /Three steps to the first findings/)
  t.equal(before.match(/to do<\/span>/g)?.length, 3)
  await admin.post('/monitoring-tokens', { label: 'one' })
  t.equal((await admin.get('/overview')).text.match(/to do<\/span>/g)?.length, 2)
  store.environment.write(() => store.buffer.append(organization.id, [sender.event('claude.ai', NOON)]))
  t.match((await admin.get('/overview')).text, /Events that wait: 1\./)
  t.notMatch((await signIn('v', 'viewer').get('/overview')).text, /href="\/monitoring-tokens"|action="\/scan"/)
})

t.test('software with AI features is counted apart, and waits for no decision', async (t) => {
  const site = await serveConsole(t)
  scanWith(site, ['claude.ai', 'www.canva.com', 'www.figma.com'])
  const viewer = site.signIn('v', 'viewer')
  const { text } = await viewer.get('/overview')
  t.match(text, /<dt>AI platforms<\/dt><dd>1<\/dd>/)
  t.match(text, /<a href="\/platforms\?use=ai_capable">2 AI-capable<\/a>/)
  t.match(text, /all 1 that wait/)
  t.notMatch(text, /Canva/)
  const names = async (query: string): Promise<string[]> => {
    const rows = await viewer.rows(`/platforms.csv${query}`)
    return rows.map(({ Platform, Use }) => `${Platform} ${Use}`).sort()
  }
  t.same(await names(''), ['Canva AI-capable', 'Claude AI', 'Figma AI-capable'])
  t.same(await names('?use=ai'), ['Claude AI'])
  t.same(await names('?use=ai_capable'), ['Canva AI-capable', 'Figma AI-capable'])
  const platforms = (await viewer.get('/platforms')).text
  t.match(platforms, />Canva<\/a> <span class="tag">AI-capable</)
  t.notMatch(platforms, />Claude<\/a> <span/)
  t.match((await viewer.get('/platforms/Canva')).text, /<span class="tag">AI-capable</)
})

t.test('the chart marks the day from which only used platforms count', async (t) => {
  const site = await serveConsole(t)
  const { clock, store, organization } = site
  const viewer = site.signIn('v', 'viewer')
  for (const [daysAgo, isOld] of [
    [3, true],
    [2, true],
    [1, false],
    [0, false],
  ] as const) {
    clock.set(NOON - daysAgo * DAY_MS)
    scanWith(site, ['claude.ai'])
    const day = dayOf(clock.nowMs())
    const result = store.history.get(organization.id, day)
    if (!isOld || result === undefined) continue
    const { blockedCount: _, touchedCount: __, ...summary } = result.summary
    store.environment.write(() => store.history.put(organization.id, day, { ...result, summary }))
  }
  t.match((await viewer.get('/overview')).text, /<span>Since 19 Nov, only used platforms count<\/span>/)
})

t.test('the overview has figures, the change in a week, open decisions, use per day, coverage', async (t) => {
  const site = await serveConsole(t)
  const { clock, store, organization } = site
  clock.set(NOON - 8 * DAY_MS)
  scanWith(site, ['claude.ai'])
  const admin = site.signIn('a', 'admin')
  await admin.post('/platforms/Claude/approve')
  clock.set(NOON)
  const counters = { packets: 1000, names: 90, hellos_named: 90, hellos_unnamed: 10 }
  store.environment.write(() => store.coverage.add(organization.id, report({ counters }), NOON))
  scanWith(site, ['chat.deepseek.com', 'claude.ai'])
  const { text } = await site.signIn('v', 'viewer').get('/overview')
  const [before, after] = store.scans
    .ofOrganization(organization.id)
    .filter(({ status }) => status === 'completed')
    .sort((a, b) => a.completedAtMs - b.completedAtMs)
    .map(({ summary }) => summary.overallRiskScore)
  t.match(text, `<dd>${after} <small>of 100</small></dd>`)
  const change = Number(after) - Number(before)
  t.ok(change > 0)
  t.match(text, `+${change} in a week`)
  t.match(text, /<dt>AI platforms<\/dt><dd>2<\/dd><dd><a href="[^"]+">1 new this week</)
  t.match(text, /<dt>Not approved<\/dt><dd>1<\/dd><dd>50 %/)
  t.match(text, /<dd>90 %<\/dd><dd>by 1 sensor</)
  t.notMatch(text, /Decide on/, 'a viewer makes no decisions')
  const decider = (await site.signIn('a', 'admin').get('/overview')).text
  t.match(decider, /Decide on DeepSeek/)
  t.notMatch(decider, /Decide on Claude/)
  t.match(decider, /<td><a class="button" href="\/platforms\/DeepSeek#decision"/, 'also on a phone')
  const days = await site.signIn('v', 'viewer').rows('/overview/days.csv')
  t.match(days.at(-1), {
    Day: '2026-11-20',
    'Clients of platforms that are not approved': '1',
    'Clients of approved platforms only': '1',
  })
  const [, file = ''] = /href="(\/platforms\.csv\?[^"]+)"/.exec(text) ?? []
  const rows = await site.signIn('v', 'viewer').rows(file.replaceAll('&amp;', '&'))
  t.match(rows, [{ Platform: 'DeepSeek', Decision: 'waiting' }])
  t.equal(rows.length, 1)
  t.match(text, /20 Nov: 1 client not approved, 1 approved/)
  t.match(text, /12 Nov: 0 clients not approved, 1 approved/)
  t.match(text, /DeepSeek: risk \d\d, 1 client</)
  const later = site.signIn('a', 'admin')
  await later.post('/platforms/Claude/withdraw')
  t.match((await later.get('/overview')).text, /Decide on Claude/, 'at once')
  runScan(store, registries, organization.id, 'administrator', clock)
  t.match((await later.get('/overview')).text, /20 Nov: 2 clients not approved, 0 approved/, 'after the scan')
  await later.post('/platforms/Claude/reject', { expires: '2026-11-21' })
  t.notMatch((await later.get('/overview')).text, /Decide on Claude/, 'a rejection is a decision')
  clock.set(NOON + DAY_MS)
  const expired = (await site.signIn('a', 'admin').get('/overview')).text
  t.match(expired, /Decide on Claude/)
  t.match(expired, />Claude<\/a> <span class="tag warn">expired/)
  const other = makeOrganization(site, 'Globex')
  t.notMatch((await site.signIn('g', 'owner', other).get('/overview')).text, /DeepSeek|Claude/)
})

t.test('a scan is requested', async (t) => {
  const { signIn, store, organization } = await serveConsole(t)
  t.match(await signIn('a', 'admin').post('/scan'), { status: 303, headers: { location: '/overview?done=scan' } })
  t.ok(store.scans.pending(organization.id))
  t.match((await signIn('a', 'admin').get('/overview?done=scan')).text, /The scan is requested/)
  t.equal((await signIn('v', 'viewer').post('/scan')).status, 403)
})

t.test('this week: figures of seven days, and platforms by the time of their use, decided in place', async (t) => {
  const site = await serveConsole(t)
  const { clock, organization } = site
  const sender = new Sender()
  const days = (count: number): number => clock.nowMs() - count * DAY_MS
  scanEvents(site, organization, [
    sender.event('claude.ai', days(20), { bytesSent: 9_000_000, user: 'ada' }),
    sender.event('claude.ai', days(20), { count: 50, blocked: 50 }),
    sender.event('claude.ai', days(2), { bytesSent: 300_000, client: '10.0.0.2', count: 2 }),
    sender.event('claude.ai', days(0), { user: 'ada' }),
    sender.event('perplexity.ai', days(9), { user: 'ada' }),
    sender.event('mistral.ai', days(3), { count: 6, blocked: 6 }),
    sender.event('chat.deepseek.com', days(1), { bytesSent: 1_200_000_000, user: 'jdoe', count: 3 }),
    sender.event('chat.deepseek.com', days(1), { count: 4, blocked: 4 }),
  ])
  const admin = site.signIn('a', 'admin')
  const { text } = await admin.get('/overview')
  const figures = (page: string): string[] =>
    [...(/<dl class="figures plain">.*?<\/dl>/s.exec(page)?.[0] ?? '').matchAll(/<dd>(?:<a[^>]*>)?([^<]+)/g)].map(
      ([, figure = '']) => figure.replace('\u00a0', ' '),
    )
  const week = [
    '2',
    '1 new',
    '2',
    'new this week',
    '1.2 GB',
    'nothing known received',
    '4',
    'and 1 platform blocked only',
  ]
  t.same(figures(text), week)
  t.same(figures((await admin.get('/overview?days=1')).text), [
    '1',
    'none of them new',
    '1',
    'new this week',
    '–',
    NONE,
    '0',
  ])
  const month = (await admin.get('/overview?days=30')).text
  t.match(month, /<h2>Last 30 days<.*href="\/overview\?days=1">Today \(UTC\)<.*href="\/overview\?days=7">Last 7 days</s)
  t.equal(figures(month)[6], '54')
  for (const [query, names] of [
    ['days=7&use=ai', ['Claude 2 3 300000', 'DeepSeek 1 3 1200000000']],
    ['days=7&use=blocked', ['Mistral AI Platform 0 0 ']],
    ['days=1&use=ai', ['Claude 1 1 ']],
    ['use=ai', ['Claude 2 4 9300000', 'DeepSeek 1 3 1200000000', 'Perplexity 1 1 ']],
  ] as const) {
    const rows = await admin.rows(`/platforms.csv?sort=name&${query}`)
    const shown = rows.map(({ Platform, Clients, Used, Sent }) => `${Platform} ${Clients} ${Used} ${Sent}`)
    t.same(shown, names, query)
  }
  t.match(
    text,
    /id="recent".*DeepSeek.*88 high.*href="\/platforms\/DeepSeek\/clients">1<.*>3<.*1\.2.GB.*>4<.*Approve DeepSeek/s,
  )
  t.notMatch(/id="recent".*?<\/table>/s.exec(text)?.[0] ?? '', /Claude/, 'imported now, but used three weeks ago')
  t.match(text, /<dt>Sent<\/dt><dd><a[^>]+>1\.2.GB</)
  t.match((await admin.get('/platforms?new=7')).text, /1 of 3/)
  t.match((await admin.get('/platforms?sort=-sent')).text, /DeepSeek<.*1\.2.GB.*Claude<.*9\.3.MB/s)
  t.match((await admin.get('/platforms/DeepSeek')).text, /<span>1\.2.GB sent<\/span>/)
  const decided = await admin.post('/decisions/reject?from=overview', { platform: 'DeepSeek' })
  t.match(decided, { status: 303, headers: { location: '/overview?done=rejected' } })
  t.match(
    (await admin.get('/overview?done=rejected')).text,
    /The platform is rejected.*id="recent".*DeepSeek.*rejected/s,
  )
  const viewer = (await site.signIn('v', 'viewer').get('/overview')).text
  t.notMatch(viewer, /Approve DeepSeek|\/clients/)
})

t.test('pages show the use of a range of days, which their links keep', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  const administration = new Administration(store, clock)
  const sender = new Sender()
  const days = (count: number): number => clock.nowMs() - count * DAY_MS
  administration.clientGroups.replace(
    organization,
    await storedGroups(store, organization, readGroups('ada,Finance\njdoe,Sales', '')),
  )
  scanEvents(site, organization, [
    sender.event('claude.ai', days(20), { user: 'ada', count: 5, bytesSent: 9_000_000 }),
    sender.event('claude.ai', days(9), { user: 'jdoe', count: 3 }),
    sender.event('claude.ai', days(0), { user: 'ada', count: 2 }),
    sender.event('perplexity.ai', days(9), { user: 'ada' }),
  ])
  const admin = site.signIn('a', 'admin')
  const rowsOf = async (path: string, names: readonly string[]): Promise<string[]> => {
    const rows = await admin.rows(path)
    return rows.map((row) => names.map((name) => row[name] ?? 'none').join(' ')).sort()
  }
  const all = {
    platforms: ['Claude 1 10', 'Perplexity 1 1'],
    clients: ['ada 2 8', 'jdoe 1 3'],
    groups: ['Finance 8', 'Sales 3'],
  }
  const week = { platforms: ['Claude 1 2'], clients: ['ada 1 2'], groups: ['Finance 2'] }
  const past = {
    platforms: ['Claude 1 3', 'Perplexity 1 1'],
    clients: ['ada none 1', 'jdoe none 3'],
    groups: ['Finance 1', 'Sales 3'],
  }
  for (const [query, expected] of [
    ['', all],
    ['days=7', week],
    ['from=2026-11-14&to=2026-11-20', week],
    ['from=2026-11-14', week],
    ['from=2026-11-05&to=2026-11-12', past],
    ['from=2026-11-05&to=2026-11-12&instead=30', all],
    ['from=2026-11-05&to=2026-11-12&instead=7', week],
    ['days=7&from=2026-11-05&to=2026-11-12', past],
    [
      'to=2026-11-12',
      {
        ...all,
        platforms: ['Claude 1 8', 'Perplexity 1 1'],
        clients: ['ada none 6', 'jdoe none 3'],
        groups: ['Finance 6', 'Sales 3'],
      },
    ],
  ] as const) {
    t.same(await rowsOf(`/platforms.csv?${query}`, ['Platform', 'Clients', 'Used']), expected.platforms, query)
    t.same(await rowsOf(`/clients.csv?${query}`, ['Client', 'Platforms', 'Matches']), expected.clients, query)
    const groups = (await rowsOf(`/client-groups.csv?${query}`, ['Group', 'Matches'])).filter(
      (row) => !row.endsWith(' 0'),
    )
    t.same(groups, expected.groups, query)
  }
  for (const path of [
    '/overview',
    '/platforms',
    '/platforms/Claude',
    '/platforms/Claude/clients',
    '/clients',
    '/report',
  ])
    for (const [query, problem] of [
      ['from=2026-11-12&to=2026-11-05', /usual days<.*2026-11-12 is after 2026-11-05\./s],
      ['from=2020-01-01&to=2020-01-02', /The days are not from 2026-10-22 to 2026-11-20\./],
      ['from=2026-10-21&to=2026-10-21', /The days are not from 2026-10-22 to 2026-11-20\./],
      ['days=90', /days=90 is not one of 1, 7, 30\./],
      ['days=30', undefined],
      ['from=<b>', /&quot;&lt;b>&quot; is not a date such as 2026-11-20\./],
      ['from=2026-11-05&to=2026-11-12', undefined],
      ['from=2026-11-12&to=2026-11-05&instead=7', undefined],
      ['from=&to=', undefined],
    ] as const) {
      const { text } = await admin.get(`${path}?${query}`)
      if (problem === undefined) t.notMatch(text, /usual days/, `${path}?${query}`)
      else t.match(text, problem, `${path}?${query}`)
      t.notMatch(text, /value="2026-10-21"/, 'no date before the first that the form allows')
    }
  t.notMatch((await admin.post('/decisions/approve?from=overview', {})).text, /usual days/, 'not a date')
  const query = 'from=2026-11-05&to=2026-11-12'
  t.match(
    (await admin.get(`/overview?${query}`)).text,
    /<h2>From 2026-11-05 to 2026-11-12<.*\/platforms\?from=2026-11-05&amp;to=2026-11-12&amp;use=ai">2</s,
  )
  const platform = (await admin.get(`/platforms/Claude?${query}`)).text
  t.match(platform, /1 client, 3 used matches, 1 day/)
  t.match(platform, /href="\/platforms\/Claude\/clients\?from=2026-11-05&amp;to=2026-11-12"/)
  t.match(
    (await admin.get(`/platforms/Claude/clients?${query}`)).text,
    /1 client, 3 matches from 2026-11-05 to 2026-11-12/,
  )
})

t.test('without byte counts, no page says 0 bytes', async (t) => {
  const site = await serveConsole(t)
  const { clock, organization } = site
  scanEvents(site, organization, [new Sender().event('claude.ai', clock.nowMs())])
  const admin = site.signIn('a', 'admin')
  for (const path of ['/overview', '/platforms', '/platforms/Claude', '/clients', '/report']) {
    t.match((await admin.get(path)).text, /No log with byte counts/, path)
  }
})
