import { createHash, randomBytes } from 'node:crypto'
import { COVERAGE_COUNTER_NAMES, type CoverageCounters, type CoverageReport } from '../engine/event/coverage-report.ts'
import type { Logger } from '../engine/process/log.ts'
import { within } from '../engine/process/shutdown.ts'
import type { CoverageOutcome } from './forward/coverage-way.ts'
import { COVERAGE_EVERY_MS, COVERAGE_FIRST_MS, COVERAGE_LAST_MS, COVERAGE_REFUSED_MS } from './limits.ts'

/** By which part the time between two reports is longer or shorter, at random. */
const JITTER = 0.1

export interface CoverageReporterOptions {
  /** 16 hex digits; see coverageInstance(). */
  readonly instance: string
  readonly counters: () => CoverageCounters
  readonly send: (report: CoverageReport) => Promise<CoverageOutcome>
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
 * Tells the service now and then what the sensor saw and did not see, beside the events and on connections of its own. A report is made of
 * what is counted at that moment, and waits nowhere: the next one makes up for one that was lost.
 */
export class CoverageReporter {
  readonly #options: CoverageReporterOptions
  readonly #sinceMs = Date.now()
  readonly #startMs = performance.now()
  #sent = 0
  #failed = 0
  /** Of the last report that was taken. */
  #told: CoverageCounters | undefined
  #pausedUntilMs = 0
  #timer: NodeJS.Timeout | undefined
  #isEnding = false
  #sending: Promise<void> = Promise.resolve()

  constructor(options: CoverageReporterOptions) {
    this.#options = options
  }

  get counts(): CoverageCounts {
    return { sent: this.#sent, failed: this.#failed }
  }

  start(): void {
    this.#reportIn(this.#options.firstMs ?? COVERAGE_FIRST_MS)
  }

  /** The last report, when nothing more is counted. Takes COVERAGE_LAST_MS at most. */
  async finish(): Promise<void> {
    if (this.#isEnding) return
    this.#isEnding = true
    clearTimeout(this.#timer)
    await within(
      COVERAGE_LAST_MS,
      this.#sending.then(() => this.#report()),
    )
  }

  #reportIn(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#sending = this.#report()
      void this.#sending.then(() => {
        const everyMs = this.#options.everyMs ?? COVERAGE_EVERY_MS
        // Sensors that were all started at once must not report at once for ever.
        if (!this.#isEnding) this.#reportIn(everyMs * (1 - JITTER + 2 * JITTER * Math.random()))
      })
    }, ms).unref()
  }

  async #report(): Promise<void> {
    const { instance, send, log } = this.#options
    const nowMs = performance.now()
    if (nowMs < this.#pausedUntilMs) return
    const counters = this.#options.counters()
    const told = this.#told
    if (told !== undefined && COVERAGE_COUNTER_NAMES.every((name) => counters[name] === told[name])) return
    const sinceMs = this.#sinceMs
    // By the monotonic clock: a report must never look older than the one before.
    const madeMs = sinceMs + Math.floor(nowMs - this.#startMs)
    const outcome = await send({ instance, sinceMs, madeMs, ended: this.#isEnding, counters })
    switch (outcome.kind) {
      case 'sent':
        this.#sent++
        this.#told = counters
        return
      case 'refused':
        this.#failed++
        this.#pausedUntilMs = nowMs + COVERAGE_REFUSED_MS
        log.warn(
          { why: outcome.why },
          'the service takes no report of what the sensor cannot see; asked again in an hour',
        )
        return
      case 'failed':
      case 'unauthorised':
        this.#failed++
        log.debug({ why: outcome.why }, 'a report of coverage was not sent')
        return
      default:
        outcome satisfies never
    }
  }
}
