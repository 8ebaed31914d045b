import { FRAMEWORKS } from '../../engine/store/framework.ts'
import {
  RECOMMENDATION_STATUSES,
  type Recommendation,
  type RecommendationStatus,
} from '../../engine/store/recommendations.ts'
import type { Visit } from '../http/visit.ts'

export const RECOMMENDATIONS_PER_PAGE = 50

export interface RecommendationsView {
  /** The rows of this page, by priority, then newest first. */
  readonly rows: readonly Recommendation[]
  /** The number of recommendations that match the filters. */
  readonly found: number
  readonly total: number
  /** 'to-do': open or in progress. */
  readonly status: RecommendationStatus | 'to-do' | 'all'
  readonly framework: string
  /** The frameworks of the recommendations, for the filter. */
  readonly frameworks: readonly (readonly [id: string, name: string])[]
  /** From 1. */
  readonly page: number
  readonly pages: number
}

/** Recommendations, filtered and paged by the query's `status`, `framework` and `page`. */
export function recommendationsView({ site, organization, request: { query } }: Visit): RecommendationsView {
  const all = site.store.recommendations.ofOrganization(organization.id)
  const named = query.get('status')
  const status = named === 'all' ? 'all' : (RECOMMENDATION_STATUSES.find((each) => each === named) ?? 'to-do')
  const ids = [...new Set(all.map(({ frameworkId }) => frameworkId))].sort()
  const framework = ids.find((each) => each === query.get('framework')) ?? ''
  const found = all
    .filter((each) => matches(each.status, status) && (framework === '' || each.frameworkId === framework))
    .sort((a, b) => a.priority - b.priority || b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1))
  const pages = Math.max(1, Math.ceil(found.length / RECOMMENDATIONS_PER_PAGE))
  const page = Math.min(pages, Math.max(1, Number.parseInt(query.get('page') ?? '1', 10) || 1))
  return {
    rows: found.slice((page - 1) * RECOMMENDATIONS_PER_PAGE, page * RECOMMENDATIONS_PER_PAGE),
    found: found.length,
    total: all.length,
    status,
    framework,
    frameworks: ids.map((id) => [id, FRAMEWORKS[id]]),
    page,
    pages,
  }
}

function matches(status: RecommendationStatus, wanted: RecommendationsView['status']): boolean {
  if (wanted === 'all') return true
  return wanted === 'to-do' ? status === 'open' || status === 'in_progress' : status === wanted
}
