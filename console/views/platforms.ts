import { DAY_MS } from '../../engine/kernel/process/clock.ts'
import { type ListedPlatform, listedDiscovery, typeNameOf } from '../../engine/scan/listed-discovery.ts'
import { recentPlatforms } from '../../engine/scan/recent-use.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import { isUsed, USES, type Use } from '../../registry/contact.ts'
import { type ChosenRange, rangeOf } from '../design/range.tsx'
import type { Visit } from '../http/visit.ts'
import { DecisionsByName, isWaiting } from './decisions.ts'

export const STATE_FILTERS = ['all', 'waiting', 'approved', 'rejected', 'expired', 'not-approved'] as const
export type StateFilter = (typeof STATE_FILTERS)[number]

/** Days of the filter for new platforms. '': all platforms. */
export const NEW_FILTERS = ['', '1', '7', '30'] as const
export type NewFilter = (typeof NEW_FILTERS)[number]

export interface PlatformRow {
  readonly listed: ListedPlatform
  readonly state: DecisionState
  /** The platform is in the registry, so it can be decided about. */
  readonly isRegistered: boolean
}

export interface PlatformsView {
  /** The platforms that match the filters, in the order of the scan. */
  readonly rows: readonly PlatformRow[]
  readonly total: number
  readonly hasScan: boolean
  readonly windowDays: number
  /** The figures are those of this range. undefined: of the evidence window. */
  readonly range: ChosenRange | undefined
  readonly search: string
  readonly state: StateFilter
  /** '' for all that were used. */
  readonly use: Use | ''
  /** Only platforms that were new within this many days (ListedPlatform.newMs). */
  readonly newDays: NewFilter
  readonly type: string
  /** The types of these platforms, for the filter. */
  readonly types: readonly (readonly [id: string, name: string])[]
}

/** The platforms of the latest scan, filtered by the query: `q`, the range, `state`, `use`, `new`, `type`. */
export function platformsView(visit: Visit): PlatformsView {
  const { site, organization, request, nowMs } = visit
  const { scan, platforms: all } = listedDiscovery(site.store, organization)
  const range = rangeOf(request.query, organization.evidenceWindowDays, nowMs)
  const catalog = site.registry.catalogOf(organization.id).platforms
  const platforms = range === undefined ? all : recentPlatforms(site.store, organization, all, catalog, range).platforms
  const search = (request.query.get('q') ?? '').trim().slice(0, 100)
  const state = STATE_FILTERS.find((each) => each === request.query.get('state')) ?? 'all'
  const use = USES.find((each) => each === request.query.get('use')) ?? ''
  const newDays = NEW_FILTERS.find((each) => each === request.query.get('new')) ?? ''
  const sinceMs = newDays === '' ? 0 : nowMs - Number(newDays) * DAY_MS
  const types = [...new Set(platforms.map(({ platformType }) => platformType))].sort()
  const type = types.find((each) => each === request.query.get('type')) ?? ''
  const words = search.toLowerCase()
  const decisions = new DecisionsByName(visit)
  const inUse = platforms.filter(({ use: each }) => (use === '' ? isUsed(each) : each === use))
  const rows = inUse
    .map((platform) => rowOf(platform, decisions))
    .filter((row) => {
      if (!matches(state, row.state) || row.listed.newMs < sinceMs) return false
      const { name, vendor, platformType, typeName } = row.listed
      if (type !== '' && platformType !== type) return false
      return words === '' || `${name} ${vendor} ${typeName}`.toLowerCase().includes(words)
    })
  return {
    rows,
    total: inUse.length,
    hasScan: scan !== undefined,
    windowDays: organization.evidenceWindowDays,
    range,
    search,
    state,
    use,
    newDays,
    type,
    types: types.map((each) => [each, typeNameOf(each)]),
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

function rowOf(platform: ListedPlatform, decisions: DecisionsByName): PlatformRow {
  return {
    listed: platform,
    state: decisions.stateOf(platform),
    isRegistered: decisions.get(platform.name) !== undefined,
  }
}
