import type { CoverageReport } from '../event/coverage-report.ts'
import {
  COVERAGE_GROUP_MS,
  COVERAGE_ORGANIZATIONS_MAX,
  COVERAGE_PER_SECOND_MAX,
  RETRY_AFTER_SECONDS,
} from '../limits.ts'
import { CLOCK_SET_MS, type Clock, SECOND_MS } from '../process/clock.ts'
import { Fault, isFault } from '../process/error-codes.ts'
import type { Logger } from '../process/log.ts'
import type { CoverageAddition } from '../store/coverage.ts'
import type { Store } from '../store/store.ts'
import { OrganizationRate } from './organization-rate.ts'

/** What became of a report: what it says is on disk; its sender tells too often; or nothing can be stored now. */
export type CoverageAcceptance =
  | { readonly kind: 'stored' }
  | { readonly kind: 'tooOften' | 'retry'; readonly afterSeconds: number; readonly why: string }

/** What the service has counted since it started. Reports by syslog that are none count there, as rejected messages. */
export interface CoverageCounts {
  accepted: number
  /** What they say was stored before. */
  repeated: number
  tooOften: number
  /** The store could not be written. */
  deferred: number
  /** By HTTPS. */
  malformed: number
  unauthorised: number
}

interface Waiting {
  readonly organizationId: string
  readonly report: CoverageReport
  readonly settle: (acceptance: CoverageAcceptance) => void
}

/**
 * Takes admitted reports of coverage into the store. Those of a moment share one transaction. What would not be stored
 * costs a look-up and no transaction, and of one organization no more than COVERAGE_PER_SECOND_MAX are, however many instances it claims
 * to have: so whoever has a token cannot keep the writer from the others' events.
 */
export class CoverageAcceptor {
  readonly counts: CoverageCounts = {
    accepted: 0,
    repeated: 0,
    tooOften: 0,
    deferred: 0,
    malformed: 0,
    unauthorised: 0,
  }
  readonly #store: Store
  readonly #clock: Clock
  readonly #log: Logger
  readonly #rate = new OrganizationRate(COVERAGE_PER_SECOND_MAX, COVERAGE_ORGANIZATIONS_MAX)
  #waiting: Waiting[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(store: Store, clock: Clock, log: Logger) {
    this.#store = store
    this.#clock = clock
    this.#log = log
  }

  /** Answers when what the report says is on disk, or that it will not be. */
  accept(organizationId: string, report: CoverageReport): Promise<CoverageAcceptance> {
    const nowMs = this.#clock.nowMs()
    if (nowMs < CLOCK_SET_MS) return Promise.resolve(this.#later("the service's clock was never set"))
    const { environment, coverage } = this.#store
    const fate = environment.read(() => coverage.look(organizationId, report, nowMs))
    if (fate.kind !== 'added') return Promise.resolve(this.#answer(fate))
    if (!this.#rate.take(organizationId, nowMs))
      return Promise.resolve(this.#answer({ kind: 'tooSoon', waitMs: SECOND_MS }))
    return new Promise((settle) => {
      this.#waiting.push({ organizationId, report, settle })
      if (this.#waiting.length === 1) this.#timer = setTimeout(() => this.flush(), COVERAGE_GROUP_MS)
    })
  }

  /** Stores what waits now. */
  flush(): void {
    clearTimeout(this.#timer)
    const waiting = this.#waiting
    this.#waiting = []
    if (waiting.length === 0) return
    const { environment, coverage } = this.#store
    const nowMs = this.#clock.nowMs()
    let fates: CoverageAddition[]
    try {
      fates = environment.write(() =>
        waiting.map(({ organizationId, report }) => coverage.add(organizationId, report, nowMs)),
      )
    } catch (error) {
      if (!(error instanceof Fault)) this.#log.error({ err: error }, 'coverage could not be stored')
      const why = isFault(error, 'STORE_FULL') ? 'the disk is full' : 'the store cannot be written'
      for (const { settle } of waiting) settle(this.#later(why))
      return
    }
    for (const [index, { settle }] of waiting.entries()) settle(this.#answer(fates[index] as CoverageAddition))
  }

  #answer(fate: CoverageAddition): CoverageAcceptance {
    switch (fate.kind) {
      case 'added':
        this.counts.accepted++
        return { kind: 'stored' }
      case 'known':
        this.counts.repeated++
        return { kind: 'stored' }
      case 'tooSoon':
        this.counts.tooOften++
        return { kind: 'tooOften', afterSeconds: Math.ceil(fate.waitMs / SECOND_MS), why: 'reports come too often' }
      default:
        return fate satisfies never
    }
  }

  #later(why: string): CoverageAcceptance {
    this.counts.deferred++
    return { kind: 'retry', afterSeconds: RETRY_AFTER_SECONDS, why }
  }
}
