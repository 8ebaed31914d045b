import type { CoverageReport } from '../../engine/event/coverage-report.ts'

/** What became of a report of coverage. */
export type CoverageOutcome =
  /** By HTTPS it is on the service's disk, by syslog with the operating system. */
  | { readonly kind: 'sent' }
  /** Not this time; the next report says the same and more. */
  | { readonly kind: 'failed'; readonly why: string }
  /** The service does not take such reports. */
  | { readonly kind: 'refused'; readonly why: string }
  /** The token is not known, and so no event will be taken either. */
  | { readonly kind: 'unauthorised'; readonly why: string }

/** Sends reports of coverage to the service, one at a time, on a connection of its own: events wait for none of it. */
export interface CoverageWay {
  send(report: CoverageReport): Promise<CoverageOutcome>
  /** Cuts what is under way. */
  close(): Promise<void>
}
