import type { Matcher } from '../../registry/match.ts'
import type { Platform } from '../../registry/platform.ts'
import type { DayEvidence } from '../store/evidence.ts'
import type { EvidenceReader } from '../store/packed-evidence.ts'
import type { Store } from '../store/store.ts'
import { Evidence } from './evidence.ts'
import type { ScanBudget } from './scan-budget.ts'
import type { UseCount } from './use-count.ts'

/** Maximum names of one platform in a finding. */
const NAMES_IN_WINDOW_MAX = 512

/** The evidence of one platform on one day that a scan writes. */
export interface ChangedDay {
  readonly day: number
  readonly platformId: string
  /** Packed, as EvidenceStore stores it. */
  readonly record: Buffer
}

/** The same, with the sum that was packed. */
export interface SummedDay extends ChangedDay {
  readonly evidence: Evidence
  /** DistinctClients.toBytes. */
  readonly clients: Uint8Array
}

interface Window {
  readonly store: Store
  readonly matcher: Matcher
  readonly organizationId: string
  readonly firstDay: number
  /** Replace their stored versions. */
  readonly changed: readonly SummedDay[]
  readonly budget: ScanBudget
}

/**
 * The evidence of each platform in the window, which also goes to `use`. The sum of a changed day
 * may become the sum of the window.
 */
export function evidenceInWindow(window: Window, use: UseCount): Map<Platform, Evidence> {
  const sum = new WindowSum(window, use)
  window.store.evidence.addSince(window.organizationId, window.firstDay, (day, platformId) => {
    return sum.stored(day, platformId)
  })
  return sum.withChanged()
}

/**
 * The same for these platforms alone. Reads one record per platform and day, and all records of
 * the days that `use` counts again.
 */
export function evidenceOf(platformIds: ReadonlySet<string>, window: Window, use: UseCount): Map<Platform, Evidence> {
  const { store, matcher, organizationId, firstDay } = window
  const sum = new WindowSum(window, use)
  for (const day of store.evidence.daysFrom(organizationId, firstDay)) {
    for (const platformId of platformIds) {
      const stored = sum.stored(day, platformId)
      if (stored !== undefined) store.evidence.addDayTo(organizationId, day, platformId, stored)
    }
  }
  for (const day of use.recounted) {
    if (day < firstDay) continue
    for (const { platformId, specificity, clients } of store.evidence.clientsOn(organizationId, day)) {
      const isOther = !platformIds.has(platformId) && matcher.platform(platformId) !== undefined
      if (isOther) use.add(day, platformId, { specificity, clients })
    }
  }
  return sum.withChanged()
}

/** Sums days of evidence by platform. */
class WindowSum {
  readonly #found = new Map<Platform, Evidence>()
  readonly #window: Window
  readonly #use: UseCount
  readonly #isChanged: ReadonlySet<string>
  readonly #stored: StoredDaySum

  constructor(window: Window, use: UseCount) {
    this.#window = window
    this.#use = use
    this.#isChanged = new Set(window.changed.map(({ day, platformId }) => `${day} ${platformId}`))
    this.#stored = new StoredDaySum(this.#found, use)
  }

  /** What adds the stored evidence of a platform and day. undefined: it does not count. */
  stored(day: number, platformId: string): StoredDaySum | undefined {
    this.#window.budget.check()
    if (this.#isChanged.has(`${day} ${platformId}`)) return undefined
    const platform = this.#window.matcher.platform(platformId)
    return platform && this.#stored.of(platform, day)
  }

  /**
   * Adds the days that changed, in the order of storage, so that the same names exceed the limit
   * when the evidence is read again.
   */
  withChanged(): Map<Platform, Evidence> {
    for (const changed of this.#window.changed.toSorted((a, b) => a.day - b.day)) {
      if (changed.day >= this.#window.firstDay) this.#addChanged(changed)
    }
    return this.#found
  }

  #addChanged({ day, platformId, evidence, clients }: SummedDay): void {
    const platform = this.#window.matcher.platform(platformId)
    if (platform === undefined) return
    this.#use.add(day, platformId, { specificity: evidence.specificity, clients })
    const found = this.#found.get(platform)
    if (found !== undefined) return found.addSumOfDay(evidence)
    evidence.beginWindow(NAMES_IN_WINDOW_MAX)
    this.#found.set(platform, evidence)
  }
}

/** Adds stored evidence to the sum of its platform, and to the use of its day. */
class StoredDaySum {
  readonly #found: Map<Platform, Evidence>
  readonly #use: UseCount
  #platform: Platform | undefined
  #day = 0

  constructor(found: Map<Platform, Evidence>, use: UseCount) {
    this.#found = found
    this.#use = use
  }

  /** The sum of a platform, for one record. */
  of(platform: Platform, day: number): this {
    this.#platform = platform
    this.#day = day
    return this
  }

  addDay(evidence: DayEvidence): void {
    this.#sumFor(evidence)?.addDay(evidence)
  }

  addReadDay(evidence: EvidenceReader): void {
    this.#sumFor(evidence)?.addReadDay(evidence)
  }

  #sumFor({ specificity, clients }: Pick<EvidenceReader, 'specificity' | 'clients'>): Evidence | undefined {
    const platform = this.#platform
    if (platform === undefined || clients === undefined) return undefined
    this.#use.add(this.#day, platform.id, { specificity, clients })
    let evidence = this.#found.get(platform)
    if (evidence === undefined) {
      evidence = new Evidence(NAMES_IN_WINDOW_MAX)
      this.#found.set(platform, evidence)
    }
    return evidence
  }
}
