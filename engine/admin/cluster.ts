import { migrate } from '../store/migrate.ts'
import type { Store } from '../store/store.ts'

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
