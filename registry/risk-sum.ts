import { FACT_KINDS, type Fact, type FactKind } from './facts.ts'
import type { Platform } from './platform.ts'
import { CONTROL, DATA, LAW, type RiskClass } from './risk-class.ts'

/**
 * The risk of a platform as a sum: its class (risk-class.ts) and what its vendor publishes. Unknown
 * facts that matter add points, and a fact that becomes known replaces these by its own. So a vendor
 * that publishes nothing is never rated better than one that publishes something good, and a fact
 * that becomes known raises the score only if it is worse than what was assumed.
 * Documented in docs/reference/registry.md.
 */
export interface RiskTerm {
  /** A table of the class, a kind of fact, `unknown`, or `limit`. */
  readonly input: keyof RiskClass | 'unknown' | 'limit' | FactKind
  /** The row of the table, the fact, or the kinds that are unknown. */
  readonly value: string
  readonly points: number
  /** The term as a sentence. */
  readonly text: string
  /** The page that states the fact, and the day on which it did. */
  readonly source?: string
  readonly date?: string
}

/** Changes with the points and tables: risks of before and after do not compare. */
export const RISK_FORMULA = 3
const RISK_MIN = 5
const RISK_MAX = 100
/** Facts lower the risk of a class by at most this share: they do not change what the service receives. */
const LOWERED_MAX = 0.5

const TRAINING_POINTS: Readonly<Record<string, number>> = { no: -8, opt_in: -4, opt_out: 6, yes: 10 }

/** Countries of the EEA, and those whose data protection the EU recognizes as adequate. */
const ADEQUATE = new Set(
  'EU AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IS IT LI LT LU LV MT NL NO PL PT RO SE SI SK CH GB JP KR NZ CA IL'.split(
    ' ',
  ),
)
/** Countries whose law gives the state access to stored data without an independent court. */
const COMPELLED = new Set(['CN', 'RU'])

/** Points of facts that a vendor either publishes or not. */
const YES_POINTS: Readonly<Partial<Record<FactKind, number>>> = {
  soc2: -3,
  iso27001: -2,
  iso42001: -2,
  fedramp: -4,
  dpa: -2,
  enterprise_tier: -2,
  sso: -2,
  tenant_restriction: -4,
}

/**
 * The points of what is not known, by the kinds of which one is enough: at most those of the worst
 * answer, and for what a vendor either publishes or not, at most what publishing it takes off.
 */
export const UNKNOWN_POINTS: readonly {
  readonly kinds: readonly FactKind[]
  readonly points: number
  readonly text: string
}[] = [
  { kinds: ['trains_on_content'], points: 6, text: 'training on your content' },
  { kinds: ['retention_days'], points: 2, text: 'how long content is kept' },
  { kinds: ['hosting_country'], points: 2, text: 'where it is stored' },
  { kinds: ['soc2', 'iso27001'], points: 3, text: 'a SOC 2 report or ISO 27001 certificate' },
  { kinds: ['dpa'], points: 2, text: 'a data processing agreement' },
  { kinds: ['enterprise_tier'], points: 2, text: 'a plan for organizations' },
]
const UNKNOWN_OF_KIND = new Map(UNKNOWN_POINTS.flatMap(({ kinds, points }) => kinds.map((kind) => [kind, points])))
const UNKNOWN_SUM = UNKNOWN_POINTS.reduce((sum, { points }) => sum + points, 0)

/** The points of one fact. */
export function pointsOf({ kind, value }: Pick<Fact, 'kind' | 'value'>): number {
  if (kind === 'trains_on_content') return TRAINING_POINTS[value] ?? 0
  if (kind === 'retention_days') return retentionPoints(Number(value))
  if (kind === 'hosting_country') return ADEQUATE.has(String(value)) ? -2 : COMPELLED.has(String(value)) ? 5 : 0
  // Ages are shown and not rated: a lower one is neither safer nor riskier for an organization.
  return YES_POINTS[kind] ?? 0
}

function retentionPoints(days: number): number {
  if (days === 0) return -5
  if (days <= 30) return -3
  return days <= 180 ? 0 : 3
}

/**
 * The terms of the score of a platform; they add up to it. A host name does not reveal the plan, so
 * without a plan the worst one counts: of several facts of one kind, the one with the most points;
 * and what some plans have, better than unknown, is not known of the others.
 */
export function riskTerms({ data, control, law }: RiskClass, facts: readonly Fact[], plan?: string): RiskTerm[] {
  const terms: RiskTerm[] = [
    { input: 'data', value: data, ...DATA[data] },
    { input: 'control', value: control, ...CONTROL[control] },
    { input: 'law', value: law, ...LAW[law] },
  ]
  // What receives little needs no facts.
  const unknownSum = data === 'little' ? 0 : UNKNOWN_SUM
  const classRisk = sumOf(terms) + unknownSum
  const known = new Set<FactKind>()
  for (const kind of FACT_KINDS) {
    const ofKind = facts.filter((fact) => fact.kind === kind && (plan === undefined || isOfPlan(fact, plan)))
    // Of equal ones, that of all plans.
    const [worst] = ofKind.sort(
      (a, b) => pointsOf(b) - pointsOf(a) || Number(a.plan !== undefined) - Number(b.plan !== undefined),
    )
    if (worst === undefined) continue
    const isOfSome =
      plan === undefined && !isOfPlan(worst, undefined) && pointsOf(worst) < (UNKNOWN_OF_KIND.get(kind) ?? 0)
    if (!isOfSome) known.add(kind)
    const { source, date } = worst
    const points = isOfSome ? 0 : pointsOf(worst)
    const text = isOfSome ? `${sentenceOf(worst)}: not known of other plans` : sentenceOf(worst)
    terms.push({ input: kind, value: valueText(worst), points, text, source, date })
  }
  const unknown = UNKNOWN_POINTS.filter(({ kinds }) => !kinds.some((kind) => known.has(kind)))
  if (unknown.length > 0 && unknownSum > 0) {
    const value = unknown.flatMap(({ kinds }) => kinds).join(', ')
    const points = unknown.reduce((sum, each) => sum + each.points, 0)
    terms.push({ input: 'unknown', value, points, text: `Not known: ${unknown.map(({ text }) => text).join('; ')}` })
  }
  const sum = sumOf(terms)
  const lowest = Math.max(RISK_MIN, Math.ceil(classRisk * LOWERED_MAX))
  const score = Math.min(RISK_MAX, Math.max(lowest, sum))
  const limit = `${lowest} to ${RISK_MAX}`
  if (score !== sum) terms.push({ input: 'limit', value: limit, points: score - sum, text: `Limited to ${limit}` })
  return terms
}

/** The risk of a platform, with the terms of its score if that is a sum; of a plan, or the worst. */
export interface RatedRisk {
  /** 0 to 100. */
  readonly score: number
  readonly why: string
  readonly terms?: readonly RiskTerm[]
}

/** A plan that the registry no longer names is none. */
export function ratedRisk({ risk, facts = [] }: Pick<Platform, 'risk' | 'facts'>, plan = ''): RatedRisk {
  const { score, why, class: known } = risk
  if (known === undefined) return { score, why }
  const terms = riskTerms(known, facts, plansOf(facts).includes(plan) ? plan : undefined)
  return { score: sumOf(terms), why, terms }
}

/** The score that lists show of a platform: of the plan that its approval names, or of the worst. */
export function scoreOf(platform: Pick<Platform, 'id' | 'risk' | 'facts'>, plans: ReadonlyMap<string, string>): number {
  const plan = plans.get(platform.id)
  return plan === undefined ? platform.risk.score : ratedRisk(platform, plan).score
}

/**
 * The plans that the facts name, in their order. A word in lower case is a condition, not a plan:
 * `Free, Pro, training not allowed`.
 */
export function plansOf(facts: readonly Fact[]): string[] {
  const names = facts.flatMap(({ plan = '' }) => plan.split(', '))
  return [...new Set(names)].filter((name) => /^[A-Z]/.test(name))
}

/** The risk of each plan: `Free, Plus: 55; Enterprise: 31`. '' if the registry knows no plan. */
export function planRisks(platform: Pick<Platform, 'risk' | 'facts'>): string {
  const byScore = new Map<number, string[]>()
  for (const plan of plansOf(platform.facts ?? [])) {
    const { score } = ratedRisk(platform, plan)
    byScore.set(score, [...(byScore.get(score) ?? []), plan])
  }
  return [...byScore].map(([score, plans]) => `${plans.join(', ')}: ${score}`).join('; ')
}

/** A fact of all plans is one of each. Who can choose a plan for organizations can do so in any. */
function isOfPlan({ kind, plan }: Fact, name: string | undefined): boolean {
  if (plan === undefined || kind === 'enterprise_tier') return true
  return name !== undefined && plan.split(', ').includes(name)
}

export function sumOf(terms: readonly RiskTerm[]): number {
  return terms.reduce((sum, { points }) => sum + points, 0)
}

/** `Known: 5 of 12 facts`, of a platform's terms. */
export function knownText(terms: readonly RiskTerm[]): string {
  const known = terms.filter(({ input }) => isFact(input)).length
  return `Known: ${known} of ${FACT_KINDS.length} facts`
}

function isFact(input: RiskTerm['input']): boolean {
  return (FACT_KINDS as readonly string[]).includes(input)
}

/** Why a platform is risky, in one line: the registry's sentence, and the facts that raise the score. */
export function reasonOf({ why, terms = [] }: Pick<RatedRisk, 'why' | 'terms'>): string {
  const more = terms.filter(({ input, points }) => points > 0 && isFact(input))
  return [why, ...more.map(({ text }) => text)].join('; ')
}

function valueText({ value, plan }: Fact): string {
  return plan === undefined ? String(value) : `${value} (${plan})`
}

const TRAINING_TEXT: Readonly<Record<string, string>> = {
  no: 'Does not train on your content',
  opt_in: 'Trains on your content only if you agree',
  opt_out: 'Trains on your content unless you opt out',
  yes: 'Trains on your content',
}
const SENTENCES: Readonly<Record<FactKind, (value: string | number) => string>> = {
  trains_on_content: (value) => TRAINING_TEXT[value] ?? '',
  retention_days: (days) => (days === 0 ? 'Keeps no content' : `Keeps content for ${days} days`),
  hosting_country: (code) => `Stores content in ${countryName(String(code))}`,
  soc2: () => 'Has a SOC 2 report',
  iso27001: () => 'Is certified to ISO 27001',
  iso42001: () => 'Is certified to ISO 42001',
  fedramp: () => 'Has a FedRAMP authorization',
  dpa: () => 'Offers a data processing agreement',
  enterprise_tier: () => 'Has a plan for organizations',
  sso: () => 'Supports single sign-on',
  tenant_restriction: (header) => `A proxy can allow only your accounts, with the header ${header}`,
  minimum_age: (years) => `For people from ${years} years of age`,
}

const COUNTRY_NAMES = new Intl.DisplayNames('en', { type: 'region' })

/** In a sentence: `Germany`, `the United States`. */
function countryName(code: string): string {
  const name = COUNTRY_NAMES.of(code) ?? code
  return /^(?:European|Netherlands|United)\b/.test(name) ? `the ${name}` : name
}

function sentenceOf({ kind, value, plan }: Fact): string {
  return `${SENTENCES[kind](value)}${plan === undefined ? '' : ` (${plan})`}`
}
