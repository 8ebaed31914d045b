import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import type { FrameworkId } from './framework.ts'
import { uuidBytes } from './keys.ts'

export const RECOMMENDATION_STATUSES = ['open', 'in_progress', 'completed', 'dismissed'] as const
export type RecommendationStatus = (typeof RECOMMENDATION_STATUSES)[number]

/** What an organization is asked to do, since an item of a framework was answered below 100. */
export interface Recommendation {
  readonly id: string
  readonly organizationId: string
  readonly frameworkId: FrameworkId
  readonly itemId: string
  readonly title: string
  /** 1 to 5, 1 is the highest. */
  readonly priority: number
  readonly status: RecommendationStatus
  /** Name of the category that the item stands in. */
  readonly category: string
  readonly createdAtMs: number
  readonly statusChangedAtMs: number
}

/** The recommendations of each organization, one for each framework and item: assessing again finds what is there. */
export class Recommendations {
  readonly #recommendations: Family<Recommendation>

  constructor(environment: Environment) {
    this.#recommendations = new Family(environment.table('recommendations'), 'recommendation')
  }

  /** By framework and item. */
  ofOrganization(organizationId: string): Recommendation[] {
    return Array.from(this.#recommendations.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** By item, in lower case. */
  ofFramework(organizationId: string, frameworkId: FrameworkId): Map<string, Recommendation> {
    const range = this.#recommendations.range(frameworkPrefix(organizationId, frameworkId))
    return new Map(Array.from(range, ({ value }) => [value.itemId.toLowerCase(), value]))
  }

  /** Inside a transaction of the caller. */
  put(recommendation: Recommendation): void {
    this.#recommendations.put(keyOf(recommendation), recommendation)
  }

  /** Inside a transaction of the caller. */
  remove(recommendation: Recommendation): void {
    this.#recommendations.remove(keyOf(recommendation))
  }
}

/** No framework's id and no item's has a zero byte, so no prefix reaches into another framework. */
function frameworkPrefix(organizationId: string, frameworkId: FrameworkId): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(`${frameworkId}\0`)])
}

function keyOf({ organizationId, frameworkId, itemId }: Recommendation): Buffer {
  return Buffer.concat([frameworkPrefix(organizationId, frameworkId), Buffer.from(itemId.toLowerCase())])
}
