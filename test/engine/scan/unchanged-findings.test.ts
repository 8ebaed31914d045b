import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import type { Event } from '../../../engine/kernel/event/event.ts'
import { DAY_MS, dayOf, HOUR_MS } from '../../../engine/kernel/process/clock.ts'
import { DistinctClients } from '../../../engine/scan/distinct-clients.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { withVisibleShare } from '../../../engine/scan/unchanged-findings.ts'
import { FIRST_BODY_PART, GZIP_PARTS, openPart, PublishedList } from '../../../engine/store/published.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { report } from '../../support/coverage.ts'
import * as fc from '../../support/property.ts'
import { makeOrganization, openStore, registries, Sender, type TestStore } from '../../support/store.ts'

const catalog = loadCatalog()
/** Several of one vendor, with and without an API, and software with AI features. */
const NAMES = [
  'chatgpt.com',
  'api.openai.com',
  'bzr.openai.com',
  'claude.ai',
  'api.anthropic.com',
  'gemini.google.com',
  'generativelanguage.googleapis.com',
  'aistudio.google.com',
  'canva.com',
  'www.perplexity.ai',
  'nothing.example',
]

interface Site extends TestStore {
  readonly id: string
}

function site(opened: TestStore, name: string): Site {
  return { ...opened, id: makeOrganization(opened, name).id }
}

/** What a scan published and stored, without the ids and times of its own. */
function resultOf({ store, id, clock }: Site): unknown {
  return store.environment.read(() => {
    const { count = 0 } = store.published.head(id, PublishedList.discovery) ?? {}
    const elements = [...store.published.elementsOneByOne(id, PublishedList.discovery, count)]
    const { platforms, summary } = store.history.get(id, dayOf(clock.nowMs())) ?? {}
    return {
      elements: elements.map((json) => json.replace(/^\{"id":"[^"]+"/, '')),
      use: store.dailyUse.get(id),
      history: { platforms, summary },
    }
  })
}

const step = fc.record({
  events: fc.array(
    fc.record({ name: fc.nat(NAMES.length - 1), client: fc.nat(5), daysAgo: fc.nat(2), count: fc.nat(3) }),
    { maxLength: 6 },
  ),
  hours: fc.constantFrom(0, 0, 1, 23),
  change: fc.constantFrom('', '', '', '', 'approve', 'report', 'clients'),
})

t.test('a scan that uses unchanged findings again publishes the same as one that computes all', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const administration = new Administration(store, clock)
  let number = 0
  fc.assert(
    fc.property(fc.array(step, { minLength: 2, maxLength: 6 }), (steps) => {
      number++
      const sites = [site(opened, `Reuses ${number}`), site(opened, `Computes ${number}`)]
      const sender = new Sender()
      let packets = 0
      for (const { events, hours, change } of steps) {
        clock.add(hours * HOUR_MS + 1000)
        packets += 1000
        const buffered = events.map(({ name, client, daysAgo, count }): Event => {
          const timeMs = clock.nowMs() - daysAgo * DAY_MS
          return sender.event(NAMES[name] ?? '', timeMs, { client: `10.0.0.${client}`, count: count + 1 })
        })
        const results = sites.map((each, index) => {
          const organization = administration.organization(each.id)
          if (change === 'approve') administration.approvals.add(organization, catalog, ['claude'])
          if (change === 'clients') administration.organizations.set(organization, { apiClients: true })
          store.environment.write(() => {
            store.buffer.append(each.id, buffered)
            if (change === 'report') {
              const made = report({ madeMs: clock.nowMs(), counters: { packets, packets_lost: number } })
              store.coverage.add(each.id, made, clock.nowMs())
            }
            // Other inputs than those of the last scan.
            if (index === 1) store.scanStates.put(each.id, { ...store.scanStates.get(each.id), inputs: 'other' })
          })
          runScan(store, registries, each.id, 'administrator', clock)
          return JSON.stringify(resultOf(each))
        })
        if (results[0] !== results[1]) return false
      }
      return true
    }),
  )
})

t.test('only findings of changed evidence, and of the same vendors, are computed until an input changes', async (t) => {
  const { store, clock, id, sender, buffer } = acmeSite(t)
  const marked = (): string[] => {
    return store.environment.read(() => {
      const { count = 0 } = store.published.head(id, PublishedList.discovery) ?? {}
      const elements = [...store.published.elementsOneByOne(id, PublishedList.discovery, count)]
      return elements.flatMap((json) => (json.includes('marked') ? JSON.parse(json).platform_name : []))
    })
  }
  const scan = (...names: string[]): void => {
    const events = names.map((name) => sender.event(name, clock.nowMs()))
    buffer(events)
    runScan(store, registries, id, 'administrator', clock)
  }
  scan('chatgpt.com', 'claude.ai', 'api.anthropic.com', 'www.perplexity.ai')
  store.environment.write(() => {
    const head = store.published.head(id, PublishedList.discovery)
    const elements = [...store.published.elementsOneByOne(id, PublishedList.discovery, head?.count ?? 0)]
    const texts = elements.map((json) => json.replace('"metadata":{', '"metadata":{"marked":true,'))
    store.published.replace(id, PublishedList.discovery, head?.text.toString() ?? '', texts)
  })
  scan('claude.ai')
  t.same(marked().sort(), ['ChatGPT', 'Perplexity'])
  new Administration(store, clock).approvals.add(new Administration(store, clock).organization(id), catalog, ['claude'])
  scan()
  t.same(marked(), [])
})

t.test('a scan repairs what was published and is damaged', async (t) => {
  const names = catalog.platforms.flatMap(({ domains: [first] }) => (first === undefined ? [] : [first.domain]))
  for (const part of [0, 1, 2, GZIP_PARTS, FIRST_BODY_PART]) {
    for (const damage of ['changed', 'missing'] as const) {
      const { store, clock, id, sender, buffer } = acmeSite(t, { unchecked: true })
      const scan = (...names: string[]): void => {
        const events = names.map((name) => sender.event(name, clock.nowMs()))
        buffer(events)
        runScan(store, registries, id, 'administrator', clock)
      }
      const table = store.environment.table('published')
      const records = () =>
        Array.from(table.getRange({}), ({ key, value }) => {
          return { key: Buffer.from(key), part: key.readUInt32BE(key.length - 4), value: Buffer.from(value) }
        })
      scan(...names.slice(0, 250))
      const before = records()
      const damaged = before.find((record) => record.part === part)
      if (damaged === undefined) throw new Error(`no part ${part}`)
      const value = Buffer.from(damaged.value)
      value[value.length - 1] = 255 - (value.at(-1) ?? 0)
      store.environment.write(() => {
        if (damage === 'missing') table.removeSync(damaged.key)
        else table.putSync(damaged.key, value)
      })
      scan('nothing.example')
      const after = records()
      t.same(
        after.map((record) => record.part),
        before.map((record) => record.part),
        `part ${part} ${damage}`,
      )
      for (const record of after) {
        const texts = openPart(record.value)
        // The head of another scan is in the bodies, too.
        if (record.part > 0 && record.part < GZIP_PARTS)
          t.ok(before.some((each) => each.part === record.part && each.value.equals(record.value)))
        else t.ok(texts.length > 0)
      }
    }
  }
})

t.test('the clients of the last day are counted from its sketches until an input changes', async (t) => {
  const { store, clock, id, sender, buffer } = acmeSite(t)
  const scan = (daysAgo: number, ...clients: string[]): void => {
    const events = clients.map((client) => sender.event('chatgpt.com', clock.nowMs() - daysAgo * DAY_MS, { client }))
    buffer(events)
    runScan(store, registries, id, 'administrator', clock)
  }
  const counts = () => store.dailyUse.get(id).map(({ notApproved }) => notApproved)
  const withSketches = () => store.dailyUse.get(id).map(({ sketches }) => sketches !== undefined)
  scan(1, '10.0.0.1')
  t.same(withSketches(), [true])
  scan(0, '10.0.0.1')
  t.same(withSketches(), [false, true])
  // Other clients than those that the last scan counted show which evidence is read.
  for (const day of store.evidence.daysFrom(id, 0)) {
    const evidence = store.evidence.day(id, day, 'chatgpt')
    if (evidence === undefined) continue
    const clients = new DistinctClients()
    for (const hash of [1, 2, 3]) clients.add(hash)
    store.environment.write(() => store.evidence.putDay(id, day, 'claude', { ...evidence, clients: clients.toBytes() }))
  }
  scan(0, '10.0.0.2')
  t.same(counts(), [1, 2])
  scan(1, '10.0.0.2')
  t.same(counts(), [5, 2], 'an earlier day has no sketches')
  t.same(withSketches(), [false, true])
  new Administration(store, clock).approvals.add(new Administration(store, clock).organization(id), catalog, ['gemini'])
  scan(0)
  t.same(counts(), [5, 5])
  store.environment.write(() => store.dailyUse.removeSketches(id))
  t.same(withSketches(), [false, false])
  scan(0, '10.0.0.3')
  t.same(counts(), [5, 6])
  t.same(withSketches(), [false, true])
})

t.test('the visible share of findings is replaced, whatever their texts contain', async (t) => {
  const name = 'x","coverage":{"visible_share":0.1}'
  const finding = (share: number | null) => ({
    json: JSON.stringify({
      platform_name: name,
      metadata: { domains: [name], coverage: { visible_share: share }, top: 1 },
    }),
  })
  for (const [from, to] of [
    [null, 0.5],
    [0.5, null],
    [0.9912, 1],
    [0.55, 0.5],
  ] as const) {
    t.same(withVisibleShare([finding(from), finding(from)], to), [finding(to), finding(to)])
    const findings = [finding(to), finding(to)]
    t.equal(withVisibleShare(findings, to), findings, 'the same, if they have it')
  }
  t.same(withVisibleShare([], 0.5), [])
})
