import { byPriority } from '../../engine/assess/publish.ts'
import { frameworkName } from '../../engine/store/framework.ts'
import {
  RECOMMENDATION_STATUSES,
  type Recommendation,
  type RecommendationStatus,
} from '../../engine/store/recommendations.ts'
import { type Paged, paged } from '../design/paged.ts'
import type { Visit } from '../http/visit.ts'

export const RECOMMENDATIONS_PER_PAGE = 50

export interface RecommendationsView {
  /** The recommendations that match the filters, by priority, then newest first. */
  readonly found: Paged<Recommendation>
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
  return {
    found: paged(found, query, 'page', perPage),
    total: all.length,
    status,
    framework,
    owner,
    owners,
    frameworks: ids.map((id) => [id, frameworkName(id)]),
  }
}

function matches(status: RecommendationStatus, wanted: RecommendationsView['status']): boolean {
  if (wanted === 'all') return true
  return wanted === 'to-do' ? status === 'open' || status === 'in_progress' : status === wanted
}
