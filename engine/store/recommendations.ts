import type { Environment } from '../kernel/lmdb/environment.ts'
import { OrganizationCollection } from './family.ts'
import type { AnyFrameworkId } from './framework.ts'
import { textKey } from './keys.ts'

export const RECOMMENDATION_STATUSES = ['open', 'in_progress', 'completed', 'dismissed'] as const
export type RecommendationStatus = (typeof RECOMMENDATION_STATUSES)[number]

/** What an organization should do because the answer to an item was below 100. */
export interface Recommendation {
  readonly id: string
  readonly organizationId: string
  readonly frameworkId: AnyFrameworkId
  readonly itemId: string
  readonly title: string
  /** 1 (highest) to 5. */
  readonly priority: number
  /** Of the item; absent in early releases. Not in the API. */
  readonly weight?: number
  readonly status: RecommendationStatus
  /** Why it was dismissed; absent otherwise, and in early releases. Not in the API. */
  readonly reason?: string
  /** Name of the item's category. */
  readonly category: string
  readonly createdAtMs: number
  readonly statusChangedAtMs: number
  /** Who carries it out; '' if nobody does. The API's fields are fixed, so it is not in the API. */
  readonly owner: string
  /** A day such as `2026-12-01`; absent or '' if there is none. Not in the API either. */
  readonly dueOn?: string
}

type RecommendationKey = Pick<Recommendation, 'organizationId' | 'frameworkId' | 'itemId'>

/**
 * The recommendations of each organization, sorted by framework and item, one for each. A later
 * assessment updates them. Framework ids and item ids contain no zero byte, so a prefix never
 * matches another framework.
 */
export class Recommendations extends OrganizationCollection<RecommendationKey, Recommendation> {
  constructor(environment: Environment) {
    super(environment.table('recommendations'), 'recommendation', ({ organizationId, frameworkId, itemId }) =>
      textKey(organizationId, `${frameworkId}\0${itemId.toLowerCase()}`),
    )
  }
}
