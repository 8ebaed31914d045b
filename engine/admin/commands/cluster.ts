import { basename } from 'node:path'
import type { Command } from 'commander'
import type { ReplicationState } from '../../lmdb/replication.ts'
import { isoSeconds } from '../../process/clock.ts'
import { Fault } from '../../process/error-codes.ts'
import { SCANS } from '../../scan/scan-now.ts'
import type { ClusterNode } from '../../store/nodes.ts'
import type { Store } from '../../store/store.ts'
import { leaveCluster, statusRows } from '../cluster.ts'
import { hold } from '../restore.ts'
import { auditForAll } from '../store-audit.ts'
import { actorOf, sharedOptions, show, withStore } from './context.ts'

/** posture-admin cluster: status, streams, snapshots, leave */
export function addClusterCommands(cluster: Command): void {
  const status = sharedOptions(
    cluster.command('status').description('Show the nodes of the cluster, and how far each is'),
  )
  status.action(() =>
    withStore(status, ({ store }) => {
      const { environment } = store
      const { primary } = stateOf(store)
      show(status, {
        columns: [
          ['Node', 'name'],
          ['Role', 'role'],
          ['State', 'state'],
          ['Does', 'roles'],
          ['Version', 'version'],
          ['Read to', 'sequence'],
          ['Not read', 'unread'],
          ['Reported', 'reported_at'],
        ],
        rows: statusRows(
          environment.read(() => store.nodes.all()),
          primary,
        ),
      })
    }),
  )

  const streams = sharedOptions(
    cluster.command('streams').description('Show the streams of the brokers, as the primary reported them last'),
  )
  streams.action(() =>
    withStore(streams, ({ store }) => {
      const { streams: reported = [], reportedAtMs = 0 } = primaryOf(store) ?? {}
      show(streams, {
        columns: [
          ['Stream', 'name'],
          ['Leader', 'leader'],
          ['Brokers with all', 'current'],
          ['Replicas', 'replicas'],
          ['Messages', 'messages'],
          ['Bytes', 'bytes'],
          ['Limit', 'bytes_max'],
          ['Reported', 'reported_at'],
        ],
        rows: reported.map(({ bytesMax, ...stream }) => ({
          ...stream,
          bytes_max: bytesMax < 0 ? null : bytesMax,
          reported_at: isoSeconds(reportedAtMs),
        })),
      })
    }),
  )

  const snapshots = sharedOptions(
    cluster.command('snapshots').description('Show the copies of the store that new nodes begin with'),
  )
  snapshots.action(() =>
    withStore(snapshots, ({ store }) => {
      const { snapshots: reported = [], reportedAtMs = 0 } = primaryOf(store) ?? {}
      show(snapshots, {
        columns: [
          ['Made', 'made_at'],
          ['Bytes', 'bytes'],
          ['Read to', 'sequence'],
          ['Reported', 'reported_at'],
        ],
        rows: reported.map(({ madeAtMs, bytes, sequence }) => ({
          made_at: isoSeconds(madeAtMs),
          bytes,
          sequence,
          reported_at: isoSeconds(reportedAtMs),
        })),
      })
    }),
  )

  const leave = sharedOptions(
    cluster.command('leave').description('Make the store of this node a store of its own; the service must be stopped'),
  )
  leave.action(() =>
    withStore(leave, async ({ store, clock }) => {
      const { environment, dataDirectory } = store
      const release = await hold(environment.path, dataDirectory, SCANS)
      try {
        const state = stateOf(store)
        leaveCluster(store)
        const entry = { action: 'store.leave-cluster', actor: actorOf(leave), timeMs: clock.nowMs() } as const
        environment.write(() => auditForAll(store, { ...entry, subject: basename(dataDirectory) }))
        show(leave, {
          columns: [
            ['Read to', 'sequence'],
            ['Last change', 'change'],
            ['Stream created', 'created'],
          ],
          rows: [{ sequence: state.sequence, change: state.change, created: state.created }],
        })
      } finally {
        await release()
      }
    }),
  )
}

function stateOf({ environment }: Store): ReplicationState {
  const state = environment.read(() => environment.replication.state)
  if (state === undefined) throw new Fault('NOT_FOUND', 'the store is not one of a cluster')
  return state
}

/** What the primary has reported last. */
function primaryOf(store: Store): ClusterNode | undefined {
  const { primary } = stateOf(store)
  return store.environment.read(() => store.nodes.all()).find(({ name, isPrimary }) => isPrimary && name === primary)
}
