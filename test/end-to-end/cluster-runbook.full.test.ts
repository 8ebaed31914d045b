import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { packBatch } from '../../engine/kernel/event/event.ts'
import { Store } from '../../engine/store/store.ts'
import { matchesInScans } from '../crash/oracle.ts'
import { Brokers } from '../support/brokers.ts'
import { primaryAmong, TestNode } from '../support/cluster-node.ts'
import { admin, type Ended, runAdmin, startService } from '../support/programs.ts'
import { Sender } from '../support/store.ts'
import { EXPECTED_END, SupervisedNode } from '../support/supervised-node.ts'
import { organizationWithKey } from '../support/syslog-service.ts'
import { testFolder } from '../support/test-folder.ts'
import { until } from '../support/wait.ts'

/*
 * The sections of docs/operate/cluster.md, except the upgrade, which has its own test
 * (upgrade/rolling.full.test.ts). The containers of the manifests restore a backup in
 * deploy/container/cluster.full.test.ts. Any node can be the primary at any time.
 */

const BATCH_EVENTS = 50
const NAME = 'claude.ai'
const BROKERS = [0, 1, 2] as const

t.test('a cluster is extended, repaired, restored and left without a loss of acknowledged events', async (t) => {
  const directory = testFolder(t)
  const brokers = await Brokers.start(t, { directory: join(directory, 'brokers') })
  const problems: string[] = []
  const supervised = (name: string): SupervisedNode =>
    new SupervisedNode(new TestNode(name, directory, brokers), ({ status, signal, stderr }: Ended) => {
      if (!EXPECTED_END.test(stderr)) problems.push(`${name} ended with ${status ?? signal}: ${stderr.slice(-1000)}`)
    })
  const [one, two, three] = ['one', 'two', 'three'].map(supervised) as [SupervisedNode, SupervisedNode, SupervisedNode]
  const all = [one, two, three]
  const nodes = all.map(({ node }) => node)
  t.teardown(async () => {
    await Promise.all(all.map((each) => each.stop('SIGKILL')))
    if (!t.passing()) for (const node of nodes) t.comment(`${node.name}: ${node.logEnd}`)
  })
  const { organizationId, token, key } = await organizationWithKey(one.node.directory)
  const sender = new Sender()
  let sent = 0
  const send = async ({ node }: SupervisedNode): Promise<void> => {
    const body = packBatch(Array.from({ length: BATCH_EVENTS }, () => sender.event(NAME, Date.now())))
    await until(`${node.name} does not accept a batch`, async () => {
      const answer = await node.post(token, body).catch(() => undefined)
      if (answer !== undefined && ![200, 503].includes(answer.status)) throw new Error(answer.text)
      return answer?.status === 200
    })
    sent += BATCH_EVENTS
  }
  const matches = async ({ directory }: Pick<TestNode, 'directory'>): Promise<number | undefined> => {
    const store = new Store(directory, { mustExist: true })
    try {
      return matchesInScans(store, organizationId).get('claude')?.get(NAME)
    } finally {
      await store.close()
    }
  }
  /** Scans everything that was sent. Returns the number of events in the scans of the primary. */
  const scanned = (): Promise<number | undefined> =>
    until('no scan', async () => {
      const primary = await primaryAmong(nodes)
      await primary.untilRead()
      const { status } = await runAdmin(['scan', 'run', '--org', 'Acme', ...primary.data])
      return status === 0 && matches(primary)
    })
  const discovery = (node: TestNode) => node.get('/api/v1/discovery', key).catch(() => undefined)
  /** Waits until the API of a node answers with the same bytes as the primary. */
  const answersAsPrimary = async ({ node }: SupervisedNode): Promise<void> => {
    await until(`${node.name} differs from the primary`, async () => {
      const [answer, other] = await Promise.all([node, await primaryAmong(nodes)].map(discovery))
      return answer?.status === 200 && answer.text === other?.text
    })
  }
  const emptyBroker = async (index: number): Promise<void> => {
    await brokers.kill(index)
    rmSync(join(directory, 'brokers', `broker-${index}`), { recursive: true, force: true })
  }
  /** Starts the first node with the store of `prepare`, then the others, with empty brokers. */
  const startAgain = async (t: Test, first: SupervisedNode, prepare: () => Promise<unknown>): Promise<void> => {
    for (const node of all) await node.stop()
    for (const index of BROKERS) await emptyBroker(index)
    await prepare()
    for (const index of BROKERS) brokers.restart(index)
    first.start()
    await primaryAmong([first.node])
    await until('no snapshot', () => /made a snapshot for other nodes/.test(first.node.service.output.stderr))
    for (const other of all.filter((each) => each !== first)) {
      await t.rejects(other.node.start(), /BROKERS_LOST/, 'its store is one of the cluster that was')
      rmSync(join(other.node.directory, 'store'), { recursive: true })
      other.start()
      await other.node.untilReady()
    }
  }
  one.start()
  await primaryAmong([one.node])
  await until('no snapshot', () => /made a snapshot for other nodes/.test(one.node.service.output.stderr))
  for (const node of [two, three]) node.start()
  for (const node of nodes) await node.untilReady()
  await send(two)

  await t.test('a node is added', async (t) => {
    const four = supervised('four')
    t.teardown(() => four.stop('SIGKILL'))
    four.start()
    await four.node.untilReady()
    await send(four)
    t.equal(await scanned(), sent)
    await answersAsPrimary(four)
    t.match(await four.stop(), { status: 0 })
  })

  await t.test('a node is replaced by one with an empty directory: a replica, and the primary', async (t) => {
    for (const isPrimary of [false, true]) {
      const primary = await primaryAmong(nodes)
      const replaced = all.find(({ node }) => (node === primary) === isPrimary) as SupervisedNode
      t.match(await replaced.stop(), { status: 0 })
      rmSync(replaced.node.directory, { recursive: true })
      for (const other of all) if (other !== replaced) await send(other)
      replaced.start()
      await replaced.node.untilReady()
      await send(replaced)
      t.equal(await scanned(), sent)
      await answersAsPrimary(replaced)
    }
  })

  await t.test('a broker is lost: two continue', async (t) => {
    for (const lost of BROKERS) {
      await brokers.kill(lost)
      for (const node of all) await send(node)
      brokers.restart(lost)
      await brokers.untilCurrent()
    }
    t.equal(await scanned(), sent)
  })

  await t.test('the disk of a broker is replaced: it gets everything from the others', async (t) => {
    for (const lost of BROKERS) {
      await brokers.kill(lost)
      await send(one)
      rmSync(join(directory, 'brokers', `broker-${lost}`), { recursive: true })
      brokers.restart(lost)
      const restartedMs = Date.now()
      // Then another disk can be lost.
      await until('cluster streams does not show that the broker has all', async () => {
        const streams = await admin('cluster', 'streams', ...one.node.data)
        const isReported = (row: Readonly<Record<string, unknown>>): boolean =>
          Date.parse(String(row['reported_at'])) > restartedMs
        return streams.length > 0 && streams.every((row) => row['current'] === 3 && isReported(row))
      })
      await brokers.untilCurrent()
      await send(two)
    }
    t.equal(await scanned(), sent)
  })

  await t.test('a backup is restored', async (t) => {
    const file = join(directory, 'monday.backup')
    t.equal(await scanned(), sent)
    await admin('backup', file, ...(await primaryAmong(nodes)).data)
    const inBackup = sent
    await send(three)
    t.equal(await scanned(), sent)
    await startAgain(t, two, () => admin('restore', file, '--force', ...two.node.data))
    sent = inBackup
    await send(three)
    t.equal(await scanned(), sent)
    for (const other of [one, three]) await answersAsPrimary(other)
  })

  await t.test('the disks of two brokers are lost: the cluster continues with the store of the primary', async (t) => {
    await send(three)
    t.equal(await scanned(), sent)
    const last = await primaryAmong(nodes)
    for (const lost of [0, 1]) await emptyBroker(lost)
    const primary = all.find(({ node }) => node === last) as SupervisedNode
    await startAgain(t, primary, () => admin('cluster', 'leave', ...last.data))
    await send(three)
    t.equal(await scanned(), sent)
    for (const other of all) await answersAsPrimary(other)
  })

  await t.test('one node continues alone', async (t) => {
    await send(three)
    const last = await primaryAmong(nodes)
    for (const other of all) if (other.node !== last) await other.stop()
    const primary = all.find(({ node }) => node === last) as SupervisedNode
    await primary.node.untilPrimary()
    await primary.node.untilRead()
    t.match(await primary.stop(), { status: 0 })
    await admin('cluster', 'leave', ...last.data)
    const service = await startService(last.directory)
    t.teardown(() => service.child.kill('SIGKILL'))
    await admin('scan', 'run', '--org', 'Acme', ...last.data)
    t.equal(await matches(last), sent)
  })
  t.same(problems, [])
})
