import { isoSeconds } from '../process/clock.ts'
import { REPORT_EVERY_MS } from '../replication/limits.ts'
import { migrate } from '../store/migrate.ts'
import type { ClusterNode } from '../store/nodes.ts'
import type { Store } from '../store/store.ts'

/** A node is silent if its last report is this much older than the newest one. */
const SILENT_AFTER_MS = 6 * REPORT_EVERY_MS

/** @param primary name of the primary */
export function statusRows(nodes: readonly ClusterNode[], primary: string) {
  const newestMs = Math.max(...nodes.map(({ reportedAtMs }) => reportedAtMs))
  const newestSequence = Math.max(...nodes.map(({ lastSequence }) => lastSequence))
  return nodes.map(({ name, isPrimary, roles, version, sequence, lastSequence, reportedAtMs }) => {
    const isSilent = newestMs - reportedAtMs > SILENT_AFTER_MS
    // Nodes report at different times. Only a silent one is compared with later reports of others.
    const end = isSilent ? newestSequence : lastSequence
    return {
      name,
      role: isPrimary && name === primary ? 'primary' : 'replica',
      state: isSilent ? 'silent' : 'reporting',
      roles: roles.join(', '),
      version,
      sequence,
      unread: Math.max(0, end - sequence),
      reported_at: isoSeconds(reportedAtMs),
    }
  })
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
