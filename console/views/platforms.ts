import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import type { Visit } from '../http/visit.ts'
import { type PublishedPlatform, publishedDiscovery } from './discovery.ts'

export const PLATFORM_STATES = ['all', 'not-approved', 'approved'] as const
export type PlatformState = (typeof PLATFORM_STATES)[number]

export interface PlatformRow {
  readonly id: string
  readonly name: string
  readonly vendor: string
  readonly type: string
  readonly risk: number
  readonly confidence: number
  readonly approved: boolean
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
  readonly state: PlatformState
  readonly type: string
  /** The types of these platforms, for the filter. */
  readonly types: readonly (readonly [id: string, name: string])[]
}

/** The platforms of the latest scan, filtered by the query's `q`, `state` and `type`. */
export function platformsView({ site, organization, request }: Visit): PlatformsView {
  const { scan, platforms } = publishedDiscovery(site.store, organization)
  const search = (request.query.get('q') ?? '').trim().slice(0, 100)
  const state = PLATFORM_STATES.find((each) => each === request.query.get('state')) ?? 'all'
  const types = [...new Set(platforms.map(({ platform_type: type }) => type))].sort()
  const type = types.find((each) => each === request.query.get('type')) ?? ''
  const words = search.toLowerCase()
  const rows = platforms.map(rowOf).filter((row) => {
    if (state !== 'all' && row.approved !== (state === 'approved')) return false
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

function rowOf({ id, platform_name: name, platform_type, confidence, metadata }: PublishedPlatform): PlatformRow {
  return {
    id,
    name,
    vendor: metadata.vendor,
    type: typeName(platform_type),
    risk: metadata.risk.score,
    confidence,
    approved: metadata.approved,
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
