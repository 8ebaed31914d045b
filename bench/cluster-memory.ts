import { setTimeout as later } from 'node:timers/promises'
import { Administration } from '../engine/admin/administration.ts'
import { systemClock } from '../engine/process/clock.ts'
import { Store } from '../engine/store/store.ts'
import { BROKER_COUNT } from '../test/support/brokers.ts'
import type { TestNode } from '../test/support/cluster-node.ts'
import { until } from '../test/support/wait.ts'
import { type ClusterSite, logged } from './cluster-site.ts'
import { print, shown } from './compare.ts'
import { megabytes, memoryBytes } from './machine.ts'

const ORGANIZATIONS_PER_TRANSACTION = 1000
/** For the work after the start, such as the first snapshot. */
const SETTLE_MS = 15_000

/** Memory of idle nodes with this many organizations, each with a token and an API key. */
export async function memory(site: ClusterSite, organizations: number, settleMs = SETTLE_MS): Promise<void> {
  const [one, two] = [site.node('one'), site.node('two')]
  await fill(one.directory, organizations)
  await one.start()
  // Not by the metrics, which take long with many organizations.
  await until('no snapshot was made', () => logged(one, 'made a snapshot for other nodes'))
  await two.start()
  await later(settleMs)
  const of = ({ service: { child } }: TestNode): string => shownMemory(child.pid ?? 0)
  const brokers = Array.from({ length: BROKER_COUNT }, (_, index) => shownMemory(site.brokers.pid(index)))
  print(
    `memory with ${shown(organizations)} organizations, anonymous (with files)  primary ${of(one)}, replica ${of(two)}, brokers ${brokers.join(', ')}`,
  )
}

function shownMemory(pid: number): string {
  return `${megabytes(memoryBytes(pid, 'RssAnon'))} MB (${megabytes(memoryBytes(pid, 'VmRSS'))})`
}

async function fill(dataDirectory: string, organizations: number): Promise<void> {
  const store = new Store(dataDirectory)
  try {
    const administration = new Administration(store, systemClock)
    for (let made = 0; made < organizations; ) {
      const end = Math.min(organizations, made + ORGANIZATIONS_PER_TRANSACTION)
      store.environment.write(() => {
        for (; made < end; made++) {
          const given = { name: `Bench ${made}`, domain: `b${made}.example`, plan: 'enterprise' } as const
          const organization = store.organizations.create(given, systemClock.nowMs())
          administration.tokens.generate(organization, 'bench')
          administration.apiKeys.create(organization, 'bench', ['scores:read'])
        }
      })
    }
  } finally {
    await store.close()
  }
}
