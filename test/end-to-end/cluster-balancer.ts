import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t from 'tap'
import { Store } from '../../engine/store/store.ts'
import { differencesOf, type Matches, matchesInScans } from '../crash/oracle.ts'
import { ApiClients, type ApiRequest, KEYS_PER_CLIENT } from '../support/api-clients.ts'
import { Brokers } from '../support/brokers.ts'
import { primaryAmong, TestNode } from '../support/cluster-node.ts'
import { startClusterProxy } from '../support/haproxy.ts'
import { LiveCollector } from '../support/live-collector.ts'
import { type Machine, machinesOnBridge, OWN_ADDRESS } from '../support/machines.ts'
import { keepNamespacesPrivate } from '../support/namespace.ts'
import { opensslCertificate } from '../support/openssl-certificate.ts'
import { PrimaryWatch } from '../support/primary-watch.ts'
import { ALL_SCOPES, admin, type Ended, runAdmin } from '../support/programs.ts'
import { findingsOf } from '../support/store.ts'
import { EXPECTED_END, SupervisedNode } from '../support/supervised-node.ts'
import { SyslogClient } from '../support/syslog-clients.ts'
import { sendTcp, sendTls } from '../support/syslog-sender.ts'
import { rfc5424, squid } from '../support/syslog-service.ts'
import { testFolder } from '../support/test-folder.ts'
import { until } from '../support/wait.ts'

/*
 * The case of cluster-balancer.full.test.ts. Runs in private namespaces: three brokers, three nodes
 * and a collector on machines of their own, and HAProxy with the shipped configuration, which all
 * senders and clients use. A replica, the primary and the remaining node are killed in turn.
 */

const NODES = ['node-1', 'node-2', 'node-3'] as const
const BROKERS = ['broker-1', 'broker-2', 'broker-3'] as const
const API_CLIENTS = 12
const TCP_CLIENTS = 3
/** Enough to measure a failure in 1,000. */
const REQUESTS_MIN = 2000
/** How long requests may fail after the loss of a node, until the load balancer has noticed it. */
const LOSS_MS = 5000
const FAILED_SHARE_MAX = 0.001
const DOMAIN = 'claude.ai'
const SETTINGS = [
  ...['--api-address', '0.0.0.0', '--ingest-address', '0.0.0.0', '--metrics-address', '0.0.0.0'],
  ...['--api-port', '8443', '--console-port', '8444', '--ingest-port', '9443', '--metrics-port', '9091'],
  ...['--syslog-tls', '0.0.0.0:6514', '--syslog-tcp', '0.0.0.0:1514', '--proxy-protocol'],
  ...['--max-connections-per-address', '0'],
]
const PATHS = [
  ...['/api/v1/discovery', '/api/v1/scores', '/api/v1/recommendations', '/api/v1/assessments'],
  ...['/api/v1/discovery?limit=2', '/api/v1/openapi.json'],
]

/** The last one is the node that is left, and keeps its data directory. */
const LOSSES = [
  { wantsPrimary: false, isEmptied: true },
  { wantsPrimary: true, isEmptied: true },
  { wantsPrimary: true, isEmptied: false },
]

interface Kill {
  readonly node: string
  readonly role: string
  /** Before the signal was sent, and when the kernel had closed the connections of the process. */
  readonly fromMs: number
  readonly toMs: number
}

/** An organization with a token and API keys. */
interface Prepared {
  readonly name: string
  readonly id: string
  readonly token: string
  readonly keys: readonly string[]
}

keepNamespacesPrivate()

t.test('each node is killed and replaced under load, after a load balancer', async (t) => {
  const directory = testFolder(t)
  const machines = machinesOnBridge([...BROKERS, ...NODES, 'sensor'])
  const machine = (index: number): Machine => machines[index] as Machine
  const hosts = BROKERS.map((name, index) => ({ ...machine(index), data: join(directory, name) }))
  const brokers = await Brokers.start(t, { directory: join(directory, 'brokers'), hosts })
  const addresses = [OWN_ADDRESS, ...machines.map(({ address }) => address)]
  const { keyFile, certificateFile } = opensslCertificate(join(directory, 'tls'), 'ECDSA P-256', addresses)
  const tls = ['--tls-certificate', certificateFile, '--tls-key', keyFile]
  const problems: string[] = []
  const all = NODES.map((name, index) => {
    const where = { ...machine(BROKERS.length + index), certificateFile }
    const node = new TestNode(name, directory, brokers, { machine: where, parameters: [...SETTINGS, ...tls] })
    return new SupervisedNode(node, ({ status, signal, stderr }: Ended) => {
      if (!EXPECTED_END.test(stderr)) problems.push(`${name} ended with ${status ?? signal}: ${stderr.slice(-1000)}`)
    })
  })
  const nodes = all.map(({ node }) => node)
  t.teardown(async () => {
    await Promise.all(all.map((each) => each.stop('SIGKILL')))
    if (!t.passing()) for (const node of nodes) t.comment(`${node.name}: ${node.logEnd}`)
  })

  const [first] = all as [SupervisedNode]
  const onFirst = (...words: string[]) => admin(...words, ...first.node.data)
  const prepare = async (name: string): Promise<Prepared> => {
    const [organization] = await onFirst('organization', 'create', name, '--domain', `${name.toLowerCase()}.example`)
    const [token] = await onFirst('token', 'generate', 'sensor', '--org', name)
    const keys: string[] = []
    for (let number = 0; number < (API_CLIENTS / 2) * KEYS_PER_CLIENT; number++) {
      const [key] = await onFirst('key', 'create', `key ${number}`, '--org', name, ...ALL_SCOPES)
      keys.push(String(key?.['key']))
    }
    return { name, id: String(organization?.['id']), token: String(token?.['token']), keys }
  }
  const sensors = await prepare('Sensors')
  const devices = await prepare('Devices')
  first.start()
  await primaryAmong([first.node])
  for (const other of all.slice(1)) other.start()
  for (const node of nodes) await node.untilReady()
  startClusterProxy(
    t,
    directory,
    (name) => machine(BROKERS.length + (NODES as readonly string[]).indexOf(name)).address,
  )

  const watch = new PrimaryWatch(nodes)
  const collector = await LiveCollector.start(
    t,
    {
      machine: machine(machines.length - 1),
      directory,
      parameters: ['--endpoint', OWN_ADDRESS, '--service-ca-file', certificateFile],
      token: sensors.token,
    },
    Date.now(),
  )
  const message = (name: string): string => `${rfc5424(devices.token, squid(name))}\n`
  const syslog = Array.from({ length: TCP_CLIENTS + 1 }, (_, index) => {
    const open = () =>
      index < TCP_CLIENTS
        ? sendTcp(t, 1514, { host: OWN_ADDRESS })
        : sendTls(t, 6514, { host: OWN_ADDRESS, caFile: certificateFile })
    return new SyslogClient({ label: `device-${index}`, domain: DOMAIN, open, message })
  })
  const api = new ApiClients(`https://${OWN_ADDRESS}:8443`, certificateFile, [...sensors.keys, ...devices.keys])
  const kills: Kill[] = []
  /** Not during a loss, and the time after it. */
  const isOutside = ({ sentMs, receivedMs }: ApiRequest): boolean =>
    kills.every(({ fromMs, toMs }) => receivedMs < fromMs || sentMs > toMs + LOSS_MS)
  /** The request was at a node when it was killed. */
  const isAborted = ({ sentMs, receivedMs, outcome }: ApiRequest): boolean =>
    outcome === 'none' && kills.some(({ fromMs, toMs }) => receivedMs >= fromMs && sentMs <= toMs)
  /** As the guide says: when all nodes are ready, another one can be lost. */
  const recover = async (): Promise<void> => {
    for (const node of nodes) await node.untilReady()
    const sinceMs = performance.now()
    await until('the API does not recover', () => {
      const found = api.requests.slice(-API_CLIENTS)
      const isGood = found.every((request) => request.outcome === 200 && request.sentMs > sinceMs && isOutside(request))
      return isGood || later(100, false)
    })
  }
  const replace = async (killed: SupervisedNode, isEmptied: boolean): Promise<void> => {
    const { node } = killed
    const role = (await node.isPrimary()) ? 'the primary' : 'a replica'
    const fromMs = performance.now()
    await killed.stop('SIGKILL')
    kills.push({ node: node.name, role, fromMs, toMs: performance.now() })
    // Longer than another node needs to become the primary.
    await primaryAmong(nodes.filter((other) => other !== node))
    if (isEmptied) rmSync(node.directory, { recursive: true })
    killed.start()
    await recover()
  }
  await until('the API does not answer', () => api.requests.filter(({ outcome }) => outcome === 200).length > 100)

  const left = [...all]
  for (const { wantsPrimary, isEmptied } of LOSSES) {
    const primary = await primaryAmong(nodes)
    const killed = left.find(({ node }) => (node === primary) === wantsPrimary) ?? (left[0] as SupervisedNode)
    left.splice(left.indexOf(killed), 1)
    await replace(killed, isEmptied)
  }
  await until('too few requests', () => api.requests.filter(isOutside).length >= REQUESTS_MIN || later(100, false))

  await api.stop()
  await Promise.all(syslog.map((client) => client.stop()))
  const ended = await collector.stop()
  await watch.stop()

  t.test('outside of elections, fewer than one request in 1,000 of the API fails', async (t) => {
    const others = api.requests.filter(({ outcome }) => ![200, 503, 'none'].includes(outcome))
    t.same(others, [])
    const aborted = api.requests.filter(isAborted)
    const outside = api.requests.filter((request) => isOutside(request) && !isAborted(request))
    const failed = outside.filter(({ outcome }) => outcome !== 200)
    for (const [index, { node, role, fromMs }] of kills.entries()) {
      const endMs = kills[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY
      const without = api.requests.filter(({ outcome, sentMs }) => outcome === 503 && sentMs > fromMs && sentMs < endMs)
      const span = Math.round((without.at(-1)?.receivedMs ?? 0) - (without[0]?.sentMs ?? 0))
      const change = watch.changes.find(({ toMs }) => toMs > fromMs && toMs < endMs)
      const next = change && `, ${change.to} was the primary ${Math.round(change.toMs - fromMs)} ms later`
      t.comment(`${node}, ${role}, was killed${next ?? ''}; ${without.length} requests got 503, within ${span} ms`)
    }
    t.comment(`${aborted.length} requests were in flight at a node that was killed, and failed`)
    t.comment(`outside of elections, ${failed.length} of ${outside.length} requests failed`)
    t.ok(failed.length < FAILED_SHARE_MAX * outside.length, JSON.stringify(failed.slice(0, 10)))
    t.ok(outside.length > 0.9 * REQUESTS_MIN)
  })

  const scanned = ({ name, id }: Prepared): Promise<Matches> =>
    until('no scan', async () => {
      const node = await primaryAmong(nodes)
      await node.untilRead()
      const { status } = await runAdmin(['scan', 'run', '--org', name, ...node.data])
      if (status !== 0) return undefined
      const store = new Store(node.directory, { mustExist: true })
      try {
        return store.environment.read(() => matchesInScans(store, id))
      } finally {
        await store.close()
      }
    })

  t.test('each event that the collector was acknowledged is in a scan once', async (t) => {
    t.equal(ended.status, 0, ended.stderr)
    t.match(ended.stderr, /"waiting":0,.*"msg":"ended"/)
    t.same(differencesOf(collector.oracle.expected, await scanned(sensors)), [])
    t.comment(`${collector.oracle.matches} matches of ${collector.oracle.queries} queries, each in a scan once`)
    t.ok(collector.oracle.matches > 1000)
  })

  t.test('each message of a syslog connection that no loss of a node ended is in a scan once', async (t) => {
    const connections = syslog.flatMap((client) => client.connections)
    const whole = connections.filter(({ isBroken }) => !isBroken)
    const broken = connections.filter(({ isBroken }) => isBroken)
    const found = await until('messages are missing', async () => {
      const names = (await scanned(devices)).get('claude') ?? new Map<string, number>()
      return whole.every(({ name, sent }) => (names.get(name) ?? 0) >= sent) ? names : later(500, undefined)
    })
    const foundOf = (name: string): number => found.get(name) ?? 0
    t.same(
      whole.map(({ name }) => [name, foundOf(name)]),
      whole.map(({ name, sent }) => [name, sent]),
    )
    const tooMany = broken.filter(({ name, sent }) => foundOf(name) > sent)
    t.same(tooMany, [])
    const lost = broken.map(({ name, sent }) => sent - foundOf(name))
    const total = connections.reduce((sum, { sent }) => sum + sent, 0)
    t.comment(`${total} messages on ${connections.length} connections, of which ${broken.length} broke`)
    t.comment(`${lost.reduce((sum, count) => sum + count, 0)} messages were lost with the connections that broke`)
    t.equal(whole.length, syslog.length, 'the last connection of each client')
    t.ok(broken.length > 0)
  })

  t.test('all nodes give the same answers, in bytes and ETag', async (t) => {
    let asked = 0
    const answer = async (node: TestNode, path: string, keys: readonly string[]): Promise<string> => {
      const { status, headers, text } = await node.get(path, keys[asked++ % keys.length] as string)
      return JSON.stringify([path, status, headers['etag'], text])
    }
    const answersOf = (node: TestNode): Promise<string[]> =>
      Promise.all([sensors, devices].flatMap(({ keys }) => PATHS.map((path) => answer(node, path, keys))))
    const answers = await until('the answers differ', async () => {
      const [expected = [], ...others] = await Promise.all(nodes.map(answersOf))
      return others.every((each) => each.join() === expected.join()) ? expected : later(2000, undefined)
    })
    for (const each of answers) t.match(JSON.parse(each), [String, 200, /^".+"$/, /^\{/])
    for (const node of nodes) {
      const store = new Store(node.directory, { mustExist: true })
      t.same(findingsOf(store), [], node.name)
      await store.close()
    }
  })
  t.same(problems, [])
})
