import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import type { Test } from 'tap'
import { ip, namespace } from './namespace.ts'
import { ipFrame, udp } from './packets.ts'
import { dnsQuery } from './packets-dns.ts'
import { framesAt, pcapFile } from './packets-pcap.ts'
import { admin, type RunningService, startService } from './programs.ts'
import { testFolder } from './test-folder.ts'

/** The fields of the /health body that container tests read. */
export interface Health {
  readonly status: string
  readonly reason?: string
  readonly events_matched: number
  readonly https_connected: boolean
}

interface Counters {
  readonly counters: readonly { readonly counter: string; readonly outcomes: Readonly<Record<string, number>> }[]
}

/** The service's name in the container's /etc/hosts. */
export const SERVICE_NAME = 'service.acme.example'
const HEALTH_PORT = 9090
const POLL_MS = 100
const POLLS_MAX = 300

/**
 * A host's network: a namespace with a veth pair. The service and the collector's container run in
 * the namespace. The collector captures the packets that `play` sends.
 */
export class ContainerSite {
  readonly network: string
  readonly #inside: (...command: string[]) => string[]
  readonly #directory: string
  #service: RunningService
  readonly token: string

  private constructor(
    network: string,
    inside: (...command: string[]) => string[],
    directory: string,
    service: RunningService,
    token: string,
  ) {
    this.network = network
    this.#inside = inside
    this.#directory = directory
    this.#service = service
    this.token = token
  }

  static async make(t: Test, network: string): Promise<ContainerSite> {
    const inside = namespace(t, network)
    for (const which of ['all', 'default']) ip(...inside('sysctl', '-qw', `net.ipv6.conf.${which}.disable_ipv6=1`))
    ip(...inside('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far'))
    for (const link of ['lo', 'near', 'far']) ip(...inside('ip', 'link', 'set', link, 'up'))
    const directory = testFolder(t)
    const data = join(directory, 'service')
    const service = await startService(data, [], {}, ['ip', ...inside()])
    await admin('organization', 'create', 'Acme', '--domain', 'acme.example', '--data-dir', data)
    const [token] = await admin('token', 'generate', 'sensor', '--org', 'Acme', '--data-dir', data)
    const site = new ContainerSite(network, inside, directory, service, String(token?.['token']))
    t.teardown(() => site.#service.child.kill('SIGKILL'))
    return site
  }

  get data(): string {
    return join(this.#directory, 'service')
  }

  /** The settings that a manifest leaves to its users. */
  get settings(): Readonly<Record<string, string>> {
    return {
      ...{ SVC_TOKEN: this.token, SVC_ENDPOINT: SERVICE_NAME, SERVICE_FINGERPRINT: this.#service.fingerprint },
      ...{ HTTPS_PORT: `${this.#service.ingestPort}`, INTERFACE: 'far', EVENT_WINDOW_SECONDS: '0' },
    }
  }

  folder(name: string): string {
    const folder = join(this.#directory, name)
    mkdirSync(folder)
    return folder
  }

  async stopService(): Promise<void> {
    this.#service.child.kill('SIGTERM')
    await this.#service.ended
  }

  /** Restarts the service on the same port. */
  async startService(): Promise<void> {
    const port = ['--ingest-port', `${this.#service.ingestPort}`]
    this.#service = await startService(this.data, port, {}, ['ip', ...this.#inside()])
  }

  /** Sends the request that a Kubernetes probe sends from the node's network. */
  get(port: number, path: string): string {
    const url = `http://127.0.0.1:${port}${path}`
    return execFileSync('ip', this.#inside('curl', '-s', '--fail', '--max-time', '2', url), {
      encoding: 'utf8',
      stdio: 'pipe',
    })
  }

  /** Waits until the health record satisfies the predicate. */
  untilHealth(what: string, holds: (health: Health) => boolean): Promise<Health> {
    return this.#until(what, '/health', holds)
  }

  /** Waits until the collector counts `count` events with this outcome. */
  async untilEvents(outcome: string, count: number): Promise<void> {
    await this.#until<Counters>(`${count} ${outcome}`, '/counters', ({ counters }) =>
      counters.some(({ counter, outcomes }) => counter === 'events' && outcomes[outcome] === count),
    )
  }

  async #until<A>(what: string, path: string, holds: (answer: A) => boolean): Promise<A> {
    let last: unknown
    for (let polls = 0; polls < POLLS_MAX; polls++) {
      try {
        const answer = JSON.parse(this.get(HEALTH_PORT, path)) as A
        last = answer
        if (holds(answer)) return answer
      } catch (error) {
        last = (error as Error).message
      }
      await later(POLL_MS)
    }
    throw new Error(`timed out waiting for ${what}: ${JSON.stringify(last)}`)
  }

  /** Sends DNS queries from the other end of the veth pair. */
  play(names: readonly string[]): void {
    const frames = names.map((name, index) => {
      const addresses = { source: `10.9.${index >> 8}.${index & 255}`, destination: '10.9.0.2' }
      return ipFrame(addresses, udp({ sourcePort: 50_000, destinationPort: 53 }, dnsQuery([name])))
    })
    const path = join(this.#directory, 'played.pcap')
    writeFileSync(path, pcapFile(framesAt(Date.UTC(2026, 2, 3), frames)))
    ip(...this.#inside('tcpreplay', '-q', '--topspeed', '-i', 'near', path))
  }
}
