import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { platformUse, useOfClient } from '../../../engine/admin/client-use.ts'
import type { Event } from '../../../engine/kernel/event/event.ts'
import { sealRecord } from '../../../engine/kernel/lmdb/record.ts'
import { DAY_MS, dayOf } from '../../../engine/kernel/process/clock.ts'
import { listedDiscovery } from '../../../engine/scan/listed-discovery.ts'
import type { DayEvidence } from '../../../engine/store/evidence.ts'
import { PublishedList } from '../../../engine/store/published.ts'
import type { Scan } from '../../../engine/store/scans.ts'
import { type AcmeSite, acmeSite } from '../../support/acme-site.ts'
import type { openStore } from '../../support/store.ts'

interface Site extends Omit<AcmeSite, 'scan'> {
  scan(events: readonly (readonly [name: string, more?: Partial<Event>])[]): Scan
  /** The platforms by what their matches mean. */
  found(): Record<string, string[]>
}

function site(t: Parameters<typeof openStore>[0], options: Parameters<typeof openStore>[1] = {}): Site {
  const opened = acmeSite(t, options)
  const { store, clock, organization, sender, buffer } = opened
  return {
    ...opened,
    scan(events) {
      buffer(events.map(([name, more = {}]) => sender.event(name, clock.nowMs(), more)))
      return opened.scan('administrator')
    },
    found() {
      const { platforms } = store.environment.read(() => listedDiscovery(store, organization))
      const byUse: Record<string, string[]> = {}
      for (const { use, name } of platforms) byUse[use] = [...(byUse[use] ?? []), name].sort()
      return byUse
    },
  }
}

const CLIENTS = Array.from({ length: 12 }, (_, client) => `10.0.0.${client + 1}`)
const fromAll = (name: string) => CLIENTS.map((client) => [name, { client, method: 'log', count: 12 }] as const)

/** Requested by pages of other companies, by programs, or to read. */
const NO_USE = [
  ...[
    'status.openai.com',
    'status.claude.com',
    'status.anthropic.com',
    'support.perplexity.ai',
    'events.statsig.openai.com',
    'cdn.oaistatic.com',
    'cdn.deepseek.com',
  ],
  ...['a-cdn.anthropic.com', 'telemetry.individual.githubcopilot.com', 'update.cursor.sh', 'download.cursor.sh'],
  ...['www.chatbase.co', 'backend.chatbase.co', 'cdn.voiceflow.com', 'general-runtime.voiceflow.com', 'fal.media'],
  ...['widget.sitegpt.ai', 'cdn.midjourney.com', 'player.descript.com', 'cdn-avatars.huggingface.co', 's.deepl.com'],
  ...['sentry.claude.ai', 'otelcol.anthropic.com', 'embed.perplexity.ai', 'img.perplexity.ai', 'chat-widget.kapa.ai'],
]

t.test('hosts that are no use, requested by twelve clients, are no finding, and do not hide those that are', (t) => {
  const { scan, found, store, id } = site(t)
  const { summary } = scan(NO_USE.flatMap(fromAll))
  t.match(summary, {
    platformsDiscovered: 0,
    aiCapableCount: 0,
    blockedCount: 0,
    shadowAiCount: 0,
    overallRiskScore: 0,
  })
  t.same(Object.keys(found()), ['touched'])
  t.equal(store.published.head(id, PublishedList.discovery)?.count, 0)
  const after = scan(['chatgpt.com', 'claude.ai', 'api2.cursor.sh'].flatMap(fromAll))
  t.match(after.summary, { platformsDiscovered: 3, shadowAiCount: 3 })
  t.same(found()['ai'], ['ChatGPT', 'Claude', 'Cursor'])
  t.end()
})

for (const clients of ['full', 'pseudonym', 'off'] as const) {
  t.test(`the same is used, blocked and touched if what is kept of clients is: ${clients}`, (t) => {
    const { scan, found, store, id, clock } = site(t)
    const organization = store.organizations.get(id)
    if (organization === undefined) throw new Error('no organization')
    new Administration(store, clock).organizations.set(organization, { clients })
    const { summary } = scan([
      ...[...fromAll('chatgpt.com'), ...fromAll('status.claude.com')],
      ['kimi.com', { client: '10.0.0.1', method: 'log', count: 30, blocked: 30 }],
    ])
    t.match(summary, { platformsDiscovered: 1, blockedCount: 1, shadowAiCount: 1 })
    t.same(found(), { ai: ['ChatGPT'], blocked: ['Kimi'], touched: ['Claude'] })
    t.end()
  })
}

t.test('the dashboard of a widget is use', (t) => {
  const { scan, found } = site(t)
  scan([['app.sitegpt.ai'], ['widget.chatbase.co'], ['dashboard.eu.voiceflow.com']])
  t.same(found(), { ai: ['SiteGPT', 'Voiceflow'], touched: ['Chatbase'] })
  t.end()
})

t.test('a platform that is only blocked is not found, and its clients are no users', (t) => {
  const { scan, found, store, id, clock } = site(t)
  const { summary } = scan([['kimi.com', { client: '10.0.0.1', method: 'log', count: 30, blocked: 30 }]])
  t.match(summary, { platformsDiscovered: 0, blockedCount: 1, shadowAiCount: 0, overallRiskScore: 0 })
  t.same(found(), { blocked: ['Kimi'] })
  t.equal(store.evidence.detection(id, 'kimi'), undefined)
  scan([['kimi.com', { client: '10.0.0.2', method: 'log' }]])
  t.same(found(), { ai: ['Kimi'] })
  const organization = store.organizations.get(id)
  if (organization === undefined) throw new Error('no organization')
  const use = platformUse(store, organization, 'kimi', clock.nowMs())
  t.match(use, { clientsTotal: 1, days: [{ used: 1, blocked: 30, touched: 0, clients: 1 }] })
  t.match(use.clients, [
    { client: '10.0.0.2', used: 1, blocked: 0 },
    { client: '10.0.0.1', used: 0, blocked: 30 },
  ])
  const tried = useOfClient(store, organization, '10.0.0.1', clock.nowMs())
  t.match(tried, { platforms: [{ platformId: 'kimi', used: 0 }], days: [] })
  t.end()
})

t.test('30 blocked requests and one that was allowed are one used match', (t) => {
  const { scan, store, id } = site(t)
  scan([['claude.ai', { client: '10.0.0.1', method: 'log', count: 31, blocked: 30 }]])
  const json = [...store.published.elementsOneByOne(id, PublishedList.discovery, 1)].join('')
  t.match(JSON.parse(json).metadata, { matches: 31, used_matches: 1, blocked_matches: 30, use: 'ai', clients: 1 })
  t.notOk(json.includes('touched_matches'))
  t.end()
})

t.test('of days that schema 1 stored, no more is known than it stored', (t) => {
  // The sum of the bytes is not changed with the record.
  const { scan, store, id, clock, found } = site(t, { unchecked: true })
  const [events] = [[['claude.ai', { client: '10.0.0.1', method: 'log', count: 5, blocked: 2 }] as const]]
  scan(events)
  const day = dayOf(clock.nowMs())
  store.environment.write(() => {
    const { used: _, ...before } = store.evidence.day(id, day, 'claude') as DayEvidence
    store.evidence.putDay(id, day, 'claude', before as DayEvidence)
    // One client, without the last two numbers.
    const record = store.clientDays.get(id, day, 'claude') ?? Buffer.alloc(0)
    const table = store.environment.table('clients')
    const [key] = table.getKeys({ limit: 1 })
    table.putSync(key as Buffer, sealRecord(1, record.subarray(0, -2)))
  })
  t.match(store.evidence.day(id, day, 'claude'), { matches: 5, blocked: 2, used: 3 })
  const organization = store.organizations.get(id)
  if (organization === undefined) throw new Error('no organization')
  const clients = () => platformUse(store, organization, 'claude', clock.nowMs()).clients
  t.match(clients(), [{ client: '10.0.0.1', matches: 5, used: Number.NaN, blocked: Number.NaN }])
  scan(events)
  t.match(clients(), [{ matches: 10, used: Number.NaN }], 'also after more of the same day')
  clock.add(DAY_MS)
  scan(events)
  t.same(found(), { ai: ['Claude'] })
  t.end()
})
