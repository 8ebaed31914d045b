import { publishRecommendations } from '../assess/publish.ts'
import { withStatus } from '../assess/recommendation.ts'
import type { Organization } from '../store/organizations.ts'
import type { Recommendation, RecommendationStatus } from '../store/recommendations.ts'
import type { Changes } from './changes.ts'
import { byIdPrefix } from './id-prefix.ts'

export class RecommendationChanges {
  readonly #changes: Changes

  constructor(changes: Changes) {
    this.#changes = changes
  }

  /**
   * Sets any status, regardless of the previous one. The API shows it with the next request.
   * @throws Fault USAGE, NOT_FOUND, CONFLICT, NOT_ALLOWED.
   */
  setStatus(organization: Organization, idOrPrefix: string, status: RecommendationStatus): Recommendation {
    const { store, clock } = this.#changes
    const organizationId = organization.id
    return this.#changes.make('recommendation.status', organizationId, () => {
      const all = store.recommendations.ofOrganization(organizationId)
      const before = byIdPrefix(all, idOrPrefix, 'recommendation')
      const result = withStatus(before, status, clock.nowMs())
      store.recommendations.put(result)
      publishRecommendations(store, organizationId)
      const { id, frameworkId: framework, itemId: item } = result
      return {
        organizationId,
        subject: result.title,
        details: { id, framework, item, status, was: before.status },
        result,
      }
    })
  }
}
