import { useOf } from '../../registry/contact.ts'
import type { Platform } from '../../registry/platform.ts'
import { BoundedMap } from '../kernel/process/bounded-map.ts'
import type { DayEvidence, EvidenceSum } from '../store/evidence.ts'
import type { Organization } from '../store/organizations.ts'
import type { EvidenceReader } from '../store/packed-evidence.ts'
import type { Store } from '../store/store.ts'
import { DistinctClients } from './distinct-clients.ts'
import type { ListedPlatform } from './listed-discovery.ts'
import type { DayRange } from './periods.ts'

type RecentFigures = Pick<
  ListedPlatform,
  | 'use'
  | 'clients'
  | 'isEstimate'
  | 'matches'
  | 'used'
  | 'blocked'
  | 'touched'
  | 'bytesSent'
  | 'bytesReceived'
  | 'firstSeenMs'
  | 'lastSeenMs'
>

type RecentDay = Pick<
  DayEvidence,
  'matches' | 'used' | 'blocked' | 'bytesSent' | 'bytesReceived' | 'specificity' | 'firstSeenMs' | 'lastSeenMs'
> & { readonly clients: Uint8Array | undefined }

/** The evidence of one platform on some days, without names and sources. */
class RecentSum implements EvidenceSum {
  readonly clients = new DistinctClients()
  readonly #sum = { matches: 0, used: 0, blocked: 0, bytesSent: 0, bytesReceived: 0 }
  #specificity = 0
  #firstSeenMs = Number.MAX_SAFE_INTEGER
  #lastSeenMs = 0

  addDay(day: DayEvidence): void {
    this.#add(day)
  }

  addReadDay(day: EvidenceReader): void {
    this.#add(day)
  }

  figures(): RecentFigures {
    const { matches, used, blocked } = this.#sum
    return {
      ...this.#sum,
      use: useOf({ specificity: this.#specificity, blocked }),
      clients: this.clients.estimate,
      isEstimate: !this.clients.exact,
      touched: matches - used - blocked,
      firstSeenMs: this.#firstSeenMs,
      lastSeenMs: this.#lastSeenMs,
    }
  }

  #add({ clients, bytesSent = 0, bytesReceived = 0, ...day }: RecentDay): void {
    this.#sum.matches += day.matches
    this.#sum.used += day.used
    this.#sum.blocked += day.blocked
    this.#sum.bytesSent += bytesSent
    this.#sum.bytesReceived += bytesReceived
    this.#specificity = Math.max(this.#specificity, day.specificity)
    this.#firstSeenMs = Math.min(this.#firstSeenMs, day.firstSeenMs)
    this.#lastSeenMs = Math.max(this.#lastSeenMs, day.lastSeenMs)
    if (day.used > 0 && clients !== undefined) this.clients.mergeBytes(clients)
  }
}

interface RecentUse {
  readonly figures: ReadonlyMap<string, RecentFigures>
  /** Distinct clients of AI platforms. */
  readonly clients: number
  readonly isEstimate: boolean
}

/** The platforms of the last scan that were seen on some days. */
export interface RecentPlatforms extends Pick<RecentUse, 'clients' | 'isEstimate'> {
  /** Their figures are those of these days. */
  readonly platforms: readonly ListedPlatform[]
}

/** The sums of so many ranges are kept; each has about 200 KB for 900 platforms. */
const KEPT_MAX = 30

const kept = new WeakMap<Store, BoundedMap<string, RecentUse>>()

/**
 * Those of `platforms` of the last scan that were seen in a range, with their figures of its days.
 * Kept until the next scan. Call it inside Environment.read.
 */
export function recentPlatforms(
  store: Store,
  { id }: Organization,
  platforms: readonly ListedPlatform[],
  catalog: readonly Platform[],
  { firstDay, lastDay }: DayRange,
): RecentPlatforms {
  const key = `${id} ${firstDay} ${lastDay} ${store.scanStates.get(id).generation}`
  const ofStore = kept.get(store) ?? new BoundedMap<string, RecentUse>(KEPT_MAX)
  kept.set(store, ofStore)
  const use = ofStore.get(key) ?? sumOf(store, id, { firstDay, lastDay })
  ofStore.set(key, use)
  const ids = new Map(catalog.toReversed().map((platform) => [platform.name, platform.id]))
  return {
    clients: use.clients,
    isEstimate: use.isEstimate,
    platforms: platforms.flatMap((platform) => {
      const figures = use.figures.get(ids.get(platform.name) ?? '')
      return figures === undefined ? [] : [{ ...platform, ...figures }]
    }),
  }
}

function sumOf(store: Store, organizationId: string, { firstDay, lastDay }: DayRange): RecentUse {
  const sums = new Map<string, RecentSum>()
  const ofPlatform = (_: number, platformId: string): RecentSum => {
    const sum = sums.get(platformId) ?? new RecentSum()
    sums.set(platformId, sum)
    return sum
  }
  store.evidence.addSince(organizationId, firstDay, ofPlatform, lastDay)
  const all = new DistinctClients()
  const figures = new Map<string, RecentFigures>()
  for (const [platformId, sum] of sums) {
    const ofPlatform = sum.figures()
    figures.set(platformId, ofPlatform)
    if (ofPlatform.use === 'ai') all.merge(sum.clients)
  }
  return { figures, clients: all.estimate, isEstimate: !all.exact }
}
