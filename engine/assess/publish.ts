import { isoSeconds } from '../process/clock.ts'
import type { Assessment } from '../store/assessments.ts'
import { FRAMEWORK_IDS, type FrameworkId } from '../store/framework.ts'
import { PublishedList } from '../store/published.ts'
import type { Recommendation } from '../store/recommendations.ts'
import type { Store } from '../store/store.ts'

/** The lists that are made of an organization's assessments and recommendations. */
export const ASSESSED_LISTS = [
  'scores',
  'recommendations',
  'assessments',
] as const satisfies (keyof typeof PublishedList)[]
export type AssessedList = (typeof ASSESSED_LISTS)[number]

/** Publishes scores and assessments of an organization, inside the transaction that changed them. */
export function publishAssessments(store: Store, organizationId: string): void {
  publish(store, organizationId, 'scores')
  publish(store, organizationId, 'assessments')
}

/** Publishes the recommendations of an organization, inside the transaction that changed them. */
export function publishRecommendations(store: Store, organizationId: string): void {
  publish(store, organizationId, 'recommendations')
}

function publish(store: Store, organizationId: string, list: AssessedList): void {
  store.published.replace(organizationId, PublishedList[list], '', elementsOf(store, organizationId, list))
}

/** The elements of a list as its records say them now. */
export function elementsOf(store: Store, organizationId: string, list: AssessedList): string[] {
  switch (list) {
    case 'scores':
      return latestOfEach(store.assessments.completed(organizationId)).map(scoreJson)
    case 'assessments':
      return store.assessments.completed(organizationId).map(assessmentJson)
    case 'recommendations':
      return store.recommendations.ofOrganization(organizationId).sort(inOrderOfPriority).map(recommendationJson)
    default:
      return list satisfies never
  }
}

/** As GET /api/v1/recommendations sorts: priority, then the newest first; of one instant by id, so that pages fit together. */
export function inOrderOfPriority(a: Recommendation, b: Recommendation): number {
  return a.priority - b.priority || b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1)
}

/** Of each framework the last one completed, in the order of the specification. `completed` has the last one first. */
function latestOfEach(completed: readonly Assessment[]): Assessment[] {
  const latest = new Map<FrameworkId, Assessment>()
  for (const assessment of completed) {
    if (!latest.has(assessment.frameworkId)) latest.set(assessment.frameworkId, assessment)
  }
  return FRAMEWORK_IDS.flatMap((id) => latest.get(id) ?? [])
}

/** A score as GET /api/v1/scores shows it. */
function scoreJson({ frameworkId, completedAtMs, result }: Assessment): string {
  return JSON.stringify({
    framework_id: frameworkId,
    overall_score: result?.overallScore,
    grade: result?.grade,
    completed_at: isoSeconds(completedAtMs),
  })
}

/** An assessment as GET /api/v1/assessments shows it. */
function assessmentJson(assessment: Assessment): string {
  return JSON.stringify({
    id: assessment.id,
    framework_id: assessment.frameworkId,
    status: assessment.status,
    overall_score: assessment.result?.overallScore,
    grade: assessment.result?.grade,
    started_at: isoSeconds(assessment.startedAtMs),
    completed_at: isoSeconds(assessment.completedAtMs),
    categories: assessment.result?.categories,
  })
}

/** A recommendation as GET /api/v1/recommendations shows it. */
function recommendationJson(recommendation: Recommendation): string {
  return JSON.stringify({
    id: recommendation.id,
    title: recommendation.title,
    priority: recommendation.priority,
    status: recommendation.status,
    framework_id: recommendation.frameworkId,
    category: recommendation.category,
  })
}
