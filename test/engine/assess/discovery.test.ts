import t from 'tap'
import { CLAIMS, discoveryFacts, unsupportedAnswers } from '../../../engine/assess/discovery-facts.ts'
import { itemKey } from '../../../engine/assess/rules.ts'
import { acceptedNote, suggestionsFor } from '../../../engine/assess/suggestions.ts'
import { frameworkItems } from '../../../engine/assess/templates.ts'
import { readAssessment, writeAssessment } from '../../../engine/assess/transfer.ts'
import type { CoverageCounters } from '../../../engine/kernel/event/coverage-report.ts'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import type { Answer, DiscoveryFacts } from '../../../engine/store/assessments.ts'
import { type DiscoveryTopic, FRAMEWORK_IDS, type FrameworkId } from '../../../engine/store/framework.ts'
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

type Case = readonly [
  given: (site: AlertSite) => void,
  expected: Partial<Record<DiscoveryTopic, DiscoveryFacts['level']>>,
  text?: readonly [DiscoveryTopic, RegExp],
]

const CASES: Readonly<Record<string, Case>> = {
  'no scan': [(site) => hear(site, 'proxy-1'), {}],
  'a scan without AI platforms, from a file': [
    (site) => {
      hear(site, '', { listener: 'file' })
      site.scan([])
    },
    { inventory: 'yes' },
    ['inventory', /^AI platforms found: 0; without a decision: 0; other products with AI: 0; last scan 2026-/],
  ],
  'platforms without a decision': [
    (site) => site.scan(['claude.ai', 'chatgpt.com']),
    { inventory: 'partial', shadow_ai: 'partial', suppliers: 'no', monitoring: 'partial' },
    [
      'shadow_ai',
      /^AI platforms found: 2; not approved: 2; without a decision: 2; not decided within 30 days: 0; used after rejection: 0; last scan 2026-/,
    ],
  ],
  'platforms without a decision for more than 30 days, in use until today': [
    (site) => {
      site.scan(['claude.ai', 'chatgpt.com'])
      site.clock.add(31 * DAY_MS)
      site.scan(['claude.ai', 'chatgpt.com'])
    },
    { inventory: 'partial', shadow_ai: 'no', suppliers: 'no', monitoring: 'partial' },
  ],
  'one approved, the other rejected and not used since': [
    (site) => {
      site.scan(['claude.ai', 'chatgpt.com'])
      site.clock.add(DAY_MS)
      approve(site, 'claude', true)
      site.administration.approvals.reject(site.organization, catalog, ['chatgpt'])
      site.scan(['claude.ai'])
    },
    { inventory: 'yes', shadow_ai: 'yes', suppliers: 'partial', monitoring: 'partial' },
    [
      'suppliers',
      /^approvals in force: 1; with an owner: 1; with an expiry: 1; AI platforms found: 2; not approved: 1; /,
    ],
  ],
  'one of two used after its rejection': [
    (site) => {
      approve(site, 'claude', true)
      site.administration.approvals.reject(site.organization, catalog, ['chatgpt'])
      site.clock.add(DAY_MS)
      site.scan(['claude.ai', 'chatgpt.com'])
    },
    { inventory: 'yes', shadow_ai: 'partial', suppliers: 'partial', monitoring: 'partial' },
    ['shadow_ai', /used after rejection: 1; /],
  ],
  'used after its rejection, which was renewed since': [
    (site) => {
      const { approvals } = site.administration
      approvals.reject(site.organization, catalog, ['claude'])
      site.clock.add(DAY_MS)
      site.scan(['claude.ai'])
      site.clock.add(DAY_MS)
      approvals.reject(site.organization, catalog, ['claude'], { note: 'No contract' })
    },
    { inventory: 'yes', shadow_ai: 'no', suppliers: 'no', monitoring: 'partial' },
  ],
  'rejected again after an approval, and not used since': [
    (site) => {
      const { approvals } = site.administration
      approvals.reject(site.organization, catalog, ['claude'])
      site.clock.add(DAY_MS)
      site.scan(['claude.ai'])
      approve(site, 'claude', true)
      site.clock.add(DAY_MS)
      approvals.reject(site.organization, catalog, ['claude'])
    },
    { inventory: 'yes', shadow_ai: 'yes', suppliers: 'no', monitoring: 'partial' },
  ],
  'a decision after more than 30 days': [
    (site) => {
      site.scan(['claude.ai'])
      site.clock.add(31 * DAY_MS)
      approve(site, 'claude', true)
      site.scan(['claude.ai'])
    },
    { inventory: 'yes', shadow_ai: 'partial', suppliers: 'yes', monitoring: 'partial' },
  ],
  'a decision in time that was renewed later': [
    (site) => {
      site.scan(['claude.ai'])
      approve(site, 'claude', false)
      site.clock.add(31 * DAY_MS)
      approve(site, 'claude', true)
      site.scan(['claude.ai'])
    },
    { inventory: 'yes', shadow_ai: 'yes', suppliers: 'yes', monitoring: 'partial' },
  ],
  'approved without owner and expiry': [
    (site) => {
      approve(site, 'claude', false)
      site.scan(['claude.ai'])
    },
    { inventory: 'yes', shadow_ai: 'yes', suppliers: 'partial', monitoring: 'partial' },
  ],
  'everything approved with owner and expiry, and everything is heard': [
    (site) => {
      approve(site, 'claude', true)
      hear(site, 'proxy-1')
      watch(site, { packets: 1000, names: 95, hellos_unnamed: 5 })
      site.scan(['claude.ai'])
    },
    { inventory: 'yes', shadow_ai: 'yes', suppliers: 'yes', logging: 'yes', monitoring: 'yes' },
    [
      'monitoring',
      /^AI platforms found: 1; sources of logs: 1; silent for a day: 0; sensors: 1; silent for a day: 0; names visible: 95%; /,
    ],
  ],
  'one of two sources is silent, and few names are visible': [
    (site) => {
      hear(site, 'proxy-1')
      site.clock.add(2 * DAY_MS)
      hear(site, 'proxy-2')
      watch(site, { packets: 1000, names: 50, hellos_unnamed: 50 })
      site.scan([])
    },
    { inventory: 'yes', logging: 'partial', monitoring: 'partial' },
  ],
  'an old scan, and nothing is heard': [
    (site) => {
      approve(site, 'claude', false)
      hear(site, 'proxy-1')
      site.scan(['claude.ai'])
      site.clock.add(8 * DAY_MS)
    },
    { inventory: 'no', shadow_ai: 'partial', suppliers: 'partial', logging: 'no', monitoring: 'no' },
  ],
}

for (const [name, [given, expected, text]] of Object.entries(CASES)) {
  t.test(`facts of discovery: ${name}`, async (t) => {
    const site = alertSite(t)
    given(site)
    const facts = factsOf(site)
    t.same(Object.fromEntries([...facts].map(([topic, { level }]) => [topic, level])), expected)
    if (text !== undefined) t.match(facts.get(text[0])?.text, text[1])
  })
}

/** Seven platforms, as a first scan finds them. */
const SEVEN = [
  'claude.ai',
  'chatgpt.com',
  'gemini.google.com',
  'perplexity.ai',
  'midjourney.com',
  'grok.com',
  'chat.deepseek.com',
]
const SEVEN_IDS = ['claude', 'chatgpt', 'gemini', 'perplexity', 'midjourney', 'grok', 'deepseek']

const found = (site: AlertSite): void => site.scan(SEVEN)
const rejected = (site: AlertSite): void => {
  site.scan(SEVEN)
  site.clock.add(DAY_MS)
  site.administration.approvals.reject(site.organization, catalog, SEVEN_IDS)
  site.scan([])
}
const approved = (site: AlertSite): void => {
  for (const id of SEVEN_IDS) approve(site, id, true)
  hear(site, 'dns-1')
  watch(site, { packets: 1000, names: 95, hellos_unnamed: 5 })
  site.scan(SEVEN)
}

interface SuggestionCase {
  readonly name: string
  readonly framework: FrameworkId
  readonly item: string
  readonly earlier?: Answer
  readonly given: (site: AlertSite) => void
  /** undefined: a hint. */
  readonly suggested: string | undefined
}

const GENERAL = [
  ['hipaa', '164.308(b)(1)'],
  ['pci-dss', '12.8.4'],
  ['soc-2', 'CC6.8'],
  ['nist-800-53', 'CM-11'],
  ['nist-csf-2', 'DE.CM-03'],
] as const satisfies readonly (readonly [FrameworkId, string])[]

const ai = (name: string, item: string, given: SuggestionCase['given'], suggested: string | undefined) => {
  return { name, framework: 'ai-security' as const, item, given, suggested }
}
const SUGGESTIONS: readonly SuggestionCase[] = [
  ai('7 found by a fresh scan', 'INV-2', found, 'partial'),
  ai('approved, all known sensors and sources send', 'INV-2', approved, 'partial'),
  ai('7 found by a fresh scan', 'INV-3', found, 'partial'),
  ai('all rejected, none used since', 'INV-3', rejected, 'yes'),
  ai('all approved', 'INV-3', approved, 'yes'),
  ai('7 found by a fresh scan', 'INV-1', found, 'partial'),
  ai('all approved', 'INV-1', approved, 'partial'),
  ai('no approval in force', 'MOD-2', found, undefined),
  ai('all approved', 'MOD-2', approved, 'partial'),
  ai('all approved', 'MOD-7', approved, 'partial'),
  ai('one source of DNS logs', 'MON-1', approved, 'partial'),
  ...GENERAL.flatMap(([framework, item]): SuggestionCase[] => [
    { name: 'all approved', framework, item, given: approved, suggested: 'partial' },
    { name: 'an earlier no, all approved', framework, item, earlier: 'no', given: approved, suggested: 'no' },
  ]),
  { name: '7 found', framework: 'hipaa', item: '164.308(b)(1)', given: found, suggested: undefined },
  { name: '7 found', framework: 'pci-dss', item: '12.8.4', given: found, suggested: undefined },
  { name: '7 found', framework: 'nist-800-53', item: 'CM-11', given: found, suggested: 'partial' },
  {
    name: 'earlier yes, 7 found',
    framework: 'soc-2',
    item: 'CC6.8',
    earlier: 'yes',
    given: found,
    suggested: 'partial',
  },
]

for (const { name, framework, item, earlier, given, suggested } of SUGGESTIONS) {
  t.test(`${framework} ${item}, ${name}: ${suggested ?? 'a hint'}`, async (t) => {
    const site = alertSite(t)
    const { store, organization, clock } = site
    const { assessments } = site.administration
    if (earlier !== undefined)
      assessments.import(organization, content(framework, { [item]: earlier }), { complete: true })
    given(site)
    const suggestionOf = (of = organization) => {
      const made = assessments.create(of, framework, 'Autumn', [item])
      const categories = store.assessments.categories(made)
      t.equal(made.status, 'draft', 'nothing is answered without a person')
      return suggestionsFor(store, made, categories, clock.nowMs()).get(itemKey(item))
    }
    const suggestion = suggestionOf()
    t.match(suggestion, { facts: { topic: String }, sources: earlier === undefined ? [] : [{}] })
    t.equal(suggestion?.answer, suggested)
    if (suggestion === undefined) return
    t.match(acceptedNote(suggestion, ''), /^Accepted from discovery: .*; last scan 2026-/)
    if (given === found && item !== 'INV-1') t.match(suggestion.facts?.text, /not approved: 7; |found: 7; /)
    t.equal(suggestionOf(makeOrganization(site, 'Globex')), undefined, 'nothing of another organization')
  })
}

t.test('facts alone decide only INV-3, and every item names facts with a claim', async (t) => {
  const decided: string[] = []
  for (const framework of FRAMEWORK_IDS) {
    const named = [...frameworkItems(framework).values()].filter(({ discovery }) => discovery !== undefined)
    t.ok(named.length > 0, framework)
    for (const { id, discovery } of named) {
      t.ok(CLAIMS[discovery?.topic ?? 'inventory'])
      if (discovery?.decides) decided.push(`${framework} ${id}`)
    }
  }
  t.same(decided, ['ai-security INV-3'])
})

const ALERTS: Readonly<
  Record<string, readonly [FrameworkId, Answer, before: 'approved' | 'one of two approved', isRaised: boolean]>
> = {
  'a yes that the facts supported': ['ai-security', 'yes', 'approved', true],
  'a no': ['ai-security', 'no', 'approved', false],
  'an item that does not apply': ['ai-security', 'not_applicable', 'approved', false],
  'a general item that is partial anyway': ['cis-v8', 'partial', 'approved', false],
  'a yes with facts that were no better': ['ai-security', 'yes', 'one of two approved', false],
}

for (const [name, [framework, answer, before, isRaised]] of Object.entries(ALERTS)) {
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
    t.equal(unsupported.filter(({ gotWorse }) => gotWorse).length, isRaised ? 1 : 0)
    if (!isRaised) return
    const alert = store.alerts.newest(organization.id, 9).find(({ rule }) => rule === 'answer-unsupported')
    t.match(alert, {
      title:
        /^AI Security: the answer to INV-3 no longer holds: AI platforms found: 2; not approved: 1; without a decision: 1; /,
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
