import { publishRecommendations } from '../assess/publish.ts'
import { withStatus } from '../assess/recommendation.ts'
import type { Organization } from '../store/organizations.ts'
import type { Recommendation, RecommendationStatus } from '../store/recommendations.ts'
import { type Changes, checkText } from './changes.ts'
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

  /**
   * Sets who carries a recommendation out: a name or e-mail address; '' for nobody.
   *
   * @throws Fault USAGE, NOT_FOUND, CONFLICT, NOT_ALLOWED.
   */
  setOwner(organization: Organization, idOrPrefix: string, owner: string): Recommendation {
    if (owner !== '') checkText('owner', owner)
    const { store } = this.#changes
    const organizationId = organization.id
    return this.#changes.make('recommendation.owner', organizationId, () => {
      const before = byIdPrefix(store.recommendations.ofOrganization(organizationId), idOrPrefix, 'recommendation')
      const result: Recommendation = { ...before, owner }
      store.recommendations.put(result)
      const { id, frameworkId: framework, itemId: item, title: subject } = result
      return { organizationId, subject, details: { id, framework, item, owner, was: before.owner }, result }
    })
  }
}
