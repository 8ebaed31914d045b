import { createHash, randomBytes } from 'node:crypto'
import {
  COVERAGE_COUNTER_NAMES,
  type CoverageCounters,
  type CoverageReport,
} from '../../engine/kernel/event/coverage-report.ts'
import type { Logger } from '../../engine/kernel/process/log.ts'
import type { Candidates } from '../candidates.ts'
import { COVERAGE_EVERY_MS, COVERAGE_FIRST_MS } from '../limits.ts'
import type { Outcome } from './forwarder.ts'

/** Random change of the interval between two reports, as a fraction. */
const JITTER = 0.1

export interface CoverageReporterOptions {
  /** 16 hex digits; see coverageInstance(). */
  readonly instance: string
  readonly counters: () => CoverageCounters
  /** The version of the registry in use. */
  readonly registry?: () => string
  /** undefined: the operator wants none reported. */
  readonly candidates?: Candidates | undefined
  readonly log: Logger
  /** Overrides the default in limits.ts. */
  readonly firstMs?: number
  readonly everyMs?: number
}

/** Outcomes of the reports of this run. */
export interface CoverageCounts {
  readonly sent: number
  readonly failed: number
}

/**
 * Returns the instance whose counters a run reports. A live capture has a new one at each start,
 * because its counters start at 0. (It is not the instance of event IDs: a run without matches has
 * none, and a run that finds a full disk may continue with the instance of the run before.) A
 * capture file has the same instance in each run that reads it, so that packets decoded again are
 * not counted again.
 */
export function coverageInstance(fileIdentity: string | undefined): string {
  if (fileIdentity === undefined) return randomBytes(8).toString('hex')
  return createHash('sha256').update(`coverage of ${fileIdentity}`).digest('hex').slice(0, 16)
}

/**
 * Creates reports of what the sensor saw and missed. The forward loop sends them with its batches.
 * A report is created from the current counters when it is sent, and is not stored. Reports are
 * cumulative, so the next one replaces a lost one.
 */
export class CoverageReporter {
  readonly #options: CoverageReporterOptions
  readonly #sinceMs = Date.now()
  readonly #startMs = performance.now()
  #sent = 0
  #failed = 0
  /** The last report that the service accepted. */
  #accepted: CoverageReport | undefined
  #dueMs: number
  /** When counting ended. Makes the last report identical however often it is sent. */
  #endMs: number | undefined
  #loggedError = ''

  constructor(options: CoverageReporterOptions) {
    this.#options = options
    this.#dueMs = this.#startMs + (options.firstMs ?? COVERAGE_FIRST_MS)
  }

  get counts(): CoverageCounts {
    return { sent: this.#sent, failed: this.#failed }
  }

  /** When the next report is due, in milliseconds of the monotonic clock. */
  get dueMs(): number {
    return this.#dueMs
  }

  /**
   * Returns the report to send now. Undefined if none is due or nothing has changed. The caller
   * must pass the outcome to settle().
   */
  take(): CoverageReport | undefined {
    if (performance.now() < this.#dueMs) return undefined
    const report = this.#make()
    if (report === undefined) this.#postpone()
    return report
  }

  /** Ends counting and makes the last report due. */
  finish(): void {
    this.#endMs = performance.now()
    this.#dueMs = 0
  }

  /**
   * Returns the last report, due or not, if the run has ended and the service does not have the
   * report.
   */
  takeLast(): CoverageReport | undefined {
    return this.#endMs === undefined ? undefined : this.#make()
  }

  /**
   * Records the outcome of a report. The next report is not due at once, so that a failed batch is
   * retried without a report.
   */
  settle(report: CoverageReport, outcome: Outcome): void {
    this.#postpone()
    const error = outcome.kind === 'accepted' ? outcome.coverageError : outcome.why
    if (error === undefined) {
      this.#sent++
      this.#accepted = report
      this.#options.candidates?.reported(report.candidates ?? [])
      return
    }
    this.#failed++
    const isRejected = outcome.kind === 'accepted' || outcome.kind === 'refused'
    if (!isRejected || error === this.#loggedError) return
    this.#loggedError = error
    this.#options.log.warn({ why: error }, 'the service did not accept a coverage report')
  }

  #make(): CoverageReport | undefined {
    const { instance } = this.#options
    const counters = this.#options.counters()
    const registry = this.#options.registry?.()
    const candidates = this.#options.candidates?.next() ?? []
    const accepted = this.#accepted
    const isSame =
      accepted !== undefined &&
      candidates.length === 0 &&
      accepted.registry === registry &&
      COVERAGE_COUNTER_NAMES.every((name) => counters[name] === accepted.counters[name])
    if (isSame) return undefined
    const sinceMs = this.#sinceMs
    // Uses the monotonic clock: a report must never seem older than the one before.
    const madeMs = sinceMs + Math.floor((this.#endMs ?? performance.now()) - this.#startMs)
    return { instance, sinceMs, madeMs, ended: this.#endMs !== undefined, counters, registry, candidates }
  }

  #postpone(): void {
    const everyMs = this.#options.everyMs ?? COVERAGE_EVERY_MS
    // Jitter: sensors that started together must not report together permanently.
    this.#dueMs = performance.now() + everyMs * (1 - JITTER + 2 * JITTER * Math.random())
  }
}
