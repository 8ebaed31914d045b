import type { NameMatcher } from '../ingest/match.ts'
import { type Clock, DAY_MS, HOUR_MS, MINUTE_MS } from '../process/clock.ts'
import type { Logger } from '../process/log.ts'
import type { Organization, ScanFrequency } from '../store/organizations.ts'
import type { Scan, ScanTrigger } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { firstDayOfWindow, runScan } from './fold.ts'

/** At this many buffered events of one organization a scan runs at once. */
export const EVENTS_FOR_IMMEDIATE_SCAN = 5000
/**
 * But not again within this time, in milliseconds: on a link with more events than that a scan follows the other, each with the cost of all platforms,
 * and ingest would wait for nothing else. What comes meanwhile is in the scan that follows.
 */
const IMMEDIATE_SCAN_GAP_MS = 1000

const PERIOD_MS: Readonly<Record<ScanFrequency, number>> = { hourly: HOUR_MS, daily: DAY_MS, weekly: 7 * DAY_MS }
const CHECK_EVERY_MS = MINUTE_MS

/**
 * Starts the scans of all organizations: on their frequency, counted from when the organization was made, and at once
 * when the buffer is full enough. Times that passed while the service was down are made up by one scan.
 */
export class ScanSchedule {
  readonly #store: Store
  readonly #matcher: NameMatcher
  readonly #clock: Clock
  readonly #log: Logger
  /** The last period of each organization that was looked at. One small entry an organization. */
  readonly #periodSeen = new Map<string, number>()
  /** Organizations whose immediate scan failed wait for the next check, so that a full disk is not tried a thousand times. */
  readonly #failedSinceCheck = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  /** When the last immediate scan of an organization ended; and those that wait for the next. */
  readonly #immediateAtMs = new Map<string, number>()
  readonly #waiting = new Map<string, NodeJS.Timeout>()

  constructor(store: Store, matcher: NameMatcher, clock: Clock, log: Logger) {
    this.#store = store
    this.#matcher = matcher
    this.#clock = clock
    this.#log = log
  }

  start(): void {
    this.check()
    this.#timer = setInterval(() => this.check(), CHECK_EVERY_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
    for (const timer of this.#waiting.values()) clearTimeout(timer)
    this.#waiting.clear()
  }

  /** Looks at every organization and runs what is due. */
  check(): void {
    this.#failedSinceCheck.clear()
    this.#immediateAtMs.clear()
    for (const organization of this.#store.organizations.all()) {
      const period = this.#periodOf(organization, this.#clock.nowMs())
      const due = period > (this.#periodSeen.get(organization.id) ?? this.#lastScheduledPeriod(organization))
      this.#periodSeen.set(organization.id, period)
      if (due && this.#wouldReadDifferently(organization)) this.#run(organization.id, 'schedule')
      else this.noteBuffered(organization.id)
    }
  }

  /** Called when events were buffered. */
  noteBuffered(organizationId: string): void {
    if (this.#failedSinceCheck.has(organizationId) || this.#waiting.has(organizationId)) return
    if (this.#store.buffer.count(organizationId) < EVENTS_FOR_IMMEDIATE_SCAN) return
    const sinceMs = this.#clock.nowMs() - (this.#immediateAtMs.get(organizationId) ?? Number.NEGATIVE_INFINITY)
    // A clock that was set back must not keep it waiting.
    if (sinceMs >= IMMEDIATE_SCAN_GAP_MS || sinceMs < 0) this.#runImmediate(organizationId)
    else {
      const later = (): void => {
        this.#waiting.delete(organizationId)
        if (this.#store.buffer.count(organizationId) >= EVENTS_FOR_IMMEDIATE_SCAN) this.#runImmediate(organizationId)
      }
      this.#waiting.set(organizationId, setTimeout(later, IMMEDIATE_SCAN_GAP_MS - sinceMs))
    }
  }

  #runImmediate(organizationId: string): void {
    this.#run(organizationId, 'buffer')
    this.#immediateAtMs.set(organizationId, this.#clock.nowMs())
  }

  #run(organizationId: string, trigger: ScanTrigger): void {
    try {
      const scan = runScan(this.#store, this.#matcher, organizationId, trigger, this.#clock)
      this.#log.info(aboutScan(scan), 'scan completed')
    } catch (error) {
      this.#failedSinceCheck.add(organizationId)
      this.#log.error(
        { organization: organizationId, trigger, reason: (error as Error).message },
        'scan failed, its events wait',
      )
    }
  }

  #periodOf(organization: Organization, timeMs: number): number {
    return Math.floor((timeMs - organization.createdAtMs) / PERIOD_MS[organization.scanFrequency])
  }

  #lastScheduledPeriod(organization: Organization): number {
    const last = this.#store.scans.last(organization.id, ({ trigger }) => trigger === 'schedule')
    return last === undefined ? 0 : this.#periodOf(organization, last.startedAtMs)
  }

  /** Events wait, or evidence has grown too old to count. */
  #wouldReadDifferently(organization: Organization): boolean {
    if (this.#store.buffer.count(organization.id) > 0) return true
    const firstDay = firstDayOfWindow(organization, this.#clock.nowMs())
    for (const { day } of this.#store.evidence.since(organization.id, 0)) return day < firstDay
    return false
  }
}

/** What a log line says of a scan. */
export function aboutScan(scan: Scan): Record<string, unknown> {
  return {
    organization: scan.organizationId,
    scan: scan.id,
    trigger: scan.trigger,
    events: scan.eventsFolded,
    platforms: scan.summary.platformsDiscovered,
    shadow: scan.summary.shadowAiCount,
    risk: scan.summary.overallRiskScore,
    ms: scan.completedAtMs - scan.startedAtMs,
  }
}
