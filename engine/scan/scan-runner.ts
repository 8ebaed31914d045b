import { readFileSync } from 'node:fs'
import { type Clock, dayOf } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { failureText } from '../kernel/process/failure.ts'
import { faultPoint } from '../kernel/process/fault-point.ts'
import {
  CLIENT_BYTES_MAX,
  EVIDENCE_PER_TRANSACTION_MAX,
  SCAN_ADDING_CPU_MS,
  SCANS_PER_TRANSACTION_MAX,
  STORED_SCANS_MAX,
} from '../limits.ts'
import { bytesOfChange } from '../store/client-summaries.ts'
import { newUuid } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import { PublishedList } from '../store/published.ts'
import type { Registries } from '../store/registry-in-force.ts'
import type { Scan, ScanTrigger } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { finishErasure } from './erase-clients.ts'
import { EventAggregator } from './event-aggregator.ts'
import { type PreparedScan, prepareScan } from './prepare.ts'
import { BudgetSpent, ScanBudget } from './scan-budget.ts'
import { writeUnmatched } from './unmatched.ts'

/** A reading takes as long as the scan of a small buffer. */
const READ_EVERY_MS = 20
/** proc_pid_stat(5): clock ticks, of which Linux always has 100 per second. */
const MS_PER_TICK = 10
/** The index of utime after the name of the program, which may contain spaces; stime follows. */
const USER_TIME = 11

let readAtMs = Number.NEGATIVE_INFINITY
let cpuMs = 0

/**
 * Milliseconds of CPU time that the calling thread has taken, as of the last READ_EVERY_MS.
 * process.threadCpuUsage() needs Node 22.19, and process.cpuUsage() includes the other threads.
 */
export function threadCpuMs(): number {
  const nowMs = performance.now()
  if (nowMs - readAtMs >= READ_EVERY_MS) {
    readAtMs = nowMs
    const stat = readFileSync('/proc/thread-self/stat', 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    cpuMs = (Number(fields[USER_TIME]) + Number(fields[USER_TIME + 1])) * MS_PER_TICK
  }
  return cpuMs
}

const NOTHING_FOUND = { platformsDiscovered: 0, aiCapableCount: 0, shadowAiCount: 0, overallRiskScore: 0 } as const
/** The failure of a scan whose process was killed. */
export const INTERRUPTED = 'interrupted'
/** A record of evidence takes about a page of LMDB. */
const EVIDENCE_BYTES = 4096
/** Attempts to prepare a scan that another process overtakes. More in a row indicate an error. */
const PREPARATIONS_MAX = 3

export interface ScanRequest {
  readonly organizationId: string
  /** Used unless a scan is already pending, which keeps its own. */
  readonly trigger: ScanTrigger
}

/** The outcome of a scan: completed, or failed with a reason. */
export interface ScanOutcome {
  readonly scan: Scan
  /** The trigger of the request. */
  readonly trigger: ScanTrigger
  /** Events left in the buffer because the scan reached a limit. */
  readonly left: number
  /** Client records that the size limit removed. */
  readonly clientRecordsRemoved: number
  /** The error that failed the scan, unless it was a Fault. */
  readonly internalError?: Error
  /** Whether the scan failed because it took too much CPU time. */
  readonly isOverBudget?: boolean
}

/**
 * Scans organizations: adds buffered events to the evidence and publishes the evidence of the
 * window.
 *
 * A scan first reads and computes everything without blocking other writers. Then one transaction,
 * shared by a few organizations, writes the evidence, publishes the result and empties the buffer.
 * So after a kill at any instant the scan is either complete or has changed nothing. If another
 * process completed a scan of the organization in the meantime, the scan is prepared again.
 */
export class ScanRunner {
  readonly #store: Store
  readonly #registries: Registries
  readonly #clock: Clock
  readonly #cpuMs: () => number
  readonly #aggregator = new EventAggregator()

  /** @param cpuMs the CPU time of this thread */
  constructor(store: Store, registries: Registries, clock: Clock, cpuMs: () => number = threadCpuMs) {
    this.#store = store
    this.#registries = registries
    this.#clock = clock
    this.#cpuMs = cpuMs
  }

  /** Returns the outcomes in the order of the requests. Removed organizations have none. */
  run(requests: readonly ScanRequest[]): ScanOutcome[] {
    const outcomes: ScanOutcome[] = []
    for (let from = 0; from < requests.length; from += SCANS_PER_TRANSACTION_MAX) {
      outcomes.push(...this.#runGroup(requests.slice(from, from + SCANS_PER_TRANSACTION_MAX)))
    }
    return outcomes
  }

  #runGroup(requests: readonly ScanRequest[]): ScanOutcome[] {
    const outcomes: ScanOutcome[] = []
    const started = this.#store.environment.shrink(() => {
      return requests.flatMap((request) => this.#startOrFail(request, outcomes))
    })
    faultPoint('scan:started')
    let prepared: PreparedScan[] = []
    let records = 0
    const commit = (): void => {
      outcomes.push(...this.#commit(prepared))
      prepared = []
      records = 0
    }
    let committedAtMs = this.#cpuMs()
    for (const one of started) {
      try {
        // No result waits long for the expensive scan of another organization.
        if (this.#cpuMs() - committedAtMs > SCAN_ADDING_CPU_MS) {
          commit()
          committedAtMs = this.#cpuMs()
        }
        const next = this.#prepare(one.running, one.trigger)
        const more = next.evidence.length + otherRecords(next)
        if (records + more > EVIDENCE_PER_TRANSACTION_MAX) commit()
        prepared.push(next)
        records += more
      } catch (error) {
        outcomes.push(...this.#fail(one.running, one.trigger, error))
      }
    }
    commit()
    return outcomes
  }

  /** An unreadable record of one organization must not prevent the scans of the others. */
  #startOrFail(request: ScanRequest, outcomes: ScanOutcome[]): StartedScan[] {
    try {
      return this.#start(request)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const scan = newScan(request.organizationId, request.trigger, '', this.#clock.nowMs())
      outcomes.push({
        scan: failed(scan, error.message, this.#clock),
        trigger: request.trigger,
        left: 0,
        clientRecordsRemoved: 0,
      })
      return []
    }
  }

  /**
   * Marks the organization's pending scan, or a new one, as running. Reads everything before it
   * writes.
   */
  #start({ organizationId, trigger }: ScanRequest): StartedScan[] {
    const { scans, scanStates, organizations } = this.#store
    const organization = organizations.get(organizationId)
    if (organization === undefined) return []
    const interrupted = runningOf(this.#store, organizationId)
    const pending = scans.pending(organizationId)
    const nowMs = this.#clock.nowMs()
    const { domain } = organization
    // Its process was killed, so its transaction was never committed.
    if (interrupted !== undefined) scans.put(failed(interrupted, INTERRUPTED, this.#clock))
    const scan = pending ?? newScan(organizationId, trigger, domain, nowMs)
    const running: Scan = { ...scan, status: 'running', domain, startedAtMs: nowMs }
    if (pending === undefined) putNewScan(this.#store, running)
    else {
      scans.put(running)
      scans.removeRequest(organizationId)
    }
    const place = { id: running.id, requestedAtMs: running.requestedAtMs }
    scanStates.put(organizationId, { ...scanStates.get(organizationId), running: place })
    return [{ running, trigger }]
  }

  #prepare(running: Scan, trigger: ScanTrigger): PreparedScan {
    const organization = this.#store.organizations.get(running.organizationId)
    if (organization === undefined) throw new Fault('NOT_FOUND', `no organization ${running.organizationId}`)
    const budget = new ScanBudget(this.#cpuMs)
    for (;;) {
      // A scan must not read clients that the organization has decided not to keep.
      for (const _step of finishErasure(this.#store, organization.id)) budget.check()
      const prepared = this.#store.environment.read(() => {
        // In the same snapshot as the evidence.
        const matcher = this.#registries.matcherOf(organization.id)
        if (this.#store.clientErasures.isErasing(organization.id)) return undefined
        return prepareScan(
          this.#store,
          matcher,
          this.#aggregator,
          organization,
          { running, trigger, budget },
          this.#clock,
        )
      })
      if (prepared !== undefined) return prepared
    }
  }

  #commit(prepared: readonly PreparedScan[]): ScanOutcome[] {
    const outcomes: ScanOutcome[] = []
    let group = prepared
    for (let round = 1; group.length > 0; round++) {
      let overtaken: PreparedScan[] = []
      const removed = new Map<PreparedScan, number>()
      try {
        // The transaction frees more space than it needs, so it may use the reserve.
        overtaken = this.#store.environment.shrink(() => {
          group = group.filter(({ completed }) => this.#store.organizations.exists(completed.organizationId))
          return group.filter((scan) => {
            const recordsRemoved = this.#write(scan)
            if (recordsRemoved !== undefined) removed.set(scan, recordsRemoved)
            return recordsRemoved === undefined
          })
        })
      } catch (error) {
        return [...outcomes, ...group.flatMap(({ completed, trigger }) => this.#fail(completed, trigger, error))]
      }
      for (const scan of group) {
        if (overtaken.includes(scan)) continue
        const { completed, trigger, left } = scan
        outcomes.push({ scan: completed, trigger, left, clientRecordsRemoved: removed.get(scan) ?? 0 })
      }
      group = overtaken.flatMap(({ completed, trigger }) => {
        try {
          if (round === PREPARATIONS_MAX)
            throw new Fault('CONFLICT', 'another process is scanning the same organization')
          return [this.#prepare({ ...completed, status: 'running', completedAtMs: 0 }, trigger)]
        } catch (error) {
          outcomes.push(...this.#fail(completed, trigger, error))
          return []
        }
      })
    }
    return outcomes
  }

  /**
   * Runs in the transaction. Returns the number of client records that the size limit removed.
   * Returns undefined, and writes nothing, if another scan was completed since this one was
   * prepared.
   */
  #write(prepared: PreparedScan): number | undefined {
    const { completed, stateBefore, state } = prepared
    const { scans, scanStates, buffer, evidence, clientDays, clientSummaries } = this.#store
    const { dailyUse, history, coverage, published } = this.#store
    const { organizationId } = completed
    const stateNow = scanStates.get(organizationId)
    if (stateNow.generation !== stateBefore.generation) return undefined
    if (scans.current(completed)?.status !== 'running') {
      throw new Fault('CONFLICT', 'another process ended the scan')
    }
    for (const { day, platformId, record } of prepared.evidence) {
      evidence.putPackedDay(organizationId, day, platformId, record)
    }
    const { clients, clientsFrom, clientsLost } = prepared
    const recordsRemoved = clientDays.write(organizationId, clients, clientsFrom, CLIENT_BYTES_MAX, clientsLost)
    if (prepared.summaries !== undefined) clientSummaries.write(organizationId, prepared.summaries)
    clientSummaries.removeBefore(organizationId, clientsFrom)
    dailyUse.put(organizationId, prepared.dailyUse)
    history.put(organizationId, dayOf(completed.completedAtMs), prepared.history)
    for (const { platformId, detection } of prepared.newDetections) {
      evidence.putDetection(organizationId, platformId, detection)
    }
    if (prepared.addedThrough > 0) buffer.removeThrough(organizationId, prepared.addedThrough)
    faultPoint('scan:added')
    evidence.removeBefore(organizationId, prepared.removeBefore)
    coverage.removeBefore(organizationId, prepared.removeBefore)
    writeUnmatched(this.#store, organizationId, prepared.unmatched)
    scans.put(completed)
    // A requested scan may have changed the number of stored scans since.
    scanStates.put(organizationId, {
      ...state,
      stored: stateNow.stored,
      firstEventAtMs: stateNow.firstEventAtMs,
      running: undefined,
    })
    published.replacePacked(organizationId, PublishedList.discovery, prepared.discovery)
    published.replacePacked(organizationId, PublishedList.others, prepared.others)
    faultPoint('scan:published')
    return recordsRemoved
  }

  /** No outcome where the organization was removed meanwhile: nothing of it is written any more. */
  #fail(running: Scan, trigger: ScanTrigger, error: unknown): ScanOutcome[] {
    const { environment, organizations, scans, scanStates } = this.#store
    const scan = failed(running, failureText(error), this.#clock)
    let internalError = internalErrorOf(error)
    try {
      environment.shrink(() => {
        if (!organizations.exists(running.organizationId) || scans.current(running)?.status !== 'running') return
        scans.put(scan)
        scanStates.put(running.organizationId, { ...scanStates.get(running.organizationId), running: undefined })
      })
    } catch (second) {
      // A Fault here has the same cause as the failure of the scan. The next scan of the
      // organization marks this one as failed.
      internalError ??= internalErrorOf(second)
    }
    if (!environment.read(() => organizations.exists(running.organizationId))) return []
    const outcome = { scan, trigger, left: 0, clientRecordsRemoved: 0, isOverBudget: error instanceof BudgetSpent }
    return [internalError === undefined ? outcome : { ...outcome, internalError }]
  }
}

/** Clients and unmatched events that are written, in records of evidence with as many bytes. */
function otherRecords({ clients, summaries, unmatched: { added, kept } }: PreparedScan): number {
  const clientBytes = clients.reduce((sum, { bytes }) => sum + bytes.length, 0)
  const summaryBytes = summaries === undefined ? 0 : bytesOfChange(summaries)
  return Math.ceil((clientBytes + summaryBytes + added.bytes.length + (kept?.bytes.length ?? 0)) / EVIDENCE_BYTES)
}

function internalErrorOf(error: unknown): Error | undefined {
  if (error instanceof Fault) return undefined
  return error instanceof Error ? error : new Error(String(error))
}

/**
 * A running scan, and the trigger of the request. A pending scan may also be due by the schedule.
 */
interface StartedScan {
  readonly running: Scan
  readonly trigger: ScanTrigger
}

/** The recorded running scan, if any. */
function runningOf({ scans, scanStates }: Store, organizationId: string): Scan | undefined {
  const place = scanStates.get(organizationId).running
  const scan = place && scans.at(organizationId, place)
  return scan?.status === 'running' ? scan : undefined
}

/**
 * Marks scans that were running when their process was killed as failed, and requests those of
 * administrators again. Call before the first scan, in the only process that runs scans.
 *
 * @throws Fault of the store
 */
export function recoverInterrupted(store: Store, clock: Clock): void {
  const { environment, scans, scanStates, organizations } = store
  const interrupted = environment.read(() => {
    return scanStates.organizations().filter((id) => scanStates.get(id).running !== undefined)
  })
  for (const organizationId of interrupted) {
    environment.shrink(() => {
      const scan = runningOf(store, organizationId)
      const organization = organizations.get(organizationId)
      if (organization === undefined) return
      if (scan !== undefined) scans.put(failed(scan, INTERRUPTED, clock))
      scanStates.put(organizationId, { ...scanStates.get(organizationId), running: undefined })
      if (scan?.trigger === 'administrator') requestScan(store, organization, clock)
    })
  }
}

/**
 * Scans an organization until all events that were buffered at the beginning are processed.
 *
 * @returns the last scan, completed
 * @throws Fault SCAN_FAILED after the scan was stored as failed with the reason (its events stay in
 *   the buffer); NOT_FOUND; internal errors unchanged
 */
export function runScan(
  store: Store,
  registries: Registries,
  organizationId: string,
  trigger: ScanTrigger,
  clock: Clock,
): Scan {
  const runner = new ScanRunner(store, registries, clock)
  for (;;) {
    const [outcome] = runner.run([{ organizationId, trigger }])
    if (outcome === undefined) throw new Fault('NOT_FOUND', `no organization ${organizationId}`)
    if (outcome.scan.status === 'failed') throw failureOf(outcome)
    if (outcome.left === 0) return outcome.scan
  }
}

/** The error of a failed scan: the internal error, or a Fault SCAN_FAILED with the reason. */
export function failureOf({ scan, internalError }: ScanOutcome): Error {
  return internalError ?? new Fault('SCAN_FAILED', scan.failure)
}

/** Returns the organization's pending scan, or creates one. Requires a write transaction. */
export function requestScan(
  store: Store,
  { id: organizationId, domain }: Organization,
  clock: Clock,
  trigger: ScanTrigger = 'administrator',
): Scan {
  const waiting = store.scans.pending(organizationId)
  if (waiting !== undefined) return waiting
  const scan = newScan(organizationId, trigger, domain, clock.nowMs())
  putNewScan(store, scan)
  store.scans.request(scan)
  return scan
}

function newScan(organizationId: string, trigger: ScanTrigger, domain: string, nowMs: number): Scan {
  return {
    id: newUuid(),
    organizationId,
    status: 'pending',
    trigger,
    domain,
    requestedAtMs: nowMs,
    startedAtMs: 0,
    completedAtMs: 0,
    eventsAdded: 0,
    eventsUnmatched: 0,
    eventsDamaged: 0,
    eventsTooOld: 0,
    summary: NOTHING_FOUND,
    failure: '',
  }
}

/** Stores a new scan. Beyond the limit, removes the oldest. */
function putNewScan(store: Store, scan: Scan): void {
  const { scans, scanStates } = store
  const state = scanStates.get(scan.organizationId)
  scans.put(scan)
  const removed = scans.removeOldest(scan.organizationId, state.stored + 1 - STORED_SCANS_MAX)
  scanStates.put(scan.organizationId, { ...state, stored: state.stored + 1 - removed })
}

function failed(scan: Scan, failure: string, clock: Clock): Scan {
  return {
    ...scan,
    status: 'failed',
    completedAtMs: Math.max(clock.nowMs(), scan.startedAtMs),
    eventsAdded: 0,
    eventsUnmatched: 0,
    eventsDamaged: 0,
    eventsTooOld: 0,
    summary: NOTHING_FOUND,
    failure,
  }
}
