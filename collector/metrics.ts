import type { MetricRow } from '../engine/process/metrics.ts'
import type { WayStatus } from './forward/ways.ts'
import { degradedReasons } from './health.ts'
import type { CollectorStatus } from './status.ts'

/** GET /metrics: what a status says, as Prometheus is told it. */
export function metricRows(status: CollectorStatus): MetricRow[] {
  const { observed, live, link, events, ways } = status
  const { counters } = observed
  const {
    helloName: name,
    helloEch: ech,
    helloNoName: no_name,
    helloIncomplete: incomplete,
    helloQuicUnknownVersion,
  } = counters
  const hellos = name + ech + no_name
  const on = (flag: boolean): number => (flag ? 1 : 0)
  const each = (value: (way: WayStatus) => number): Record<string, number> =>
    Object.fromEntries(Object.entries(ways).map(([name, way]) => [name, value(way)]))
  const rows: MetricRow[] = [
    ['uptime_seconds', 'gauge', 'Seconds since the start', status.uptimeSeconds],
    ['degraded', 'gauge', '1 while /health says degraded', on(degradedReasons(status).length > 0)],
    [
      'packets_total',
      'counter',
      'Packets that were decoded, by the class in which each ended',
      observed.classes,
      'class',
    ],
    ['packet_bytes_total', 'counter', 'Their captured bytes', observed.bytes],
    [
      'names_total',
      'counter',
      'Names in DNS queries and ClientHellos',
      { matched: observed.matched, unmatched: observed.unmatched },
      'result',
    ],
    ['matches_total', 'counter', 'Matched names by how they were seen', status.matchesByMethod, 'method'],
    ['platforms_detected', 'gauge', 'AI platforms that were seen since the start', status.platforms],
    [
      'client_hellos_total',
      'counter',
      'ClientHellos by what could be read of them',
      { name, ech, no_name, incomplete, quic_unknown_version: helloQuicUnknownVersion },
      'outcome',
    ],
    [
      'ech_share',
      'gauge',
      'Part of the ClientHellos whose name may be the outer one (Encrypted Client Hello)',
      hellos === 0 ? 0 : ech / hellos,
    ],
    [
      'hidden_dns_sessions_total',
      'counter',
      'Connections to resolvers whose queries cannot be seen',
      { doh: counters.dohSessions, dot: counters.dotSessions },
      'kind',
    ],
    ['quic_initials_opened_total', 'counter', 'QUIC Initial packets that were decrypted', counters.quicOpened],
    [
      'streams_total',
      'counter',
      'Connections whose beginning was followed, and how following ended before its time',
      {
        followed: counters.streamsFollowed,
        evicted: counters.streamsEvicted,
        timed_out: counters.streamsTimedOut,
        over_limit: counters.streamsOverLimit,
      },
      'event',
    ],
    [
      'datagrams_total',
      'counter',
      'IP datagrams in fragments',
      {
        reassembled: counters.datagramsReassembled,
        evicted: counters.datagramsEvicted,
        timed_out: counters.datagramsTimedOut,
        overlapping: counters.datagramsOverlapping,
      },
      'event',
    ],
    ['events_total', 'counter', 'Events that were made of matches', events.made],
    [
      'events_closed_early_total',
      'counter',
      'Events that made room for others before their window ended',
      events.closedEarly,
    ],
    ['outbox_events', 'gauge', 'Events that wait in the outbox', events.waiting],
    [
      'outbox_oldest_seconds',
      'gauge',
      'Age of the oldest event that waits',
      events.oldestMs === 0 ? 0 : Math.max(0, (Date.now() - events.oldestMs) / 1000),
    ],
    ['outbox_full', 'gauge', '1 while the disk has no space for the outbox', on(status.outboxFull)],
    ['outbox_bytes', 'gauge', 'What they take on disk or in memory', events.outboxBytes],
    [
      'outbox_dropped_total',
      'counter',
      'Events that left the outbox without being forwarded',
      { full: events.dropped.full, too_old: events.dropped.tooOld, damaged: events.dropped.damaged },
      'cause',
    ],
    ['forwarded_total', 'counter', 'Events that a way took', each((way) => way.acknowledged), 'way'],
    [
      'forward_duplicates_total',
      'counter',
      'Events among them that the service had already',
      each((way) => way.duplicates),
      'way',
    ],
    ['forward_refused_total', 'counter', 'Events that will never be taken', each((way) => way.refused), 'way'],
    [
      'forward_missed_total',
      'counter',
      'Events that left the outbox before this way had sent them',
      each((way) => way.missed),
      'way',
    ],
    ['forward_batches_total', 'counter', 'Batches that were taken', each((way) => way.batches), 'way'],
    ['forward_retries_total', 'counter', 'Batches that have to be sent again', each((way) => way.retries), 'way'],
    [
      'forward_seconds_total',
      'counter',
      'Time from a batch to its answer, or until the operating system had it',
      each((way) => way.answerMs / 1000),
      'way',
    ],
    [
      'coverage_reports_total',
      'counter',
      'Reports to the service of what was seen and not seen',
      { ...status.coverageReports },
      'outcome',
    ],
    ['forward_connected', 'gauge', '1 while events get through', each((way) => on(way.connected)), 'way'],
  ]
  if (live !== undefined) {
    rows.push(
      [
        'packets_received_total',
        'counter',
        'Packets that passed the filter, by the count of the kernel',
        live.received,
      ],
      [
        'packets_dropped_total',
        'counter',
        'Packets that were lost, by place',
        { ...live.dropped, interface: link?.missed ?? 0 },
        'place',
      ],
      [
        'packets_passed_over_total',
        'counter',
        'Packets that were seen twice',
        { filter_change: live.handedOver, loopback: live.passedOver },
        'cause',
      ],
      ['filter_narrow', 'gauge', '1 while the filter is narrow', on(live.filter === 'narrow')],
      ['capture_reopened_total', 'counter', 'Times that the interface was opened again', live.reopened],
    )
  }
  if (link !== undefined)
    rows.push(['link_up', 'gauge', '1 while the interface is up and has a carrier', on(link.trouble === '')])
  return rows.map(([row, ...rest]) => [`posture_collector_${row}`, ...rest] as const)
}
