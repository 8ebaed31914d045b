import { Fault } from '../kernel/process/error-codes.ts'
import { faultPoint } from '../kernel/process/fault-point.ts'
import { RECOMMENDATIONS_MAX } from '../limits.ts'
import type { Assessment, AssessmentCategory } from '../store/assessments.ts'
import type { Recommendation } from '../store/recommendations.ts'
import type { Store } from '../store/store.ts'
import { discoveryFacts, withFacts } from './discovery-facts.ts'
import { resultOf } from './grade.ts'
import { publishAssessments, publishRecommendations } from './publish.ts'
import { recommendationsAfter } from './recommendation.ts'
import { itemKey } from './rules.ts'
import { assertMayComplete } from './states.ts'

/**
 * Completes an assessment: its score is final, its recommendations are made, and the API shows both
 * at the next request. Inside one transaction of the caller, so that a kill at any instant leaves
 * nothing of it or everything.
 *
 * @param historyMs when it was completed elsewhere, for the history: it takes its place in the
 *   order of completions, and changes no recommendation if a later one of its framework is
 *   completed.
 *
 * @throws Fault CONFLICT where it may not be completed, or would bring more recommendations than an
 *   organization can have.
 */
export function completeAssessment(
  store: Store,
  assessment: Assessment,
  categories: readonly AssessmentCategory[],
  nowMs: number,
  historyMs?: number,
): Assessment {
  assertMayComplete(assessment.status, categories)
  const { organizationId, frameworkId } = assessment
  const completedAtMs = historyMs ?? nowMs
  const result = resultOf(frameworkId, categories, completedAtMs)
  if (result === undefined) throw new Error('internal error: an assessment without a score was completed')
  const later = laterThan(store, organizationId, historyMs)
  const [last] = store.assessments.completed(organizationId).slice(later.length)
  for (const other of later) store.assessments.put({ ...other, completion: other.completion + 1 })
  const completed: Assessment = {
    ...assessment,
    status: 'completed',
    startedAtMs: Math.min(assessment.startedAtMs, completedAtMs),
    completedAtMs,
    updatedAtMs: nowMs,
    completion: (last?.completion ?? 0) + 1,
    result,
  }
  // Facts of today say nothing about an earlier time.
  const withEvidence =
    historyMs === undefined ? withFacts(completed, categories, discoveryFacts(store, organizationId, nowMs)) : undefined
  store.assessments.put(completed, withEvidence)
  faultPoint('assessment:completed')
  if (later.some((other) => other.frameworkId === frameworkId)) {
    publishAssessments(store, organizationId)
    return completed
  }
  // Read once: opening the records takes longer than all else.
  const before = store.recommendations.ofOrganization(organizationId)
  const known = new Map(
    before.filter((each) => each.frameworkId === frameworkId).map((each) => [itemKey(each.itemId), each]),
  )
  const changed = recommendationsAfter(completed, categories, known, nowMs)
  for (const recommendation of changed) store.recommendations.put(recommendation)
  const ids = new Set(changed.map(({ id }) => id))
  const after = withinBound(store, [...before.filter(({ id }) => !ids.has(id)), ...changed])
  faultPoint('assessment:recommended')
  publishAssessments(store, organizationId)
  publishRecommendations(store, organizationId, after)
  faultPoint('assessment:published')
  return completed
}

/**
 * The completed assessments that come after one that was completed at `historyMs`; none if it is
 * completed now.
 */
function laterThan(store: Store, organizationId: string, historyMs: number | undefined): Assessment[] {
  if (historyMs === undefined) return []
  const completed = store.assessments.completed(organizationId)
  const end = completed.findIndex(({ completedAtMs }) => completedAtMs <= historyMs)
  return end < 0 ? completed : completed.slice(0, end)
}

/**
 * The recommendations of an organization up to the limit. Removes those beyond that were completed
 * the longest ago.
 */
function withinBound(store: Store, all: readonly Recommendation[]): readonly Recommendation[] {
  const excess = all.length - RECOMMENDATIONS_MAX
  if (excess <= 0) return all
  const done = all.filter(({ status }) => status === 'completed')
  if (done.length < excess) {
    throw new Fault(
      'CONFLICT',
      `the organization would have ${all.length - done.length} recommendations that are not completed, more than the maximum of ${RECOMMENDATIONS_MAX}. Complete some first`,
    )
  }
  done.sort((a, b) => a.statusChangedAtMs - b.statusChangedAtMs)
  const removed = new Set(done.slice(0, excess))
  for (const recommendation of removed) store.recommendations.remove(recommendation)
  return all.filter((each) => !removed.has(each))
}
