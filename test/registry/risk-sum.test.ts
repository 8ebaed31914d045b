import t from 'tap'
import { loadCatalog } from '../../registry/catalog.ts'
import { FACT_KINDS, type Fact, type FactKind, TRAINING } from '../../registry/facts.ts'
import { CONTROL, DATA, LAW, type RiskClass } from '../../registry/risk-class.ts'
import {
  knownText,
  planRisks,
  plansOf,
  pointsOf,
  ratedRisk,
  reasonOf,
  riskTerms,
  sumOf,
  UNKNOWN_POINTS,
} from '../../registry/risk-sum.ts'
import * as fc from '../support/property.ts'

/** 45 without facts. */
const CODE: RiskClass = { data: 'documents', control: 'terms', law: 'other' }
const PAGE = { source: 'https://vendor.example/terms', date: '2026-08-22' }

function fact(kind: FactKind, value: string | number, plan?: string): Fact {
  return { kind, value, ...(plan && { plan }), ...PAGE }
}

/** The best value of the kinds that are not only published or not. */
const GOOD: Readonly<Partial<Record<FactKind, string | number>>> = {
  ...{ trains_on_content: 'no', retention_days: 0, hosting_country: 'EU', minimum_age: 18 },
}

const rows: { name: string; of?: RiskClass; facts: Fact[]; score: number; texts: string[] }[] = [
  {
    name: 'nothing is known: the risk of the class',
    facts: [],
    score: 45,
    texts: [
      DATA.documents.text,
      CONTROL.terms.text,
      LAW.other.text,
      'Not known: training on your content; how long content is kept; where it is stored; a SOC 2 report or ISO 27001 certificate; a data processing agreement; a plan for organizations',
    ],
  },
  {
    name: 'a fact as bad as was assumed does not move the score',
    facts: [fact('trains_on_content', 'opt_out')],
    score: 45,
    texts: ['Trains on your content unless you opt out'],
  },
  {
    name: 'a worse one raises it',
    facts: [fact('trains_on_content', 'yes')],
    score: 49,
    texts: ['Trains on your content'],
  },
  {
    name: 'one of two certificates is enough',
    facts: [fact('iso27001', 'yes')],
    score: 40,
    texts: ['Is certified to ISO 27001'],
  },
  {
    name: 'the worst plan counts',
    facts: [fact('retention_days', 0, 'Enterprise'), fact('retention_days', 400, 'Free')],
    score: 46,
    texts: ['Keeps content for 400 days (Free)'],
  },
  {
    name: 'a good fact of some plans is not known of the others',
    facts: [fact('soc2', 'yes', 'Enterprise'), fact('enterprise_tier', 'yes', 'Enterprise')],
    score: 41,
    texts: ['Has a SOC 2 report (Enterprise): not known of other plans', 'Has a plan for organizations (Enterprise)'],
  },
  {
    name: 'good facts take at most half of the risk of a class',
    of: { data: 'prompts', control: 'terms', law: 'adequate' },
    facts: FACT_KINDS.map((kind) => fact(kind, GOOD[kind] ?? 'yes')),
    score: 15,
    texts: ['Limited to 15 to 100'],
  },
  {
    name: 'little is received: unknown facts do not matter, and the lowest score is 5',
    of: { data: 'little', control: 'contract', law: 'other' },
    facts: [fact('trains_on_content', 'no')],
    score: 5,
    texts: ['Does not train on your content', 'Limited to 5 to 100'],
  },
]
for (const { name, of = CODE, facts, score, texts } of rows) {
  t.test(name, async (t) => {
    const terms = riskTerms(of, facts)
    t.equal(sumOf(terms), score)
    const found = terms.map(({ text }) => text)
    t.same(
      texts.filter((text) => !found.includes(text)),
      [],
    )
    t.equal(knownText(terms), `Known: ${new Set(facts.map(({ kind }) => kind)).size} of 12 facts`)
  })
}

t.test('the reason of a score is its class and what raises it', async (t) => {
  const facts = [fact('trains_on_content', 'yes'), fact('soc2', 'yes')]
  const why = 'Sends source-code context to a cloud service'
  t.equal(reasonOf({ why, terms: riskTerms(CODE, facts) }), `${why}; Trains on your content`)
  t.equal(reasonOf({ why }), why)
})

/** Every value of a kind, or samples of numbers. */
const VALUES: Readonly<Record<FactKind, readonly (string | number)[]>> = {
  ...(Object.fromEntries(FACT_KINDS.map((kind) => [kind, ['yes']])) as unknown as Record<FactKind, string[]>),
  trains_on_content: TRAINING,
  retention_days: [0, 1, 30, 31, 180, 181, 3650],
  hosting_country: ['EU', 'US', 'CN'],
  tenant_restriction: ['Header-Name'],
  minimum_age: [13],
}

t.test('an unknown fact adds at most what the worst answer adds, and never less than the best', async (t) => {
  for (const { kinds, points, text } of UNKNOWN_POINTS) {
    const all = kinds.flatMap((kind) => VALUES[kind].map((value) => pointsOf({ kind, value })))
    const isPublished = kinds.every((kind) => VALUES[kind].length === 1)
    t.ok(points >= Math.min(...all) && points <= (isPublished ? -Math.min(...all) : Math.max(...all)), text)
  }
})

const keysOf = <K extends string>(rows: Readonly<Record<K, unknown>>) => Object.keys(rows) as K[]
const CLASSES: readonly RiskClass[] = keysOf(DATA).flatMap((data) =>
  keysOf(CONTROL).flatMap((control) => keysOf(LAW).map((law) => ({ data, control, law }))),
)

t.test('a platform is never rated better because a good fact is unknown', async () => {
  const good = fc.constantFrom(
    ...FACT_KINDS.flatMap((kind) =>
      VALUES[kind].filter((value) => pointsOf({ kind, value }) < 0).map((v) => fact(kind, v)),
    ),
  )
  const some = fc.uniqueArray(
    fc.constantFrom(...FACT_KINDS.flatMap((kind) => VALUES[kind].map((value) => fact(kind, value)))),
    { selector: ({ kind }) => kind },
  )
  fc.assert(
    fc.property(fc.constantFrom(...CLASSES), good, some, (of, known, others) => {
      const rest = others.filter(({ kind }) => kind !== known.kind)
      return sumOf(riskTerms(of, [...rest, known])) <= sumOf(riskTerms(of, rest))
    }),
  )
})

t.test('every platform has a sum, and every fact in it a page and a day', async (t) => {
  for (const platform of loadCatalog().platforms) {
    const { id, facts = [], risk, provenance } = platform
    t.equal(sumOf(ratedRisk(platform).terms ?? []), risk.score, id)
    for (const { source, date } of facts)
      t.match({ source, date }, { source: /^https:/, date: /^\d{4}-\d\d-\d\d$/ }, id)
    if (provenance?.country === 'CN') t.match(risk.class?.law, /china|chinese_parent/, id)
    if (provenance?.country === 'FR') t.equal(risk.class?.law, 'adequate', id)
  }
})

t.test('the risk of a plan has the facts of that plan', async (t) => {
  const facts = [
    fact('trains_on_content', 'yes', 'Free, training allowed'),
    fact('trains_on_content', 'no', 'Team, Enterprise'),
    fact('soc2', 'yes', 'Enterprise'),
    fact('dpa', 'yes'),
  ]
  t.same(plansOf(facts), ['Free', 'Team', 'Enterprise'])
  t.same(
    ratedRisk({ risk: { score: 0, why: 'why', class: CODE }, facts }, 'Gold'),
    ratedRisk({ risk: { score: 0, why: 'why', class: CODE }, facts }),
    'a plan that is gone is none',
  )
  const platform = { risk: { score: 0, why: 'why', class: CODE }, facts }
  t.equal(planRisks(platform), 'Free: 45; Team: 27; Enterprise: 23')
  for (const each of loadCatalog().platforms) {
    const { score } = ratedRisk(each)
    t.same(
      plansOf(each.facts ?? []).filter((plan) => ratedRisk(each, plan).score > score),
      [],
      `${each.id}: no plan is worse than the worst`,
    )
  }
})
