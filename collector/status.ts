import type { LinkState } from './capture/link-state.ts'
import type { LiveState } from './capture/live.ts'
import type { MethodName } from './decode/name-rows.ts'
import type { CoverageCounts } from './forward/coverage-reporter.ts'
import type { Transport } from './forward/forwarder.ts'
import type { TransportStatus } from './forward/transports.ts'
import type { ObserveCounts } from './pipeline/observe.ts'

/** The state of a running collector at one moment, from which counters, health and metrics are made. */
export interface CollectorStatus {
  /** Interface or file. */
  readonly source: string
  readonly uptimeSeconds: number
  /** Nothing is on the way any more. */
  readonly ended: boolean
  readonly observed: ObserveCounts
  /** Of a live capture; undefined for a file, and before the first second. */
  readonly live: LiveState | undefined
  /** How old that is, in milliseconds: it is told once a second. */
  readonly liveAgeMs: number
  /** Of a live capture, by the kernel's counters. */
  readonly link: (LinkState & { readonly silence: string }) | undefined
  /** Matched names that were counted in an event, and by method. */
  readonly matches: number
  readonly matchesByMethod: Readonly<Record<MethodName, number>>
  /** AI platforms among them. */
  readonly platforms: number
  /** Milliseconds since 1970; 0 before the first match. */
  readonly lastMatchMs: number
  readonly events: EventFigures
  /** Of the ways that are on. */
  readonly transports: Readonly<Partial<Record<Transport, TransportStatus>>>
  /** Reports of coverage to the service. */
  readonly coverageReports: CoverageCounts
  /** What this one takes leaves the outbox; undefined when nothing is forwarded. */
  readonly deciding: Transport | undefined
  /** Whether the disk has no space for the outbox. */
  readonly outboxFull: boolean
}

/** Where the events are. */
export interface EventFigures {
  /** Made of matches in this run. */
  readonly made: number
  /** Waited when the run began. */
  readonly found: number
  /** Not yet in the outbox. */
  readonly unwritten: number
  readonly waiting: number
  /** Left the outbox by its limits, size and age, or because the disk gave back something else than was written. */
  readonly dropped: { readonly full: number; readonly tooOld: number; readonly damaged: number }
  /** Closed before their time to make room for others. */
  readonly closedEarly: number
  /** When the oldest that waits was written, in milliseconds since 1970; 0 when none waits. */
  readonly oldestMs: number
  /** What the outbox takes on disk or in memory. */
  readonly outboxBytes: number
}
