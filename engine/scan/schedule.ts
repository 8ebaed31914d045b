import { type Clock, MINUTE_MS, SECOND_MS } from '../kernel/process/clock.ts'
import { logFailure } from '../kernel/process/failure.ts'
import type { Logger } from '../kernel/process/log.ts'
import { SCANS_PER_TRANSACTION_MAX } from '../limits.ts'
import type { Organization } from '../store/organizations.ts'
import type { Registries } from '../store/registry-in-force.ts'
import type { Scan, ScanTrigger } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { periodOf } from './periods.ts'
import { firstDayOfWindow, inputsOf } from './prepare.ts'
import { failureOf, recoverInterrupted, type ScanOutcome, type ScanRequest } from './scan-runner.ts'

/** Runs scans, one group at a time. */
export interface ScanExecutor {
  run(requests: readonly ScanRequest[]): Promise<readonly ScanOutcome[]>
  close(): Promise<void>
}

/** Delay between an organization's first event and its first scan. */
const FIRST_SCAN_MS = 10 * SECOND_MS
/** Interval of quick scans, which run only if there are new events. */
const QUICK_SCAN_EVERY_MS = MINUTE_MS
/** Quick scans end this long after the first event. */
const QUICK_SCANS_MS = 30 * MINUTE_MS

/**
 * The quick scans of new organizations, so that the first findings do not take a day. The store has
 * the time of the first event, so quick scans continue after a restart.
 */
class FirstScans {
  readonly #store: Store
  /** Organizations whose quick scans have ended. */
  readonly #ended = new Set<string>()
  /** Time of the next scan, for organizations with new events. */
  readonly #dueMs = new Map<string, number>()

  constructor(store: Store) {
    this.#store = store
  }

  /** Call when an organization may have new events. @throws Fault STORE_FULL. */
  note(organizationId: string, nowMs: number): void {
    if (this.#ended.has(organizationId)) return
    // A time from an earlier event remains valid, unless the clock was set back.
    const knownMs = this.#dueMs.get(organizationId)
    if (knownMs !== undefined && knownMs - nowMs <= QUICK_SCAN_EVERY_MS) return
    if (this.#store.buffer.count(organizationId) === 0) return
    const dueMs = this.#nextMs(organizationId, nowMs)
    if (dueMs === undefined) {
      this.#ended.add(organizationId)
      this.#dueMs.delete(organizationId)
    } else this.#dueMs.set(organizationId, dueMs)
  }

  /** Returns the organizations whose scan is due, once each. */
  takeDue(nowMs: number): string[] {
    const due = [...this.#dueMs].filter(([, dueMs]) => dueMs <= nowMs).map(([organizationId]) => organizationId)
    for (const organizationId of due) this.#dueMs.delete(organizationId)
    return due
  }

  /** undefined if the quick scans have ended. */
  #nextMs(organizationId: string, nowMs: number): number | undefined {
    const firstMs = this.#firstEventMs(organizationId, nowMs)
    const last = this.#store.scans.last(organizationId, ({ status }) => status === 'completed')
    // Without a scan since the first event, the first scan is due even if its time has passed.
    if (last === undefined || last.startedAtMs < firstMs) return firstMs + FIRST_SCAN_MS
    // If the clock was set back, the last scan is in the future.
    const nextMs = Math.min(last.startedAtMs, nowMs) + QUICK_SCAN_EVERY_MS
    return Math.max(nextMs, nowMs) > firstMs + QUICK_SCANS_MS ? undefined : nextMs
  }

  #firstEventMs(organizationId: string, nowMs: number): number {
    const { environment, scanStates, evidence } = this.#store
    const { firstEventAtMs } = scanStates.get(organizationId)
    if (firstEventAtMs !== undefined && firstEventAtMs <= nowMs) return firstEventAtMs
    // Another scan may have added the first events to the evidence before they were noted. Evidence
    // means that there were some, so no quick scans follow.
    const isKnown = firstEventAtMs === undefined && evidence.firstDayFrom(organizationId, 0, Infinity) !== undefined
    const firstMs = isKnown ? 0 : nowMs
    environment.write(() => {
      scanStates.put(organizationId, { ...scanStates.get(organizationId), firstEventAtMs: firstMs })
    })
    return firstMs
  }
}

/** Buffered events of one organization that start a scan, with the next poll. */
export const EVENTS_FOR_IMMEDIATE_SCAN = 5000

const CHECK_EVERY_MS = MINUTE_MS
/** On a busy link, a scan of a full buffer for each batch would have the full cost of all platforms each time. */
const POLL_EVERY_MS = SECOND_MS

/** Counters of the schedule since its start. */
interface ScanCounters {
  readonly completed: Record<ScanTrigger, number>
  failed: number
  /** Of these, scans that took too much CPU time. */
  overBudget: number
  eventsAdded: number
  eventsDamaged: number
  eventsUnmatched: number
  /**
   * Events that waited for a registry with their name: added to the evidence, or removed, by
   * reason.
   */
  unmatchedRematched: number
  readonly unmatchedRemoved: { expired: number; limit: number }
  /** Client records that the size limit or a full disk took. */
  clientRecordsRemoved: number
  /** Total duration of completed scans. */
  milliseconds: number
}

/**
 * Schedules the scans of all organizations in groups: by their frequency, counted from the creation
 * of the organization; quickly after its first event; within a second when the buffer has
 * enough events; when a decision about a platform expires; and on request of an administrator.
 * After a downtime, one scan replaces all missed ones.
 */
export class ScanSchedule {
  readonly counters: ScanCounters = {
    completed: { schedule: 0, first: 0, buffer: 0, expiry: 0, administrator: 0 },
    failed: 0,
    overBudget: 0,
    eventsAdded: 0,
    eventsDamaged: 0,
    eventsUnmatched: 0,
    unmatchedRematched: 0,
    unmatchedRemoved: { expired: 0, limit: 0 },
    clientRecordsRemoved: 0,
    milliseconds: 0,
  }
  readonly #store: Store
  readonly #registries: Registries
  readonly #clock: Clock
  readonly #log: Logger
  readonly #executor: ScanExecutor
  /** Organizations waiting for a scan, each once. */
  #queue = new Map<string, ScanTrigger>()
  /** Organizations whose scans run now. A request in the meantime is found by a later check. */
  #inProgress = new Set<string>()
  #running: Promise<void> | undefined
  /** The last checked period of each organization. One small entry per organization. */
  readonly #periodSeen = new Map<string, number>()
  /**
   * Organizations whose scan failed wait for the next check, so that a full disk does not cause
   * thousands of attempts.
   */
  readonly #failedSinceCheck = new Set<string>()
  /** Of these, organizations whose scan could not even be started. Their requests stay pending. */
  readonly #unstarted = new Set<string>()
  /** Organizations whose last scan failed. */
  readonly #failing = new Set<string>()
  /** Of these, organizations whose scan took too much CPU time. */
  readonly #overBudget = new Set<string>()
  /** Organizations whose buffer has EVENTS_FOR_IMMEDIATE_SCAN. */
  readonly #full = new Set<string>()
  readonly #firstScans: FirstScans
  readonly #timers: NodeJS.Timeout[] = []
  #stopped = false

  constructor(store: Store, registries: Registries, clock: Clock, log: Logger, executor: ScanExecutor) {
    this.#store = store
    this.#registries = registries
    this.#clock = clock
    this.#log = log
    this.#executor = executor
    this.#firstScans = new FirstScans(store)
  }

  start(): void {
    this.#recover()
    this.check()
    this.#timers.push(
      setInterval(() => this.check(), CHECK_EVERY_MS),
      setInterval(() => this.poll(), POLL_EVERY_MS),
    )
  }

  /** Marks interrupted scans as failed and repeats the requested ones. */
  #recover(): void {
    try {
      recoverInterrupted(this.#store, this.#clock)
    } catch (error) {
      logFailure(this.#log, error, 'could not mark interrupted scans as failed; the next scan will do so')
    }
  }

  /**
   * Starts no more scans and waits for running ones. Waiting scans are found again at the next
   * start.
   */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const timer of this.#timers) clearInterval(timer)
    this.#queue.clear()
    await this.#running
    await this.#executor.close()
  }

  /** Resolves when no scan is running or waiting. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running
  }

  /** Events of all organizations that wait for a registry with their name. */
  get unmatchedWaiting(): number {
    const { environment, organizations, unmatched } = this.#store
    return environment.read(() => organizations.ids().reduce((sum, id) => sum + unmatched.count(id), 0))
  }

  /** Bytes of the client records of all organizations. */
  get clientBytes(): number {
    const { environment, organizations, clientDays } = this.#store
    return environment.read(() => organizations.ids().reduce((sum, id) => sum + clientDays.totals(id).bytes, 0))
  }

  /** Number of organizations whose last scan failed. */
  get failing(): number {
    return this.#failing.size
  }

  /** Checks every organization and queues the scans that are due. */
  check(): void {
    this.#failedSinceCheck.clear()
    this.#unstarted.clear()
    const nowMs = this.#clock.nowMs()
    const ids = this.#store.environment.read(() => this.#store.organizations.ids())
    this.#forgetOthers(new Set(ids))
    for (const id of ids.sort((a, b) => Number(this.#overBudget.has(a)) - Number(this.#overBudget.has(b)))) {
      try {
        this.#checkOrganization(id, nowMs)
      } catch (error) {
        // A damaged record of one organization must not prevent the scans of the others.
        logFailure(this.#log, error, 'could not check an organization; its events stay buffered', {
          fields: { organization: id },
        })
      }
    }
    this.poll()
  }

  /** Removes the state of organizations that were removed. */
  #forgetOthers(ids: ReadonlySet<string>): void {
    for (const id of this.#periodSeen.keys()) if (!ids.has(id)) this.#periodSeen.delete(id)
    for (const failing of [this.#failing, this.#overBudget]) {
      for (const id of failing) if (!ids.has(id)) failing.delete(id)
    }
  }

  #checkOrganization(organizationId: string, nowMs: number): void {
    const organization = this.#store.organizations.get(organizationId)
    if (organization === undefined) return
    const period = periodOf(organization, nowMs)
    const seen = this.#periodSeen.get(organizationId) ?? this.#lastScheduledPeriod(organization, nowMs)
    // A clock that steps back across the start of a period must not repeat the scan of the period.
    const due = period > seen
    if (due || seen - period > 1) this.#periodSeen.set(organizationId, period)
    else this.#periodSeen.set(organizationId, seen)
    if (due && this.#resultMayChange(organization, nowMs)) this.#enqueue(organizationId, 'schedule')
    else if (this.#hasDecisionExpired(organizationId, nowMs)) this.#enqueue(organizationId, 'expiry')
    else this.noteBuffered(organizationId)
  }

  /** Whether a decision that the last completed scan counted has expired since. */
  #hasDecisionExpired(organizationId: string, nowMs: number): boolean {
    const { decisionExpiresAtMs } = this.#store.scanStates.get(organizationId)
    return decisionExpiresAtMs !== undefined && decisionExpiresAtMs <= nowMs
  }

  /** Queues the scans that administrators requested, first scans, and scans of full buffers. */
  poll(): void {
    for (const organizationId of this.#store.environment.read(() => this.#store.scans.organizationsWaiting())) {
      // A request stays pending until the thread has started the scan, which may take seconds.
      if (this.#unstarted.has(organizationId) || this.#inProgress.has(organizationId)) continue
      this.#enqueue(organizationId, 'administrator')
    }
    for (const organizationId of this.#firstScans.takeDue(this.#clock.nowMs())) this.#enqueue(organizationId, 'first')
    for (const organizationId of this.#full) {
      if (this.#inProgress.has(organizationId)) continue
      this.#full.delete(organizationId)
      if (this.#hasFullBuffer(organizationId)) this.#enqueue(organizationId, 'buffer')
    }
  }

  #hasFullBuffer(organizationId: string): boolean {
    return this.#store.buffer.count(organizationId) >= EVENTS_FOR_IMMEDIATE_SCAN
  }

  /** Call after events were buffered. */
  noteBuffered(organizationId: string): void {
    if (this.#stopped || this.#failedSinceCheck.has(organizationId)) return
    this.#noteFirst(organizationId)
    if (!this.#full.has(organizationId) && this.#hasFullBuffer(organizationId)) this.#full.add(organizationId)
  }

  #noteFirst(organizationId: string): void {
    try {
      this.#firstScans.note(organizationId, this.#clock.nowMs())
    } catch (error) {
      // Ingest calls this, and its events are stored. The next check tries again.
      logFailure(this.#log, error, 'could not schedule the first scan', { fields: { organization: organizationId } })
    }
  }

  #enqueue(organizationId: string, trigger: ScanTrigger): void {
    if (this.#stopped) return
    // A scan that is due by the schedule has that trigger, even if it is also requested.
    if (trigger === 'schedule' || !this.#queue.has(organizationId)) this.#queue.set(organizationId, trigger)
    this.#running ??= this.#runAll()
  }

  async #runAll(): Promise<void> {
    while (this.#queue.size > 0) {
      const group = this.#nextGroup()
      for (const [organizationId] of group) this.#queue.delete(organizationId)
      this.#inProgress = new Set(group.map(([organizationId]) => organizationId))
      try {
        const requests = group.map(([organizationId, trigger]) => ({ organizationId, trigger }))
        for (const outcome of await this.#executor.run(requests)) this.#note(outcome)
      } catch (error) {
        this.#noteUnstarted(group, error)
      }
      this.#inProgress.clear()
    }
    this.#running = undefined
  }

  /**
   * The organizations at the head of the queue. One whose last scan took too much CPU time is
   * scanned after all others, and alone, so that the results of no other wait for it.
   */
  #nextGroup(): (readonly [string, ScanTrigger])[] {
    const waiting = [...this.#queue]
    const others = waiting.filter(([id]) => !this.#overBudget.has(id))
    return others.length > 0 ? others.slice(0, SCANS_PER_TRANSACTION_MAX) : waiting.slice(0, 1)
  }

  #note(outcome: ScanOutcome): void {
    const { scan, trigger, left } = outcome
    const { organizationId } = scan
    if (scan.status === 'failed') {
      this.#noteFailed(organizationId)
      if (outcome.isOverBudget) {
        this.counters.overBudget++
        this.#overBudget.add(organizationId)
      }
      if (scan.startedAtMs === 0) this.#unstarted.add(organizationId)
      logFailure(this.#log, failureOf(outcome), 'scan failed; its events stay buffered', {
        fields: { organization: organizationId, scan: scan.id, trigger },
      })
      return
    }
    this.#failing.delete(organizationId)
    this.#overBudget.delete(organizationId)
    this.counters.completed[scan.trigger]++
    this.counters.eventsAdded += scan.eventsAdded
    this.counters.eventsDamaged += scan.eventsDamaged ?? 0
    this.counters.milliseconds += scan.completedAtMs - scan.startedAtMs
    this.counters.clientRecordsRemoved += outcome.clientRecordsRemoved
    this.counters.eventsUnmatched += scan.eventsUnmatched
    this.counters.unmatchedRematched += scan.waiting?.rematched ?? 0
    this.counters.unmatchedRemoved.expired += scan.waiting?.expired ?? 0
    this.counters.unmatchedRemoved.limit += scan.waiting?.dropped ?? 0
    this.#log.info(scanLogFields(scan), 'scan completed')
    if ((scan.eventsDamaged ?? 0) > 0) {
      this.#log.error(
        { organization: organizationId, scan: scan.id, events: scan.eventsDamaged },
        'buffered events were damaged on disk and are lost; check the store with posture-admin doctor',
      )
    }
    if (left > 0) this.#enqueue(organizationId, trigger)
    else this.noteBuffered(organizationId)
  }

  #noteFailed(organizationId: string): void {
    this.counters.failed++
    this.#failedSinceCheck.add(organizationId)
    this.#failing.add(organizationId)
    this.#full.delete(organizationId)
    // Makes a scheduled scan due again at the next check instead of the next period.
    this.#periodSeen.delete(organizationId)
  }

  /** The scans could not be recorded as started: the store is not writable, or the thread ended. */
  #noteUnstarted(group: readonly (readonly [string, ScanTrigger])[], error: unknown): void {
    for (const [organizationId] of group) {
      this.#noteFailed(organizationId)
      this.#unstarted.add(organizationId)
    }
    logFailure(this.#log, error, 'could not start scans; events stay buffered', {
      fields: { organizations: group.length },
    })
  }

  /** A time that was stored while the clock was far ahead counts as now. */
  #lastScheduledPeriod(organization: Organization, nowMs: number): number {
    const { scheduledAtMs } = this.#store.scanStates.get(organization.id)
    if (scheduledAtMs === 0) return 0
    const last = periodOf(organization, scheduledAtMs)
    const period = periodOf(organization, nowMs)
    return last - period > 1 ? period : last
  }

  /**
   * Whether there are new events, changed settings, decisions or registry, or evidence that left
   * the window since the last scan.
   */
  #resultMayChange(organization: Organization, nowMs: number): boolean {
    const { buffer, unmatched, scanStates, evidence, decisions } = this.#store
    if (buffer.count(organization.id) > 0) return true
    const { inputs, firstDay, unmatchedDay } = scanStates.get(organization.id)
    const matcher = this.#registries.matcherOf(organization.id)
    const inForce = decisions.inForce(organization.id, nowMs)
    if (inputs !== '' && inputs !== inputsOf(organization, inForce, matcher)) return true
    // Waiting events leave the evidence window, too.
    const windowStart = firstDayOfWindow(organization, nowMs)
    if (unmatched.count(organization.id) > 0 && unmatchedDay !== windowStart) return true
    // After the clock was set back, the window moves backward.
    const days = [firstDay, windowStart] as const
    return evidence.firstDayFrom(organization.id, Math.min(...days), Math.max(...days)) !== undefined
  }
}

/** The log fields of a scan. */
function scanLogFields(scan: Scan): Record<string, unknown> {
  return {
    organization: scan.organizationId,
    scan: scan.id,
    trigger: scan.trigger,
    events: scan.eventsAdded,
    unmatched: scan.eventsUnmatched,
    platforms: scan.summary.platformsDiscovered,
    ai_capable: scan.summary.aiCapableCount,
    shadow: scan.summary.shadowAiCount,
    risk: scan.summary.overallRiskScore,
    ms: scan.completedAtMs - scan.startedAtMs,
  }
}
