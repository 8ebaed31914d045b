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
 * Both are rounded half up to integers. The overall score is computed from the category scores
 * before rounding. Worked example: docs/reference/assessments.md.
 */
const WORDS = { yes: 100, partial: 50, no: 0 } as const

/** Scores show weights with three decimals. */
const WEIGHT_UNITS = 1000
/** Binary floating point has some averages of exactly 89.5 slightly below. */
const ROUNDING_ERROR = 1e-9

export interface Score {
  /** null if no item counts. */
  readonly overallScore: number | null
  readonly categories: readonly CategoryScore[]
}

export function scoreOf(categories: readonly AssessmentCategory[], scale: Scale = 'graded'): Score {
  const rated = ratedOf(categories, scale)
  const overall = averageOf(rated)
  return {
    overallScore: overall === undefined ? null : roundHalfUp(overall),
    categories: rated.map(({ name, weight, points }) => ({
      name,
      weight: points === undefined ? 0 : roundHalfUp(weight * WEIGHT_UNITS) / WEIGHT_UNITS,
      score: points === undefined ? null : roundHalfUp(points),
    })),
  }
}

/** The overall score before rounding. undefined: no item counts. */
export function exactScoreOf(categories: readonly AssessmentCategory[], scale: Scale): number | undefined {
  return averageOf(ratedOf(categories, scale))
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

/** The weight of a category in the overall score. The share of the items that apply is of their weights. */
export function weightOf({ weight, items }: AssessmentCategory): number {
  const applicable = items.filter(({ answer }) => answer !== 'not_applicable')
  return weight * (sumOfWeights(applicable) / sumOfWeights(items))
}

export function sumOfWeights(weighted: readonly { readonly weight: number }[]): number {
  return weighted.reduce((sum, { weight }) => sum + weight, 0)
}

function ratedOf(categories: readonly AssessmentCategory[], scale: Scale) {
  return categories.map((category) => ({
    name: category.name,
    weight: weightOf(category),
    points: averageOf(category.items.map(({ weight, answer }) => ({ weight, points: pointsOf(answer, scale) }))),
  }))
}

/** undefined: none has points. */
function averageOf(
  all: readonly { readonly weight: number; readonly points: number | undefined }[],
): number | undefined {
  const counted = all.filter(({ points }) => points !== undefined)
  const sum = counted.reduce((total, { weight, points = 0 }) => total + weight * points, 0)
  return counted.length === 0 ? undefined : sum / sumOfWeights(counted)
}

function roundHalfUp(value: number): number {
  return Math.floor(value + 0.5 + ROUNDING_ERROR)
}
