import { SILENT_THREAD_MS, STALLED_MS } from './limits.ts'
import type { CollectorStatus } from './status.ts'

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
