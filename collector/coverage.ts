import type { CoverageCounters } from '../engine/kernel/event/coverage-report.ts'
import type { PacketClassName } from './batch/packet-class.ts'
import type { CollectorStatus } from './status.ts'

/**
 * Classes of unreadable packets that may have contained a name, except truncated packets. QUIC of
 * an unknown version is not included, because it is counted by connection.
 */
const UNDECODABLE: readonly PacketClassName[] = [
  ...(['linkUnsupported', 'linkEncrypted', 'macsecEncrypted', 'etherTypeUnknown', 'nestedTooDeep'] as const),
  ...(['ipMalformed', 'udpMalformed', 'tcpMalformed'] as const),
  ...(['dnsMalformed', 'dnsQuestionsOverLimit', 'clientHelloMalformed', 'quicUndecodable'] as const),
]

/**
 * What a collector has seen and missed since its start, in the fields of its coverage reports
 * (docs/reference/visibility.md).
 */
export function coverageOf({
  observed,
  live,
  link,
}: Pick<CollectorStatus, 'observed' | 'live' | 'link'>): CoverageCounters {
  const { classes, counters } = observed
  const { kernel, pool, unread } = live?.dropped ?? { kernel: 0, pool: 0, unread: 0 }
  return {
    packets: observed.frames,
    packets_lost: kernel + pool + unread + (link?.missed ?? 0) + counters.dnsGaps,
    packets_truncated: classes.truncated,
    packets_undecodable: UNDECODABLE.reduce((sum, name) => sum + classes[name], 0),
    names: observed.names,
    names_matched: observed.matched,
    hellos_named: counters.helloName,
    hellos_ech: counters.helloEch,
    hellos_unnamed: counters.helloNoName,
    hellos_incomplete: counters.helloIncomplete,
    hellos_unknown_version: counters.helloQuicUnknownVersion,
    hellos_explained: counters.helloExplained,
    dot_sessions: counters.dotSessions,
    doh_sessions: counters.dohSessions,
    doq_sessions: counters.doqSessions,
    dnscrypt_sessions: counters.dnscryptSessions,
    esp_sessions: counters.espSessions,
    wireguard_sessions: counters.wireguardSessions,
    openvpn_sessions: counters.openvpnSessions,
    tor_sessions: counters.torSessions,
    dtls_sessions: counters.dtlsSessions,
    ah_packets: counters.ahPackets,
    macsec_packets: classes.macsecEncrypted,
    unknown_ethertype_packets: classes.etherTypeUnknown,
  }
}
