import { createHash, randomBytes } from 'node:crypto'
import {
  COVERAGE_COUNTER_NAMES,
  type CoverageCounters,
  type CoverageReport,
} from '../../engine/event/coverage-report.ts'
import type { Logger } from '../../engine/process/log.ts'
import { COVERAGE_EVERY_MS, COVERAGE_FIRST_MS } from '../limits.ts'
import type { Outcome } from './forwarder.ts'

/** By which part the time between two reports is longer or shorter, at random. */
const JITTER = 0.1

export interface CoverageReporterOptions {
  /** 16 hex digits; see coverageInstance(). */
  readonly instance: string
  readonly counters: () => CoverageCounters
  readonly log: Logger
  /** Instead of those of limits.ts. */
  readonly firstMs?: number
  readonly everyMs?: number
}

/** What became of the reports of this run. */
export interface CoverageCounts {
  readonly sent: number
  readonly failed: number
}

/**
 * Whose counters a run reports: of a live capture another one at each start, since they begin at 0 then. (Not the instance of the events' ids: a run
 * that matches nothing has none, and one that finds a full disk may go on with that of the run before.) Of a capture file the same in each run
 * that reads it, so that packets that are decoded again are not counted again.
 */
export function coverageInstance(fileIdentity: string | undefined): string {
  if (fileIdentity === undefined) return randomBytes(8).toString('hex')
  return createHash('sha256').update(`coverage of ${fileIdentity}`).digest('hex').slice(0, 16)
}

/**
 * Makes the reports of what the sensor saw and did not see. The forward loop sends them with its batches. Each report is made when it
 * is sent, from the counters at that moment, and is stored nowhere: reports are cumulative, so the next one replaces a lost one.
 */
export class CoverageReporter {
  readonly #options: CoverageReporterOptions
  readonly #sinceMs = Date.now()
  readonly #startMs = performance.now()
  #sent = 0
  #failed = 0
  /** Of the last report that the service accepted. */
  #acceptedCounters: CoverageCounters | undefined
  #dueMs: number
  /** When nothing more was counted, so that the last report is the same however often it is sent. */
  #endMs: number | undefined
  #complaint = ''

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

  /** The report to send now; undefined where none is due, or nothing has changed. Its outcome goes to settle(). */
  take(): CoverageReport | undefined {
    if (performance.now() < this.#dueMs) return undefined
    const report = this.#make()
    if (report === undefined) this.#postpone()
    return report
  }

  /** Nothing more is counted: the last report is due. */
  finish(): void {
    this.#endMs = performance.now()
    this.#dueMs = 0
  }

  /** The last report, due or not, if the run has ended and the service does not have it. */
  takeLast(): CoverageReport | undefined {
    return this.#endMs === undefined ? undefined : this.#make()
  }

  /** Notes what became of a report. The next one is not due at once, so that a batch that failed is tried without a report. */
  settle(report: CoverageReport, outcome: Outcome): void {
    this.#postpone()
    const error = outcome.kind === 'accepted' ? outcome.coverageError : outcome.why
    if (error === undefined) {
      this.#sent++
      this.#acceptedCounters = report.counters
      return
    }
    this.#failed++
    const isRejected = outcome.kind === 'accepted' || outcome.kind === 'refused'
    if (!isRejected || error === this.#complaint) return
    this.#complaint = error
    this.#options.log.warn({ why: error }, 'the service did not accept a coverage report')
  }

  #make(): CoverageReport | undefined {
    const { instance } = this.#options
    const counters = this.#options.counters()
    const accepted = this.#acceptedCounters
    if (accepted !== undefined && COVERAGE_COUNTER_NAMES.every((name) => counters[name] === accepted[name])) {
      return undefined
    }
    const sinceMs = this.#sinceMs
    // By the monotonic clock: a report must never look older than the one before.
    const madeMs = sinceMs + Math.floor((this.#endMs ?? performance.now()) - this.#startMs)
    return { instance, sinceMs, madeMs, ended: this.#endMs !== undefined, counters }
  }

  #postpone(): void {
    const everyMs = this.#options.everyMs ?? COVERAGE_EVERY_MS
    // Sensors that were all started at once must not report at once permanently.
    this.#dueMs = performance.now() + everyMs * (1 - JITTER + 2 * JITTER * Math.random())
  }
}
