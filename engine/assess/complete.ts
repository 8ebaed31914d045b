import { RECOMMENDATIONS_MAX } from '../limits.ts'
import { Fault } from '../process/error-codes.ts'
import { faultPoint } from '../process/fault-point.ts'
import type { Assessment, AssessmentCategory, AssessmentResult } from '../store/assessments.ts'
import type { Store } from '../store/store.ts'
import { gradeOf } from './grade.ts'
import { publishAssessments, publishRecommendations } from './publish.ts'
import { recommendationsAfter } from './recommendation.ts'
import { scoreOf } from './score.ts'
import { assertMayComplete } from './states.ts'

/**
 * Completes an assessment: stores its score, updates its recommendations and publishes both.
 * Requires a write transaction, so that a kill at any instant leaves either everything or nothing.
 *
 * @throws Fault CONFLICT if the assessment cannot be completed, or would add too many
 *   recommendations
 */
export function completeAssessment(
  store: Store,
  assessment: Assessment,
  categories: readonly AssessmentCategory[],
  nowMs: number,
): Assessment {
  assertMayComplete(assessment.status, categories)
  const { organizationId, frameworkId } = assessment
  const completed: Assessment = {
    ...assessment,
    status: 'completed',
    completedAtMs: nowMs,
    updatedAtMs: nowMs,
    completion: (store.assessments.completed(organizationId)[0]?.completion ?? 0) + 1,
    result: resultOf(categories),
  }
  store.assessments.put(completed, categories)
  faultPoint('assessment:completed')
  const before = store.recommendations.ofFramework(organizationId, frameworkId)
  for (const recommendation of recommendationsAfter(completed, categories, before, nowMs)) {
    store.recommendations.put(recommendation)
  }
  keepWithinBound(store, organizationId)
  faultPoint('assessment:recommended')
  publishAssessments(store, organizationId)
  publishRecommendations(store, organizationId)
  faultPoint('assessment:published')
  return completed
}

function resultOf(categories: readonly AssessmentCategory[]): AssessmentResult {
  const { overallScore, categories: scores } = scoreOf(categories)
  if (overallScore === null) throw new Error('internal error: an assessment without a score was completed')
  return { overallScore, grade: gradeOf(overallScore), categories: scores }
}

/** Beyond the limit, removes the recommendations that were completed the longest ago. */
function keepWithinBound(store: Store, organizationId: string): void {
  const all = store.recommendations.ofOrganization(organizationId)
  const excess = all.length - RECOMMENDATIONS_MAX
  if (excess <= 0) return
  const done = all.filter(({ status }) => status === 'completed')
  if (done.length < excess) {
    throw new Fault(
      'CONFLICT',
      `the organization would have ${all.length - done.length} recommendations that are not completed, more than the maximum of ${RECOMMENDATIONS_MAX}. Complete some first`,
    )
  }
  done.sort((a, b) => a.statusChangedAtMs - b.statusChangedAtMs)
  for (const recommendation of done.slice(0, excess)) store.recommendations.remove(recommendation)
}
