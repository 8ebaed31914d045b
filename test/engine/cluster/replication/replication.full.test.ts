import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { getSha256Backend, Objm } from '@nats-io/obj'
import t, { type Test } from 'tap'
import { Brokers } from '../../../../engine/cluster/log/brokers.ts'
import { ChangeStream } from '../../../../engine/cluster/log/change-stream.ts'
import { type Snapshot, SnapshotStore } from '../../../../engine/cluster/log/snapshot-store.ts'
import { ChangeFollower } from '../../../../engine/cluster/replication/change-follower.ts'
import { ChangePublisher } from '../../../../engine/cluster/replication/change-publisher.ts'
import {
  ClusterMember,
  type MemberOptions,
  needsSnapshot,
} from '../../../../engine/cluster/replication/cluster-member.ts'
import { beginWithSnapshot, joinCluster } from '../../../../engine/cluster/replication/join-cluster.ts'
import { changeMessages, nodeMessage } from '../../../../engine/cluster/replication/messages.ts'
import { SnapshotMaker } from '../../../../engine/cluster/replication/snapshot-maker.ts'
import type { Table } from '../../../../engine/kernel/lmdb/environment.ts'
import type { ReplicationState } from '../../../../engine/kernel/lmdb/replication.ts'
import { DAY_MS, HOUR_MS } from '../../../../engine/kernel/process/clock.ts'
import { newUuid } from '../../../../engine/store/keys.ts'
import { Store } from '../../../../engine/store/store.ts'
import { Brokers as TestBrokers } from '../../../support/brokers.ts'
import { findingsOf, NOON, quietLog, testClock } from '../../../support/store.ts'
import { testFolder } from '../../../support/test-folder.ts'
import { until } from '../../../support/wait.ts'

const MEGABYTE = 1024 * 1024

/** Three brokers, and what every node of the test shares. */
class Site {
  readonly directory: string
  readonly brokers: TestBrokers
  readonly connection: Brokers
  readonly snapshots: SnapshotStore

  private constructor(directory: string, brokers: TestBrokers, connection: Brokers, snapshots: SnapshotStore) {
    this.directory = directory
    this.brokers = brokers
    this.connection = connection
    this.snapshots = snapshots
  }

  static async make(t: Test): Promise<Site> {
    const directory = testFolder(t)
    const brokers = await TestBrokers.start(t, { directory: join(directory, 'brokers') })
    const { servers, seedFile: credentialsFile, caFile } = brokers
    const connection = await Brokers.open({ servers, credentialsFile, caFile }, quietLog, (fault) =>
      t.fail(fault.message),
    )
    t.teardown(() => connection.close())
    return new Site(directory, brokers, connection, await SnapshotStore.open(connection))
  }

  stream(): Promise<ChangeStream> {
    return ChangeStream.open(this.connection, 64 * MEGABYTE, quietLog)
  }

  async node(t: Test, name: string): Promise<Node> {
    const node = new Node(this, name, await this.stream())
    t.teardown(() => node.close())
    return node
  }
}

/** A store, with one of the two parts that replicate it. */
class Node {
  readonly name: string
  readonly directory: string
  readonly stream: ChangeStream
  readonly failures: unknown[] = []
  store: Store
  publisher: ChangePublisher | undefined
  follower: ChangeFollower | undefined
  readonly #site: Site
  #following: Promise<void> | undefined

  constructor(site: Site, name: string, stream: ChangeStream) {
    this.#site = site
    this.name = name
    this.stream = stream
    this.directory = join(site.directory, name)
    mkdirSync(this.directory)
    this.store = new Store(this.directory)
  }

  get joining() {
    const { snapshots } = this.#site
    const signal = new AbortController().signal
    return { dataDirectory: this.directory, stream: this.stream, snapshots, log: quietLog, signal }
  }

  get state(): ReplicationState | undefined {
    return this.store.environment.read(() => this.store.environment.replication.state)
  }

  /** Appends a takeover, as a member of a cluster does. */
  async lead(): Promise<void> {
    const { environment } = this.store
    const before = this.state
    const { sequence = 0, generation = 0, change = 0, node = newUuid() } = before ?? {}
    const sender = { node, name: this.name, generation: generation + 1 }
    const { kind } = await until('no takeover', async () => {
      const outcome = await this.stream.append(nodeMessage('takeover', sender), sequence + 1)
      return outcome.kind === 'unknown' ? undefined : outcome
    })
    if (kind !== 'appended') throw new Error(kind)
    const { created } = this.stream
    const state = {
      ...sender,
      mode: 'primary',
      primary: this.name,
      change,
      unpublishedBytes: 0,
      sequence: sequence + 1,
      created,
    } as const
    environment.writeUnrecorded(() => environment.replication.putState(state))
    this.publisher = new ChangePublisher(environment, this.stream, sender, sequence + 1, performance.now(), quietLog)
    this.publisher.start((error) => this.failures.push(error))
  }

  follow(): void {
    const { environment } = this.store
    if (this.state === undefined) {
      const { created } = this.stream
      // As if it had begun with a copy of the primary's store, before the first change.
      const start = {
        node: newUuid(),
        primary: '',
        generation: 1,
        change: 0,
        unpublishedBytes: 0,
        sequence: 1,
        created,
      }
      environment.writeUnrecorded(() => environment.replication.putState({ ...start, mode: 'replica' }))
    }
    this.follower = new ChangeFollower(environment, this.stream, quietLog)
    this.#following = this.follower.follow(() => {}).catch((error: unknown) => void this.failures.push(error))
  }

  /** Waits while the brokers do not answer. */
  async put(number: number, bytes = 100): Promise<void> {
    const { environment } = this.store
    await until('the brokers do not answer', () => this.state?.mode !== 'paused')
    environment.write(() => environment.table('history').putSync(key(number), Buffer.alloc(bytes, number)))
  }

  /** The last number that was put, in this store. */
  has(number: number): boolean {
    return this.store.environment.read(() => this.#table.doesExist(key(number)))
  }

  get content(): string[] {
    const { tables } = this.store.environment
    return this.store.environment.read(() =>
      [...tables].flatMap(([name, table]) =>
        Array.from(table.getRange({}), (row) => `${name} ${row.key.toString('hex')} ${row.value.toString('hex')}`),
      ),
    )
  }

  get #table(): Table {
    return this.store.environment.table('history')
  }

  async stop(): Promise<void> {
    await this.publisher?.stop()
    this.publisher = undefined
    await this.release()
  }

  /** As a killed process: nothing more is published. */
  async release(): Promise<void> {
    this.stream.stopReading()
    await this.#following
  }

  async close(): Promise<void> {
    await this.stop()
    await this.store.close()
  }
}

function key(number: number): Buffer {
  const bytes = Buffer.alloc(24)
  bytes.writeUInt32BE(number, 20)
  return bytes
}

t.test('a replica has what the primary wrote, although brokers are killed', async (t) => {
  const site = await Site.make(t)
  const primary = await site.node(t, 'one')
  const replica = await site.node(t, 'two')
  await primary.lead()
  replica.follow()
  await primary.put(0, 9 * MEGABYTE)
  for (let number = 1; number <= 300; number++) {
    await primary.put(number)
    if (number % 100 !== 0) continue
    const broker = number / 100 - 1
    await site.brokers.kill(broker)
    site.brokers.restart(broker)
    await until(`no change ${number}`, () => replica.has(number))
    // The replica can read a change before the primary knows that it was appended.
    await until('the primary is paused', () => primary.state?.mode === 'primary')
  }
  t.same(replica.content, primary.content)
  t.match(replica.state, { mode: 'replica', generation: 1, change: 301 })
  await until('the primary is paused', () => primary.state?.mode === 'primary')
  t.match(primary.state, { change: 301 })
  t.same([...primary.failures, ...replica.failures], [])

  t.test('a primary that is replaced publishes nothing more, and its own changes are discarded', async (t) => {
    const three = await site.node(t, 'three')
    const maker = new SnapshotMaker(
      primary.store,
      { stream: primary.stream, ...eventsOf(site) },
      testClock(Date.now()),
      alone,
    )
    const signal = new AbortController().signal
    t.match(await maker.makeIfDue(signal), { change: 301, generation: 1 })
    await until('replica is behind', () => replica.state?.sequence === primary.publisher?.sequence)
    // The primary can append a tick first.
    await until('no takeover', () =>
      replica.lead().then(
        () => true,
        () => undefined,
      ),
    )
    await replica.release()
    await until('not replaced', () => primary.failures.length > 0)
    t.match(primary.failures, [{ code: 'REPLACED' }])
    t.match(primary.state, { mode: 'replica', primary: '' })
    await t.rejects(primary.put(400), { code: 'NOT_PRIMARY' })
    await replica.put(401)

    // As if it had written before it knew.
    const { environment } = primary.store
    environment.writeUnrecorded(() => {
      const { state } = environment.replication
      if (state !== undefined) environment.replication.putState({ ...state, mode: 'primary' })
    })
    await primary.put(400)
    primary.publisher = undefined
    primary.failures.length = 0
    const again = await site.stream()
    const follower = new ChangeFollower(environment, again, quietLog)
    await t.rejects(
      follower.follow(() => {}),
      { code: 'REPLACED', message: /before the last changes of this store were published/ },
    )
    await primary.store.close()
    await beginWithSnapshot({ ...primary.joining, stream: again }, true)
    primary.store = new Store(primary.directory)
    t.notOk(primary.has(400))
    t.ok(primary.has(300))
    const kept = readdirSync(primary.directory).filter((name) => name.startsWith('store.before-snapshot-'))
    t.equal(kept.length, 1, 'the store with the discarded change is kept')

    await three.store.close()
    await joinCluster(three.joining)
    t.notOk(existsSync(join(three.directory, 'store.joining')))
    three.store = new Store(three.directory)
    three.follow()
    await until('three is behind', () => three.has(401))
    t.same(three.content, replica.content)
    t.same(
      findingsOf(three.store).filter((line) => !line.includes('history')),
      [],
    )
  })
})

t.test('what a new primary has to know of the end of the stream', async (t) => {
  const site = await Site.make(t)
  const primary = await site.node(t, 'one')
  await primary.lead()
  await primary.put(1)
  await until('not published', () => primary.publisher?.sequence === 2)
  await primary.stop()
  const [first] = changeMessages(1, [{ number: 2, writes: Buffer.alloc(9 * MEGABYTE, 1) }])
  t.match(await primary.stream.append(first ?? Buffer.alloc(0), 4), { kind: 'appended' })

  t.test('reading can be stopped before there is a consumer', async (t) => {
    const stream = await site.stream()
    const next = stream.read(await stream.lastSequence()).next()
    stream.stopReading()
    t.match(await next, { done: true })
  })

  t.test('a change that its primary did not finish is left out', async (t) => {
    const replica = await site.node(t, 'two')
    replica.follow()
    await until('not read', () => replica.follower?.lastRead === 4)
    t.equal(replica.state?.sequence, 3, 'a restart reads the part again')
    t.ok(replica.has(1))
  })
  t.test('a node that was not the first has another store', async (t) => {
    const other = await site.node(t, 'three')
    const { created } = other.stream
    const state = { node: newUuid(), primary: '', generation: 0, change: 0, unpublishedBytes: 0, sequence: 0, created }
    const { environment } = other.store
    environment.writeUnrecorded(() => environment.replication.putState({ ...state, mode: 'replica' }))
    const follower = new ChangeFollower(environment, await site.stream(), quietLog)
    await t.rejects(
      follower.follow(() => {}),
      { code: 'REPLACED', message: /one is the first node/ },
    )
  })
})

t.test('brokers that were restored from an older copy end both nodes', async (t) => {
  const site = await Site.make(t)
  const nodes = [await site.node(t, 'one'), await site.node(t, 'two')] as const
  const [primary, replica] = nodes
  await primary.lead()
  replica.follow()
  const data = join(site.directory, 'brokers')
  const copy = join(site.directory, 'copy')
  for (const [from, to] of [
    [data, copy],
    [copy, data],
  ] as const) {
    const number = from === data ? 1 : 2
    await primary.put(number)
    await until('not replicated', () => replica.has(number))
    const brokers = site.brokers.servers.map((_server, index) => index)
    await Promise.all(brokers.map((index) => site.brokers.kill(index)))
    rmSync(to, { recursive: true, force: true })
    cpSync(from, to, { recursive: true, filter: (path) => !path.endsWith('.sock') })
    for (const index of brokers) site.brokers.restart(index)
  }
  await until('not noticed', () => nodes.every(({ failures }) => failures.length > 0))
  for (const node of nodes) {
    t.match(node.failures, [{ code: 'BROKERS_LOST', message: /changes: it ends with message/ }])
    await node.release()
    const { snapshots, events } = eventsOf(site)
    const restarted = new ClusterMember(node.store, {
      ...{ stream: await site.stream(), snapshots, events: events as unknown as MemberOptions['events'] },
      ...{ name: node.name, mayLead: true, log: quietLog },
      onPromoted: () => void t.fail('it became the primary'),
      onFailure: (error) => void t.fail(String(error)),
    })
    const failure = await restarted.start().catch((error: unknown) => error)
    t.match(failure, { code: 'BROKERS_LOST', message: /changes: it ends with message/ })
    t.notOk(needsSnapshot(failure), 'the store is not replaced')
    t.ok(node.has(2), 'the store has what the brokers have lost')
    await restarted.stop()
  }
})

t.test('snapshots trim what both of the last two contain', async (t) => {
  const site = await Site.make(t)
  t.equal(getSha256Backend(), 'native', 'in JavaScript, 1 GB takes 19 s of the main thread')
  const primary = await site.node(t, 'one')
  const late = await site.node(t, 'late')
  await primary.lead()
  const clock = testClock(NOON + 365 * DAY_MS)
  const trimmed: number[] = []
  let isAlone = false
  const events = { trim: async (sequence: number) => void trimmed.push(sequence), state: async () => undefined }
  const maker = new SnapshotMaker(
    primary.store,
    { stream: primary.stream, snapshots: site.snapshots, events },
    clock,
    () => isAlone,
  )
  const signal = new AbortController().signal
  const positions: number[] = []
  const { client, manager } = site.connection
  const subjects = async (): Promise<string[]> => {
    const { state } = await manager.streams.info('OBJ_snapshots', { subjects_filter: '>' })
    return Object.keys(state.subjects ?? {})
  }
  const FOREIGN = '$O.snapshots.C.interrupted'
  await client.publish(FOREIGN, 'a part of a snapshot')
  for (const round of [1, 2, 3]) {
    for (let number = 1; number <= 10; number++) await primary.put(100 * round + number)
    const { environment } = primary.store
    environment.write(() => primary.store.logPositions.put({ sequence: 1000 * round, created: 'now' }))
    const snapshot = await maker.makeIfDue(signal)
    positions.push(snapshot?.sequence ?? 0)
    t.equal((await subjects()).includes(FOREIGN), round === 1, 'another node may be uploading in the first round')
    isAlone = true
    t.equal(await maker.makeIfDue(signal), undefined, 'not before half an hour has passed')
    clock.add(HOUR_MS)
  }
  t.same(trimmed, [1000, 2000], 'the events of the older snapshot')
  const kept = await site.snapshots.list()
  t.equal(kept.length, 2)
  for (const snapshot of kept) await site.snapshots.download(snapshot, join(site.directory, snapshot.name))
  t.equal((await subjects()).length, 2 * kept.length, 'nothing is left of others')
  t.equal(await primary.stream.message(positions[1] ?? 0), undefined)
  t.ok(await primary.stream.message((positions[1] ?? 0) + 1))

  late.follow()
  await until('late is not refused', () => late.failures.length > 0)
  t.match(late.failures, [{ code: 'BROKERS_LOST', message: /begins with message \d+, and the store has 1/ }])

  const [last, older] = kept as [Snapshot, Snapshot]
  const objects = await new Objm(client).open('snapshots', false)
  const partsOfLast = `$O.snapshots.C.${(await objects.info(last.name))?.nuid}`
  await manager.streams.purge('OBJ_snapshots', { filter: partsOfLast })
  for (let left = last.bytes; left > 0; left -= MEGABYTE)
    await client.publish(partsOfLast, Buffer.alloc(Math.min(left, MEGABYTE), 'x'))
  await t.rejects(site.snapshots.download(last, join(site.directory, 'damaged')), {
    code: 'BROKERS_LOST',
    message: /is damaged: its SHA-256 differs/,
  })
  await late.store.close()
  await beginWithSnapshot({ ...late.joining, stream: await site.stream() }, false)
  late.store = new Store(late.directory)
  t.equal(late.state?.sequence, older.sequence, 'a damaged snapshot is left out')
})

function alone(): boolean {
  return true
}

function eventsOf({ snapshots }: Site) {
  return { snapshots, events: { trim: async () => {}, state: async () => undefined } }
}
