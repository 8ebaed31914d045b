import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { DiscardPolicy, jetstream, jetstreamManager, RetentionPolicy } from '@nats-io/jetstream'
import { nkeys } from '@nats-io/transport-node'
import t, { type Test } from 'tap'
import { Brokers, checkBrokers } from '../../../../engine/cluster/log/brokers.ts'
import { type BrokerOptions, connectToBrokers } from '../../../../engine/cluster/log/connection.ts'
import { type LogPosition, partitionOf } from '../../../../engine/cluster/log/event-log.ts'
import { JetStreamLog } from '../../../../engine/cluster/log/jetstream.ts'
import { ENDS_BEFORE_MS } from '../../../../engine/cluster/log/limits.ts'
import { SnapshotStore } from '../../../../engine/cluster/log/snapshot-store.ts'
import { HOUR_MS } from '../../../../engine/kernel/process/clock.ts'
import { ExitStatus } from '../../../../engine/kernel/process/error-codes.ts'
import { Brokers as TestBrokers } from '../../../support/brokers.ts'
import { REPOSITORY, run } from '../../../support/programs.ts'
import { quietLog } from '../../../support/store.ts'
import { testFolder } from '../../../support/test-folder.ts'
import { until } from '../../../support/wait.ts'

const MEGABYTE = 1024 * 1024
const ACME = randomUUID()

function optionsOf(brokers: TestBrokers, more: Partial<BrokerOptions> = {}): BrokerOptions {
  const { servers, seedFile: credentialsFile, caFile } = brokers
  return { servers, credentialsFile, caFile, ...more }
}

async function openLog(t: Test, options: BrokerOptions, logger = quietLog) {
  const unsafe: string[] = []
  const brokers = await Brokers.open(options, logger, ({ code }) => unsafe.push(code))
  t.teardown(() => brokers.close())
  return { log: await JetStreamLog.open(brokers, 64 * MEGABYTE, logger), unsafe }
}

/** Counts how often connections with this logger are connected again, and keeps their errors. */
function reconnections() {
  const reconnected = { count: 0 }
  const errors: string[] = []
  const logger = Object.assign(Object.create(quietLog), {
    info: () => reconnected.count++,
    error: ({ reason }: { reason: string }) => errors.push(reason),
  })
  return { reconnected, errors, logger }
}

/** The next messages, as text. */
async function take(log: JetStreamLog, after: number, count: number): Promise<[number, string, string][]> {
  const taken: [number, string, string][] = []
  for await (const message of log.read({ sequence: after, created: log.created })) {
    const from = message.kind === 'events' ? message.organizationId : message.kind
    taken.push([message.sequence, from, Buffer.from(message.bytes).toString()])
    if (taken.length === count) break
  }
  return taken
}

t.test('a log of three brokers', async (t) => {
  const brokers = await TestBrokers.start(t)
  const { log, unsafe } = await openLog(t, optionsOf(brokers))

  t.test('gives what was appended, in order, from any place on', async (t) => {
    for (const text of ['one', 'two', 'three']) t.equal(await log.append(ACME, Buffer.from(text), 1000), undefined)
    t.same(await take(log, 0, 3), [
      [1, ACME, 'one'],
      [2, ACME, 'two'],
      [3, ACME, 'three'],
    ])
    t.same(await take(log, 2, 1), [[3, ACME, 'three']])
    t.equal(await log.appendCounters(Buffer.from('counted')), undefined)
    t.same(await take(log, 3, 1), [[4, 'counters', 'counted']])
    for await (const message of log.read(undefined)) {
      t.match(message, { sequence: 1, receivedMs: 1000 })
      break
    }
    t.match(await log.state(), { lastSequence: 4, bytesMax: 64 * MEGABYTE })
    t.ok(partitionOf(ACME) >= 0 && partitionOf(ACME) < 256)
  })

  t.test('keeps what it acknowledged while its brokers are killed', async (t) => {
    const before = (await log.state())?.lastSequence ?? 0
    const acknowledged: string[] = []
    const appending = (async () => {
      for (let number = 0; number < 300; number++) {
        if ((await log.append(ACME, Buffer.from(`kill ${number}`), 1)) === undefined)
          acknowledged.push(`kill ${number}`)
      }
    })()
    for (let round = 0; round < 3; round++) {
      await until('no batch was appended', () => acknowledged.length > 50 * round)
      await brokers.kill(round)
      brokers.restart(round)
    }
    await appending
    t.ok(acknowledged.length > 250, `${acknowledged.length} acknowledged`)
    const last = await until('no state', () => log.state())
    const texts = new Set((await take(log, before, last.lastSequence - before)).map(([, , text]) => text))
    t.same(
      acknowledged.filter((text) => !texts.has(text)),
      [],
      'none is missing',
    )
    t.equal(log.problem, undefined)
  })

  t.test('connects again after its clock was set back', async (t) => {
    const { now } = Date
    t.teardown(() => {
      Date.now = now
    })
    let asked = 0
    Date.now = () => {
      asked++
      return now() + HOUR_MS
    }
    for (const index of [0, 1, 2]) await brokers.kill(index)
    asked = 0
    // The client asks at most twice for an attempt.
    await until('the brokers are not tried', () => asked > 20)
    Date.now = now
    for (const index of [0, 1, 2]) brokers.restart(index)
    await until('not connected', async () => (await log.append(ACME, Buffer.from('set back'), 1)) === undefined)
    await brokers.untilCurrent(['events'])
  })

  t.test('a broker that was down when a node connected is used later', async (t) => {
    await Promise.all([brokers.kill(0), brokers.kill(1)])
    const { reconnected, logger } = reconnections()
    // In an order by chance, so not all begin with a broker that is down.
    const connections = await Promise.all(Array.from({ length: 6 }, () => connectToBrokers(optionsOf(brokers), logger)))
    t.teardown(() => Promise.all(connections.map((connection) => connection.close())))
    brokers.restart(0)
    brokers.restart(1)
    await brokers.untilCurrent(['events'])
    await brokers.kill(2)
    await until('not connected', () => reconnected.count >= connections.length)
    brokers.restart(2)
    await brokers.untilCurrent(['events'])
  })

  t.test('brokers that refuse a node for a while are used again', async (t) => {
    const { reconnected, errors, logger } = reconnections()
    const connection = await connectToBrokers(optionsOf(brokers), logger)
    t.teardown(() => connection.close())
    const refusals = () => brokers.output.text.split('authentication error').length - 1
    const before = refusals()
    const SERVICE_NKEY = nkeys.createUser().getPublicKey()
    for (const index of [0, 1, 2]) {
      await brokers.kill(index)
      brokers.restart(index, { SERVICE_NKEY })
    }
    await until('refused too rarely', () => errors.length > 0 && refusals() - before > 12)
    t.same(errors, ['Authorization Violation'], 'logged once')
    for (const index of [0, 1, 2]) {
      await brokers.kill(index)
      brokers.restart(index)
    }
    await until('not connected', () => reconnected.count > 0)
    t.equal(reconnected.count, 1, 'logged once')
    await until('the log is not connected', async () => (await log.append(ACME, Buffer.from('again'), 1)) === undefined)
    await brokers.untilCurrent(['events'])
  })

  t.test('a broker that reads nothing any more is replaced, although bytes wait for it', async (t) => {
    const { reconnected, logger } = reconnections()
    const connection = await connectToBrokers(optionsOf(brokers), logger)
    t.teardown(() => connection.close())
    const lost = brokers.servers.indexOf(connection.getServer())
    process.kill(brokers.pid(lost), 'SIGSTOP')
    // More than the kernel takes.
    for (let number = 0; number < 30; number++) connection.publish('nobody', Buffer.alloc(MEGABYTE))
    await until('not connected', () => reconnected.count > 0)
    t.not(brokers.servers.indexOf(connection.getServer()), lost)
    process.kill(brokers.pid(lost), 'SIGCONT')
    await brokers.untilCurrent(['events'])
  })

  t.test('a reader continues when the broker that has its consumer is lost', async (t) => {
    const { lastSequence } = await until('no state', () => log.state())
    const texts: string[] = []
    const reading = (async () => {
      for await (const { bytes } of log.read({ sequence: lastSequence, created: log.created })) {
        if (texts.push(Buffer.from(bytes).toString()) === 3) break
      }
    })()
    // The consumer stays on its broker, so one of these has it.
    for (const lost of [0, 1, 2]) {
      await brokers.kill(lost)
      const text = `without ${lost}`
      await until('nothing is appended', async () => {
        return (await log.append(ACME, Buffer.from(text), 1)) === undefined
      })
      await until('the reader is silent', () => texts.includes(text))
      brokers.restart(lost)
      await brokers.untilCurrent(['events'])
    }
    await reading
    t.same(texts, ['without 0', 'without 1', 'without 2'])
  })

  t.test('reading can be stopped before there is a consumer', async (t) => {
    const { log: another } = await openLog(t, optionsOf(brokers))
    const { lastSequence } = await until('no state', () => log.state())
    const next = another.read({ sequence: lastSequence, created: log.created }).next()
    another.stopReading()
    t.match(await next, { done: true })
  })

  t.test('a store that lacks messages, or has read another log, is refused', async (t) => {
    const { lastSequence } = await until('no state', () => log.state())
    const first = async (after: LogPosition | undefined) => (await log.read(after).next()).value?.sequence
    const refused = (sequence: number, created: string) => first({ sequence, created })
    const startMs = performance.now()
    await t.rejects(refused(lastSequence + 1, log.created), { code: 'BROKERS_LOST', message: /ends with message/ })
    t.ok(performance.now() - startMs > ENDS_BEFORE_MS)
    await t.rejects(refused(1, '2020-01-01T00:00:00Z'), { code: 'BROKERS_LOST', message: /was created at/ })
    await log.trim(10)
    await t.rejects(refused(9, log.created), {
      code: 'BROKERS_LOST',
      message: /begins with message 11, and the store has 9/,
    })
    await t.rejects(first(undefined), { code: 'BROKERS_LOST', message: /the store has 0/ })
    t.equal((await take(log, 10, 1))[0]?.[0], 11)
  })

  t.test('a stream that ends too early for a moment is read on', async (t) => {
    const before = (await log.state())?.lastSequence ?? 0
    const warned: unknown[] = []
    const warn = (found: unknown): unknown => warned.push(found)
    const { log: another } = await openLog(t, optionsOf(brokers), Object.assign(Object.create(quietLog), { warn }))
    const messages = another.read({ sequence: before + 1, created: log.created })
    const next = messages.next()
    await until('not noticed', () => warned.length > 0)
    t.match(warned, [{ reason: /ends with message/ }])
    for (const text of ['first', 'second']) t.equal(await log.append(ACME, Buffer.from(text), 1), undefined)
    t.equal((await next).value?.sequence, before + 2)
    await messages.return(undefined)
  })

  t.test('a message that is missing between others ends the reading', async (t) => {
    const before = (await log.state())?.lastSequence ?? 0
    const other = randomUUID()
    for (const organization of [ACME, other, ACME]) await log.append(organization, Buffer.from(organization), 1)
    const connection = await brokers.connect()
    t.teardown(() => connection.close())
    await (await jetstreamManager(connection)).streams.purge('events', {
      filter: `ev.${partitionOf(other)}.${other}`,
    })
    await t.rejects(take(log, before, 2), {
      code: 'BROKERS_LOST',
      message: `stream events: message ${before + 2} is missing`,
    })
    t.equal((await take(log, before + 2, 1))[0]?.[0], before + 3)
    await log.trim(before + 3)
  })

  t.test('a batch that is larger than what a reader keeps is read, too', async (t) => {
    const before = (await log.state())?.lastSequence ?? 0
    const largest = Buffer.alloc(20 * MEGABYTE, 'x')
    t.equal(await log.append(ACME, largest, 1), undefined)
    t.equal(await log.append(ACME, Buffer.from('after it'), 1), undefined)
    const [[, , text] = [], [, , next] = []] = await take(log, before, 2)
    t.equal(text?.length, largest.length)
    t.equal(next, 'after it')
    await log.trim(before + 2)
  })

  t.test('a full log refuses, and the senders wait', async (t) => {
    const connection = await brokers.connect()
    t.teardown(() => connection.close())
    const megabyte = Buffer.alloc(MEGABYTE)
    let refusal: string | undefined
    for (let number = 0; number < 70 && refusal === undefined; number++) refusal = await log.append(ACME, megabyte, 1)
    t.equal(refusal, 'the log is full')
    t.equal(log.problem, 'the log is full')
    await log.trim((await log.state())?.lastSequence ?? 0)
    t.equal(await log.append(ACME, Buffer.from('again'), 1), undefined)
    t.equal(log.problem, undefined)
  })

  t.test('a batch that two attempts appended is in the log once', async (t) => {
    const connection = await brokers.connect()
    t.teardown(() => connection.close())
    const client = jetstream(connection)
    const first = await client.publish(`ev.0.${ACME}`, 'x', { msgID: 'same' })
    const second = await client.publish(`ev.0.${ACME}`, 'x', { msgID: 'same' })
    t.equal(second.seq, first.seq)
  })
  t.same(unsafe, [])
})

const CONFIGURATION = readFileSync(join(REPOSITORY, 'deploy/nats/nats.conf'), 'utf8')

t.test('brokers that acknowledge before they have flushed are refused', async (t) => {
  const directory = testFolder(t)
  const configuration = join(directory, 'nats.conf')
  writeFileSync(configuration, CONFIGURATION.replace('sync_interval: always', 'sync_interval: "2m"'))
  const brokers = await TestBrokers.start(t, { directory: join(directory, 'brokers'), configuration })
  await t.rejects(
    Brokers.open(optionsOf(brokers), quietLog, () => {}),
    {
      code: 'BROKERS_UNSAFE',
      message: /^broker-\d: acknowledges messages before they are on disk; set jetstream \{ sync_interval: always \}$/,
    },
  )
})

t.test('a stream that can lose messages is refused, also later', async (t) => {
  const directory = testFolder(t)
  const configuration = join(directory, 'nats.conf')
  // An administrator of the brokers may change streams. Nodes may not.
  writeFileSync(configuration, CONFIGURATION.replace('"$JS.API.INFO"', '"$JS.API.>"'))
  const brokers = await TestBrokers.start(t, { directory: join(directory, 'brokers'), configuration })
  const connection = await brokers.connect()
  t.teardown(() => connection.close())
  const streams = await until('no brokers', async () => {
    const manager = await jetstreamManager(connection).catch(() => undefined)
    return manager?.streams
  })
  const kept = { name: 'events', subjects: ['ev.>', 'counters'], num_replicas: 3, discard: DiscardPolicy.New }
  const rows = [
    { config: { num_replicas: 1 }, message: /expected num_replicas 3, found 1/ },
    { config: { discard: DiscardPolicy.Old }, message: /expected discard new, found old/ },
    { config: { max_age: 3600e9 }, message: /expected max_age 0, found 3600000000000/ },
    { config: { max_msgs: 1000 }, message: /expected max_msgs -1, found 1000/ },
    { config: { retention: RetentionPolicy.Workqueue }, message: /expected retention limits, found workqueue/ },
  ]
  for (const { config, message } of rows) {
    const given = { ...kept, ...config }
    await until('no stream', () => streams.add(given).catch(() => undefined))
    await t.rejects(openLog(t, optionsOf(brokers)), { code: 'BROKERS_UNSAFE', message })
    await streams.delete('events')
  }
  const { unsafe } = await openLog(t, optionsOf(brokers))
  await streams.update('events', { max_age: 3600e9 })
  for (const number of [0, 1, 2]) {
    await brokers.kill(number)
    brokers.restart(number)
    await brokers.untilCurrent(['events'])
  }
  t.equal(await until('the stream is not checked again', () => unsafe[0]), 'BROKERS_UNSAFE')
  // Elections interrupt requests.
  const isDeleted = async (): Promise<boolean> => {
    const found = await streams.info('events').catch((error: Error) => error.message)
    if (found !== 'stream not found') await streams.delete('events').catch(() => {})
    return found === 'stream not found'
  }
  await until('the stream is not deleted', isDeleted)
  for (const number of [0, 1, 2]) {
    await brokers.kill(number)
    brokers.restart(number)
    await until('no quorum', isDeleted)
  }
  await until('the loss of the stream is not reported', () => unsafe.at(-1) === 'BROKERS_LOST')
})

t.test('brokers of earlier releases are refused', async (t) => {
  const data = { config: { sync_always: true } }
  const rows = [
    { ver: '2.9.15', isRefused: true },
    { ver: '2.14.9', isRefused: true },
    { ver: '2.15.0', isRefused: false },
    { ver: '2.16.0-beta.1', isRefused: false },
    { ver: '3.0.0', isRefused: false },
  ]
  for (const { ver, isRefused } of rows) {
    const answers = ['one', 'two', 'three'].map((name) => ({ json: () => ({ server: { name, ver }, data }) }))
    const connection = { requestMany: async () => answers } as unknown as Parameters<typeof checkBrokers>[0]
    const checked = checkBrokers(connection, 3)
    if (!isRefused) await t.resolves(checked, ver)
    else await t.rejects(checked, { code: 'BROKERS_UNSAFE', message: `one: expected NATS 2.15 or later, found ${ver}` })
  }
})

t.test('a service ends when a broker accepts its connections and says nothing', async (t) => {
  const silent = createServer()
  await once(silent.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => silent.close())
  const { port } = silent.address() as AddressInfo
  const { status, stderr } = await run('service', ['--data-dir', t.testdir(), '--brokers', `127.0.0.1:${port}`])
  t.equal(status, ExitStatus.unavailable)
  t.match(stderr, /BROKERS_UNREACHABLE/)
})

t.test('wrong credentials and unreadable files are named, also later', async (t) => {
  const directory = t.testdir({ empty: '' })
  const brokers = await TestBrokers.start(t, { directory: join(directory, 'brokers') })
  const connection = await brokers.connect()
  await connection.close()
  const refused = (more: Partial<BrokerOptions>) => Brokers.open(optionsOf(brokers, more), quietLog, () => {})
  const other = join(directory, 'empty')
  chmodSync(other, 0o600)
  await t.rejects(refused({ credentialsFile: '/nonexistent' }), {
    code: 'USAGE',
    message: /--broker-credentials-file.*no such file/,
  })
  await t.rejects(refused({ credentialsFile: other }), { code: 'USAGE', message: /expected the seed/ })
  await t.rejects(refused({ credentialsFile: '' }), {
    code: 'BROKERS_REFUSED',
    message: /check --broker-credentials-file/,
  })

  const { unsafe } = await openLog(t, optionsOf(brokers))
  const SERVICE_NKEY = nkeys.createUser().getPublicKey()
  for (const index of [0, 1, 2]) {
    await brokers.kill(index)
    brokers.restart(index, { SERVICE_NKEY })
  }
  await until('the node does not end', () => unsafe.length > 0)
  t.equal(unsafe[0], 'BROKERS_REFUSED')
})

t.test('snapshots have three replicas, also if the first attempt to create their stream fails', async (t) => {
  const brokers = await TestBrokers.start(t)
  const connected = await Brokers.open(optionsOf(brokers), quietLog, () => {})
  t.teardown(() => connected.close())
  const { client } = connected
  const managerOf = client.jetstreamManager.bind(client)
  let attempts = 0
  client.jetstreamManager = async (...given) => {
    const manager = await managerOf(...given)
    const add = manager.streams.add.bind(manager.streams)
    // As brokers answer that do not know all others yet.
    manager.streams.add = (config) =>
      attempts++ === 0 ? Promise.reject(new Error('no suitable peers for placement')) : add(config)
    return manager
  }
  await SnapshotStore.open(connected)
  t.equal(attempts, 2)
  t.equal((await connected.manager.streams.info('OBJ_snapshots')).config.num_replicas, 3)
})
