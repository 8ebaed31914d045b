import t from 'tap'
import { type Catalog, catalogOf, mergeChanges } from '../../registry/catalog.ts'
import { compareNarrowness } from '../../registry/compile-trie.ts'
import { NameMatcher } from '../../registry/match.ts'
import { OwnMatcher } from '../../registry/own-matcher.ts'
import type { MatchKind, Platform, PlatformDomain } from '../../registry/platform.ts'
import type { ChangedEntry, RegistryFile } from '../../registry/registry-file.ts'
import * as fc from '../support/property.ts'

function domains(...all: readonly string[]): PlatformDomain[] {
  return all.map((text) => {
    const [match = '', domain = ''] = text.split(' ')
    return { domain, match: match as MatchKind, role: 'web', specificity: 1, purpose: 'use', evidence: 'listed' }
  })
}

function entry(id: string, ...all: readonly string[]): ChangedEntry & { name: string } {
  return {
    id,
    name: id,
    vendor: 'Vendor',
    platform_type: 'llm_chat',
    url: 'https://a.example/',
    risk: { score: 10, why: 'for a test' },
    source: ['a test'],
    domains: domains(...all),
  }
}

const registry = (...entries: readonly ChangedEntry[]): Catalog =>
  catalogOf(mergeChanges([], { platforms: entries, disable: [] }))
const shownRule = (rule: ReturnType<NameMatcher['match']>): string =>
  rule === undefined ? 'none' : `${rule.platform.id} ${rule.match} ${rule.domain}`

const SHARED = registry(
  entry('wide', 'suffix corp.example', 'exact llm.corp.example', 'pattern *-gpu.corp.example'),
  entry('deep', 'suffix deep.corp.example'),
  entry('other', 'suffix other.example', 'exact www.other.example'),
)

const ROWS: readonly (readonly [name: string, own: ChangedEntry, host: string, rule: string])[] = [
  ['a platform of its own', entry('own', 'suffix own.example'), 'a.own.example', 'own suffix own.example'],
  [
    'names without an own rule use the shared registry',
    entry('own', 'suffix own.example'),
    'x.corp.example',
    'wide suffix corp.example',
  ],
  [
    'a longer suffix of its own',
    entry('own', 'suffix x.corp.example'),
    'y.x.corp.example',
    'own suffix x.corp.example',
  ],
  ['a shorter suffix of its own', entry('own', 'suffix example.org'), 'corp.example', 'wide suffix corp.example'],
  [
    'an exact host of its own before a shared pattern',
    entry('own', 'exact a-gpu.corp.example'),
    'A-GPU.corp.example.',
    'own exact a-gpu.corp.example',
  ],
  [
    'a shared exact host before a suffix of its own',
    entry('own', 'suffix m.corp.example'),
    'llm.corp.example',
    'wide exact llm.corp.example',
  ],
  [
    'a domain taken from a shared platform',
    entry('own', 'suffix corp.example'),
    'z.corp.example',
    'own suffix corp.example',
  ],
  [
    'a taken exact host falls back to the next shared rule',
    entry('own', 'suffix llm.corp.example'),
    'llm.corp.example',
    'own suffix llm.corp.example',
  ],
  [
    'replaced domains: the others of the platform are gone',
    entry('deep', 'exact new.example'),
    'a.deep.corp.example',
    'wide suffix corp.example',
  ],
  [
    'replaced domains: the new ones are there',
    entry('deep', 'exact new.example'),
    'new.example',
    'deep exact new.example',
  ],
  [
    'another risk: the domains stay',
    { id: 'deep', risk: { score: 90, why: 'ours' } },
    'deep.corp.example',
    'deep suffix deep.corp.example',
  ],
  [
    'an entry that changes an unknown platform is ignored',
    { id: 'gone', name: 'Gone' },
    'deep.corp.example',
    'deep suffix deep.corp.example',
  ],
  ['a name of no platform', entry('own', 'suffix own.example'), 'nobody.example', 'none'],
]

const base = new NameMatcher(SHARED)
for (const [name, own, host, rule] of ROWS) {
  t.test(name, async (t) => {
    const matcher = new OwnMatcher(base, { platforms: [own], disable: [] })
    t.equal(shownRule(matcher.match(host)), rule)
  })
}

t.test('changed platforms have their new fields, disabled ones are absent', async (t) => {
  const own = new OwnMatcher(base, {
    platforms: [{ id: 'deep', risk: { score: 90, why: 'ours' } }, entry('own', 'suffix own.example')],
    disable: ['other'],
  })
  t.match(own.platform('deep'), { name: 'deep', risk: { score: 90 }, domains: { length: 1 } })
  t.match(own.platform('own'), { name: 'own' })
  t.match(own.platform('wide'), { name: 'wide' })
  t.equal(own.platform('other'), undefined)
  t.equal(shownRule(own.match('other.example')), 'other suffix other.example', 'it keeps its rules')
  t.equal(own.platform('nobody'), undefined)
})

t.test('the fingerprint changes with the changes and with the shared registry', async (t) => {
  const own = entry('own', 'suffix own.example')
  const fingerprints = [
    new OwnMatcher(base, { platforms: [own], disable: [] }),
    new OwnMatcher(base, { platforms: [own], disable: ['deep'] }),
    new OwnMatcher(new NameMatcher(registry(entry('wide', 'suffix corp.example'))), { platforms: [own], disable: [] }),
    base,
  ].map(({ fingerprint }) => fingerprint)
  t.equal(new Set(fingerprints).size, 4)
  t.equal(new OwnMatcher(base, { platforms: [own], disable: [] }).fingerprint, fingerprints[0])
})

const LABELS = ['a', 'b', 'ab', 'a-b'] as const
const label = fc.constantFrom(...LABELS)
const domain = fc.array(label, { minLength: 2, maxLength: 4 }).map((labels) => labels.join('.'))
const pattern = fc.tuple(fc.constantFrom('*', 'a*', '*b'), domain).map(([glob, below]) => `pattern ${glob}.${below}`)
const rule = fc.oneof(
  domain.map((text) => `suffix ${text}`),
  domain.map((text) => `exact ${text}`),
  pattern,
)
/** Up to four platforms; each domain stands once. */
const platforms = fc
  .array(fc.tuple(fc.constantFrom('p', 'q', 'r', 's'), fc.array(rule, { minLength: 1, maxLength: 4 })), {
    maxLength: 4,
  })
  .map((all): ChangedEntry[] => {
    const ids = new Set<string>()
    const seen = new Set<string>()
    return all.flatMap(([id, rules]) => {
      const kept = rules.filter((text) => {
        const name = text.split(' ')[1] ?? ''
        return !seen.has(name) && seen.add(name) !== undefined
      })
      return ids.has(id) || kept.length === 0 || ids.add(id) === undefined ? [] : [entry(id, ...kept)]
    })
  })

/** Two patterns of equal narrowness: which one is earlier depends on the order of the file. */
function isTie(a: string, b: string): boolean {
  return compareNarrowness(a, b) === 0
}

t.test('the matcher agrees with the merged registry', async () => {
  fc.assert(
    fc.property(platforms, platforms, fc.array(label, { minLength: 1, maxLength: 6 }), (shared, own, labels) => {
      const changes: RegistryFile = { platforms: own, disable: [] }
      const before: Platform[] = mergeChanges([], { platforms: shared, disable: [] })
      const merged = new NameMatcher(catalogOf(mergeChanges(before, changes))).match(labels.join('.'))
      const found = new OwnMatcher(new NameMatcher(catalogOf(before)), changes).match(labels.join('.'))
      if (merged?.match === 'pattern' && found?.match === 'pattern' && isTie(merged.domain, found.domain)) return true
      return shownRule(found) === shownRule(merged)
    }),
    { numRuns: 2000 },
  )
})
