import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Store } from '../../engine/store/store.ts'
import { matchesInScans } from '../crash/oracle.ts'
import { Brokers } from '../support/brokers.ts'
import { TestNode } from '../support/cluster-node.ts'
import { admin, type RunningService, startService } from '../support/programs.ts'
import { findingsOf, Sender } from '../support/store.ts'
import { organizationWithKey } from '../support/syslog-service.ts'
import { testFolder } from '../support/test-folder.ts'
import { until } from '../support/wait.ts'

const NAME = 'claude.ai'

/** What must survive: audit log, scanned and buffered events, keys, and all other records. */
interface Content {
  readonly audit: readonly string[]
  readonly scanned: number
  readonly buffered: number
  readonly keys: readonly string[]
  readonly findings: readonly string[]
}

function withStore<Result>(directory: string, read: (store: Store) => Result): Result {
  const store = new Store(directory, { mustExist: true })
  try {
    return store.environment.read(() => read(store))
  } finally {
    void store.close()
  }
}

function contentOf(directory: string, organizationId: string): Content {
  return withStore(directory, (store) => ({
    audit: store.auditLog.ofOrganization(organizationId).map(({ action, subject }) => `${action} ${subject}`),
    scanned: matchesInScans(store, organizationId).get('claude')?.get(NAME) ?? 0,
    buffered: store.buffer.count(organizationId),
    keys: store.apiKeys.ofOrganization(organizationId).map(({ id }) => id),
    findings: findingsOf(store),
  }))
}

function changeOf(node: TestNode): number {
  return withStore(node.directory, (store) => store.environment.replication.state?.change ?? 0)
}

function addEvents(directory: string, organizationId: string, count: number): void {
  const sender = new Sender()
  withStore(directory, (store) =>
    store.environment.write(() => {
      const events = Array.from({ length: count }, () => sender.event(NAME, Date.now()))
      store.buffer.append(organizationId, events)
    }),
  )
}

async function scan(node: { readonly data: readonly string[] }): Promise<void> {
  await admin('scan', 'run', '--org', 'Acme', ...node.data)
}

function killAtEnd(t: Test, ...running: { kill(): unknown }[]): void {
  t.teardown(() => Promise.all(running.map((each) => each.kill())))
}

async function send(node: TestNode, token: string, count: number): Promise<number> {
  const { status } = await until('the batch is not accepted', async () => {
    const answer = await node.send(token, NAME, count)
    return answer.status === 503 ? undefined : answer
  })
  t.equal(status, 200, `a batch to ${node.name}`)
  return count
}

t.test('a store moves from one service into a cluster, and by a backup to a service or a new cluster', async (t) => {
  const directory = testFolder(t)
  const brokers = await Brokers.start(t, { directory: join(directory, 'brokers') })
  const [one, two] = ['one', 'two'].map((name) => new TestNode(name, directory, brokers)) as [TestNode, TestNode]
  killAtEnd(t, one, two)
  const { organizationId: id, token, key } = await organizationWithKey(one.directory)
  addEvents(one.directory, id, 30)
  await scan(one)
  addEvents(one.directory, id, 12)
  const alone = contentOf(one.directory, id)
  t.match(alone, { scanned: 30, buffered: 12, keys: { length: 1 }, findings: [] })
  const files = { replica: join(directory, 'replica.backup'), primary: join(directory, 'primary.backup') }

  await t.test('the store of a service becomes the first one of a cluster', async (t) => {
    await one.start()
    await one.untilPrimary()
    t.same(contentOf(one.directory, id), alone)
    await two.start()
    await until('two lacks changes', () => changeOf(two) === changeOf(one) || undefined)
    t.same(contentOf(two.directory, id), alone)
    await scan(one)
    t.match(contentOf(one.directory, id), { scanned: 42, buffered: 0 }, 'also the buffered events')
  })

  let total = 42
  await t.test('a replica and the primary make backups while events arrive', async (t) => {
    total += await send(two, token, 50)
    total += await send(one, token, 50)
    await one.untilRead()
    await until('two lacks changes', () => changeOf(two) === changeOf(one) || undefined)
    t.match(await admin('backup', files.replica, ...two.data), [{ file: files.replica }])
    t.match(await admin('backup', files.primary, ...one.data), [{ file: files.primary }])
    const { audit } = contentOf(one.directory, id)
    t.same(
      audit.filter((entry) => entry.startsWith('store.backup')),
      ['store.backup primary.backup'],
      'a replica writes no audit log',
    )
  })

  for (const [from, file] of Object.entries(files)) {
    await t.test(`the backup of the ${from} becomes the store of a single service`, async (t) => {
      const alone = join(directory, `alone-${from}`)
      t.match(await admin('restore', file, '--data-dir', alone), [{ organizations: 1 }])
      const service: RunningService = await startService(alone)
      killAtEnd(t, service.child)
      const before = contentOf(alone, id)
      t.equal(before.audit.at(-1), `store.restore ${from}.backup`)
      t.same(before.findings, [])
      await scan({ data: ['--data-dir', alone] })
      t.match(contentOf(alone, id), { scanned: total, buffered: 0, keys: { length: 1 } })
      service.child.kill('SIGTERM')
      t.match(await service.ended, { status: 0 })
    })
  }

  await t.test('the backup of a replica becomes the first store of a new cluster', async (t) => {
    const others = await Brokers.start(t, { directory: join(directory, 'other-brokers') })
    const [three, four] = ['three', 'four'].map((name) => new TestNode(name, directory, others)) as [TestNode, TestNode]
    killAtEnd(t, three, four)
    await admin('restore', files.replica, ...three.data)
    await three.start()
    await three.untilPrimary()
    await four.start()
    const sent = (await send(four, token, 25)) + (await send(three, token, 25))
    await three.untilRead()
    await scan(three)
    t.match(contentOf(three.directory, id), { scanned: total + sent, buffered: 0, findings: [] })
    const expected = await three.get('/api/v1/discovery', key)
    t.equal(expected.status, 200)
    await until('four answers with other bytes', async () => {
      return (await four.get('/api/v1/discovery', key)).text === expected.text || undefined
    })
    await until('not both nodes are reported, and only they', async () => {
      const rows = await admin('cluster', 'status', ...three.data)
      return rows.map(({ name }) => name).join() === 'four,three' || undefined
    })
  })
})
