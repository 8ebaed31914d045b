import { byPriority } from '../../engine/assess/publish.ts'
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
  /** '': every owner. '-': recommendations without an owner. */
  readonly owner: string
  /** The owners of the recommendations, for the filter. */
  readonly owners: readonly string[]
  /** From 1. */
  readonly page: number
  readonly pages: number
}

/** The value of the filter for recommendations without an owner. No name is a single hyphen. */
export const NO_OWNER = '-'

/**
 * The organization's recommendations, filtered and paged by the query's `status`, `framework`,
 * `owner` and `page`.
 */
export function recommendationsView(
  { site, organization }: Visit,
  query: URLSearchParams,
  perPage = RECOMMENDATIONS_PER_PAGE,
): RecommendationsView {
  const all = site.store.recommendations.ofOrganization(organization.id)
  const named = query.get('status')
  const status = named === 'all' ? 'all' : (RECOMMENDATION_STATUSES.find((each) => each === named) ?? 'to-do')
  const ids = [...new Set(all.map(({ frameworkId }) => frameworkId))].sort()
  const framework = ids.find((each) => each === query.get('framework')) ?? ''
  const owners = [...new Set(all.map(({ owner }) => owner))].filter((each) => each !== '').sort()
  const owner = [NO_OWNER, ...owners].find((each) => each === query.get('owner')) ?? ''
  const found = all
    .filter((each) => matches(each.status, status) && (framework === '' || each.frameworkId === framework))
    .filter((each) => owner === '' || each.owner === (owner === NO_OWNER ? '' : owner))
    .sort(byPriority)
  const pages = Math.max(1, Math.ceil(found.length / perPage))
  const page = Math.min(pages, Math.max(1, Number.parseInt(query.get('page') ?? '1', 10) || 1))
  return {
    rows: found.slice((page - 1) * perPage, page * perPage),
    found: found.length,
    total: all.length,
    status,
    framework,
    owner,
    owners,
    frameworks: ids.map((id) => [id, FRAMEWORKS[id]]),
    page,
    pages,
  }
}

function matches(status: RecommendationStatus, wanted: RecommendationsView['status']): boolean {
  if (wanted === 'all') return true
  return wanted === 'to-do' ? status === 'open' || status === 'in_progress' : status === wanted
}
