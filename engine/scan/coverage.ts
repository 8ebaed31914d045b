import type { CoverageCounters } from '../event/coverage-report.ts'
import type { Coverage } from '../store/coverage.ts'

/** How much of what passed the sensors could be seen, as it stands in the answers of the API. docs/reference/scoring.md works an example. */
export interface CoverageJson {
  /** Instances of sensors that were heard in the window; 0 where all evidence is of logs. */
  readonly sensors: number
  readonly names_seen: number
  /** What was there and gave no name, or hid the names behind it. */
  readonly hidden: {
    readonly ech: number
    readonly encrypted_dns: number
    readonly no_name: number
    readonly incomplete: number
    readonly undecodable: number
    readonly packets_lost: number
  }
  /** 0 to 1, four decimals; null where no sensor has told of a packet. */
  readonly visible_share: number | null
}

export function coverageJson({ sensors, counters }: Coverage): CoverageJson {
  return {
    sensors,
    names_seen: counters.names,
    hidden: {
      ech: counters.hellos_ech,
      encrypted_dns: counters.dot_sessions + counters.doh_sessions,
      no_name: counters.hellos_unnamed,
      incomplete: counters.hellos_incomplete + counters.hellos_unknown_version,
      undecodable: unreadPackets(counters),
      packets_lost: counters.packets_lost,
    },
    visible_share: sensors === 0 ? null : visibleShare(counters),
  }
}

/*
 * The share of connections and DNS questions whose name could be read, times the share of packets that were: what stood in a packet that was lost
 * or could not be read nobody knows, so it is taken to be as visible as the rest.
 *
 *   seen    = names - hellos_ech                  (an outer name is not the one that was asked for)
 *   hidden  = hellos_ech + hellos_unnamed + hellos_incomplete + hellos_unknown_version + dot_sessions + doh_sessions
 *   visible = seen / (seen + hidden) x (packets - packets_truncated - packets_undecodable) / (packets + packets_lost)
 */
function visibleShare(counters: CoverageCounters): number | null {
  const all = counters.packets + counters.packets_lost
  if (all === 0) return null
  const seen = Math.max(0, counters.names - counters.hellos_ech)
  const hidden =
    counters.hellos_ech +
    counters.hellos_unnamed +
    counters.hellos_incomplete +
    counters.hellos_unknown_version +
    counters.dot_sessions +
    counters.doh_sessions
  const ofNames = hidden === 0 ? 1 : seen / (seen + hidden)
  const ofPackets = Math.max(0, counters.packets - unreadPackets(counters)) / all
  return Math.round(ofNames * ofPackets * 10_000) / 10_000
}

function unreadPackets({ packets_truncated, packets_undecodable }: CoverageCounters): number {
  return packets_truncated + packets_undecodable
}
