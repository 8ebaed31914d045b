import { COUNTER_NAMES, type CounterName } from '../../collector/batch/counters.ts'
import { PACKET_CLASS_NAMES, type PacketClassName } from '../../collector/batch/packet-class.ts'
import type { LiveState } from '../../collector/capture/live.ts'
import type { Transport } from '../../collector/forward/forwarder.ts'
import type { TransportStatus } from '../../collector/forward/transports.ts'
import type { CollectorStatus } from '../../collector/status.ts'

const zeros = <Name extends string>(names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>

/**
 * Fields that a test sets. The defaults are those of a collector that watches a quiet link and is
 * connected to its service.
 */
export interface StatusFields {
  readonly ended?: boolean
  readonly live?: Partial<LiveState>
  readonly classes?: Partial<Record<PacketClassName, number>>
  readonly counters?: Partial<Record<CounterName, number>>
  readonly names?: number
  readonly matched?: number
  readonly matches?: number
  readonly link?: Partial<NonNullable<CollectorStatus['link']>>
  readonly events?: Partial<CollectorStatus['events']>
  readonly https?: Partial<TransportStatus>
  readonly syslog?: Partial<TransportStatus>
  readonly deciding?: Transport
  readonly lastMatchMs?: number
  readonly liveAgeMs?: number
  readonly outboxFull?: boolean
  readonly expired?: readonly string[]
}

export function statusOf(overrides: StatusFields): CollectorStatus {
  const classes = { ...zeros(PACKET_CLASS_NAMES), ...overrides.classes }
  const frames = Object.values(classes).reduce((sum, count) => sum + count, 0)
  const names = overrides.names ?? 0
  const matched = overrides.matched ?? 0
  return {
    source: 'eth7',
    uptimeSeconds: 61,
    ended: overrides.ended ?? false,
    observed: {
      frames,
      bytes: frames * 80,
      classes,
      counters: { ...zeros(COUNTER_NAMES), ...overrides.counters },
      names,
      matched,
      unmatched: names - matched,
      repeated: 0,
    },
    live: {
      received: frames,
      taken: frames,
      seenByBoth: 0,
      skipped: 0,
      waiting: 0,
      dropped: { kernel: 0, pool: 0, unread: 0 },
      filter: 'wide',
      refused: '',
      lost: '',
      reopened: 0,
      ...overrides.live,
    },
    liveAgeMs: overrides.liveAgeMs ?? 0,
    link: { problem: '', packets: 1000, missed: 0, silence: '', ...overrides.link },
    matches: overrides.matches ?? matched,
    matchesByMethod: { dns: matched, tls: 0, quic: 0, tls_inferred: 0, quic_inferred: 0, dns_alias: 0 },
    platforms: matched > 0 ? 1 : 0,
    lastMatchMs: overrides.lastMatchMs ?? 0,
    events: {
      ...{ made: 0, found: 0, unwritten: 0, waiting: 0, closedEarly: 0, oldestMs: 0, outboxBytes: 0 },
      dropped: { full: 0, tooOld: 0, damaged: 0 },
      ...overrides.events,
    },
    coverageReports: { sent: 0, failed: 0 },
    transports: {
      https: transportOf(overrides.https),
      ...(overrides.syslog === undefined ? {} : { syslog: transportOf(overrides.syslog) }),
    },
    deciding: overrides.deciding ?? 'https',
    outboxFull: overrides.outboxFull ?? false,
    candidatesDropped: 0,
    expired: overrides.expired ?? [],
    certificateEnds: { ca: 1_900_000_000 },
  }
}

function transportOf(overrides: Partial<TransportStatus> = {}): TransportStatus {
  return {
    ...{
      acknowledged: 0,
      duplicates: 0,
      outsideDedupWindow: 0,
      refused: 0,
      batches: 0,
      retries: 0,
      answerMs: 0,
      missed: 0,
    },
    ...{ connected: true, problem: '', sinceMs: performance.now() },
    ...overrides,
  }
}
