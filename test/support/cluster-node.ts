import { join } from 'node:path'
import { request } from 'undici'
import { packBatch } from '../../engine/kernel/event/event.ts'
import { Brokers } from './brokers.ts'
import { type Answer, httpsClient } from './https.ts'
import { PROGRAMS, type RunningService, startServiceCommand } from './programs.ts'
import { Sender } from './store.ts'
import { testFolder } from './test-folder.ts'
import { until } from './wait.ts'

/** The smallest log that nodes create: three streams of brokers on one disk. */
const BROKER_EVENTS_MAX_MB = ['--broker-events-max-mb', '256']

export interface TestNodeOptions {
  readonly parameters?: readonly string[]
  /** Default: that of nodes that may become the primary. */
  readonly seedFile?: string
  /** The number of the brokers' addresses that it uses. */
  readonly network?: number
  readonly environment?: NodeJS.ProcessEnv
  /** Default: loopback, with a certificate of its own. */
  readonly machine?: NodeMachine
}

/** Brokers, and nodes with these names that use them. The nodes end with the test; a failed one shows their logs. */
export async function makeCluster<N extends readonly string[]>(
  t: { testdir(): string; teardown(work: () => unknown): void; passing(): boolean; comment(text: string): void },
  names: readonly [...N],
  options: TestNodeOptions = {},
): Promise<{ directory: string; brokers: Brokers; nodes: { [I in keyof N]: TestNode } }> {
  const directory = testFolder(t)
  const brokers = await Brokers.start(t, { directory: join(directory, 'brokers') })
  const nodes = names.map((name) => new TestNode(name, directory, brokers, options))
  t.teardown(async () => {
    await Promise.all(nodes.map((node) => node.kill()))
    if (!t.passing()) for (const node of nodes) t.comment(`${node.name}: ${node.logEnd}`)
  })
  return { directory, brokers, nodes: nodes as { [I in keyof N]: TestNode } }
}

/** Where a node runs. */
export interface NodeMachine {
  readonly address: string
  /** A command that executes another there. */
  readonly through: readonly string[]
  /** The node has it, for this address. */
  readonly certificateFile: string
}

/** A node of a cluster: posture-service with a data directory of its own. */
export class TestNode {
  readonly name: string
  readonly directory: string
  /** For commands of posture-admin on this node. */
  readonly data: readonly string[]
  /** The program, which can be one of another release. */
  program: string = PROGRAMS.service
  readonly #parameters: readonly string[]
  readonly #environment: NodeJS.ProcessEnv
  readonly #machine: NodeMachine | undefined
  readonly #sender = new Sender()
  #service: RunningService | undefined

  constructor(name: string, directory: string, brokers: Brokers, options: TestNodeOptions = {}) {
    const { parameters = [], network = 0, environment = {}, seedFile, machine } = options
    this.name = name
    this.directory = join(directory, name)
    this.data = ['--data-dir', this.directory]
    const own = ['--node-name', name, '--api-threads', '1']
    this.#parameters = [...brokers.parametersAt(network, seedFile), ...BROKER_EVENTS_MAX_MB, ...own, ...parameters]
    this.#environment = environment
    this.#machine = machine
  }

  get service(): RunningService {
    if (this.#service === undefined) throw new Error(`${this.name} was not started`)
    return this.#service
  }

  /** Starts again while the brokers have no leader, as systemd does. */
  async start(parameters: readonly string[] = []): Promise<void> {
    const command = [...(this.#machine?.through ?? []), process.execPath, this.program]
    const all = [...this.#parameters, ...parameters]
    await until(`${this.name} does not start`, async () => {
      try {
        this.#service = await startServiceCommand(command, this.directory, all, this.#environment)
        return true
      } catch (error) {
        if (/BROKERS_UNREACHABLE/.test((error as Error).message)) return undefined
        throw error
      }
    })
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Awaited<RunningService['ended']> | undefined> {
    this.#service?.child.kill(signal)
    return this.#service?.ended
  }

  async metrics(): Promise<string> {
    return (await this.#ask('/metrics')).text
  }

  /** Whether a load balancer may send requests to this node. */
  async isReady(): Promise<boolean> {
    return (await this.#ask('/readyz')).status === 200
  }

  async untilReady(): Promise<void> {
    await until(
      () => `${this.name} is not ready: ${this.logEnd}`,
      () => this.isReady().catch(() => false),
    )
  }

  async isPrimary(): Promise<boolean> {
    return /^posture_cluster_primary 1$/m.test(await this.metrics())
  }

  untilPrimary(): Promise<true> {
    return until(
      () => `${this.name} is not the primary: ${this.#service?.output.stderr}`,
      async () => ((await this.isPrimary()) ? true : undefined),
    )
  }

  /** Waits until the store of the primary has what the brokers have. */
  untilRead(): Promise<unknown> {
    return until('the log is not read', async () => /^posture_log_unread_batches 0$/m.test(await this.metrics()))
  }

  /** The last lines of the log of the running or last process. */
  get logEnd(): string {
    return this.#service?.output.stderr.trim().split('\n').slice(-8).join('\n  ') ?? 'never started'
  }

  signal(signal: NodeJS.Signals): void {
    this.#service?.child.kill(signal)
  }

  /** Sends a batch by HTTPS. Each event is new. */
  send(token: string, name: string, count: number): Promise<Answer> {
    const events = Array.from({ length: count }, () => this.#sender.event(name, Date.now()))
    return this.post(token, packBatch(events))
  }

  /** Sends a batch in msgpack by HTTPS. */
  async post(token: string, body: Uint8Array): Promise<Answer> {
    const { child, ingestPort } = this.service
    // Another program may listen on its port by now.
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${this.name} has ended`)
    const { ask, close } = this.#client(ingestPort)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/msgpack' }
    try {
      return await ask('/ingest/v1/events', { method: 'POST', headers, body })
    } finally {
      await close()
    }
  }

  async get(path: string, key: string): Promise<Answer> {
    const { ask, close } = this.#client(this.service.apiPort)
    try {
      return await ask(path, { headers: { 'x-api-key': key } })
    } finally {
      await close()
    }
  }

  #client(port: number): ReturnType<typeof httpsClient> {
    const { address, certificateFile = join(this.directory, 'tls/certificate.pem') } = this.#machine ?? {}
    return httpsClient(port, certificateFile, address)
  }

  async #ask(path: string): Promise<{ readonly status: number; readonly text: string }> {
    const { address = '127.0.0.1' } = this.#machine ?? {}
    // On a connection of its own, because the node may be another process the next time.
    const answer = await request(`http://${address}:${this.service.metricsPort}${path}`, { reset: true })
    return { status: answer.statusCode, text: await answer.body.text() }
  }
}

/** Waits until one of the nodes is the primary. It need not stay the primary. */
export function primaryAmong(nodes: readonly TestNode[]): Promise<TestNode> {
  return until('no node is the primary', async () => {
    for (const node of nodes) if (await node.isPrimary().catch(() => false)) return node
    return undefined
  })
}
