import type { Answer, AssessmentCategory, CategoryScore } from '../store/assessments.ts'

/*
 * The score of an assessment, 0 to 100.
 *
 *   answer    yes 100, partial 50, no 0, or the given number
 *   category  sum of weight x answer / sum of weights, over its applicable, answered items
 *   overall   sum of weight x category / sum of weights, over the categories with such an item
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

export function scoreOf(categories: readonly AssessmentCategory[]): Score {
  const averages = categories.map(averageOf)
  let numerator = 0n
  let denominator = 1n
  let weights = 0n
  for (const [at, average] of averages.entries()) {
    if (average === undefined) continue
    const weight = unitsOf(categories[at]?.weight ?? 0)
    numerator = numerator * average.denominator + weight * average.numerator * denominator
    denominator *= average.denominator
    weights += weight
  }
  return {
    overallScore: weights === 0n ? null : roundHalfUp({ numerator, denominator: denominator * weights }),
    categories: categories.map(({ name, weight }, at) => {
      const average = averages[at]
      return { name, weight, score: average === undefined ? null : roundHalfUp(average) }
    }),
  }
}

/** The points of an answer. undefined: the answer does not count. */
export function pointsOf(answer: Answer): number | undefined {
  if (typeof answer === 'number') return answer
  return answer === 'unanswered' || answer === 'not_applicable' ? undefined : WORDS[answer]
}

function averageOf(category: AssessmentCategory): Fraction | undefined {
  let numerator = 0n
  let denominator = 0n
  for (const item of category.items) {
    const value = pointsOf(item.answer)
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
