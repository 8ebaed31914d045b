import { isoDay } from '../kernel/process/clock.ts'
import type { AssessmentCategory, AssessmentItem, AssessmentResult } from '../store/assessments.ts'
import { type AnyFrameworkId, type FrameworkItem, isBuiltIn } from '../store/framework.ts'
import { itemKey } from './rules.ts'
import { pointsOf, scaleOf, scoreOf } from './score.ts'
import { itemsOf } from './states.ts'
import { frameworkItems } from './templates.ts'

/*
 * Legal duties apply from different days. An item is marked until the first of its duties applies:
 * what it asks for is good practice until then.
 */

/** The day from which the law asks for an item, if it is later. undefined: it does now, or never. */
export function lawFrom(frameworkId: AnyFrameworkId, itemId: string, nowMs: number): string | undefined {
  const { law = [] } = (isBuiltIn(frameworkId) && frameworkItems(frameworkId).get(itemKey(itemId))) || {}
  const [first] = law.map(({ appliesFrom }) => appliesFrom).sort()
  return first !== undefined && first > isoDay(nowMs) ? first : undefined
}

/** The duties of an item: `AIACT Art. 26(9) from 2027-12-02`. */
export function lawText(law: FrameworkItem['law'] = []): string {
  return law.map(({ reference, appliesFrom }) => `${reference} from ${appliesFrom}`).join(', ')
}

export const GRADES = ['A', 'B', 'C', 'D', 'F'] as const
export type Grade = (typeof GRADES)[number]

/**
 * Numbers the rules of results: the scale of each framework, the must-pass items and what they do.
 * Increase it when one of them changes, because completed assessments keep their results. A new item
 * changes no rule: completed assessments lack it.
 */
export const RULES = 2

/** The grade of an integer score from 0 to 100. */
export function gradeOf(score: number): Grade {
  if (score >= 90) return 'A'
  if (score >= 80) return 'B'
  if (score >= 70) return 'C'
  if (score >= 60) return 'D'
  return 'F'
}

/**
 * The result with the present answers. undefined: no item has an answer that counts.
 *
 * @param atMs its completion, or now
 */
export function resultOf(
  frameworkId: AnyFrameworkId,
  categories: readonly AssessmentCategory[],
  atMs: number,
): AssessmentResult | undefined {
  const { overallScore, categories: scores } = scoreOf(categories, scaleOf(frameworkId))
  if (overallScore === null) return undefined
  const grade = gradeOf(overallScore)
  const isCapped = grade !== 'F' && failedMustPass(frameworkId, categories, atMs).length > 0
  return { overallScore, grade: isCapped ? 'D' : grade, categories: scores, rules: RULES }
}

/**
 * Must-pass items whose answer is below 50, or that do not apply without a reason: no good average
 * makes up for them. What the law does not ask for yet at this time is not among them.
 */
export function failedMustPass(
  frameworkId: AnyFrameworkId,
  categories: readonly AssessmentCategory[],
  atMs: number,
): AssessmentItem[] {
  if (!isBuiltIn(frameworkId)) return []
  const known = frameworkItems(frameworkId)
  const scale = scaleOf(frameworkId)
  return itemsOf(categories).filter(({ id, answer, note }) => {
    const isFailed = answer === 'not_applicable' ? note === '' : (pointsOf(answer, scale) ?? 100) < 50
    const isMustPass = known.get(itemKey(id))?.mustPass === true && lawFrom(frameworkId, id, atMs) === undefined
    return isFailed && isMustPass
  })
}
