import t from 'tap'
import { newCounts, Outcome } from '../../engine/store/outcomes.ts'
import { serveConsole } from '../support/console.ts'
import { report } from '../support/coverage.ts'
import { makeOrganization, NOON } from '../support/store.ts'

t.test('the audit log pages back, filters, and has a CSV file', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get('/audit-log')).text, /Nothing has changed yet/)
  const entry = { organizationId: organization.id, timeMs: NOON, actor: 'member a', details: {} }
  store.environment.write(() => {
    for (let made = 1; made <= 120; made++) {
      store.auditLog.append({ ...entry, action: 'token.generate', subject: `=sender ${made}.` })
    }
  })
  const subjects = (text: string) => [...text.matchAll(/=sender (\d+)\./g)].map(([, number]) => Number(number))
  const first = (await admin.get('/audit-log')).text
  t.same(
    subjects(first),
    Array.from({ length: 50 }, (_, at) => 120 - at),
  )
  const older = /href="(\?before=[^"]+)">Older/.exec(first)?.[1]
  const second = (await admin.get(`/audit-log${older}`)).text
  t.same(
    subjects(second),
    Array.from({ length: 50 }, (_, at) => 70 - at),
  )
  const last = (await admin.get('/audit-log?before=21')).text
  t.same(subjects(last).at(-1), 1)
  t.notMatch(last, /Older entries/)
  t.same(subjects((await admin.get('/audit-log?q=SENDER+7.')).text), [7])
  t.match((await admin.get('/audit-log?q=nothing')).text, /No entry matches/)
  t.match(first, /<span title="token\.generate">Monitoring token generated</, 'words, with the action on hover')
  t.equal(subjects((await admin.get('/audit-log?q=token+generated')).text).length, 50, 'the words are found')
  t.equal(subjects((await admin.get('/audit-log?q=token.generate')).text).length, 50)
  const rows = await admin.rows('/audit-log.csv')
  t.equal(rows.length, 120)
  t.equal(rows[0]?.['Subject'], "'=sender 120.", 'no formula')
  t.equal(rows[0]?.['Action'], 'token.generate')
  t.equal((await site.signIn('m', 'member').get('/audit-log')).status, 403)
})

t.test('an owner changes roles and removes members; the last owner stays', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const owner = site.signIn('olga@acme.example', 'owner')
  site.signIn('bob@acme.example', 'viewer')
  const path = '/members/bob%40acme.example'
  t.equal((await owner.post(`${path}/role`, { role: 'admin' })).status, 303)
  t.equal(store.members.get({ organizationId: organization.id, name: 'bob@acme.example' })?.role, 'admin')
  t.equal((await owner.post(`${path}/role`, { role: 'king' })).status, 400)
  const refused = await owner.post('/members/olga%40acme.example/role', { role: 'viewer' })
  t.match(refused, { status: 409, text: /is the only owner of Acme/ })
  t.notMatch((await site.signIn('bob@acme.example', 'admin').get('/members')).text, /action="\/members/)
  t.equal((await site.signIn('bob@acme.example', 'admin').post(`${path}/role`, { role: 'owner' })).status, 403)
  t.equal((await owner.post(`${path}/remove`)).status, 303)
  t.equal(store.members.get({ organizationId: organization.id, name: 'bob@acme.example' }), undefined)
})

t.test('sources show arrivals, messages that were not understood, and silent senders', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const viewer = site.signIn('v', 'viewer')
  t.match((await viewer.get('/sources')).text, /No message has arrived yet/)
  await site.signIn('a', 'admin').post('/monitoring-tokens', { label: 'firewalls' })
  const tokenId = store.monitoringTokens.ofOrganization(organization.id)[0]?.id ?? ''
  const counts = (stored: number, unknown: number) => {
    const all = newCounts()
    all[Outcome.stored] = stored
    all[Outcome.unknown] = unknown
    return [...all]
  }
  const source = {
    organizationId: organization.id,
    tokenId,
    address: '192.0.2.1',
    zoneMinutes: 0,
    timesUnread: 0,
    hasUnknownToken: false,
  }
  store.environment.write(() =>
    store.sources.add([
      {
        ...source,
        listener: 'tls',
        host: 'fw-01',
        lastSeenMs: NOON,
        received: 10,
        counts: counts(9, 1),
        formats: {},
        sample: 'a <b> line',
      },
      {
        ...source,
        listener: 'udp',
        host: 'dc-01',
        lastSeenMs: NOON - 7_200_000,
        received: 4,
        counts: counts(4, 0),
        formats: { squid: 4 },
        sample: '',
      },
      {
        ...source,
        listener: 'https',
        host: '',
        address: '192.0.2.9',
        lastSeenMs: NOON - 7_300_000,
        received: 2,
        counts: counts(2, 0),
        formats: {},
        sample: '',
      },
      {
        ...source,
        listener: 'file',
        host: '',
        address: 'access.log',
        lastSeenMs: NOON - 172_800_000,
        received: 3,
        counts: counts(3, 0),
        formats: { squid: 3 },
        sample: '',
      },
    ]),
  )
  const { text } = await viewer.get('/sources')
  t.match(text, /access\.log.*read once/s, 'a file is not silent later')
  t.match(text, /fw-01.*firewalls.*10 % not understood.*dc-01.*squid.*silent/s)
  t.match(text, /a &lt;b> line/)
  t.match(text, /fw-01.*not recognized.*192\.0\.2\.9.*>events</s, 'a collector sends no log format')
  const rows = await viewer.rows('/sources.csv')
  t.same(
    rows.map(({ Sender, Transport, Understood }) => [Sender, Transport, Understood]),
    [
      ['fw-01', 'tls', '0.9'],
      ['dc-01', 'udp', '1'],
      ['192.0.2.9', 'https', '1'],
      ['access.log', 'file', '1'],
    ],
  )
})

t.test('sensors show what they saw and what they could not see', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const viewer = site.signIn('v', 'viewer')
  t.match((await viewer.get('/sensors')).text, /No sensor has reported yet/)
  const counters = { packets: 900, packets_lost: 100, names: 80, hellos_named: 80, hellos_ech: 20, doh_sessions: 20 }
  const given = report({ instance: '00112233445566aa', counters })
  store.environment.write(() => store.coverage.add(organization.id, given, NOON))
  const { text } = await viewer.get('/sensors')
  t.match(text, /00112233445566aa.*reporting.*900.*10 %/s)
  t.match(text, /54 % of the traffic was seen/)
  t.match(text, /20 % · 20 connections/)
  site.clock.add(7_200_000)
  t.match((await site.signIn('w', 'viewer').get('/sensors')).text, /silent/)
  const foreign = site.signIn('g', 'owner', makeOrganization(site, 'Globex'))
  t.notMatch((await foreign.get('/sensors')).text, /00112233445566aa/)
})
