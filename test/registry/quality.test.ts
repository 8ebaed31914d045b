import t from 'tap'
import { getDomain, getPublicSuffix } from 'tldts'
import { loadCatalog } from '../../registry/catalog.ts'
import type { Platform, PlatformDomain } from '../../registry/platform.ts'
import { PLATFORM_TYPES } from '../../registry/platform-type.ts'
import { qualityReport } from '../../registry/quality.ts'

/**
 * Public suffixes of both sections of the list: of registries, and of companies that let customers
 * register names.
 */
function isPublicSuffix(domain: string): boolean {
  return getPublicSuffix(domain, { allowPrivateDomains: true, validateHostname: false }) === domain
}

t.test('the built-in data passes all quality rules', async (t) => {
  const { platforms, rules } = loadCatalog()
  t.same(qualityReport(platforms, isPublicSuffix), [], 'no rule reports a problem')
  t.ok(platforms.length >= 600, `${platforms.length} platforms`)
  t.ok(rules.length >= 1500, `${rules.length} domains`)
  t.ok(Object.keys(PLATFORM_TYPES).length <= 24)
  for (const type of ['llm_chat', 'code_assistant', 'image_generation']) t.ok(type in PLATFORM_TYPES, type)
  const unregistrable = rules.filter(({ match, domain }) => match !== 'pattern' && getDomain(domain) === null)
  t.same(
    unregistrable.map(({ domain }) => domain),
    [],
    'every domain is below a public suffix of the current list',
  )
})

const platform = (over: Partial<Platform>): Platform => ({
  id: 'one',
  name: 'One',
  vendor: 'One',
  platformType: 'llm_chat',
  category: 'LLM Chat Assistant',
  url: 'https://one.example',
  risk: { score: 10, why: 'why' },
  source: ['somewhere'],
  domains: [domain({})],
  ...over,
})

const domain = (over: Partial<PlatformDomain>): PlatformDomain => ({
  domain: 'one.example',
  match: 'suffix',
  role: 'web',
  specificity: 1,
  purpose: 'use',
  evidence: 'listed',
  ...over,
})

const other = { id: 'two', name: 'Two', domains: [domain({ domain: 'two.example' })] }

const cases: { name: string; platforms: Platform[]; finding: RegExp }[] = [
  { name: 'a duplicate id', platforms: [platform({}), platform({ ...other, id: 'one' })], finding: /ID is used twice/ },
  {
    name: 'a duplicate name in different case',
    platforms: [platform({}), platform({ ...other, name: 'ONE' })],
    finding: /name is already used by one/,
  },
  {
    name: 'a duplicate domain',
    platforms: [platform({}), platform({ ...other, domains: [domain({})] })],
    finding: /is already listed under one/,
  },
  { name: 'no source', platforms: [platform({ source: [] })], finding: /no source/ },
  { name: 'an empty source', platforms: [platform({ source: [' '] })], finding: /no source/ },
  { name: 'no domain', platforms: [platform({ domains: [] })], finding: /no domain/ },
  ...[
    { name: 'upper case', over: { domain: 'One.example' }, finding: /upper case/ },
    { name: 'a Unicode label', over: { domain: 'b\u00fccher.example' }, finding: /A-labels/ },
    { name: 'a trailing dot', over: { domain: 'one.example.' }, finding: /empty label/ },
    { name: 'a public suffix of a registry', over: { domain: 'co.uk' }, finding: /public suffix/ },
    { name: 'a public suffix of a company', over: { domain: 'github.io' }, finding: /public suffix/ },
    { name: 'a shared host as suffix', over: { domain: 'googleapis.com' }, finding: /shared host/ },
    {
      name: 'a pattern over a shared host',
      over: { domain: '*.amazonaws.com', match: 'pattern' as const },
      finding: /shared host/,
    },
    {
      name: 'a pattern over a top-level domain',
      over: { domain: '*.ai', match: 'pattern' as const },
      finding: /top-level domain/,
    },
    {
      name: 'a background host',
      over: { domain: 'geller-pa.googleapis.com', match: 'exact' as const },
      finding: /background/,
    },
    {
      name: 'a widget that looks like AI use',
      over: { purpose: 'widget' as const, specificity: 0.6 },
      finding: /specificity from 0.6 on for the purpose widget/,
    },
    {
      name: 'published sites as use',
      over: { domain: '*.lovable.app', match: 'pattern' as const, specificity: 0.4 },
      finding: /is published/,
    },
  ].map(({ name, over, finding }) => ({ name, platforms: [platform({ domains: [domain(over)] })], finding })),
  {
    name: 'embedded AI that looks like AI use',
    platforms: [platform({ platformType: 'embedded_ai' })],
    finding: /specificity above 0.5/,
  },
]

t.test('each quality rule can fail', async (t) => {
  t.same(qualityReport([platform({}), platform(other)], isPublicSuffix), [], 'good data passes')
  const background = { domain: 'geller-pa.googleapis.com', match: 'exact', specificity: 0.3 } as const
  const domains = [domain({}), domain({ ...background, purpose: 'background' })]
  t.same(qualityReport([platform({ domains })], isPublicSuffix), [], 'a background host may say so')
  for (const { name, platforms, finding } of cases) {
    const findings = qualityReport(platforms, isPublicSuffix)
    t.match(findings.map((found) => found.finding).join('\n'), finding, name)
  }
})
