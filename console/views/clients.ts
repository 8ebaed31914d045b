import type { NamedNetwork } from '../../engine/store/client-names.ts'
import { type ClientMode, clientModeOf } from '../../engine/store/organizations.ts'
import { type Paged, paged } from '../design/paged.ts'
import type { Visit } from '../http/visit.ts'

/** Addresses that a search by name lists. */
export const HOSTS_FOUND_MAX = 100

export interface ClientsView {
  readonly mode: ClientMode
  readonly search: string
  /** Addresses whose imported name contains the search. */
  readonly found: readonly { readonly address: string; readonly name: string }[]
  readonly networks: Paged<NamedNetwork>
  readonly namesTotal: number
}

export function clientsView({ site, organization, request: { query } }: Visit): ClientsView {
  const { clientNames } = site.store
  const search = searchOf(query)
  return {
    mode: clientModeOf(organization),
    search,
    found: search === '' ? [] : clientNames.hostsNamed(organization.id, search, HOSTS_FOUND_MAX),
    networks: paged(clientNames.networks(organization.id), query),
    namesTotal: clientNames.hostsCount(organization.id),
  }
}

export function searchOf(query: URLSearchParams): string {
  return (query.get('q') ?? '').trim().slice(0, 255)
}
