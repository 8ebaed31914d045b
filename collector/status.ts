import type { LinkState } from './capture/link-watch.ts'
import type { LiveState } from './capture/live.ts'
import type { MethodName } from './decode/name-rows.ts'
import type { CoverageCounts } from './forward/coverage-reporter.ts'
import type { Transport } from './forward/forwarder.ts'
import type { TransportStatus } from './forward/transports.ts'
import { SILENT_THREAD_MS, STALLED_MS } from './limits.ts'
import type { ObserveCounts } from './pipeline/observe.ts'

/**
 * The response of GET /health: the specification's "Collector health record", with `reason` while
 * degraded.
 */
export interface HealthRecord {
  readonly status: 'running' | 'degraded'
  /** What is wrong, in one line; only while degraded. */
  readonly reason?: string
  readonly uptime_seconds: number
  readonly interface: string
  /** Names seen in DNS queries and ClientHellos. */
  readonly events_captured: number
  /** Names that matched an AI platform. */
  readonly events_matched: number
  readonly platforms_detected: number
  readonly syslog_connected: boolean
  readonly https_connected: boolean
  /** Time of the latest match: ISO 8601 with milliseconds and UTC offset; null before the first. */
  readonly last_event_at: string | null
}

export function healthRecord(status: CollectorStatus): HealthRecord {
  const reasons = degradedReasons(status)
  return {
    status: reasons.length === 0 ? 'running' : 'degraded',
    ...(reasons.length === 0 ? {} : { reason: reasons.join('; ') }),
    uptime_seconds: status.uptimeSeconds,
    interface: status.source,
    events_captured: status.observed.names,
    events_matched: status.observed.matched,
    platforms_detected: status.platforms,
    syslog_connected: status.transports.syslog?.connected ?? false,
    https_connected: status.transports.https?.connected ?? false,
    last_event_at: status.lastMatchMs === 0 ? null : withOffset(status.lastMatchMs),
  }
}

/** Returns why the collector is degraded; empty if it is not. */
export function degradedReasons(status: CollectorStatus): string[] {
  const { live, link, transports, events } = status
  const reasons: string[] = []
  if (live !== undefined && status.liveAgeMs >= SILENT_THREAD_MS && !status.outboxFull) {
    reasons.push('the capture thread does not answer')
  }
  if (live !== undefined && live.lost !== '') reasons.push(live.lost)
  else if (link !== undefined && link.problem !== '') reasons.push(link.problem)
  else if (link !== undefined && link.silence !== '') reasons.push(link.silence)
  if (live?.filter === 'narrow') {
    reasons.push('the link is faster than this collector: only first ClientHello segments and DNS queries are captured')
  } else if (live !== undefined && live.refused !== '') {
    reasons.push(`the filter cannot be narrowed: ${live.refused}`)
  }
  reasons.push(...status.expired)
  if (status.outboxFull) reasons.push('the disk has no space for the outbox')
  const nowMs = performance.now()
  const stalled = Object.values(transports).every(
    ({ connected, sinceMs }) => !connected && nowMs - sinceMs >= STALLED_MS,
  )
  if (stalled) reasons.push(`${events.waiting} events wait: ${problemOf(status)}`)
  return reasons
}

function problemOf({ transports }: CollectorStatus): string {
  const problems = Object.values(transports).map(({ problem }) => problem || 'the service was not reached yet')
  return problems.length === 0 ? 'forwarding is turned off' : problems.join(', ')
}

/** `2026-11-20T09:15:02.123+00:00`, the specification's format. */
function withOffset(timeMs: number): string {
  return new Date(timeMs).toISOString().replace('Z', '+00:00')
}

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
  /** Candidates beyond the limit, until a report has taken some. */
  readonly candidatesDropped: number
  /** What has expired, one line each: the registry, the CA certificate. */
  readonly expired: readonly string[]
  /** When certificates end, in seconds since 1970, by setting. */
  readonly certificateEnds: Readonly<Record<string, number>>
}

/** Numbers of events by location. */
interface EventFigures {
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
