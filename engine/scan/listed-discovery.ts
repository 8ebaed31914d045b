import type { AccessKind, Contact, Use } from '../../registry/contact.ts'
import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import { type RatedRisk, reasonOf } from '../../registry/risk-sum.ts'
import { BoundedMap } from '../kernel/process/bounded-map.ts'
import type { DecisionState } from '../store/decisions.ts'
import type { Organization } from '../store/organizations.ts'
import { PublishedList } from '../store/published.ts'
import type { Store } from '../store/store.ts'

/** The latest completed scan, with the field names of GET /api/v1/discovery. */
interface PublishedScan {
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
  readonly platform_type: PlatformType
  readonly url: string
  readonly confidence: number
  readonly metadata: {
    readonly vendor: string
    readonly category: string
    readonly use: Use
    readonly approved: boolean
    readonly decision: DecisionState
    readonly risk: RatedRisk
    readonly matches: number
    /** The contacts are absent in findings of schema 1. */
    readonly used_matches?: number
    readonly blocked_matches?: number
    readonly touched_matches?: number
    /** Absent if no log has byte counts. */
    readonly bytes_sent?: number
    readonly bytes_received?: number
    readonly methods: Readonly<Record<string, number>>
    readonly roles: Readonly<Record<string, number>>
    readonly access: readonly {
      readonly kind: AccessKind
      readonly matches: number
      readonly domains: readonly string[]
    }[]
    readonly programmatic_clients?: number
    readonly clients: number
    readonly clients_error: number
    readonly days: number
    readonly first_seen: string
    readonly last_seen: string
    readonly domains: readonly string[]
    readonly domains_total: number
    readonly coverage: { readonly visible_share: number | null }
  }
  readonly created_at: string
}

/** The AI platforms that were used: the others are no shadow AI. */
export function aiPlatforms<Listed extends Pick<ListedPlatform, 'use'>>(platforms: readonly Listed[]): Listed[] {
  return platforms.filter(({ use }) => use === 'ai')
}

/** The matches of a published platform by contact. Schema 1 knew only the blocked ones. */
export function contactsOf({ metadata }: PublishedPlatform): Readonly<Record<Contact, number>> {
  const { matches, blocked_matches: blocked = 0, touched_matches: touched = 0 } = metadata
  return { used: metadata.used_matches ?? matches - blocked, blocked, touched }
}

/** What lists of platforms show of a detected platform. */
export interface ListedPlatform {
  /** Of its first detection. */
  readonly id: string
  readonly name: string
  readonly platformType: string
  readonly typeName: string
  readonly vendor: string
  readonly use: Use
  readonly confidence: number
  readonly approved: boolean
  /** As the scan counted it. */
  readonly decision: DecisionState
  readonly risk: number
  /** Why it is risky. */
  readonly why: string
  readonly clients: number
  /** The number of clients is an estimate. */
  readonly isEstimate: boolean
  readonly matches: number
  /** Of the matches (registry/contact.ts). */
  readonly used: number
  readonly blocked: number
  readonly touched: number
  /** 0: no log has byte counts. */
  readonly bytesSent: number
  readonly bytesReceived: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  /** When the first scan found it. 0: nobody ever used it. */
  readonly createdMs: number
  /**
   * When it was new: its first use in the evidence, or the first scan that found it if that is
   * earlier. So an import of old logs is not news, and neither is a platform that is used again.
   */
  readonly newMs: number
}

export interface ListedDiscovery {
  /** undefined if no scan has completed. */
  readonly scan: PublishedScan | undefined
  /** In the order of the API, then the others. */
  readonly platforms: readonly ListedPlatform[]
}

/**
 * Maximum number of organizations with a kept list of platforms: about 200 KB each for 800
 * platforms. At the limit, the list that was read the longest ago is removed.
 */
const KEPT_MAX = 20

interface Kept extends ListedDiscovery {
  /** Changes with every published list. */
  readonly tag: string
}

const kept = new WeakMap<Store, BoundedMap<string, Kept>>()

/**
 * An organization's discovery as published by the API, with all its pages. Parsing 800 platforms
 * takes most of the time of a page, so what lists show is kept until the next scan. Call it inside
 * Environment.read.
 */
export function listedDiscovery(store: Store, { id }: Organization): ListedDiscovery {
  const { published } = store
  const head = published.head(id, PublishedList.discovery)
  if (head === undefined) return { scan: undefined, platforms: [] }
  const ofStore = kept.get(store) ?? new BoundedMap<string, Kept>(KEPT_MAX)
  kept.set(store, ofStore)
  const known = ofStore.get(id)
  if (known?.tag === head.tag) {
    ofStore.set(id, known)
    return known
  }
  const platforms = publishedPlatforms(store, id)
  const scan = JSON.parse(head.text.toString()) as PublishedScan
  const next: Kept = { tag: head.tag, scan, platforms: platforms.map(listed) }
  ofStore.set(id, next)
  return next
}

function listed(platform: PublishedPlatform): ListedPlatform {
  const { id, platform_name: name, platform_type, confidence, metadata, created_at } = platform
  const { vendor, use, approved, decision, risk, clients, clients_error, matches, first_seen, last_seen } = metadata
  return {
    id,
    name,
    platformType: platform_type,
    typeName: typeNameOf(platform_type),
    vendor,
    use,
    confidence,
    approved,
    decision,
    risk: risk.score,
    why: reasonOf(risk),
    clients,
    isEstimate: clients_error > 0,
    matches,
    ...contactsOf(platform),
    bytesSent: metadata.bytes_sent ?? 0,
    bytesReceived: metadata.bytes_received ?? 0,
    firstSeenMs: Date.parse(first_seen),
    lastSeenMs: Date.parse(last_seen),
    createdMs: Date.parse(created_at),
    newMs: Math.min(Date.parse(created_at), Date.parse(first_seen)),
  }
}

/** The name of a platform type; its id if this release has no name for it. */
export function typeNameOf(type: string): string {
  return PLATFORM_TYPES[type as PlatformType]?.category ?? type
}

/** The platforms of the last scan, in the order of the API, then the others. Call it inside Environment.read. */
export function publishedPlatforms(store: Store, organizationId: string): PublishedPlatform[] {
  return LISTS.flatMap((list) => {
    const count = store.published.head(organizationId, list)?.count ?? 0
    const runs = store.published.elements(organizationId, list, count, 0, count)
    return JSON.parse(`[${Buffer.concat(runs)}]`) as PublishedPlatform[]
  })
}

const LISTS = [PublishedList.discovery, PublishedList.others] as const

/**
 * The published platform with this name. Reads one element: no other field has a name like this,
 * and quotes within texts are escaped. Call it inside Environment.read.
 */
export function publishedPlatform(
  { published }: Store,
  { id }: Organization,
  name: string,
): PublishedPlatform | undefined {
  const field = `"platform_name":${JSON.stringify(name)}`
  for (const list of LISTS) {
    const head = published.head(id, list)
    const text = head && published.elementWith(id, list, head.count, field)
    if (text !== undefined) return JSON.parse(text) as PublishedPlatform
  }
  return undefined
}
