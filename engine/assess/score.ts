import type { Answer, AssessmentCategory, CategoryScore } from '../store/assessments.ts'

/*
 * The score of an assessment, 0 to 100.
 *
 *   answer    yes 100, partial 50, no 0, or the number that was given
 *   category  sum of weight x answer / sum of weights, over its items that apply and are answered
 *   overall   sum of weight x category / sum of weights, over the categories that have such an item
 *
 * Both are rounded half up to whole numbers, the overall score from the exact categories and not from the rounded ones. Averages are fractions of
 * whole numbers: in binary 0.1 + 0.2 is more than 0.3, and 89.5 could become 89. docs/reference/assessments.md works an example.
 */
const WORDS = { yes: 100, partial: 50, no: 0 } as const

/** Weights have up to three decimals. */
const WEIGHT_UNITS = 1000

interface Fraction {
  readonly numerator: bigint
  /** Above 0. */
  readonly denominator: bigint
}

export interface Score {
  /** null where no item counts. */
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

/** What an answer counts; undefined where it does not. */
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

/** The rounding only takes away what binary left: a weight has no more decimals. */
function unitsOf(weight: number): bigint {
  return BigInt(Math.round(weight * WEIGHT_UNITS))
}

function roundHalfUp({ numerator, denominator }: Fraction): number {
  return Number((2n * numerator + denominator) / (2n * denominator))
}
