import type { DecisionState } from '../../engine/store/decisions.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import { PublishedList } from '../../engine/store/published.ts'
import type { Store } from '../../engine/store/store.ts'

/** The latest completed scan, with the field names of GET /api/v1/discovery. */
export interface PublishedScan {
  readonly id: string
  readonly domain: string
  readonly started_at: string
  readonly completed_at: string
  readonly summary: {
    readonly platforms_discovered: number
    readonly shadow_ai_count: number
    readonly overall_risk_score: number
  }
}

/** A detected platform, with the field names of GET /api/v1/discovery. */
export interface PublishedPlatform {
  readonly id: string
  readonly platform_name: string
  readonly platform_type: string
  readonly url: string
  readonly confidence: number
  readonly metadata: {
    readonly vendor: string
    readonly category: string
    readonly approved: boolean
    readonly decision: DecisionState
    readonly risk: { readonly score: number; readonly why: string }
    readonly matches: number
    readonly blocked_matches?: number
    readonly methods: Readonly<Record<string, number>>
    readonly roles: Readonly<Record<string, number>>
    readonly clients: number
    readonly clients_error: number
    readonly days: number
    readonly first_seen: string
    readonly last_seen: string
    readonly domains: readonly string[]
    readonly domains_total: number
    readonly coverage: {
      readonly sensors: number
      readonly names_seen: number
      readonly visible_share: number | null
      readonly hidden: Readonly<Record<string, number>>
    }
  }
  readonly created_at: string
}

export interface PublishedDiscovery {
  /** undefined if no scan has completed. */
  readonly scan: PublishedScan | undefined
  readonly platforms: readonly PublishedPlatform[]
}

/** The published platform with this name. Call it inside Environment.read. */
export function publishedPlatform(
  store: Store,
  organization: Organization,
  name: string,
): PublishedPlatform | undefined {
  return publishedDiscovery(store, organization).platforms.find((each) => each.platform_name === name)
}

/**
 * An organization's discovery as published by the API, with all its pages. Call it inside
 * Environment.read.
 */
export function publishedDiscovery({ published }: Store, { id }: Organization): PublishedDiscovery {
  const head = published.head(id, PublishedList.discovery)
  if (head === undefined) return { scan: undefined, platforms: [] }
  const runs = published.elements(id, PublishedList.discovery, head.count, 0, head.count)
  return {
    scan: JSON.parse(head.text.toString()) as PublishedScan,
    platforms: JSON.parse(`[${Buffer.concat(runs).toString()}]`) as PublishedPlatform[],
  }
}
