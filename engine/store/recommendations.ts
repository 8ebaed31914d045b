import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import type { AnyFrameworkId } from './framework.ts'
import { UUID_BYTES, uuidBytes } from './keys.ts'

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

/**
 * The recommendations of each organization, one per framework and item. A later assessment updates
 * them.
 */
export class Recommendations {
  readonly #recommendations: Family<Recommendation>

  constructor(environment: Environment) {
    this.#recommendations = new Family(environment.table('recommendations'), 'recommendation')
  }

  /** Sorted by framework and item. */
  ofOrganization(organizationId: string): Recommendation[] {
    return Array.from(this.#recommendations.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** Requires a write transaction. */
  put(recommendation: Recommendation): void {
    this.#recommendations.put(keyOf(recommendation), recommendation)
  }

  /** Requires a write transaction. */
  remove(recommendation: Recommendation): void {
    this.#recommendations.remove(keyOf(recommendation))
  }
}

/**
 * Framework ids and item ids contain no zero byte, so a prefix never matches another framework. One
 * allocation: completing an assessment writes thousands of keys.
 */
function keyOf({ organizationId, frameworkId, itemId }: Recommendation): Buffer {
  const text = `${frameworkId}\0${itemId.toLowerCase()}`
  const key = Buffer.allocUnsafe(UUID_BYTES + Buffer.byteLength(text))
  uuidBytes(organizationId).copy(key)
  key.write(text, UUID_BYTES)
  return key
}
