import { EXPIRY_METRIC_HELP } from '../engine/kernel/process/certificate-expiry.ts'
import type { MetricRow } from '../engine/kernel/process/metrics.ts'
import type { TransportStatus } from './forward/transports.ts'
import { type CollectorStatus, degradedReasons } from './status.ts'

/** GET /metrics: a status as rows of Prometheus metrics. */
export function metricRows(status: CollectorStatus): MetricRow[] {
  const { observed, live, link, events, transports } = status
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
  const each = (value: (transport: TransportStatus) => number): Record<string, number> =>
    Object.fromEntries(Object.entries(transports).map(([name, transport]) => [name, value(transport)]))
  const rows: MetricRow[] = [
    ['uptime_seconds', 'gauge', 'Seconds since the start', status.uptimeSeconds],
    ['degraded', 'gauge', '1 while /health says degraded', on(degradedReasons(status).length > 0)],
    ['certificate_expiration_timestamp_seconds', 'gauge', EXPIRY_METRIC_HELP, status.certificateEnds, 'certificate'],
    ['packets_total', 'counter', 'Decoded packets by class', observed.classes, 'class'],
    ['packet_bytes_total', 'counter', 'Their captured bytes', observed.bytes],
    [
      'names_total',
      'counter',
      'Names in DNS queries and ClientHellos',
      { matched: observed.matched, unmatched: observed.unmatched },
      'result',
    ],
    ['matches_total', 'counter', 'Matched names by source', status.matchesByMethod, 'method'],
    ['platforms_detected', 'gauge', 'AI platforms seen since the start', status.platforms],
    [
      'client_hellos_total',
      'counter',
      'ClientHellos by readable content',
      { name, ech, no_name, incomplete, quic_unknown_version: helloQuicUnknownVersion },
      'outcome',
    ],
    [
      'ech_share',
      'gauge',
      'Share of the ClientHellos whose name may be the outer one (Encrypted Client Hello)',
      hellos === 0 ? 0 : ech / hellos,
    ],
    [
      'hidden_dns_sessions_total',
      'counter',
      'Connections to resolvers with encrypted queries',
      {
        doh: counters.dohSessions,
        dot: counters.dotSessions - counters.doqSessions,
        doq: counters.doqSessions,
        dnscrypt: counters.dnscryptSessions,
      },
      'kind',
    ],
    [
      'hidden_connections_total',
      'counter',
      'Connections of encrypted tunnels and protocols, by kind',
      {
        esp: counters.espSessions,
        wireguard: counters.wireguardSessions,
        openvpn: counters.openvpnSessions,
        tor: counters.torSessions,
        dtls: counters.dtlsSessions,
      },
      'kind',
    ],
    [
      'hidden_packets_total',
      'counter',
      'Packets with an authentication header, which are read, frames of MACsec, and frames of an unknown EtherType',
      {
        ah: counters.ahPackets,
        macsec: observed.classes.macsecEncrypted,
        unknown_ethertype: observed.classes.etherTypeUnknown,
      },
      'kind',
    ],
    [
      'proxy_targets_total',
      'counter',
      "Names in proxies' handshakes: CONNECT, SOCKS, and server names in PROXY headers of load balancers; http: names in requests of plain HTTP",
      {
        connect: counters.connectTargets,
        socks: counters.socksTargets,
        proxy_header: counters.proxyHeaderNames,
        http: counters.httpNames,
      },
      'kind',
    ],
    [
      'proxy_headers_total',
      'counter',
      'PROXY headers of load balancers, which are used, and of other hosts, which are skipped',
      { used: counters.proxyHeaders, skipped: counters.proxyHeadersUntrusted },
      'result',
    ],
    [
      'candidates_skipped_total',
      'counter',
      'With CANDIDATES: names that were not searched because too many were new, and candidates beyond the limit',
      { unread: counters.candidatesUnread, full: status.candidatesDropped },
      'limit',
    ],
    ['quic_initials_opened_total', 'counter', 'Decrypted QUIC Initial packets', counters.quicOpened],
    [
      'streams_total',
      'counter',
      'Tracked connections, and those abandoned early, by reason',
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
    ['events_total', 'counter', 'Events created from matches', events.made],
    [
      'events_closed_early_total',
      'counter',
      'Events closed before the end of their window because the table was full',
      events.closedEarly,
    ],
    ['outbox_events', 'gauge', 'Events waiting in the outbox', events.waiting],
    [
      'outbox_oldest_seconds',
      'gauge',
      'Age of the oldest waiting event',
      events.oldestMs === 0 ? 0 : Math.max(0, (Date.now() - events.oldestMs) / 1000),
    ],
    ['outbox_full', 'gauge', '1 while the disk has no space for the outbox', on(status.outboxFull)],
    ['outbox_bytes', 'gauge', 'Size of the outbox on disk or in memory', events.outboxBytes],
    [
      'outbox_dropped_total',
      'counter',
      'Events dropped from the outbox without being forwarded',
      { full: events.dropped.full, too_old: events.dropped.tooOld, damaged: events.dropped.damaged },
      'cause',
    ],
    [
      'forwarded_total',
      'counter',
      'Forwarded events by transport',
      each((transport) => transport.acknowledged),
      'transport',
    ],
    [
      'forward_duplicates_total',
      'counter',
      'Forwarded events that the service already had',
      each((transport) => transport.duplicates),
      'transport',
    ],
    [
      'forward_outside_dedup_window_total',
      'counter',
      'Forwarded events that were too old for the service, which may already have had them',
      each((transport) => transport.outsideDedupWindow),
      'transport',
    ],
    [
      'forward_refused_total',
      'counter',
      'Events permanently rejected by the service',
      each((transport) => transport.refused),
      'transport',
    ],
    [
      'forward_missed_total',
      'counter',
      'Events that left the outbox before this transport had sent them',
      each((transport) => transport.missed),
      'transport',
    ],
    ['forward_batches_total', 'counter', 'Accepted batches', each((transport) => transport.batches), 'transport'],
    ['forward_retries_total', 'counter', 'Batches sent again', each((transport) => transport.retries), 'transport'],
    [
      'forward_seconds_total',
      'counter',
      'Time from sending a batch to its answer, or until the operating system accepted it',
      each((transport) => transport.answerMs / 1000),
      'transport',
    ],
    ['coverage_reports_total', 'counter', 'Coverage reports to the service', { ...status.coverageReports }, 'outcome'],
    [
      'forward_connected',
      'gauge',
      '1 while the transport reaches the service',
      each((transport) => on(transport.connected)),
      'transport',
    ],
  ]
  if (live !== undefined) {
    rows.push(
      ['packets_received_total', 'counter', "Packets that passed the filter, by the kernel's count", live.received],
      [
        'packets_dropped_total',
        'counter',
        'Lost packets by place',
        {
          kernel: live.dropped.kernel,
          decode_queue: live.dropped.pool,
          capture_buffer: live.dropped.unread,
          interface: link?.missed ?? 0,
        },
        'place',
      ],
      [
        'packets_skipped_total',
        'counter',
        'Packets skipped because they were seen twice',
        { filter_change: live.seenByBoth, loopback: live.skipped },
        'cause',
      ],
      ['filter_narrow', 'gauge', '1 while the filter is narrow', on(live.filter === 'narrow')],
      ['capture_reopened_total', 'counter', 'How often the interface was opened again', live.reopened],
    )
  }
  if (link !== undefined)
    rows.push(['link_up', 'gauge', '1 while the interface is up and has a carrier', on(link.problem === '')])
  return rows.map(([row, ...rest]) => [`posture_collector_${row}`, ...rest] as const)
}
