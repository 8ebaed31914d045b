import t from 'tap'
import type { Event } from '../../../engine/kernel/event/event.ts'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import { ACCESS_NAMES_MAX } from '../../../engine/scan/access.ts'
import { listedDiscovery, type PublishedPlatform, publishedPlatform } from '../../../engine/scan/listed-discovery.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import type { Organization } from '../../../engine/store/organizations.ts'
import { PublishedList } from '../../../engine/store/published.ts'
import type { Scan } from '../../../engine/store/scans.ts'
import * as fc from '../../support/property.ts'
import { makeOrganization, openStore, registries, Sender, type TestStore } from '../../support/store.ts'

interface ScanSite extends TestStore {
  readonly organization: Organization
  scan(events: readonly (readonly [name: string, more?: Partial<Event>])[]): Scan
  platform(name: string): PublishedPlatform | undefined
}

function scanSite(t: Parameters<typeof openStore>[0], name = 'Acme', opened = openStore(t)): ScanSite {
  const { store, clock } = opened
  const organization = makeOrganization(opened, name)
  const sender = new Sender()
  return {
    ...opened,
    organization,
    scan(events) {
      const buffered = events.map(([name, more = {}]) => sender.event(name, clock.nowMs(), more))
      store.environment.write(() => store.buffer.append(organization.id, buffered))
      return runScan(store, registries, organization.id, 'administrator', clock)
    },
    platform: (name) => store.environment.read(() => publishedPlatform(store, organization, name)),
  }
}

const CAPABLE = ['www.canva.com', 'www.figma.com', 'www.notion.so', 'zapier.com', 'airtable.com'] as const

t.test('software with AI features is listed, and not counted as AI', async (t) => {
  const site = scanSite(t)
  const { summary } = site.scan(CAPABLE.map((name) => [name]))
  t.match(summary, { platformsDiscovered: 0, aiCapableCount: 5, shadowAiCount: 0, overallRiskScore: 0 })
  const { scan, platforms } = site.store.environment.read(() => listedDiscovery(site.store, site.organization))
  t.same(scan?.summary, { platforms_discovered: 0, shadow_ai_count: 0, overall_risk_score: 0 })
  t.same([...new Set(platforms.map(({ use }) => use))], ['ai_capable'])
  t.equal(platforms.length, 5)
  t.same(site.store.dailyUse.get(site.organization.id), [], 'and it has no clients of AI')
})

t.test('a name of its AI makes such software an AI platform, until that leaves the window', async (t) => {
  const site = scanSite(t)
  site.scan([['www.notion.so'], ['notion.ai']])
  t.equal(site.platform('Notion (with Notion AI)')?.metadata.use, 'ai')
  site.clock.add(20 * DAY_MS)
  t.match(site.scan([['www.notion.so']]), { summary: { platformsDiscovered: 1, shadowAiCount: 1 } })
  site.clock.add(20 * DAY_MS)
  t.match(site.scan([]), { summary: { platformsDiscovered: 0, aiCapableCount: 1, shadowAiCount: 0 } })
})

t.test('the history has the kind of each platform', async (t) => {
  const site = scanSite(t)
  site.scan([['claude.ai'], ['www.canva.com']])
  const [day = 0] = site.store.history.days(site.organization.id)
  const history = site.store.history.get(site.organization.id, day)
  t.same(
    new Map(history?.platforms.map(({ id, use }) => [id, use])),
    new Map([
      ['claude', 'ai'],
      ['canva', 'ai_capable'],
    ]),
  )
})

const NOTHING_USED = {
  ...{ platformsDiscovered: 0, aiCapableCount: 0, blockedCount: 0, touchedCount: 0 },
  ...{ shadowAiCount: 0, overallRiskScore: 0 },
}

t.test('hosts that are no use never make a platform found', async (t) => {
  const site = scanSite(t)
  const hosts = ['acme.ada.support', 'bzr.openai.com', 'copilot.cloud.microsoft', 'my-shop.lovable.app']
  const { summary } = site.scan(hosts.map((host) => [host]))
  t.same(summary, { ...NOTHING_USED, touchedCount: 4 })
  const { platforms } = site.store.environment.read(() => listedDiscovery(site.store, site.organization))
  t.same([...new Set(platforms.map(({ use, clients }) => `${use} ${clients}`))], ['touched 0'])
})

t.test('their matches count once the platform is found, their clients and days do not', async (t) => {
  const site = scanSite(t)
  site.scan([['bzr.openai.com', { client: '10.0.0.9', count: 40 }]])
  site.clock.add(DAY_MS)
  site.scan([['chatgpt.com'], ['bzr.openai.com', { client: '10.0.0.8', count: 2 }]])
  t.match(site.platform('ChatGPT')?.metadata, {
    use: 'ai',
    matches: 43,
    used_matches: 1,
    touched_matches: 42,
    roles: { web: 1, telemetry: 42 },
    clients: 1,
    days: 1,
    first_seen: '2026-11-21T12:00:00Z',
    domains_total: 2,
  })
})

const PROGRAM = { client: '10.0.0.7' }
const ACCESS: readonly {
  readonly name: string
  readonly events: readonly (readonly [name: string, more?: Partial<Event>])[]
  readonly of: string
  readonly access: readonly object[]
  readonly programmatic: number | undefined
}[] = [
  {
    name: 'a browser',
    events: [['claude.ai', { count: 3 }]],
    of: 'Claude',
    access: [{ kind: 'web', matches: 3, domains: ['claude.ai'] }],
    programmatic: undefined,
  },
  {
    name: 'a mobile app',
    events: [['ios.chat.openai.com'], ['chatgpt.com']],
    of: 'ChatGPT',
    access: [
      { kind: 'app', matches: 1, domains: ['ios.chat.openai.com'] },
      { kind: 'web', matches: 1, domains: ['chatgpt.com'] },
    ],
    programmatic: undefined,
  },
  {
    name: 'a program without a browser',
    events: [['api.openai.com', PROGRAM], ['chatgpt.com']],
    of: 'OpenAI API Platform',
    access: [{ kind: 'api', matches: 1, domains: ['api.openai.com'] }],
    programmatic: 1,
  },
  {
    name: 'a client of the API that also uses the site of another platform of the vendor',
    events: [
      ['api.openai.com', PROGRAM],
      ['chatgpt.com', PROGRAM],
    ],
    of: 'OpenAI API Platform',
    access: [{ kind: 'api', matches: 1, domains: ['api.openai.com'] }],
    programmatic: 0,
  },
  {
    name: 'a client of the API that uses the site of another vendor',
    events: [
      ['api.openai.com', PROGRAM],
      ['claude.ai', PROGRAM],
    ],
    of: 'OpenAI API Platform',
    access: [{ kind: 'api', matches: 1, domains: ['api.openai.com'] }],
    programmatic: 1,
  },
  {
    name: 'a pixel of the vendor is no site',
    events: [
      ['api.openai.com', PROGRAM],
      ['bzr.openai.com', PROGRAM],
    ],
    of: 'OpenAI API Platform',
    access: [{ kind: 'api', matches: 1, domains: ['api.openai.com'] }],
    programmatic: 1,
  },
  {
    name: 'an editor, without its telemetry',
    events: [['api2.cursor.sh', { count: 2 }], ['otel.cursor.com']],
    of: 'Cursor',
    access: [{ kind: 'tool', matches: 2, domains: ['api2.cursor.sh'] }],
    programmatic: undefined,
  },
  {
    name: 'documentation shows no access',
    events: [['docs.perplexity.ai']],
    of: 'Perplexity',
    access: [],
    programmatic: undefined,
  },
  {
    name: 'at most three names are the evidence, those with the most matches',
    events: Array.from({ length: 5 }, (_, at) => [`h${at}.claude.ai`, { count: at + 1 }] as const),
    of: 'Claude',
    access: [{ kind: 'web', matches: 15, domains: ['h4.claude.ai', 'h3.claude.ai', 'h2.claude.ai'] }],
    programmatic: undefined,
  },
]

for (const { name, events, of, access, programmatic } of ACCESS) {
  t.test(`how a platform is used: ${name}`, async (t) => {
    const together = scanSite(t, 'Together')
    together.scan(events)
    const apart = scanSite(t, 'Apart', together)
    for (const event of events) apart.scan([event])
    for (const site of [together, apart]) {
      const { metadata } = site.platform(of) ?? {}
      t.same(metadata?.access, access)
      t.ok((metadata?.access ?? []).every(({ domains }) => domains.length <= ACCESS_NAMES_MAX))
      t.equal(metadata?.programmatic_clients, programmatic)
    }
  })
}

t.test('clients of programs are counted across days and scans', async (t) => {
  const site = scanSite(t)
  const clients = (first: number, count: number) => Array.from({ length: count }, (_, at) => `10.1.${first}.${at}`)
  site.scan(clients(1, 20).map((client) => ['api.openai.com', { client }]))
  t.equal(site.platform('OpenAI API Platform')?.metadata.programmatic_clients, 20)
  site.clock.add(DAY_MS)
  site.scan(clients(1, 5).map((client) => ['chatgpt.com', { client }]))
  t.equal(site.platform('OpenAI API Platform')?.metadata.programmatic_clients, 15, 'a later day shows who they are')
  site.scan(
    clients(2, 3).flatMap((client) => [
      ['api.openai.com', { client }],
      ['oaistatic.com', { client }],
    ]),
  )
  t.equal(site.platform('OpenAI API Platform')?.metadata.programmatic_clients, 18, 'files of a site are no site')
  site.clock.add(29 * DAY_MS)
  site.scan([])
  t.equal(
    site.platform('OpenAI API Platform')?.metadata.programmatic_clients,
    3,
    'those of the first day left the window',
  )
})

/** One host of each purpose and kind. */
const HOSTS = ['claude.ai', 'api.anthropic.com', 'chatgpt.com', 'www.canva.com', 'lovable.dev'] as const
const OTHER_HOSTS = ['bzr.openai.com', 'acme.ada.support', 'x.lovable.app', 'suggest.perplexity.ai'] as const
const eventsOf = (hosts: readonly string[]) =>
  fc.array(fc.tuple(fc.constantFrom(...hosts), fc.nat(5), fc.integer({ min: 1, max: 9 })), { maxLength: 12 })

t.test('hosts that are no use change nothing but matches, in whatever order they arrive', async (t) => {
  const opened = openStore(t)
  let run = 0
  fc.assert(
    fc.property(
      fc.array(eventsOf(HOSTS), { maxLength: 3 }),
      fc.array(eventsOf(OTHER_HOSTS), { maxLength: 3 }),
      (used, others) => {
        run++
        const plain = scanSite(t, `Plain ${run}`, opened)
        const mixed = scanSite(t, `Mixed ${run}`, opened)
        for (let scan = 0; scan < 3; scan++) {
          const given = (events: typeof used) =>
            (events[scan] ?? []).map(([host, client, count]) => [host, { client: `10.0.0.${client}`, count }] as const)
          const [a, b] = [plain.scan(given(used)), mixed.scan([...given(others), ...given(used)])]
          t.same({ ...b.summary, touchedCount: 0 }, { ...a.summary, touchedCount: 0 })
        }
        const shown = (site: ScanSite) =>
          site.store.environment
            .read(() => listedDiscovery(site.store, site.organization))
            .platforms.filter(({ use }) => use !== 'touched')
            .map(({ id: _, matches: __, touched: ___, ...rest }) => rest)
        t.same(shown(mixed), shown(plain))
        return true
      },
    ),
    { numRuns: 30 },
  )
})

t.test('the JSON of a finding is what JSON.stringify writes', async (t) => {
  const site = scanSite(t)
  site.scan([
    ['claude.ai', { blocked: 1 }],
    ['api.anthropic.com', { client: '10.0.0.9' }],
    ['chatgpt.com', { method: 'dns_alias' }],
    ['cdn.oaistatic.com'],
  ])
  const { id } = site.organization
  const texts = site.store.environment.read(() => {
    const { count = 0 } = site.store.published.head(id, PublishedList.discovery) ?? {}
    return [...site.store.published.elementsOneByOne(id, PublishedList.discovery, count)]
  })
  t.ok(texts.length >= 2)
  for (const text of texts) t.equal(JSON.stringify(JSON.parse(text)), text)
})
