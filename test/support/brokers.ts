import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection, nkeyAuthenticator, nkeys } from '@nats-io/transport-node'
import { freePort } from './free-port.ts'
import { opensslCertificate } from './openssl-certificate.ts'
import { REPOSITORY } from './programs.ts'
import { testFolder } from './test-folder.ts'
import { until } from './wait.ts'

/** deploy/setup.mjs unpacks NATS here. */
const NATS = join(REPOSITORY, 'node_modules/.cache/nats')
const PROGRAM = join(NATS, 'usr/sbin/nats-server')
const CONFIGURATION = join(REPOSITORY, 'deploy/nats/nats.conf')
/** A quorum is two. */
export const BROKER_COUNT = 3
const RECONNECT_MS = 100
const CLUSTER_STREAMS = ['events', 'changes', 'OBJ_snapshots']

/** The version in use, as the server prints it. */
export const BROKER_VERSION = readFileSync(join(NATS, 'version'), 'utf8').trim()

/** Where a broker runs. */
export interface BrokerHost {
  /** For other brokers and, by default, for clients. */
  readonly address: string
  /** Further addresses for clients, and the one on which the broker listens for them. */
  readonly addresses?: readonly string[]
  readonly listen?: string
  /** Its data directory. */
  readonly data: string
  /** A command that executes another, such as `nsenter --net=FILE`. */
  readonly through: readonly string[]
}

interface Broker extends BrokerHost {
  readonly environment: NodeJS.ProcessEnv
  child: ChildProcess
}

/**
 * Three brokers with the shipped configuration: TLS, nkeys, every write flushed. By default on
 * loopback.
 */
export class Brokers {
  /** Addresses with ports, for clients. */
  readonly servers: readonly string[]
  /** PEM file of the certificate that clients have to trust. */
  readonly caFile: string
  /** The secret nkeys of nodes that may become the primary and of those that never do. */
  readonly seed: string
  readonly followerSeed: string
  /** Files with them. */
  readonly seedFile: string
  readonly followerSeedFile: string
  /** What the brokers logged, to be shown when a test fails. */
  readonly output = { text: '' }
  readonly #configuration: string
  readonly #brokers: Broker[]

  private constructor(
    directory: string,
    hosts: readonly BrokerHost[],
    ports: readonly number[],
    configuration: string,
  ) {
    const addresses = hosts.map(({ address }) => address)
    const names = hosts.flatMap(({ address, addresses = [address] }) => addresses)
    const { keyFile, certificateFile } = opensslCertificate(join(directory, 'tls'), 'ECDSA P-256', names)
    const [user, follower] = [nkeys.createUser(), nkeys.createUser()]
    this.seed = Buffer.from(user.getSeed()).toString()
    this.followerSeed = Buffer.from(follower.getSeed()).toString()
    this.seedFile = join(directory, 'service.nk')
    this.followerSeedFile = join(directory, 'follower.nk')
    writeFileSync(this.seedFile, this.seed, { mode: 0o600 })
    writeFileSync(this.followerSeedFile, this.followerSeed, { mode: 0o600 })
    const listenOn = (firstPort: number) => addresses.map((address, index) => `${address}:${ports[firstPort + index]}`)
    const routes = listenOn(BROKER_COUNT)
    this.#configuration = configuration
    this.caFile = certificateFile
    this.servers = listenOn(0)
    this.#brokers = hosts.map((host, index) => {
      mkdirSync(host.data, { recursive: true })
      const environment = {
        BROKER_NAME: `broker-${index}`,
        BROKER_LISTEN: host.listen === undefined ? this.servers[index] : `${host.listen}:${ports[index]}`,
        ROUTE_LISTEN: routes[index],
        ROUTES: JSON.stringify(routes.map((route) => `nats://${route}`)),
        DATA_DIRECTORY: host.data,
        CERTIFICATE: certificateFile,
        PRIVATE_KEY: keyFile,
        CA_CERTIFICATE: certificateFile,
        SERVICE_NKEY: user.getPublicKey(),
        FOLLOWER_NKEY: follower.getPublicKey(),
      }
      return { ...host, environment, child: this.#spawn(host, environment) }
    })
  }

  /** Runs the brokers until the test ends. Does not wait until they have elected a leader. */
  static async start(
    t: { testdir(): string; teardown(work: () => unknown): void },
    { directory = testFolder(t), configuration = CONFIGURATION, hosts = onLoopback(directory) } = {},
  ): Promise<Brokers> {
    const ports = new Set<number>()
    while (ports.size < 2 * BROKER_COUNT) ports.add(await freePort())
    const brokers = new Brokers(directory, hosts, [...ports], configuration)
    t.teardown(() => Promise.all(brokers.servers.map((_server, index) => brokers.kill(index))))
    return brokers
  }

  /** Connects as soon as a broker listens. The caller closes the connection. */
  connect(seed = this.seed): Promise<NatsConnection> {
    return connect({
      servers: [...this.servers],
      tls: { caFile: this.caFile },
      authenticator: nkeyAuthenticator(Buffer.from(seed)),
      waitOnFirstConnect: true,
      reconnectTimeWait: RECONNECT_MS,
      maxReconnectAttempts: -1,
    })
  }

  /** The settings with which a service uses these brokers. */
  get parameters(): string[] {
    return this.parametersAt(0)
  }

  /** The same, with the brokers' addresses of this number and another nkey. */
  parametersAt(network: number, seedFile = this.seedFile): string[] {
    const servers = this.#brokers.map(({ address, addresses = [address] }, index) => {
      return `${addresses[network]}:${this.servers[index]?.split(':').at(-1)}`
    })
    return ['--brokers', servers.join(','), '--broker-credentials-file', seedFile, '--broker-ca-file', this.caFile]
  }

  /** Kills a broker with SIGKILL and waits until its process has ended. */
  async kill(index: number): Promise<void> {
    this.#at(index).child.kill('SIGKILL')
    await this.ended(index)
  }

  /** Waits until the process of a broker has ended. */
  async ended(index: number): Promise<void> {
    const { child } = this.#at(index)
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }

  pid(index: number): number {
    return this.#at(index).child.pid ?? 0
  }

  /** Starts a broker that was killed, with the data that it has, and `more` of configuration. */
  restart(index: number, more: NodeJS.ProcessEnv = {}): void {
    const broker = this.#at(index)
    broker.child = this.#spawn(broker, { ...broker.environment, ...more })
  }

  /** Waits until all brokers have everything that is in these streams. */
  async untilCurrent(streams: readonly string[] = CLUSTER_STREAMS): Promise<void> {
    const connection = await this.connect()
    try {
      const manager = await jetstreamManager(connection, { checkAPI: false })
      for (const stream of streams) {
        await until(`not all brokers have ${stream}`, async () => {
          // There may be no leader.
          const info = await manager.streams.info(stream).catch(() => undefined)
          const current = info?.cluster?.replicas?.filter(
            ({ current, offline, lag = 0 }) => current && !offline && lag === 0,
          )
          return current?.length === BROKER_COUNT - 1 || undefined
        })
      }
    } finally {
      await connection.close()
    }
  }

  #at(index: number): Broker {
    const broker = this.#brokers[index]
    if (broker === undefined) throw new Error(`no broker ${index}`)
    return broker
  }

  #spawn({ through }: BrokerHost, environment: NodeJS.ProcessEnv): ChildProcess {
    const [command = '', ...parameters] = [...through, PROGRAM, '-c', this.#configuration]
    const child = spawn(command, parameters, {
      env: environment,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.output.text += text
    })
    return child
  }
}

function onLoopback(directory: string): BrokerHost[] {
  return Array.from({ length: BROKER_COUNT }, (_broker, index) => {
    return { address: '127.0.0.1', data: join(directory, `broker-${index}`), through: [] }
  })
}
