import type { Matcher } from '../../registry/match.ts'
import type { Platform } from '../../registry/platform.ts'
import type { DayEvidence } from '../store/evidence.ts'
import type { Store } from '../store/store.ts'
import { Evidence } from './evidence.ts'
import type { UseCount } from './use-count.ts'

/** Maximum names of one platform in a finding. */
const NAMES_IN_WINDOW_MAX = 512

/** The evidence of one platform on one day that a scan writes. */
export interface ChangedDay {
  readonly day: number
  readonly platformId: string
  readonly record: DayEvidence
}

interface Window {
  readonly store: Store
  readonly matcher: Matcher
  readonly organizationId: string
  readonly firstDay: number
  /** Replace their stored versions. */
  readonly changed: readonly ChangedDay[]
}

/** The evidence of each platform in the window, which also goes to `use`. */
export function evidenceInWindow(window: Window, use: UseCount): Map<Platform, Evidence> {
  const sum = new WindowSum(window, use)
  for (const { day, platformId, evidence } of window.store.evidence.since(window.organizationId, window.firstDay)) {
    sum.addStored(day, platformId, evidence)
  }
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
      const record = store.evidence.day(organizationId, day, platformId)
      if (record !== undefined) sum.addStored(day, platformId, record)
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

  constructor(window: Window, use: UseCount) {
    this.#window = window
    this.#use = use
    this.#isChanged = new Set(window.changed.map(({ day, platformId }) => `${day} ${platformId}`))
  }

  addStored(day: number, platformId: string, record: DayEvidence): void {
    if (!this.#isChanged.has(`${day} ${platformId}`)) this.#add(day, platformId, record)
  }

  /**
   * Adds the days that changed, in the order of storage, so that the same names exceed the limit
   * when the evidence is read again.
   */
  withChanged(): Map<Platform, Evidence> {
    for (const { day, platformId, record } of this.#window.changed.toSorted((a, b) => a.day - b.day)) {
      if (day >= this.#window.firstDay) this.#add(day, platformId, record)
    }
    return this.#found
  }

  #add(day: number, platformId: string, record: DayEvidence): void {
    const platform = this.#window.matcher.platform(platformId)
    if (platform === undefined) return
    this.#use.add(day, platformId, record)
    let evidence = this.#found.get(platform)
    if (evidence === undefined) {
      evidence = new Evidence(NAMES_IN_WINDOW_MAX)
      this.#found.set(platform, evidence)
    }
    evidence.addDay(record)
  }
}
