import { type CoverageCounters, HIDDEN_COUNTER_NAMES, type HiddenCounter } from '../kernel/event/coverage-report.ts'
import type { Coverage } from '../store/coverage.ts'

/**
 * How much of the traffic at the sensors was visible, as in API responses. Worked example:
 * docs/reference/scoring.md.
 */
export interface CoverageJson {
  /** Instances of sensors that reported in the window. 0 if all evidence is from logs. */
  readonly sensors: number
  readonly names_seen: number
  /** Traffic that had no name or hid its names. */
  readonly hidden: {
    readonly ech: number
    readonly encrypted_dns: number
    readonly no_name: number
    readonly incomplete: number
    readonly undecodable: number
    readonly packets_lost: number
    /** Connections of encrypted tunnels. */
    readonly tunnels: number
  }
  /** Encrypted and unread traffic, by kind. */
  readonly kinds: Readonly<Record<HiddenCounter, number>>
  /** 0 to 1, four decimals. null if no sensor has reported a packet. */
  readonly visible_share: number | null
}

export function coverageJson({ sensors, counters }: Coverage): CoverageJson {
  return {
    sensors,
    names_seen: counters.names,
    hidden: {
      ech: counters.hellos_ech,
      encrypted_dns: counters.dot_sessions + counters.doh_sessions + counters.dnscrypt_sessions,
      no_name: counters.hellos_unnamed,
      incomplete: counters.hellos_incomplete + counters.hellos_unknown_version,
      undecodable: unreadPackets(counters),
      packets_lost: counters.packets_lost,
      tunnels: tunnels(counters),
    },
    kinds: Object.fromEntries(HIDDEN_COUNTER_NAMES.map((name) => [name, counters[name]])) as CoverageJson['kinds'],
    visible_share: sensors === 0 ? null : visibleShare(counters),
  }
}

/*
 * The share of connections and DNS questions with a readable name, times the share of packets that
 * were read. The content of lost or undecodable packets is unknown, so it is assumed to be as
 * visible as the rest.
 *
 *   seen    = names - hellos_ech        (an outer name is not the requested name)
 *   hidden  = hellos_ech + hellos_unnamed + hellos_incomplete + hellos_unknown_version
 *             - hellos_explained        (their names are among the names)
 *             + dot_sessions + doh_sessions + dnscrypt_sessions
 *             + esp_sessions + wireguard_sessions + openvpn_sessions + tor_sessions
 *   visible = seen / (seen + hidden)
 *             x (packets - packets_truncated - packets_undecodable) / (packets + packets_lost)
 */
function visibleShare(counters: CoverageCounters): number | null {
  const all = counters.packets + counters.packets_lost
  if (all === 0) return null
  const seen = Math.max(0, counters.names - counters.hellos_ech)
  const hidden =
    counters.hellos_ech +
    counters.hellos_unnamed +
    counters.hellos_incomplete +
    counters.hellos_unknown_version -
    counters.hellos_explained +
    counters.dot_sessions +
    counters.doh_sessions +
    counters.dnscrypt_sessions +
    tunnels(counters)
  const ofNames = hidden === 0 ? 1 : seen / (seen + hidden)
  const ofPackets = Math.max(0, counters.packets - unreadPackets(counters)) / all
  return Math.round(ofNames * ofPackets * 10_000) / 10_000
}

function tunnels({ esp_sessions, wireguard_sessions, openvpn_sessions, tor_sessions }: CoverageCounters): number {
  return esp_sessions + wireguard_sessions + openvpn_sessions + tor_sessions
}

function unreadPackets({ packets_truncated, packets_undecodable }: CoverageCounters): number {
  return packets_truncated + packets_undecodable
}
