import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { backlog, barePublishers, compareAnswers, idle, ingest, startNodes } from './cluster-ingest.ts'
import { joins } from './cluster-join.ts'
import { memory } from './cluster-memory.ts'
import { revocations, takeovers } from './cluster-roles.ts'
import { scanCosts } from './cluster-scans.ts'
import { ClusterSite } from './cluster-site.ts'

/*
 * A cluster on this machine: three brokers and three nodes, each a process. Ingest through the log,
 * the rate at which a new primary reads, a revoked key, the change of the primary, and a node that
 * joins.
 */
export async function run({ toy }: { toy: boolean }): Promise<void> {
  await onBrokers(async (site) => {
    const ingested = await startNodes(site, toy)
    await ingest(ingested)
    await idle(ingested, toy ? 1 : 20)
    await backlog(ingested)
    await compareAnswers(ingested)
    await revocations(site, ingested.organizations, toy ? 2 : 50)
    await takeovers(site, 'SIGKILL', toy ? 1 : 7)
    await takeovers(site, 'SIGTERM', toy ? 1 : 7)
    await compareAnswers(ingested)
    await barePublishers(ingested)
  })
  await onBrokers(async (site) => {
    await scanCosts(site.directory, toy)
    await joins(site, toy)
  })
  for (const organizations of toy ? [1] : [1, 1000, 100_000]) {
    await onBrokers((site) => memory(site, organizations, toy ? 0 : undefined))
  }
}

async function onBrokers(work: (site: ClusterSite) => Promise<void>): Promise<void> {
  const site = await ClusterSite.start(mkdtempSync(join(tmpdir(), 'bench-cluster-')))
  try {
    await work(site)
  } finally {
    await site.end()
  }
}
