import { isoSeconds } from '../kernel/process/clock.ts'
import type { Assessment } from '../store/assessments.ts'
import { type AnyFrameworkId, FRAMEWORK_IDS, isBuiltIn } from '../store/framework.ts'
import { PublishedList } from '../store/published.ts'
import type { Recommendation } from '../store/recommendations.ts'
import type { Store } from '../store/store.ts'

/** The published lists that derive from assessments and recommendations. */
export const ASSESSED_LISTS = [
  'scores',
  'recommendations',
  'assessments',
] as const satisfies (keyof typeof PublishedList)[]
export type AssessedList = (typeof ASSESSED_LISTS)[number]

/**
 * Publishes an organization's scores and assessments. Requires the transaction that changed them.
 */
export function publishAssessments(store: Store, organizationId: string): void {
  publish(store, organizationId, 'scores')
  publish(store, organizationId, 'assessments')
}

/**
 * Publishes an organization's recommendations. Requires the transaction that changed them.
 *
 * @param all the organization's recommendations, if the caller has read them
 */
export function publishRecommendations(
  store: Store,
  organizationId: string,
  all: readonly Recommendation[] = store.recommendations.ofOrganization(organizationId),
): void {
  store.published.replace(organizationId, PublishedList.recommendations, '', recommendationElements(all))
}

function publish(store: Store, organizationId: string, list: 'scores' | 'assessments'): void {
  store.published.replace(organizationId, PublishedList[list], '', elementsOf(store, organizationId, list))
}

/** The elements of a list, from the current records. */
export function elementsOf(store: Store, organizationId: string, list: AssessedList): string[] {
  switch (list) {
    case 'scores':
      return latestOfEach(store.assessments.completed(organizationId)).map(scoreJson)
    case 'assessments':
      return inApi(store.assessments.completed(organizationId)).map(assessmentJson)
    case 'recommendations':
      return recommendationElements(store.recommendations.ofOrganization(organizationId))
    default:
      return list satisfies never
  }
}

/** Clients of the API know the frameworks of the specification only. */
function inApi<T extends { readonly frameworkId: AnyFrameworkId }>(all: readonly T[]): T[] {
  return all.filter(({ frameworkId }) => isBuiltIn(frameworkId))
}

function recommendationElements(all: readonly Recommendation[]): string[] {
  return inApi(all).sort(byPriority).map(recommendationJson)
}

/** The order of GET /api/v1/recommendations: priority, then newest first, then as `byUrgency`. */
export function byPriority(a: Recommendation, b: Recommendation): number {
  return a.priority - b.priority || b.createdAtMs - a.createdAtMs || byUrgency(a, b)
}

/**
 * The most urgent first: by priority, then weight, then the identifier of the item. Those of earlier
 * releases have no weight and keep their order, by id, in which they are published.
 */
export function byUrgency(a: Recommendation, b: Recommendation): number {
  const order = a.priority - b.priority || (b.weight ?? 0) - (a.weight ?? 0)
  if (order !== 0 || a.id === b.id) return order
  if (a.weight === undefined || a.itemId === b.itemId) return a.id < b.id ? -1 : 1
  return a.itemId < b.itemId ? -1 : 1
}

/**
 * The latest completed assessment of each framework, in the order of the specification. `completed`
 * is newest first.
 */
function latestOfEach(completed: readonly Assessment[]): Assessment[] {
  const latest = new Map<AnyFrameworkId, Assessment>()
  for (const assessment of completed) {
    if (!latest.has(assessment.frameworkId)) latest.set(assessment.frameworkId, assessment)
  }
  return FRAMEWORK_IDS.flatMap((id) => latest.get(id) ?? [])
}

/** A score as in GET /api/v1/scores. */
function scoreJson({ frameworkId, completedAtMs, result }: Assessment): string {
  return JSON.stringify({
    framework_id: frameworkId,
    overall_score: result?.overallScore,
    grade: result?.grade,
    completed_at: isoSeconds(completedAtMs),
  })
}

/** An assessment as in GET /api/v1/assessments. */
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

/** A recommendation as in GET /api/v1/recommendations. */
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
