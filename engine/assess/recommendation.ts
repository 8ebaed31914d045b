import type { Assessment, AssessmentCategory, AssessmentItem } from '../store/assessments.ts'
import { newUuid } from '../store/keys.ts'
import type { Recommendation, RecommendationStatus } from '../store/recommendations.ts'
import { itemKey } from './rules.ts'
import { pointsOf } from './score.ts'
import { workOf } from './work.ts'

/*
 * A completed assessment has a recommendation for each item with an answer below 100, with the
 * item's text and priority. If the framework was assessed before:
 *
 *   item now               status before: open  in_progress  completed  dismissed
 *   below 100              open                 in_progress  open       dismissed
 *   100 or not applicable  completed            completed    completed  dismissed
 *   removed                unchanged
 *
 * An existing recommendation keeps its id and created_at. Its text, priority and category are
 * updated while the item is below 100, and so are owner and due date if the item has them.
 */

/**
 * Returns the new and changed recommendations of a completed assessment. `before`: the framework's
 * existing ones, by item.
 */
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

/**
 * Returns the recommendation with another status, or the same object if the status is unchanged.
 *
 * @param reason why it is dismissed
 */
export function withStatus(
  recommendation: Recommendation,
  status: RecommendationStatus,
  nowMs: number,
  reason = '',
): Recommendation {
  const { reason: _, ...before } = recommendation
  if (before.status === status) return recommendation
  return { ...before, status, ...(reason === '' ? {} : { reason }), statusChangedAtMs: nowMs }
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
  const { owner, dueOn } = workOf(item)
  const newest = {
    title: item.recommendation,
    priority: item.priority,
    weight: item.weight,
    category: category.name,
    owner: owner === '' ? (known?.owner ?? '') : owner,
    dueOn: dueOn === '' ? (known?.dueOn ?? '') : dueOn,
  }
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
