import type { DecisionState } from '../../engine/store/decisions.ts'
import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import type { Visit } from '../http/visit.ts'
import { DecisionsByName, isWaiting } from './decisions.ts'
import { type PublishedPlatform, publishedDiscovery } from './discovery.ts'

export const STATE_FILTERS = ['all', 'waiting', 'approved', 'rejected', 'expired', 'not-approved'] as const
export type StateFilter = (typeof STATE_FILTERS)[number]

export interface PlatformRow {
  readonly id: string
  readonly name: string
  readonly vendor: string
  readonly type: string
  readonly risk: number
  readonly confidence: number
  readonly state: DecisionState
  /** The platform is in the registry, so it can be decided about. */
  readonly isRegistered: boolean
  readonly clients: number
  /** The number of clients is an estimate. */
  readonly isEstimate: boolean
  readonly matches: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
}

export interface PlatformsView {
  /** The platforms that match the filters, in the order of the scan. */
  readonly rows: readonly PlatformRow[]
  readonly total: number
  readonly hasScan: boolean
  readonly windowDays: number
  readonly search: string
  readonly state: StateFilter
  readonly type: string
  /** The types of these platforms, for the filter. */
  readonly types: readonly (readonly [id: string, name: string])[]
}

/** The platforms of the latest scan, filtered by the query's `q`, `state` and `type`. */
export function platformsView(visit: Visit): PlatformsView {
  const { site, organization, request } = visit
  const { scan, platforms } = publishedDiscovery(site.store, organization)
  const search = (request.query.get('q') ?? '').trim().slice(0, 100)
  const state = STATE_FILTERS.find((each) => each === request.query.get('state')) ?? 'all'
  const types = [...new Set(platforms.map(({ platform_type: type }) => type))].sort()
  const type = types.find((each) => each === request.query.get('type')) ?? ''
  const words = search.toLowerCase()
  const decisions = new DecisionsByName(visit)
  const all = platforms.map((platform) => rowOf(platform, decisions))
  const rows = all.filter((row) => {
    if (!matches(state, row.state)) return false
    if (type !== '' && row.type !== typeName(type)) return false
    return words === '' || `${row.name} ${row.vendor} ${row.type}`.toLowerCase().includes(words)
  })
  return {
    rows,
    total: platforms.length,
    hasScan: scan !== undefined,
    windowDays: organization.evidenceWindowDays,
    search,
    state,
    type,
    types: types.map((each) => [each, typeName(each)]),
  }
}

function matches(filter: StateFilter, state: DecisionState): boolean {
  switch (filter) {
    case 'all':
      return true
    case 'waiting':
      return isWaiting(state)
    case 'not-approved':
      return state !== 'approved'
    default:
      return state === filter
  }
}

function rowOf(platform: PublishedPlatform, decisions: DecisionsByName): PlatformRow {
  const { id, platform_name: name, platform_type, confidence, metadata } = platform
  return {
    id,
    name,
    vendor: metadata.vendor,
    type: typeName(platform_type),
    risk: metadata.risk.score,
    confidence,
    state: decisions.stateOf(platform),
    isRegistered: decisions.get(name) !== undefined,
    clients: metadata.clients,
    isEstimate: metadata.clients_error > 0,
    matches: metadata.matches,
    firstSeenMs: Date.parse(metadata.first_seen),
    lastSeenMs: Date.parse(metadata.last_seen),
  }
}

function typeName(type: string): string {
  return PLATFORM_TYPES[type as PlatformType]?.category ?? type
}
