import { FACT_KINDS, type Fact, type FactKind } from './facts.ts'

/**
 * The risk of a platform as a sum: the points of its class, which is what services of its kind
 * receive and under which law, plus points for each known fact. An unknown fact has no points, and
 * a good one lowers the score, so a vendor that publishes nothing is never rated better than one
 * that publishes something good. Documented in docs/reference/registry.md.
 */
export interface RiskTerm {
  /** `class`, a kind of fact, `unknown`, or `limit`. */
  readonly input: 'class' | 'unknown' | 'limit' | FactKind
  /** The fact, or the kinds that are unknown. */
  readonly value: string
  readonly points: number
  /** The page that states the fact. */
  readonly source?: string
}

export const RISK_MIN = 5
export const RISK_MAX = 100

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
 * The terms of a platform's score; they add up to it. Of several facts of one kind, such as those
 * of two plans, the one with the most points counts, because a host name does not reveal the plan.
 */
export function riskTerms(classPoints: number, why: string, facts: readonly Fact[]): RiskTerm[] {
  const terms: RiskTerm[] = [{ input: 'class', value: why, points: classPoints }]
  const unknown: FactKind[] = []
  for (const kind of FACT_KINDS) {
    const [worst] = facts.filter((fact) => fact.kind === kind).sort((a, b) => pointsOf(b) - pointsOf(a))
    if (worst === undefined) unknown.push(kind)
    else terms.push({ input: kind, value: valueText(worst), points: pointsOf(worst), source: worst.source })
  }
  if (unknown.length > 0) terms.push({ input: 'unknown', value: unknown.join(', '), points: 0 })
  const sum = sumOf(terms)
  const score = Math.min(RISK_MAX, Math.max(RISK_MIN, sum))
  if (score !== sum) terms.push({ input: 'limit', value: `${RISK_MIN} to ${RISK_MAX}`, points: score - sum })
  return terms
}

export function sumOf(terms: readonly RiskTerm[]): number {
  return terms.reduce((sum, { points }) => sum + points, 0)
}

function valueText({ value, plan }: Fact): string {
  return plan === undefined ? String(value) : `${value} (${plan})`
}
