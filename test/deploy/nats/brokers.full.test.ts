import { setTimeout as later } from 'node:timers/promises'
import { jetstream, jetstreamManager, type StreamInfo } from '@nats-io/jetstream'
import { connect, type NatsConnection, nkeyAuthenticator, nkeys } from '@nats-io/transport-node'
import t, { type Test } from 'tap'
import { NodeMessages } from '../../../engine/cluster/log/node-messages.ts'
import { BROKER_VERSION, Brokers } from '../../support/brokers.ts'
import { until } from '../../support/wait.ts'

/** Brokers in the state of a request to the system account. */
interface BrokerState {
  readonly server: { readonly name: string; readonly ver: string }
  readonly data: { readonly config: { readonly sync_always?: boolean } }
}

const REQUEST_MS = 1000

/** Creates the stream as soon as the brokers have elected a leader. */
function createStream(service: NatsConnection): Promise<StreamInfo> {
  return until('no stream', async () => {
    try {
      const manager = await jetstreamManager(service, { timeout: REQUEST_MS })
      return await manager.streams.add({ name: 'events', subjects: ['ev.>'], num_replicas: 3 })
    } catch {
      return undefined
    }
  })
}

t.test('the shipped configuration runs three brokers that flush every write', async (t) => {
  const startedMs = performance.now()
  const brokers = await Brokers.start(t)
  const service = await brokers.connect()
  t.teardown(() => service.close())
  const { config } = await createStream(service)
  t.comment(`${BROKER_VERSION}: three brokers after ${Math.round(performance.now() - startedMs)} ms`)
  t.equal(config.num_replicas, 3)

  const states: BrokerState[] = []
  for await (const message of await service.requestMany('$SYS.REQ.SERVER.PING.JSZ', '{}', {
    strategy: 'count',
    maxMessages: 3,
    maxWait: 10 * REQUEST_MS,
  }))
    states.push(message.json())
  t.same(states.map(({ server }) => server.name).sort(), ['broker-0', 'broker-1', 'broker-2'])
  for (const { server, data } of states) {
    t.equal(data.config.sync_always, true, `${server.name} flushes every write`)
    t.match(BROKER_VERSION, server.ver)
  }

  t.test('the service appends events, and cannot change or delete the stream', async (t) => {
    t.match(await jetstream(service).publish('ev.0.acme', 'one'), { stream: 'events', seq: 1 })
    await refused(t, service, '$JS.API.STREAM.UPDATE.events', '{}')
    await refused(t, service, '$JS.API.STREAM.DELETE.events', '')
    await refused(t, service, '$JS.API.STREAM.CREATE.other', '{}')
    await refused(t, service, 'other', '')
  })
  t.test('a node that never becomes the primary appends events and changes nothing', async (t) => {
    const follower = await brokers.connect(brokers.followerSeed)
    t.teardown(() => follower.close())
    t.match(await jetstream(follower).publish('ev.0.acme', 'two'), { stream: 'events', seq: 2 })
    await refused(t, follower, 'changes', '')
    await refused(t, follower, '$O.snapshots.M.c3RvcmU=', '{}')
    await refused(t, follower, '$JS.API.STREAM.CREATE.changes', '{}')
    await refused(t, follower, '$JS.API.STREAM.PURGE.events', '{}')
    await refused(t, follower, '$JS.API.CONSUMER.CREATE.events.any', '{}')
  })
  t.test('nodes receive messages of each other, and cannot forge what brokers answer', async (t) => {
    const node = await brokers.connect(brokers.followerSeed)
    t.teardown(() => node.close())
    const received: string[] = []
    const [one, two] = [new NodeMessages(service, 'one', () => true), new NodeMessages(node, 'two', () => true)]
    for (const messages of [one, two]) messages.subscribe((message) => received.push(message.toString()))
    await Promise.all([service.flush(), node.flush()])
    one.publish(Buffer.from('of one'))
    two.publish(Buffer.from('of two'))
    await until('a message is missing', async () => received.length === 2)
    t.same(received.toSorted(), ['of one', 'of two'], 'not its own')
    for (const messages of [one, two]) messages.stop()
    for (const connection of [service, node]) await refused(t, connection, '_INBOX.other', '')
  })
  t.test('clients without a known nkey, or without TLS, are refused', async (t) => {
    const [server = ''] = brokers.servers
    const options = { servers: [server], reconnect: false, timeout: 10 * REQUEST_MS }
    const stranger = nkeyAuthenticator(nkeys.createUser().getSeed())
    await t.rejects(connect({ ...options, tls: { caFile: brokers.caFile }, authenticator: stranger }), {
      name: 'AuthorizationError',
    })
    await t.rejects(connect({ ...options, tls: { caFile: brokers.caFile } }), { name: 'AuthorizationError' })
    await t.rejects(connect({ ...options, tls: null, authenticator: nkeyAuthenticator(Buffer.from(brokers.seed)) }))
    await t.rejects(connect({ ...options, authenticator: nkeyAuthenticator(Buffer.from(brokers.seed)) }), {
      message: /self-signed/,
    })
  })
})

/** The broker reports a violation of permissions, and nobody answers the request. */
async function refused(t: Test, connection: NatsConnection, subject: string, body: string): Promise<void> {
  const violation = (async () => {
    for await (const status of connection.status()) {
      if (status.type === 'error') return status.error
    }
    return undefined
  })()
  const request = connection.request(subject, body, { timeout: REQUEST_MS }).then(
    () => 'answered',
    () => 'refused',
  )
  t.match(
    await Promise.race([violation, later(30 * REQUEST_MS, undefined, { ref: false })]),
    { name: 'PermissionViolationError' },
    subject,
  )
  t.equal(await request, 'refused')
}
