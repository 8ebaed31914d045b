import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Store } from '../../engine/store/store.ts'
import { matchesInScans } from '../crash/oracle.ts'
import { Brokers } from '../support/brokers.ts'
import { TestNode } from '../support/cluster-node.ts'
import { ALL_SCOPES, admin, startService } from '../support/programs.ts'
import { until } from '../support/wait.ts'

/* The steps of docs/guides/operate-a-cluster.md that the other tests of clusters do not take. */

t.test('a cluster is repaired, restored and left without a loss of acknowledged events', async (t) => {
  const directory = t.testdir()
  const brokers = await Brokers.start(t, { directory: join(directory, 'brokers') })
  const nodes = ['one', 'two', 'three'].map((name) => new TestNode(name, directory, brokers))
  const [one, two, three] = nodes as [TestNode, TestNode, TestNode]
  t.teardown(async () => {
    await Promise.all(nodes.map((node) => node.kill()))
    if (!t.passing()) for (const node of nodes) t.comment(`${node.name}: ${node.logEnd}`)
  })
  const [organization] = await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...one.data)
  const [token] = await admin('token', 'generate', 'sensor', '--org', 'Acme', ...one.data)
  const [key] = await admin('key', 'create', 'dashboard', '--org', 'Acme', ...ALL_SCOPES, ...one.data)
  const keyText = String(key?.['key'])
  let sent = 0
  const send = async (node: TestNode): Promise<void> => {
    await until(`${node.name} does not accept a batch`, async () => {
      return (await node.send(String(token?.['token']), 'claude.ai', 50)).status === 200 || undefined
    })
    sent += 50
  }
  const primaryOf = (among: readonly TestNode[]): Promise<TestNode> =>
    until('no primary', async () => {
      for (const node of among) if (await node.isPrimary().catch(() => false)) return node
      return undefined
    })
  const scanned = async (node: Pick<TestNode, 'data' | 'directory'>): Promise<number | undefined> => {
    await admin('scan', 'run', '--org', 'Acme', ...node.data)
    const store = new Store(node.directory, { mustExist: true })
    const matches = matchesInScans(store, String(organization?.['id'])).get('claude')?.get('claude.ai')
    await store.close()
    return matches
  }
  /** Waits until the API of a node answers with the same bytes as that of another. */
  const equals = async (node: TestNode, other: TestNode): Promise<void> => {
    await until(`${node.name} differs from ${other.name}`, async () => {
      const answers = await Promise.all([node, other].map((each) => each.get('/api/v1/discovery', keyText)))
      return (answers[0]?.status === 200 && answers[0].text === answers[1]?.text) || undefined
    })
  }
  await one.start()
  await one.untilPrimary()
  await two.start()
  await three.start()
  await send(two)

  await t.test('the disk of a broker is replaced: it gets everything from the others', async (t) => {
    for (const lost of [0, 1, 2]) {
      await brokers.kill(lost)
      await send(one)
      rmSync(join(directory, 'brokers', `broker-${lost}`), { recursive: true })
      brokers.restart(lost)
      // Then another disk can be lost.
      await brokers.untilCurrent()
      await send(two)
    }
    await one.untilRead()
    t.equal(await scanned(one), sent)
  })

  await t.test('a node is replaced by one with an empty directory', async () => {
    await three.kill()
    rmSync(three.directory, { recursive: true })
    await three.start()
    await equals(three, one)
  })

  const file = join(directory, 'monday.backup')
  await t.test('a backup is restored', async (t) => {
    const primary = await primaryOf(nodes)
    await primary.untilRead()
    t.equal(await scanned(primary), sent)
    await admin('backup', file, ...primary.data)
    const inBackup = sent
    await send(primary)
    await Promise.all(nodes.map((node) => node.kill('SIGTERM')))
    for (const index of [0, 1, 2]) {
      await brokers.kill(index)
      rmSync(join(directory, 'brokers', `broker-${index}`), { recursive: true })
    }
    for (const index of [0, 1, 2]) brokers.restart(index)
    await admin('restore', file, '--force', ...one.data)
    await one.start()
    await one.untilPrimary()
    for (const node of [two, three]) {
      await t.rejects(node.start(), /BROKERS_LOST/, 'its store is one of the cluster that was')
      rmSync(join(node.directory, 'store'), { recursive: true })
      await node.start()
    }
    sent = inBackup
    await send(two)
    await one.untilRead()
    t.equal(await scanned(one), sent)
    await equals(three, one)
  })

  await t.test('one node continues alone', async (t) => {
    const primary = await primaryOf(nodes)
    await send(three)
    await primary.untilRead()
    await Promise.all(nodes.filter((node) => node !== primary).map((node) => node.kill('SIGTERM')))
    t.match(await primary.kill('SIGTERM'), { status: 0 })
    await admin('cluster', 'leave', ...primary.data)
    const service = await startService(primary.directory)
    t.teardown(() => service.child.kill('SIGKILL'))
    t.equal(await scanned(primary), sent)
  })
})
