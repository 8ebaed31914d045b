import { basename } from 'node:path'
import type { Command } from 'commander'
import { isoSeconds } from '../../process/clock.ts'
import { Fault } from '../../process/error-codes.ts'
import { SCANS } from '../../scan/scan-now.ts'
import { leaveCluster } from '../cluster.ts'
import { hold } from '../restore.ts'
import { auditForAll } from '../store-audit.ts'
import { actorOf, sharedOptions, show, withStore } from './context.ts'

/** posture-admin cluster: status, leave */
export function addClusterCommands(cluster: Command): void {
  const status = sharedOptions(
    cluster.command('status').description('Show the nodes of the cluster, and how far each is'),
  )
  status.action(() =>
    withStore(status, ({ store }) => {
      const { environment } = store
      const state = environment.read(() => environment.replication.state)
      if (state === undefined) throw new Fault('NOT_FOUND', 'the store is not one of a cluster')
      show(status, {
        columns: [
          ['Node', 'name'],
          ['Role', 'role'],
          ['Does', 'roles'],
          ['Version', 'version'],
          ['Read to', 'sequence'],
          ['Not read', 'unread'],
          ['Reported', 'reported_at'],
        ],
        rows: environment
          .read(() => store.nodes.all())
          .map((node) => ({
            name: node.name,
            role: node.isPrimary && node.name === state.primary ? 'primary' : 'replica',
            roles: node.roles.join(', '),
            version: node.version,
            sequence: node.sequence,
            unread: Math.max(0, node.lastSequence - node.sequence),
            reported_at: isoSeconds(node.reportedAtMs),
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
        const state = environment.read(() => environment.replication.state)
        if (state === undefined) throw new Fault('NOT_FOUND', 'the store is not one of a cluster')
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
