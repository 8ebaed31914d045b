import t from 'tap'
import { catalogOf, loadCatalog } from '../../registry/catalog.ts'
import { NameMatcher } from '../../registry/match.ts'
import type { Platform, PlatformDomain } from '../../registry/platform.ts'
import { namesByRule, popularFaults, readPopularRules } from './popular/popular-rules.ts'

t.test('every rule for use of AI that matches popular names has a reason', async (t) => {
  const { rules } = loadCatalog()
  const stored = readPopularRules()
  t.same(popularFaults(rules, stored), [])
  const domains = new Set(rules.map(({ domain }) => domain))
  const gone = [...stored.keys()].filter((domain) => !domains.has(domain))
  const added = rules.filter(({ domain }) => !stored.has(domain)).map(({ domain }) => domain)
  t.comment(`since the comparison: removed ${gone.join(' ') || 'none'}; added ${added.join(' ') || 'none'}`)
  const matching = [...stored.values()].filter(({ names }) => names > 0)
  t.ok(matching.length > 300, `${matching.length} rules match popular names`)
  t.equal(stored.get('chatgpt.com')?.names, 1)
})

const stored = readPopularRules(
  '# comment\nlisted.example\t3\tits own site\nbare.example\t2\nunmatched.example\t0\nlow.example\t9\n',
)
const cases: readonly {
  name: string
  domain: string
  specificity?: number
  purpose?: 'widget'
  fault: RegExp | undefined
}[] = [
  { name: 'a match with a reason', domain: 'listed.example', fault: undefined },
  { name: 'a match without a reason', domain: 'bare.example', fault: /bare\.example: matches 2 popular names/ },
  { name: 'no match', domain: 'unmatched.example', fault: undefined },
  { name: 'a match below use', domain: 'low.example', specificity: 0.5, fault: undefined },
  { name: 'a match that is raised to use', domain: 'low.example', specificity: 0.6, fault: /matches 9/ },
  { name: 'a match that is no use', domain: 'low.example', purpose: 'widget', fault: undefined },
  { name: 'a rule that was not compared', domain: 'new.example', fault: /new\.example: not compared.*npm run/ },
  { name: 'a rule below use that was not compared', domain: 'new.example', specificity: 0.5, fault: undefined },
]
for (const { name, domain, specificity = 0.6, purpose = 'use', fault } of cases) {
  t.test(name, async (t) => {
    const found = popularFaults([{ domain, specificity, purpose }], stored)
    if (fault === undefined) t.same(found, [])
    else t.match(found, [fault])
  })
}

t.test('a name counts for the narrowest rule that matches it', async (t) => {
  const domain = (text: string, match: PlatformDomain['match']): PlatformDomain => {
    return { domain: text, match, role: 'web', specificity: 1, purpose: 'use', evidence: 'listed' }
  }
  const [some] = loadCatalog().platforms
  const one: Platform = {
    ...(some as Platform),
    domains: [domain('a.example', 'suffix'), domain('x.a.example', 'exact')],
  }
  const names = ['a.example', 'x.a.example', 'y.a.example', 'y.a.example', 'other.example']
  t.same(
    [...namesByRule(new NameMatcher(catalogOf([one])), names)],
    [
      ['a.example', ['a.example', 'y.a.example']],
      ['x.a.example', ['x.a.example']],
    ],
  )
})
