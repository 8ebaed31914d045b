import { publishRecommendations } from '../assess/publish.ts'
import { withStatus } from '../assess/recommendation.ts'
import { checkRule, dueOn as dueOnRule } from '../assess/rules.ts'
import { checkNotPast } from '../assess/work.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import type { Organization } from '../store/organizations.ts'
import type { Recommendation, RecommendationStatus } from '../store/recommendations.ts'
import { AuditedChanges, byIdPrefix, checkText } from './audited-changes.ts'

export interface Assignment {
  readonly owner?: string
  /** A day such as `2026-12-01`. */
  readonly dueOn?: string
}

export class RecommendationChanges extends AuditedChanges {
  /**
   * Sets any status, regardless of the previous one. The API shows it with the next request.
   *
   * @param reason required to dismiss it
   * @throws Fault USAGE, NOT_FOUND, CONFLICT, NOT_ALLOWED.
   */
  setStatus(organization: Organization, idOrPrefix: string, status: RecommendationStatus, reason = ''): Recommendation {
    if (reason !== '') checkText('reason', reason)
    const { store, clock } = this
    const organizationId = organization.id
    return this.audited('recommendation.status', organizationId, () => {
      const all = store.recommendations.ofOrganization(organizationId)
      const before = byIdPrefix(all, idOrPrefix, 'recommendation')
      if (status === 'dismissed' && before.status !== 'dismissed' && reason === '') {
        throw new Fault('USAGE', 'give the reason for which the recommendation is dismissed')
      }
      const result = withStatus(before, status, clock.nowMs(), status === 'dismissed' ? reason : '')
      store.recommendations.put(result)
      publishRecommendations(store, organizationId)
      const { id, frameworkId: framework, itemId: item } = result
      return {
        organizationId,
        subject: result.title,
        details: { id, framework, item, status, was: before.status, ...(reason === '' ? {} : { reason }) },
        result,
      }
    })
  }

  /**
   * Sets who carries a recommendation out, a name or e-mail address, and until which day; '' for
   * nobody and for no day. Absent fields stay as they are.
   *
   * @throws Fault USAGE, NOT_FOUND, CONFLICT, NOT_ALLOWED.
   */
  assign(organization: Organization, idOrPrefix: string, given: Assignment): Recommendation {
    if (given.owner !== undefined && given.owner !== '') checkText('owner', given.owner)
    checkRule('due date', dueOnRule, given.dueOn)
    const { store, clock } = this
    const organizationId = organization.id
    return this.audited('recommendation.owner', organizationId, () => {
      const before = byIdPrefix(store.recommendations.ofOrganization(organizationId), idOrPrefix, 'recommendation')
      const { owner = before.owner, dueOn: due = before.dueOn ?? '' } = given
      if (due !== (before.dueOn ?? '')) checkNotPast(due, clock.nowMs())
      const result: Recommendation = { ...before, owner, dueOn: due }
      store.recommendations.put(result)
      const { id, frameworkId: framework, itemId: item, title: subject } = result
      const details = { id, framework, item, owner, was: before.owner, due, due_was: before.dueOn ?? '' }
      return { organizationId, subject, details, result }
    })
  }
}
