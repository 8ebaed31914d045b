import type { CoverageReport } from '../../engine/event/coverage-report.ts'
import type { Event } from '../../engine/event/event.ts'

/** The two ways to the service. */
export type Transport = 'https' | 'syslog'

/** What became of a batch, and so who may try again. */
export type Outcome =
  /**
   * Taken: by HTTPS it is on the service's disk, by syslog with the operating system. `rejected` of the events never will be; they count as refused.
   * `coverageError`: why the coverage report was not taken; undefined where it was, and for a batch without one.
   */
  | {
      readonly kind: 'accepted'
      readonly duplicates: number
      /** Older than what the service remembers of this collector: not counted. */
      readonly tooLate: number
      readonly rejected: readonly string[]
      readonly coverageError?: string
    }
  /** Not now: trying again may help. `afterMs` is what the service asked for. */
  | { readonly kind: 'retry'; readonly why: string; readonly afterMs?: number }
  /** The batch as such is not taken; one without the event that is wrong would be. */
  | { readonly kind: 'refused'; readonly why: string }
  /** Somebody on the way to the service does not pass the batch on. A smaller one may pass; nothing is given up. */
  | { readonly kind: 'notPassed'; readonly why: string }
  /** The token is not known. Nothing will be taken until it is replaced. */
  | { readonly kind: 'unauthorized'; readonly why: string }

/** Sends batches of events to the service. */
export interface Forwarder {
  /** False once a connection that stood is gone. A way that makes one for each batch is alive. */
  readonly alive: boolean
  /** A batch without events shows whether it would get through, and may carry a coverage report. Rejects only for an internal error. */
  send(events: readonly Event[], coverage?: CoverageReport): Promise<Outcome>
  /** Cuts what is under way; a send that was then answers `retry`. */
  close(): Promise<void>
}
