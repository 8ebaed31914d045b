import { basename } from 'node:path'
import { auditForAll } from '../admin/audited-changes.ts'
import { leaveCluster, statusRows, streamRows } from '../admin/cluster.ts'
import { hold } from '../admin/restore.ts'
import type { ReplicationState } from '../kernel/lmdb/replication.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { SCANS } from '../scan/scan-now.ts'
import type { ClusterNode } from '../store/nodes.ts'
import type { Store } from '../store/store.ts'
import { type Commands, query, table } from './command.ts'

const nodes = table<ReturnType<typeof statusRows>[number]>([
  ['Node', 'name'],
  ['Role', 'role'],
  ['State', 'state'],
  ['Does', 'roles'],
  ['Version', 'version'],
  ['Read to', 'sequence'],
  ['Not read', 'unread'],
  ['Reported', 'reported_at'],
])
const streams = table<ReturnType<typeof streamRows>[number]>([
  ['Stream', 'name'],
  ['Leader', 'leader'],
  ['Brokers with all', 'current'],
  ['Replicas', 'replicas'],
  ['Messages', 'messages'],
  ['Bytes', 'bytes'],
  ['Limit', 'bytes_max'],
  ['Reported', 'reported_at'],
])
const snapshots = table<{ madeAtMs: number; bytes: number; sequence: number; reportedAtMs: number }>([
  ['Made', 'made_at'],
  ['Bytes', 'bytes'],
  ['Read to', 'sequence'],
  ['Reported', 'reported_at'],
])
const states = table<ReplicationState>([
  ['Read to', 'sequence'],
  ['Last change', 'change'],
  ['Stream created', 'created'],
])

export const commands: Commands = {
  status: query('Show the nodes of the cluster, and how far each is', {
    organization: false,
    run({ store, clock }) {
      const { primary } = stateOf(store)
      const all = store.environment.read(() => store.nodes.all())
      return nodes(statusRows(all, primary, clock.nowMs()))
    },
  }),
  streams: query('Show the streams of the brokers, as the primary reported them last', {
    organization: false,
    run({ store, clock }) {
      const primary = primaryOf(store)
      return streams(primary === undefined ? [] : streamRows(primary, clock.nowMs()))
    },
  }),
  snapshots: query('Show the copies of the store that new nodes begin with', {
    organization: false,
    run({ store }) {
      const { snapshots: reported = [], reportedAtMs = 0 } = primaryOf(store) ?? {}
      return snapshots(reported.map((snapshot) => ({ ...snapshot, reportedAtMs })))
    },
  }),
  leave: query('Make the store of this node a store of its own; the service must be stopped', {
    organization: false,
    async run({ store, clock, actor }) {
      const { environment, dataDirectory } = store
      const release = await hold(environment.path, dataDirectory, SCANS)
      try {
        const state = stateOf(store)
        leaveCluster(store)
        const entry = { action: 'store.leave-cluster', actor, timeMs: clock.nowMs() } as const
        environment.write(() => auditForAll(store, { ...entry, subject: basename(dataDirectory) }))
        return states([state])
      } finally {
        await release()
      }
    },
  }),
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
