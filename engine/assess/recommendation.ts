import type { Assessment, AssessmentCategory, AssessmentItem } from '../store/assessments.ts'
import { newUuid } from '../store/keys.ts'
import type { Recommendation, RecommendationStatus } from '../store/recommendations.ts'
import { itemKey } from './rules.ts'
import { pointsOf } from './score.ts'

/*
 * One recommendation for each item that a completed assessment answers below 100, with the item's text and priority. Where the framework was
 * assessed before:
 *
 *   the item now          before: open  in_progress  completed  dismissed
 *   below 100             open          in_progress  open       dismissed    same id and created_at; text, priority and category are the newer ones
 *   100, or not to apply  completed     completed    completed  dismissed
 *   is no longer there    as it was
 */

/** The recommendations that completing this assessment makes or changes. `before` are those of its framework, by item. */
export function recommendationsAfter(
  assessment: Assessment,
  categories: readonly AssessmentCategory[],
  before: ReadonlyMap<string, Recommendation>,
  nowMs: number,
): Recommendation[] {
  return categories.flatMap((category) =>
    category.items.flatMap((item) => {
      const known = before.get(itemKey(item.id))
      const after = isLacking(item)
        ? recommended(assessment, category, item, known, nowMs)
        : known && withStatus(known, known.status === 'dismissed' ? 'dismissed' : 'completed', nowMs)
      return after === undefined || after === known ? [] : [after]
    }),
  )
}

/** The recommendation in another status; the same object where it has that status already. */
export function withStatus(
  recommendation: Recommendation,
  status: RecommendationStatus,
  nowMs: number,
): Recommendation {
  return recommendation.status === status ? recommendation : { ...recommendation, status, statusChangedAtMs: nowMs }
}

function isLacking({ answer }: AssessmentItem): boolean {
  const value = pointsOf(answer)
  return value !== undefined && value < 100
}

function recommended(
  { organizationId, frameworkId }: Assessment,
  category: AssessmentCategory,
  item: AssessmentItem,
  known: Recommendation | undefined,
  nowMs: number,
): Recommendation {
  const newest = { title: item.recommendation, priority: item.priority, category: category.name }
  if (known !== undefined) {
    return { ...withStatus(known, known.status === 'completed' ? 'open' : known.status, nowMs), ...newest }
  }
  return {
    id: newUuid(),
    organizationId,
    frameworkId,
    itemId: item.id,
    ...newest,
    status: 'open',
    createdAtMs: nowMs,
    statusChangedAtMs: nowMs,
  }
}
