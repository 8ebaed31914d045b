import type { Answer, AssessmentCategory, CategoryScore } from '../store/assessments.ts'
import type { AnyFrameworkId } from '../store/framework.ts'

/*
 * The score of an assessment, 0 to 100.
 *
 *   answer    yes 100, partial 50, no 0, or the given number
 *   category  sum of weight x answer / sum of weights, over its applicable, answered items
 *   overall   sum of weight x category / sum of weights, over the categories with such an item. The
 *             weight of a category is its own x the share of its items that apply, by their weights
 *
 * PCI DSS and HIPAA know only met and not met: there, an answer below 100 is 0.
 *
 * Both are rounded half up to integers. The overall score is computed from the exact category
 * scores. Averages are fractions of integers, because binary floating point would turn some 89.5
 * into 89. Worked example: docs/reference/assessments.md.
 */
const WORDS = { yes: 100, partial: 50, no: 0 } as const

/** Weights have up to three decimals. */
const WEIGHT_UNITS = 1000

interface Fraction {
  readonly numerator: bigint
  /** Positive. */
  readonly denominator: bigint
}

export interface Score {
  /** null if no item counts. */
  readonly overallScore: number | null
  readonly categories: readonly CategoryScore[]
}

export function scoreOf(categories: readonly AssessmentCategory[], scale: Scale = 'graded'): Score {
  const averages = categories.map((category) => averageOf(category, scale))
  let sum = ZERO
  let weights = ZERO
  for (const [at, category] of categories.entries()) {
    const average = averages[at]
    if (average === undefined) continue
    const weight = weightOf(category)
    sum = plus(sum, times(weight, average))
    weights = plus(weights, weight)
  }
  return {
    overallScore: weights.numerator === 0n ? null : roundHalfUp(times(sum, inverse(weights))),
    categories: categories.map((category, at) => {
      const average = averages[at]
      const { numerator, denominator } = weightOf(category)
      return {
        name: category.name,
        weight: average === undefined ? 0 : roundHalfUp({ numerator, denominator }) / WEIGHT_UNITS,
        score: average === undefined ? null : roundHalfUp(average),
      }
    }),
  }
}

/** Which answers an assessment knows: degrees, or only met and not met. */
export type Scale = 'graded' | 'met'

export function scaleOf(frameworkId: AnyFrameworkId): Scale {
  return frameworkId === 'pci-dss' || frameworkId === 'hipaa' ? 'met' : 'graded'
}

/** The points of an answer. undefined: the answer does not count. */
export function pointsOf(answer: Answer, scale: Scale = 'graded'): number | undefined {
  if (answer === 'unanswered' || answer === 'not_applicable') return undefined
  const points = typeof answer === 'number' ? answer : WORDS[answer]
  return scale === 'met' && points < 100 ? 0 : points
}

/** In units. The share of the items that apply is of their weights. */
function weightOf({ weight, items }: AssessmentCategory): Fraction {
  let applicable = 0n
  let all = 0n
  for (const item of items) {
    const units = unitsOf(item.weight)
    all += units
    if (item.answer !== 'not_applicable') applicable += units
  }
  return { numerator: unitsOf(weight) * applicable, denominator: all }
}

const ZERO: Fraction = { numerator: 0n, denominator: 1n }

function plus(a: Fraction, b: Fraction): Fraction {
  return {
    numerator: a.numerator * b.denominator + b.numerator * a.denominator,
    denominator: a.denominator * b.denominator,
  }
}

function times(a: Fraction, b: Fraction): Fraction {
  return { numerator: a.numerator * b.numerator, denominator: a.denominator * b.denominator }
}

function inverse({ numerator, denominator }: Fraction): Fraction {
  return { numerator: denominator, denominator: numerator }
}

function averageOf(category: AssessmentCategory, scale: Scale): Fraction | undefined {
  let numerator = 0n
  let denominator = 0n
  for (const item of category.items) {
    const value = pointsOf(item.answer, scale)
    if (value === undefined) continue
    numerator += unitsOf(item.weight) * BigInt(value)
    denominator += unitsOf(item.weight)
  }
  return denominator === 0n ? undefined : { numerator, denominator }
}

/** Rounding only removes the floating-point error: a weight has at most three decimals. */
function unitsOf(weight: number): bigint {
  return BigInt(Math.round(weight * WEIGHT_UNITS))
}

function roundHalfUp({ numerator, denominator }: Fraction): number {
  return Number((2n * numerator + denominator) / (2n * denominator))
}
