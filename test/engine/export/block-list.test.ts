import t from 'tap'
import { type BlockListSource, blockListOf, LEFT_OUT } from '../../../engine/export/block-list.ts'
import {
  BLOCK_LIST_FORMATS,
  type BlockListFormat,
  blockListText,
  formatReach,
  summaryLines,
} from '../../../engine/export/block-list-text.ts'
import { BLOCK_LIST_ENTRIES_MAX } from '../../../engine/limits.ts'
import { DECISION_STATES, type DecisionState } from '../../../engine/store/decisions.ts'
import type { BlockListSelection } from '../../../engine/store/secrets.ts'
import { catalogOf, loadCatalog, mergeChanges, type Rule } from '../../../registry/catalog.ts'
import { NameMatcher } from '../../../registry/match.ts'
import { MATCH_KINDS, type Platform, ROLES } from '../../../registry/platform.ts'
import { blocks, sourceOf, testPlatform } from '../../support/block-lists.ts'
import { platform as ownPlatform } from '../../support/own-platforms.ts'
import * as fc from '../../support/property.ts'
import { makeRules, SeededRandom } from '../../support/random-names.ts'

const TIME_MS = Date.UTC(2026, 10, 20, 9, 15, 2)
const ALL: BlockListSelection = { blocks: 'not-approved', riskMin: 0 }

function textOf(source: BlockListSource, format: BlockListFormat, selection = ALL): string {
  const list = blockListOf(source, selection, formatReach(format))
  return blockListText(list, format, { organization: 'Acme', selection, timeMs: TIME_MS })
}

/** The lines after the comments. */
function linesOf(source: BlockListSource, format: BlockListFormat, selection = ALL): string[] {
  return textOf(source, format, selection)
    .split('\n')
    .filter((line) => line !== '' && !/^[#;!]/.test(line))
}

function leftOut(source: BlockListSource, format: BlockListFormat = 'rpz', selection = ALL): string[] {
  const list = blockListOf(source, selection, formatReach(format))
  return list.leftOut.map(({ rule, reason, other }) => [rule.domain, reason, other?.id ?? ''].join(' ').trim())
}

const OPENAI = testPlatform('openai', 35, [
  { domain: 'openai.com' },
  { domain: 'api.openai.com', match: 'exact', role: 'api', specificity: 1 },
  { domain: 'auth.openai.com', match: 'exact', role: 'auth' },
])
const CHATGPT = testPlatform('chatgpt', 55, [{ domain: 'chatgpt.com' }, { domain: 'chat.openai.com', match: 'exact' }])
const SPACE = testPlatform('space', 40, [
  { domain: '*.hf.test', match: 'pattern', specificity: 0.8 },
  { domain: 'api.*.cloud.test', match: 'pattern', role: 'api', specificity: 1 },
  { domain: 'one.test', match: 'exact' },
])

const LINES: Readonly<Record<BlockListFormat, readonly string[]>> = {
  rpz: [
    '$TTL 300',
    '@ IN SOA localhost. hostmaster.localhost. 1795166102 3600 600 86400 300',
    '@ IN NS localhost.',
    'chatgpt.com CNAME .',
    '*.chatgpt.com CNAME .',
    '*.hf.test CNAME .',
    'one.test CNAME .',
  ],
  hosts: [
    ...['0.0.0.0 chatgpt.com', ':: chatgpt.com', '0.0.0.0 one.test', ':: one.test'],
    ...['0.0.0.0 www.chatgpt.com', ':: www.chatgpt.com'],
  ],
  unbound: [
    'server:',
    '    local-zone: "chatgpt.com." always_nxdomain',
    '    local-data: "one.test. A 0.0.0.0"',
    '    local-data: "one.test. AAAA ::"',
  ],
  dnsmasq: ['address=/chatgpt.com/', 'host-record=one.test,0.0.0.0,::'],
  squid: ['.chatgpt.com', 'one.test'],
  edl: ['chatgpt.com', '*.chatgpt.com', '*.hf.test', 'one.test'],
  adblock: ['||chatgpt.com^', '||one.test^'],
  fortigate: ['chatgpt.com', '*.chatgpt.com', '*.hf.test', 'one.test'],
  pan: ['chatgpt.com', '*.chatgpt.com', '*.hf.test', 'one.test'],
}

for (const format of BLOCK_LIST_FORMATS) {
  t.test(`the lines of ${format}`, async (t) => {
    const chatgpt = { ...CHATGPT, domains: CHATGPT.domains.slice(0, 1) }
    t.same(linesOf(sourceOf([chatgpt, SPACE]), format), LINES[format])
  })
}

t.test('comments say what is in the list and what is not', async (t) => {
  const source = sourceOf([OPENAI, CHATGPT, SPACE], { chatgpt: 'approved' })
  const text = blockListText(blockListOf(source, ALL, formatReach('rpz')), 'rpz', {
    organization: 'Bücher\u{1f4a5} "1"',
    selection: ALL,
    timeMs: TIME_MS,
  })
  t.same(text.split('\n').slice(0, 4), [
    '; Block list of the Security Posture Service for "B\\u{fc}cher\\u{1f4a5} \\"1\\""',
    '; Generated 2026-11-20T09:15:02Z',
    '; 2 platforms are not approved: 3 entries',
    '; Rules left out: 1 other-platform, 1 pattern',
  ])
  const hosts = blockListOf(sourceOf([CHATGPT]), { blocks: 'rejected', riskMin: 50 }, formatReach('hosts'))
  t.same(summaryLines(hosts, { blocks: 'rejected', riskMin: 50 }), [
    '0 platforms are rejected and have a risk of 50 or more: 0 entries',
  ])
  t.match(
    summaryLines(blockListOf(sourceOf([CHATGPT]), ALL, formatReach('hosts')), ALL).join('\n'),
    '1 domains are blocked without the names below them',
  )
  t.notMatch(textOf(source, 'pan'), '#', 'the format has no comments')
})

const CASES: readonly {
  readonly name: string
  readonly source: BlockListSource
  readonly format?: BlockListFormat
  readonly selection?: BlockListSelection
  readonly lines: readonly string[]
  readonly out?: readonly string[]
}[] = [
  {
    name: 'a domain that has a name of an approved platform is left out, its exact names are not',
    source: sourceOf([OPENAI, CHATGPT], { chatgpt: 'approved' }),
    lines: ['api.openai.com'],
    out: ['openai.com other-platform chatgpt'],
  },
  {
    name: 'an expired approval no longer counts',
    source: sourceOf([CHATGPT], { chatgpt: 'expired' }),
    lines: ['chat.openai.com', 'chatgpt.com', '*.chatgpt.com'],
    out: [],
  },
  {
    name: 'only rejected platforms, if so chosen: a platform that waits is not blocked',
    source: sourceOf([OPENAI, CHATGPT, SPACE], { openai: 'rejected' }),
    selection: { blocks: 'rejected', riskMin: 0 },
    lines: ['api.openai.com'],
    out: ['openai.com other-platform chatgpt'],
  },
  {
    name: 'a platform below the lowest risk is not blocked by the name of another one',
    source: sourceOf([{ ...OPENAI, risk: { score: 90, why: '' } }, CHATGPT]),
    selection: { blocks: 'not-approved', riskMin: 60 },
    lines: ['api.openai.com'],
    out: ['openai.com other-platform chatgpt'],
  },
  {
    name: 'rules of other roles or with a low specificity are not in the list',
    source: sourceOf([
      testPlatform('a', 50, [
        { domain: 'a.test', specificity: 0.59 },
        { domain: 'docs.a2.test', role: 'docs' },
        { domain: 'auth.a3.test', role: 'auth' },
        { domain: 'cdn.a4.test', role: 'cdn' },
        { domain: 't.a5.test', role: 'telemetry' },
        { domain: 'a6.test', specificity: 0.6, match: 'exact' },
      ]),
    ]),
    lines: ['a6.test'],
    out: [],
  },
  {
    name: 'hosts that are no use are not in the list',
    source: sourceOf([
      testPlatform('a', 50, [
        { domain: 'a.test' },
        { domain: 'w.test', specificity: 0.4, purpose: 'widget' },
        { domain: 'b.test', specificity: 0.4, purpose: 'background' },
      ]),
    ]),
    lines: ['a.test', '*.a.test'],
    out: [],
  },
  {
    name: 'a widget of another blocked platform is not covered',
    source: sourceOf([
      testPlatform('a', 50, [{ domain: 'a.test' }]),
      testPlatform('b', 50, [{ domain: 'b.test' }, { domain: 'w.a.test', specificity: 0.4, purpose: 'widget' }]),
    ]),
    lines: ['b.test', '*.b.test'],
    out: ['a.test other-platform b'],
  },
  {
    name: 'a pixel of another blocked platform is covered',
    source: sourceOf([
      testPlatform('a', 50, [{ domain: 'a.test' }]),
      testPlatform('b', 50, [{ domain: 'b.test' }, { domain: 'p.a.test', specificity: 0.2, purpose: 'pixel' }]),
    ]),
    lines: ['a.test', '*.a.test', 'b.test', '*.b.test'],
    out: [],
  },
  {
    name: 'a name of an AI-capable platform is not covered, although nobody approved it',
    source: sourceOf([
      testPlatform('a', 50, [{ domain: 'a.test' }]),
      testPlatform('b', 50, [{ domain: 'mail.a.test', specificity: 0.5 }]),
    ]),
    lines: [],
    out: ['a.test other-platform b'],
  },
  {
    name: 'a name of the same platform with a low specificity is covered',
    source: sourceOf([
      testPlatform('a', 50, [{ domain: 'a.test' }, { domain: 'help.a.test', match: 'exact', specificity: 0.5 }]),
    ]),
    lines: ['a.test', '*.a.test'],
    out: [],
  },
  {
    name: 'shared hosts, and domains above them',
    source: sourceOf([
      testPlatform('a', 50, [
        { domain: 'amazonaws.com' },
        { domain: 'github.com', match: 'exact' },
        { domain: 'core.windows.net', match: 'suffix' },
        { domain: 'on.aws', match: 'suffix' },
        { domain: '*.vercel.app', match: 'pattern' },
        { domain: 'api.github.com', match: 'exact', role: 'api' },
        { domain: 'a.amazonaws.com' },
      ]),
    ]),
    lines: ['a.amazonaws.com', '*.a.amazonaws.com'],
    out: [
      ...['*.vercel.app shared-host', 'amazonaws.com shared-host', 'api.github.com shared-host'],
      ...['core.windows.net shared-host', 'github.com shared-host', 'on.aws shared-host'],
    ],
  },
  {
    name: "the organization's own domain",
    source: sourceOf([testPlatform('a', 50, [{ domain: 'acme.example' }, { domain: 'ai.acme.example' }])]),
    lines: ['ai.acme.example', '*.ai.acme.example'],
    out: ['acme.example own-domain'],
  },
  {
    name: 'names of a platform that was removed from the registry',
    source: sourceOf([OPENAI], {}, { disabledRules: sourceOf([CHATGPT]).rules }),
    lines: ['api.openai.com'],
    out: ['openai.com other-platform chatgpt'],
  },
  {
    name: 'an exact name is a domain with all names below where the format knows no other',
    source: sourceOf([testPlatform('a', 50, [{ domain: 'api.b.test', match: 'exact' }]), testPlatform('b', 50, [])]),
    format: 'adblock',
    lines: ['||api.b.test^'],
    out: [],
  },
  {
    name: 'names below an exact name belong to the domain above it',
    source: sourceOf(
      [
        testPlatform('a', 50, [{ domain: 'api.b.test', match: 'exact' }]),
        testPlatform('b', 50, [{ domain: 'b.test' }]),
      ],
      { b: 'approved' },
    ),
    format: 'adblock',
    lines: [],
    out: ['api.b.test other-platform b'],
  },
  {
    name: 'names below a wildcard belong to the domain above it',
    source: sourceOf(
      [
        testPlatform('a', 50, [{ domain: '*.b.test', match: 'pattern' }]),
        testPlatform('b', 50, [{ domain: 'b.test' }]),
      ],
      { b: 'approved' },
    ),
    lines: [],
    out: ['*.b.test other-platform b'],
  },
  {
    name: 'a pattern of an approved platform that may match below the domain',
    source: sourceOf(
      [
        testPlatform('a', 50, [{ domain: 'x.test' }, { domain: 'y.test' }]),
        testPlatform('b', 50, [{ domain: 'q-*.eu.x.test', match: 'pattern' }]),
      ],
      { b: 'approved' },
    ),
    lines: ['y.test', '*.y.test'],
    out: ['x.test other-platform b'],
  },
  {
    name: 'a name below a listed domain is not repeated',
    source: sourceOf([
      testPlatform('a', 50, [{ domain: 'x.test' }, { domain: 'api.x.test', match: 'exact' }, { domain: 'b.x.test' }]),
    ]),
    format: 'squid',
    lines: ['.x.test'],
    out: [],
  },
  {
    name: 'names that would be no names elsewhere',
    source: sourceOf(
      [
        testPlatform(
          'a',
          50,
          [
            ...['x.test\nevil.test', 'x.test" always_refuse', 'X.test', 'a_b.test', '-a.test', 'a..test', '', 'test'],
            ...['xn--zz--.test', '127.0.0.1', 'bücher.test', 'a b.test', '*.test', 'x.test/1.2.3.4'],
          ].map((domain) => ({ domain, match: 'exact' as const })),
        ),
      ],
      {},
      { matcher: new NameMatcher(catalogOf([])) },
    ),
    lines: [],
  },
]

for (const { name, source, format = 'edl', selection = ALL, lines, out } of CASES) {
  t.test(name, async (t) => {
    t.same(linesOf(source, format, selection), lines)
    if (out !== undefined) t.same(leftOut(source, format, selection), out)
    else t.ok(leftOut(source, format, selection).every((each) => each.endsWith('invalid-name')))
  })
}

t.test('a name that is too long for a zone', async (t) => {
  const domain = `${Array.from({ length: 4 }, () => 'a'.repeat(47)).join('.')}.test`
  const source = sourceOf([testPlatform('a', 50, [{ domain, match: 'exact' }])])
  t.same(leftOut(source, 'rpz'), [`${domain} too-long`])
  t.same(linesOf(source, 'edl'), [domain])
})

t.test('beyond the limit, platforms of the highest risk come first', async (t) => {
  const low = testPlatform('low', 10, [{ domain: 'a.low.test', match: 'exact' }])
  const many = Array.from({ length: BLOCK_LIST_ENTRIES_MAX }, (_, at) => ({ domain: `a${at}.high.test` }))
  const source = sourceOf([low, testPlatform('high', 90, many)])
  const list = blockListOf(source, ALL, formatReach('edl'))
  t.equal(list.entries.length, BLOCK_LIST_ENTRIES_MAX)
  t.same(
    list.leftOut.map(({ rule, reason }) => [rule.domain, reason]),
    [['a.low.test', 'limit']],
  )
})

/** Names that a rule may match. */
function namesOf({ domain, match }: Rule): string[] {
  if (match === 'exact') return [domain, `a.${domain}`]
  if (match === 'suffix') return [domain, `www.${domain}`, `a.b.${domain}`]
  const name = domain.replaceAll('*', 'a')
  return [name, domain.replaceAll('*', 'x-1'), `b.${name}`]
}

/**
 * What must hold for every list: no name of a platform that is not blocked is blocked, and each
 * name of a use rule of a blocked platform is blocked, unless the rule is reported as left out. The
 * registry's matcher decides whose name it is.
 */
function check(source: BlockListSource, selection: BlockListSelection, format: BlockListFormat): void {
  const list = blockListOf(source, selection, formatReach(format))
  const text = blockListText(list, format, { organization: 'Acme', selection, timeMs: TIME_MS })
  const isBlocked = blocks(format, text)
  const wanted = ({ id, risk }: Platform): boolean => {
    const state = source.decisions.states.get(id) ?? 'waiting'
    return (
      risk.score >= selection.riskMin && (selection.blocks === 'rejected' ? state === 'rejected' : state !== 'approved')
    )
  }
  const left = new Set(list.leftOut.map(({ rule }) => rule))
  for (const rule of [...source.rules, ...source.disabledRules]) {
    for (const name of namesOf(rule)) {
      const found = source.matcher.match(name)
      if (found === undefined) continue
      if (!wanted(found.platform) && isBlocked(name)) {
        throw new Error(`${format} blocks ${name} of ${found.platform.id}, by none of its rules`)
      }
      const isUse = ['web', 'api'].includes(found.role) && found.specificity >= 0.6
      if (!wanted(found.platform) || !isUse || left.has(found) || isBlocked(name)) continue
      const isInHosts = found.match === 'exact' || name === found.domain || name === `www.${found.domain}`
      if (format === 'hosts' && !isInHosts) continue
      throw new Error(`${format} does not block ${name} of ${found.platform.id}, and does not say why`)
    }
  }
  for (const { reason } of list.leftOut) if (!(reason in LEFT_OUT)) throw new Error(`an unknown reason ${reason}`)
}

const selection: fc.Arbitrary<BlockListSelection> = fc.record({
  blocks: fc.constantFrom('not-approved' as const, 'rejected' as const),
  riskMin: fc.constantFrom(0, 0, 35, 50, 80),
})
const state = fc.constantFrom<DecisionState>(...DECISION_STATES)
const format = fc.constantFrom(...BLOCK_LIST_FORMATS)

t.test('any decisions about the built-in registry', async () => {
  const { platforms, rules } = loadCatalog()
  const own = [
    ownPlatform('own-1', 'llm.acme.example', 'ai.openai.com'),
    { id: 'claude', risk: { score: 5, why: 'own' } },
  ]
  const merged = catalogOf(mergeChanges(platforms, { platforms: own, disable: ['sora', 'github-models'] }))
  const disabledRules = rules.filter(({ platform }) => ['sora', 'github-models'].includes(platform.id))
  const matchers = { merged: new NameMatcher(merged), plain: new NameMatcher({ version: '', platforms, rules }) }
  // Platforms that share a domain are approved more often than the others.
  const near = rules
    .filter(({ domain }) =>
      rules.some((other) => other.domain.endsWith(`.${domain}`) || domain.endsWith(`.${other.domain}`)),
    )
    .map(({ platform }) => platform.id)
  const decided = fc.dictionary(
    fc.oneof(fc.constantFrom(...new Set(near)), fc.constantFrom(...platforms.map(({ id }) => id))),
    state,
    { maxKeys: 60 },
  )
  fc.assert(
    fc.property(decided, selection, format, fc.boolean(), (decisions, chosen, inFormat, isMerged) => {
      const states = new Map(Object.entries(decisions))
      const source: BlockListSource = {
        rules: isMerged ? merged.rules : rules,
        disabledRules: isMerged ? disabledRules : [],
        matcher: isMerged ? matchers.merged : matchers.plain,
        decisions: { states },
        ownDomain: 'acme.example',
      }
      check(source, chosen, inFormat)
    }),
    { numRuns: 60 },
  )
})

t.test('any rules: few labels, so that they are below each other', async () => {
  fc.assert(
    fc.property(
      fc.integer(),
      selection,
      format,
      fc.array(state, { minLength: 4 }),
      (seed, chosen, inFormat, states) => {
        const random = new SeededRandom(seed)
        const domains = makeRules(random, 25).map(({ domain }) => ({
          domain,
          match: domain.includes('*')
            ? ('pattern' as const)
            : random.of(MATCH_KINDS.filter((kind) => kind !== 'pattern')),
          role: random.of(['web', 'web', 'api', ...ROLES] as const),
          specificity: random.of([0.5, 0.6, 1]),
        }))
        const platforms = ['a', 'b', 'c', 'd'].map((id, at) =>
          testPlatform(
            id,
            at * 30,
            domains.filter((_, index) => index % 4 === at),
          ),
        )
        const decisions = Object.fromEntries(platforms.map(({ id }, at) => [id, states[at] ?? 'waiting']))
        check(sourceOf(platforms, decisions), chosen, inFormat)
      },
    ),
    { numRuns: 1000 },
  )
})
