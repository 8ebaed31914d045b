import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { BrokerDisk } from '../support/broker-disks.ts'
import { BrokerNetwork } from '../support/broker-network.ts'
import { Brokers } from '../support/brokers.ts'
import { TestNode } from '../support/cluster-node.ts'
import { keepNamespacesPrivate } from '../support/namespace.ts'
import { REPOSITORY } from '../support/programs.ts'
import { SteppedClock } from '../support/stepped-clock.ts'
import { testFolder } from '../support/test-folder.ts'
import { CLUSTER_FAULTS, type ClusterFault } from './cluster-faults.ts'
import { ClusterRun } from './cluster-run.ts'

/*
 * The case of cluster.full.test.ts. Runs in private namespaces. CRASH_SEED repeats the choices.
 * CRASH_FAULTS is the number of kills of each kind; other faults happen a fifth as often.
 */
const SEED = Number(process.env['CRASH_SEED'] ?? Math.floor(Date.now() / 86_400_000))
const FAULTS = Number(process.env['CRASH_FAULTS'] ?? 1)
const KILLS: readonly ClusterFault[] = ['primary', 'ingest', 'broker']
const NODES = ['one', 'two', 'three'] as const
const DISK_MEGABYTES = 2048
const BROKER_LOG_CHARACTERS = 6000
/** Stays when the folder of the test is removed. */
const LOGS = join(REPOSITORY, '.tap', `crash-cluster-${SEED}`)

keepNamespacesPrivate()

t.test(`no event and no change is lost or doubled although nodes and machines fail, seed ${SEED}`, async (t) => {
  const directory = testFolder(t)
  const network = new BrokerNetwork()
  const disks: BrokerDisk[] = []
  const hosts = network.hosts(directory).map((host, index) => {
    const disk = new BrokerDisk(t, join(directory, `disk-${index}.ext4`), DISK_MEGABYTES)
    disks.push(disk)
    return { ...host, data: disk.data }
  })
  const brokers = await Brokers.start(t, { directory: join(directory, 'brokers'), hosts })
  const clocks: SteppedClock[] = []
  const nodes = [...NODES, 'edge'].map((name, index) => {
    mkdirSync(join(directory, name))
    const clock = new SteppedClock(join(directory, name))
    clocks.push(clock)
    const environment = clock.environment
    const edge = { parameters: ['--roles', 'ingest'], seedFile: brokers.followerSeedFile }
    return new TestNode(name, directory, brokers, { network: index, environment, ...(name === 'edge' ? edge : {}) })
  })
  const each = (kind: ClusterFault): number => (KILLS.includes(kind) ? FAULTS : Math.ceil(FAULTS / 5))
  const faults = Object.fromEntries(CLUSTER_FAULTS.map((kind) => [kind, each(kind)])) as Record<ClusterFault, number>
  const total = Object.values(faults).reduce((sum, count) => sum + count)
  let caused = 0
  const onFault = (): void => {
    if (++caused % 20 === 0) t.comment(`${caused} of ${total} faults`)
  }
  const site = { nodes, brokers, disks, network, clocks }
  const run = new ClusterRun({ site, seed: SEED, faults, onFault })
  const report = await run.report()
  t.same(report.differences, [])
  if (report.differences.length > 0) {
    t.comment(brokers.output.text.slice(-BROKER_LOG_CHARACTERS))
    mkdirSync(LOGS, { recursive: true })
    for (const [name, text] of [...run.logs, ['brokers', brokers.output.text] as const])
      writeFileSync(join(LOGS, `${name}.log`), text)
  }
  t.ok(report.acknowledged > 0 && report.confirmed > 0 && report.generations > 1, JSON.stringify(report))
  t.comment(JSON.stringify(report))
})
