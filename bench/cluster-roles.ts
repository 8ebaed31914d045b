import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import type { TestNode } from '../test/support/cluster-node.ts'
import { httpsClient } from '../test/support/https.ts'
import { ALL_SCOPES, admin } from '../test/support/programs.ts'
import { until } from '../test/support/wait.ts'
import type { ClusterSite, Organization } from './cluster-site.ts'
import { aimText, median, percentile, print } from './compare.ts'

/** A revoked key on a replica, and the time without a primary. */
const REVOKED_AIM_MS = 500
const TAKEOVER_AIM_MS = 5000
const POLL_MS = 10

/** From the end of `key revoke` on the primary to the first 401 of a replica. */
export async function revocations(
  site: ClusterSite,
  [organization]: readonly Organization[],
  rounds: number,
): Promise<void> {
  const { primary, replicas } = await site.roles()
  const [replica] = replicas
  if (replica === undefined || organization === undefined) throw new Error('no replica, or no organization')
  const { ask, close } = httpsClient(replica.service.apiPort, join(replica.directory, 'tls/certificate.pem'))
  const times: number[] = []
  const commands: number[] = []
  try {
    for (let round = 0; round < rounds; round++) {
      const owned = ['--org', organization.name]
      const [created] = await admin('key', 'create', `key ${round}`, ...owned, ...ALL_SCOPES, ...primary.data)
      const status = async (): Promise<number> =>
        (await ask('/api/v1/scores', { headers: { 'x-api-key': String(created?.['key']) } })).status
      await until('the replica does not know the key', async () => (await status()) !== 401 || later(POLL_MS, false))
      const beganMs = performance.now()
      await admin('key', 'revoke', String(created?.['id']), ...owned, ...primary.data)
      const revokedMs = performance.now()
      while ((await status()) !== 401);
      times.push(performance.now() - revokedMs)
      commands.push(revokedMs - beganMs)
    }
  } finally {
    await close()
  }
  const p99 = percentile(times, 0.99)
  print(
    `revoked key  refused by a replica after p50 ${median(times).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ${rounds} rounds, aim ${REVOKED_AIM_MS} ms ${aimText(p99 <= REVOKED_AIM_MS)}; the command took ${median(commands).toFixed(0)} ms`,
  )
}

/** From the signal to the primary until another node is the primary. */
export async function takeovers(site: ClusterSite, signal: 'SIGKILL' | 'SIGTERM', rounds: number): Promise<void> {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const { primary, replicas } = await site.roles()
    const beganMs = performance.now()
    primary.service.child.kill(signal)
    await until('no node took over', async () => (await anyPrimary(replicas)) || later(POLL_MS, false))
    times.push(performance.now() - beganMs)
    await primary.service.ended
    await primary.start()
  }
  const most = Math.max(...times)
  const name = signal === 'SIGKILL' ? 'takeover after SIGKILL' : 'hand-over by SIGTERM'
  print(
    `${name}  median ${median(times).toFixed(0)} ms, at most ${most.toFixed(0)} ms, ${rounds} rounds, aim ${TAKEOVER_AIM_MS} ms ${aimText(most <= TAKEOVER_AIM_MS)}`,
  )
}

async function anyPrimary(nodes: readonly TestNode[]): Promise<boolean> {
  return (await Promise.all(nodes.map((node) => node.isPrimary()))).includes(true)
}
