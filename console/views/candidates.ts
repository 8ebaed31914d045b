import { candidatesOf, type ShownCandidate } from '../../engine/admin/candidates.ts'
import type { Visit } from '../http/visit.ts'

/** The candidates of the organization, or those that were dismissed. */
export function candidatesView({ site, organization, request }: Visit): readonly ShownCandidate[] {
  return candidatesOf(site.store, site.registry, organization.id, isDismissedList(request.query))
}

export function isDismissedList(query: URLSearchParams): boolean {
  return query.get('show') === 'dismissed'
}
