import t from 'tap'
import { discoveryFacts, unsupportedAnswers } from '../../../engine/assess/discovery-facts.ts'
import { ITEMS_OF_TOPIC, topicOf } from '../../../engine/assess/discovery-topics.ts'
import { itemKey } from '../../../engine/assess/rules.ts'
import { acceptedNote, suggestionsFor } from '../../../engine/assess/suggestions.ts'
import { readIdentifiers } from '../../../engine/assess/tables.ts'
import { frameworkItems } from '../../../engine/assess/templates.ts'
import { readAssessment, writeAssessment } from '../../../engine/assess/transfer.ts'
import type { CoverageCounters } from '../../../engine/kernel/event/coverage-report.ts'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import type { Answer, DiscoveryFacts, DiscoveryTopic } from '../../../engine/store/assessments.ts'
import type { FrameworkId } from '../../../engine/store/framework.ts'
import type { SourceDelta } from '../../../engine/store/sources.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { type AlertSite, alertSite } from '../../support/alerts.ts'
import { content } from '../../support/assessments.ts'
import { report } from '../../support/coverage.ts'
import { makeOrganization } from '../../support/store.ts'

const catalog = loadCatalog()

function hear(site: AlertSite, host: string, more: Partial<SourceDelta> = {}): void {
  const { store, organization, clock } = site
  const source: SourceDelta = {
    organizationId: organization.id,
    tokenId: '11111111-1111-4111-8111-111111111111',
    listener: 'tls',
    address: '192.0.2.1',
    host,
    lastSeenMs: clock.nowMs(),
    received: 1,
    counts: [1],
    formats: {},
    sample: '',
    zoneMinutes: 0,
    timesUnread: 0,
    hasUnknownToken: false,
    ...more,
  }
  store.environment.write(() => store.sources.add([source]))
}

function watch(site: AlertSite, counters: Partial<CoverageCounters>): void {
  const { store, organization, clock } = site
  const made = { ...report({ counters }), instance: 'a'.repeat(16), madeMs: clock.nowMs() }
  store.environment.write(() => store.coverage.add(organization.id, made, clock.nowMs()))
}

function approve(site: AlertSite, id: string, isReviewed: boolean): void {
  const terms = isReviewed ? { owner: 'grace@acme.example', expiresAtMs: site.clock.nowMs() + 90 * DAY_MS } : {}
  site.administration.approvals.add(site.organization, catalog, [id], terms)
}

const factsOf = ({ store, organization, clock }: AlertSite) =>
  store.environment.read(() => discoveryFacts(store, organization.id, clock.nowMs()))

interface Case {
  readonly name: string
  readonly given: (site: AlertSite) => void
  readonly expected: Partial<Record<DiscoveryTopic, DiscoveryFacts['level']>>
  readonly text?: readonly [DiscoveryTopic, RegExp]
}

const CASES: readonly Case[] = [
  { name: 'no scan', given: (site) => hear(site, 'proxy-1'), expected: {} },
  {
    name: 'a scan without AI platforms, from a file',
    given: (site) => {
      hear(site, '', { listener: 'file' })
      site.scan([])
    },
    expected: { inventory: 'yes' },
    text: ['inventory', /^AI platforms found: 0; without a decision: 0; other products with AI: 0; last scan 2026-/],
  },
  {
    name: 'platforms without a decision',
    given: (site) => site.scan(['claude.ai', 'chatgpt.com']),
    expected: { inventory: 'partial', shadow_ai: 'no', suppliers: 'no' },
    text: ['shadow_ai', /^AI platforms found: 2; not approved: 2; last scan 2026-/],
  },
  {
    name: 'one approved, the other rejected',
    given: (site) => {
      approve(site, 'claude', true)
      site.administration.approvals.reject(site.organization, catalog, ['chatgpt'])
      site.scan(['claude.ai', 'chatgpt.com'])
    },
    expected: { inventory: 'yes', shadow_ai: 'partial', suppliers: 'partial' },
    text: [
      'suppliers',
      /^approvals in force: 1; with an owner: 1; with an expiry: 1; AI platforms found: 2; not approved: 1; /,
    ],
  },
  {
    name: 'approved without owner and expiry',
    given: (site) => {
      approve(site, 'claude', false)
      site.scan(['claude.ai'])
    },
    expected: { inventory: 'yes', shadow_ai: 'yes', suppliers: 'partial' },
  },
  {
    name: 'everything approved with owner and expiry, and everything is heard',
    given: (site) => {
      approve(site, 'claude', true)
      hear(site, 'proxy-1')
      watch(site, { packets: 1000, names: 95, hellos_unnamed: 5 })
      site.scan(['claude.ai'])
    },
    expected: { inventory: 'yes', shadow_ai: 'yes', suppliers: 'yes', logging: 'yes', monitoring: 'yes' },
    text: [
      'monitoring',
      /^sources of logs: 1; silent for a day: 0; sensors: 1; silent for a day: 0; names visible: 95%; /,
    ],
  },
  {
    name: 'one of two sources is silent, and few names are visible',
    given: (site) => {
      hear(site, 'proxy-1')
      site.clock.add(2 * DAY_MS)
      hear(site, 'proxy-2')
      watch(site, { packets: 1000, names: 50, hellos_unnamed: 50 })
      site.scan([])
    },
    expected: { inventory: 'yes', logging: 'partial', monitoring: 'partial' },
  },
  {
    name: 'an old scan, and nothing is heard',
    given: (site) => {
      approve(site, 'claude', false)
      hear(site, 'proxy-1')
      site.scan(['claude.ai'])
      site.clock.add(8 * DAY_MS)
    },
    expected: { inventory: 'no', shadow_ai: 'partial', suppliers: 'partial', logging: 'no', monitoring: 'no' },
  },
]

for (const { name, given, expected, text } of CASES) {
  t.test(`facts of discovery: ${name}`, async (t) => {
    const site = alertSite(t)
    given(site)
    const facts = factsOf(site)
    t.same(Object.fromEntries([...facts].map(([topic, { level }]) => [topic, level])), expected)
    if (text !== undefined) t.match(facts.get(text[0])?.text, text[1])
  })
}

t.test('every item of a topic is a published identifier, or an item of AI Security', async (t) => {
  const identifiers = readIdentifiers()
  const seen = new Set<string>()
  for (const [topic, frameworks] of Object.entries(ITEMS_OF_TOPIC)) {
    for (const [framework, ids] of Object.entries(frameworks)) {
      const id = framework as FrameworkId
      const published = new Set(identifiers.get(id)?.map((each) => each.id))
      for (const each of ids) {
        const isOwn = id === 'ai-security' && frameworkItems(id).has(itemKey(each))
        t.ok(published.has(each) || isOwn, `${topic}: ${framework} ${each}`)
        t.notOk(seen.has(`${framework} ${each}`), `${framework} ${each} has one topic`)
        seen.add(`${framework} ${each}`)
        if (!each.startsWith('AIRMF') && !each.startsWith('ISO42001')) t.equal(topicOf(id, each), topic)
      }
    }
  }
})

interface SuggestionCase {
  readonly name: string
  readonly framework: FrameworkId
  readonly item: string
  readonly earlier?: Answer
  readonly isApproved: boolean
  readonly suggested: string
}

const SUGGESTIONS: readonly SuggestionCase[] = [
  { name: 'AI, good facts', framework: 'ai-security', item: 'INV-3', isApproved: true, suggested: 'yes' },
  { name: 'AI, bad facts', framework: 'ai-security', item: 'INV-3', isApproved: false, suggested: 'no' },
  { name: 'a general item, good facts', framework: 'cis-v8', item: '2.3', isApproved: true, suggested: 'partial' },
  {
    name: 'an earlier yes, good facts',
    framework: 'cis-v8',
    item: '2.3',
    earlier: 'yes',
    isApproved: true,
    suggested: 'yes',
  },
  {
    name: 'an earlier yes, bad facts',
    framework: 'cis-v8',
    item: '2.3',
    earlier: 'yes',
    isApproved: false,
    suggested: 'no',
  },
  {
    name: 'an earlier no, good facts',
    framework: 'cis-v8',
    item: '2.3',
    earlier: 'no',
    isApproved: true,
    suggested: 'no',
  },
]

for (const { name, framework, item, earlier, isApproved, suggested } of SUGGESTIONS) {
  t.test(`a suggestion from discovery: ${name}`, async (t) => {
    const site = alertSite(t)
    const { store, organization, clock } = site
    const { assessments } = site.administration
    if (earlier !== undefined)
      assessments.import(organization, content(framework, { [item]: earlier }), { complete: true })
    if (isApproved) approve(site, 'claude', true)
    site.scan(['claude.ai'])
    const suggestionOf = (of = organization) => {
      const made = assessments.create(of, framework, 'Autumn', [item])
      const categories = store.assessments.categories(made)
      t.equal(made.status, 'draft', 'nothing is answered without a person')
      return suggestionsFor(store, made, categories, clock.nowMs()).get(itemKey(item))
    }
    const suggestion = suggestionOf()
    t.match(suggestion, {
      answer: suggested,
      facts: { topic: 'shadow_ai' },
      sources: earlier === undefined ? [] : [{}],
    })
    if (suggestion === undefined) return
    t.match(
      acceptedNote(suggestion, ''),
      /^Accepted from discovery: AI platforms found: 1; not approved: [01]; last scan 2026-/,
    )
    t.equal(suggestionOf(makeOrganization(site, 'Globex')), undefined, 'nothing of another organization')
  })
}

interface AlertCase {
  readonly name: string
  readonly framework: FrameworkId
  readonly answer: Answer
  readonly before: 'approved' | 'one of two approved'
  readonly isRaised: boolean
}

const ALERTS: readonly AlertCase[] = [
  {
    name: 'a yes that the facts supported',
    framework: 'ai-security',
    answer: 'yes',
    before: 'approved',
    isRaised: true,
  },
  { name: 'a no', framework: 'ai-security', answer: 'no', before: 'approved', isRaised: false },
  {
    name: 'an item that does not apply',
    framework: 'ai-security',
    answer: 'not_applicable',
    before: 'approved',
    isRaised: false,
  },
  {
    name: 'a general item that is partial anyway',
    framework: 'cis-v8',
    answer: 'partial',
    before: 'approved',
    isRaised: false,
  },
  {
    name: 'a yes with facts that were no better',
    framework: 'ai-security',
    answer: 'yes',
    before: 'one of two approved',
    isRaised: false,
  },
]

for (const { name, framework, answer, before, isRaised } of ALERTS) {
  t.test(`facts get worse after completion: ${name}`, async (t) => {
    const site = alertSite(t)
    const { store, organization, administration } = site
    const item = framework === 'cis-v8' ? '2.3' : 'INV-3'
    approve(site, 'claude', true)
    site.scan(before === 'approved' ? ['claude.ai'] : ['claude.ai', 'chatgpt.com'])
    // The second item applies, so that there is a score.
    const given = content(framework, { [item]: answer, other: 'yes' })
    const { id } = administration.assessments.import(organization, given, { complete: true })
    t.notOk(site.evaluate()['answer-unsupported'])
    site.scan(['chatgpt.com'])
    t.equal(site.evaluate()['answer-unsupported'] ?? 0, isRaised ? 1 : 0)
    t.notOk(site.evaluate()['answer-unsupported'], 'once')
    const found = store.assessments.get(organization.id, id)
    if (found === undefined) throw new Error('no assessment')
    const unsupported = unsupportedAnswers(found, store.assessments.categories(found), factsOf(site))
    t.equal(unsupported.length, isRaised ? 1 : 0)
    if (!isRaised) return
    const alert = store.alerts.newest(organization.id, 9).find(({ rule }) => rule === 'answer-unsupported')
    t.match(alert, {
      title: /^AI Security: the answer to INV-3 no longer holds: AI platforms found: 2; not approved: 1; last scan /,
      details: { items: 'INV-3', discovery_before: /^AI platforms found: 1; not approved: 0; / },
    })
    approve(site, 'chatgpt', true)
    site.scan([])
    t.notOk(site.evaluate()['answer-unsupported'], 'the answer holds again')
    administration.approvals.remove(organization, catalog, ['chatgpt'])
    site.scan([])
    t.equal(site.evaluate()['answer-unsupported'], 1, 'and again no longer')
  })
}

t.test('silence is noticed without a scan; history and early releases have no facts', async (t) => {
  const site = alertSite(t)
  const { store, organization, administration, clock } = site
  hear(site, 'proxy-1')
  site.scan([])
  const complete = (completedAtMs?: number) =>
    administration.assessments.import(organization, content('cis-v8', { '8.2': 'yes' }), {
      complete: true,
      ...(completedAtMs === undefined ? {} : { completedAtMs }),
    })
  const past = complete(clock.nowMs() - 30 * DAY_MS)
  t.notOk(store.assessments.categories(past)[0]?.items[0]?.facts)
  clock.add(2 * DAY_MS)
  t.notOk(site.evaluate()['answer-unsupported'])
  hear(site, 'proxy-1')
  const now = complete()
  t.match(store.assessments.categories(now)[0]?.items[0]?.facts, {
    topic: 'logging',
    level: 'yes',
    atMs: clock.nowMs(),
  })
  const categories = store.assessments.categories(now)
  const file = Buffer.from(writeAssessment(now, categories, 'json'))
  t.same(readAssessment(file).categories, categories, 'JSON files keep the facts')
  t.notOk(site.evaluate()['answer-unsupported'])
  clock.add(2 * DAY_MS)
  t.equal(site.evaluate()['answer-unsupported'], 1)
})
