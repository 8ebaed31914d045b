import type { LinkState } from './capture/link-state.ts'
import type { LiveState } from './capture/live.ts'
import type { MethodName } from './decode/name-rows.ts'
import type { CoverageCounts } from './forward/coverage-reporter.ts'
import type { Transport } from './forward/forwarder.ts'
import type { TransportStatus } from './forward/transports.ts'
import type { ObserveCounts } from './pipeline/observe.ts'

/** The state of a running collector at a moment: the source of counters, health and metrics. */
export interface CollectorStatus {
  /** Interface or file. */
  readonly source: string
  readonly uptimeSeconds: number
  /** No packet or event is in progress any more. */
  readonly ended: boolean
  readonly observed: ObserveCounts
  /** State of a live capture. Undefined for a file, and in the first second. */
  readonly live: LiveState | undefined
  /** Age of `live` in milliseconds. The capture reports once a second. */
  readonly liveAgeMs: number
  /** State of the interface of a live capture, by the kernel's counters. */
  readonly link: (LinkState & { readonly silence: string }) | undefined
  /** Matched names counted in an event, in total and by method. */
  readonly matches: number
  readonly matchesByMethod: Readonly<Record<MethodName, number>>
  /** Number of AI platforms that matched. */
  readonly platforms: number
  /** Milliseconds since 1970; 0 before the first match. */
  readonly lastMatchMs: number
  readonly events: EventFigures
  /** Status of the enabled transports. */
  readonly transports: Readonly<Partial<Record<Transport, TransportStatus>>>
  /** Coverage reports to the service. */
  readonly coverageReports: CoverageCounts
  /** Events that this transport has sent leave the outbox. Undefined if nothing is forwarded. */
  readonly deciding: Transport | undefined
  /** Whether the disk is too full for the outbox. */
  readonly outboxFull: boolean
}

/** Numbers of events by location. */
export interface EventFigures {
  /** Created from matches in this run. */
  readonly made: number
  /** Waiting when the run began. */
  readonly found: number
  /** Not yet in the outbox. */
  readonly unwritten: number
  readonly waiting: number
  /**
   * Dropped from the outbox: by the limits on size and age, or because the disk returned damaged
   * data.
   */
  readonly dropped: { readonly full: number; readonly tooOld: number; readonly damaged: number }
  /** Closed early to free space for other events. */
  readonly closedEarly: number
  /** When the oldest waiting event was written, in milliseconds since 1970; 0 if none waits. */
  readonly oldestMs: number
  /** Size of the outbox on disk or in memory. */
  readonly outboxBytes: number
}
