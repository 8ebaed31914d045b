import { randomBytes, randomUUID } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { PublishedList } from '../engine/store/published.ts'
import { Store } from '../engine/store/store.ts'
import type { TestNode } from '../test/support/cluster-node.ts'
import { ALL_SCOPES, admin } from '../test/support/programs.ts'
import { until } from '../test/support/wait.ts'
import { type ClusterSite, createOrganizations, logged, totalBrokerCpu } from './cluster-site.ts'
import { aimText, median, print } from './compare.ts'
import { megabytes } from './machine.ts'

const GIGABYTE = 1e9
const GIGABYTE_AIM_SECONDS = 30
/** Bytes of the answers of one organization. They are random, so that nothing compresses them. */
const ANSWERS_BYTES = 4_000_000
const ELEMENT_BYTES = 2000

/** Nodes with empty data directories join a cluster with a large store. */
export async function joins(site: ClusterSite, toy: boolean): Promise<void> {
  const one = site.node('one')
  const [organization] = await createOrganizations(one.directory, 1)
  const owned = ['--org', String(organization?.name)]
  const [key] = await admin('key', 'create', 'bench', ...owned, ...ALL_SCOPES, ...one.data)
  await admin('scan', 'run', ...owned, ...one.data)
  await fill(one.directory, toy ? 1 : 100)
  const brokersBefore = totalBrokerCpu(site)
  await one.start()
  await one.untilPrimary()
  const leading = logged(one, 'this node is the primary')
  const made = await until('no snapshot was made', () => logged(one, 'made a snapshot for other nodes'))
  const upload = (made.timeMs - (leading?.timeMs ?? 0)) / 1000
  const { bytes } = made
  const uploadCpu = totalBrokerCpu(site) - brokersBefore
  print(
    `snapshot  ${megabytes(bytes)} MB copied and uploaded in ${upload.toFixed(1)} s, ${megabytes(bytes / upload)} MB/s; brokers ${uploadCpu.toFixed(1)} CPU seconds`,
  )
  const downloads: number[] = []
  const times: number[] = []
  for (let round = 0; round < (toy ? 1 : 3); round++) {
    const node = site.node(`joining-${round}`)
    const beganMs = performance.now()
    await node.start()
    await sameAnswer(one, node, String(key?.['key']))
    times.push((performance.now() - beganMs) / 1000)
    const began = logged(node, 'joins the cluster with the last snapshot')
    const ended = logged(node, 'the store is the last snapshot')
    if (began === undefined || ended === undefined || ended.bytes !== bytes || storeBytes(node) < bytes)
      throw new Error(`the node did not load the snapshot of ${bytes} bytes: ${node.service.output.stderr}`)
    downloads.push((ended.timeMs - began.timeMs) / 1000)
    await node.kill('SIGTERM')
  }
  const gigabyteSeconds = median(downloads) * (GIGABYTE / bytes)
  print(
    `new node  downloads ${megabytes(bytes / median(downloads))} MB/s, flushed and checked: 1 GB in ${gigabyteSeconds.toFixed(1)} s, aim ${GIGABYTE_AIM_SECONDS} s ${aimText(gigabyteSeconds <= GIGABYTE_AIM_SECONDS)}; answers after ${median(times).toFixed(1)} s; ${times.length} rounds`,
  )
}

function storeBytes({ directory }: TestNode): number {
  return statSync(join(directory, 'store/data.mdb')).size
}

async function sameAnswer(one: TestNode, other: TestNode, key: string): Promise<void> {
  const { text: expected } = await one.get('/api/v1/discovery', key)
  await until(`${other.name} answers with other bytes`, async () => {
    return (await other.get('/api/v1/discovery', key)).text === expected || later(10, false)
  })
}

/** Writes answers of organizations that were removed, which no scan replaces. */
async function fill(dataDirectory: string, organizations: number): Promise<void> {
  const store = new Store(dataDirectory)
  try {
    for (let organization = 0; organization < organizations; organization++) {
      const elements = Array.from({ length: ANSWERS_BYTES / ELEMENT_BYTES }, () =>
        JSON.stringify({ random: randomBytes(ELEMENT_BYTES).toString('base64') }),
      )
      store.environment.write(() => store.published.replace(randomUUID(), PublishedList.discovery, '{}', elements))
    }
  } finally {
    await store.close()
  }
}
