import { REPORT_EVERY_MS } from '../cluster/replication/limits.ts'
import { isoSeconds } from '../kernel/process/clock.ts'
import { migrate } from '../store/migrate.ts'
import type { ClusterNode } from '../store/nodes.ts'
import type { Store } from '../store/store.ts'

/** An older report, by the clock of this machine, says nothing about now. */
const CURRENT_MS = 6 * REPORT_EVERY_MS

/**
 * What this node knows about each node. Reports reach it through the brokers, so without a current
 * report of any node, it knows nothing about the cluster now.
 *
 * @param primary name of the primary
 */
export function statusRows(nodes: readonly ClusterNode[], primary: string, nowMs: number) {
  const ageMsOf = ({ reportedAtMs }: ClusterNode) => nowMs - reportedAtMs
  const isCurrent = (node: ClusterNode) => Math.abs(ageMsOf(node)) <= CURRENT_MS
  const hears = nodes.some(isCurrent)
  const newestSequence = Math.max(...nodes.map(({ lastSequence }) => lastSequence))
  return nodes.map((node) => {
    const { name, isPrimary, roles, version, sequence, lastSequence, reportedAtMs } = node
    // A clock that is ahead says nothing about the age of the report.
    const state = isCurrent(node) ? 'reporting' : hears && ageMsOf(node) > 0 ? 'silent' : 'unknown'
    // Nodes report at different times. Only a silent one is compared with later reports of others.
    const end = state === 'silent' ? newestSequence : lastSequence
    return {
      name,
      role: isPrimary && name === primary ? 'primary' : 'replica',
      state,
      roles: roles.join(', '),
      version,
      sequence,
      unread: state === 'unknown' ? null : Math.max(0, end - sequence),
      reported_at: isoSeconds(reportedAtMs),
    }
  })
}

/**
 * The streams as the primary reported them last. Which brokers have them is unknown without a
 * current report.
 */
export function streamRows({ streams = [], reportedAtMs }: ClusterNode, nowMs: number) {
  const isCurrent = Math.abs(nowMs - reportedAtMs) <= CURRENT_MS
  return streams.map(({ bytesMax, leader, current, ...stream }) => ({
    ...stream,
    leader: isCurrent ? leader : null,
    current: isCurrent ? current : null,
    bytes_max: bytesMax < 0 ? null : bytesMax,
    reported_at: isoSeconds(reportedAtMs),
  }))
}

/** Makes the store a store of its own: it replicates nothing, and has read no log of brokers. */
export function leaveCluster({ environment, logPositions, nodes }: Store): void {
  environment.shrinkUnrecorded(() => {
    environment.replication.forget()
    logPositions.forget()
    nodes.clear()
  })
  // The primary of the cluster may not have done it yet.
  migrate(environment)
}
