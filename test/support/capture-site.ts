import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ip, namespace } from './namespace.ts'
import { ipFrame, udp } from './packets.ts'
import { dnsQuery } from './packets-dns.ts'
import { framesAt, pcapFile } from './packets-pcap.ts'
import { type RunningService, startService } from './programs.ts'
import { type ServiceSite, startSite } from './service-site.ts'
import { until } from './wait.ts'

/** The fields of the /health body that tests read. */
interface Health {
  readonly status: string
  readonly reason?: string
  readonly events_matched: number
  readonly platforms_detected: number
  readonly https_connected: boolean
}

interface Counters {
  readonly counters: readonly { readonly counter: string; readonly outcomes: Readonly<Record<string, number>> }[]
}

/** The service's name in a container's /etc/hosts. */
export const SERVICE_NAME = 'service.acme.example'
/** Of a collector in the namespace. */
export const HEALTH_PORT = 9090

/**
 * A host's network: a namespace with a veth pair. The service and the collector run in the
 * namespace. The collector captures the packets that `play` sends.
 */
export class CaptureSite {
  readonly network: string
  /** Arguments of `ip` that run a command in the namespace. */
  readonly inside: (...command: string[]) => string[]
  readonly directory: string
  /** The data directory of the service. */
  readonly data: string
  readonly token: string
  #service: RunningService

  private constructor(network: string, inside: (...command: string[]) => string[], site: ServiceSite) {
    this.network = network
    this.inside = inside
    this.directory = site.directory
    this.data = site.dataDirectory
    this.token = site.token
    this.#service = site.service
  }

  static async make(t: Test, network: string): Promise<CaptureSite> {
    const inside = namespace(t, network)
    for (const which of ['all', 'default']) ip(...inside('sysctl', '-qw', `net.ipv6.conf.${which}.disable_ipv6=1`))
    ip(...inside('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far'))
    for (const link of ['lo', 'near', 'far']) ip(...inside('ip', 'link', 'set', link, 'up'))
    const site = new CaptureSite(network, inside, await startSite(t, [], { through: ['ip', ...inside()] }))
    t.teardown(() => site.service.child.kill('SIGKILL'))
    return site
  }

  get service(): RunningService {
    return this.#service
  }

  /** The settings that a manifest leaves to its users. */
  get settings(): Readonly<Record<string, string>> {
    return {
      ...{ SVC_TOKEN: this.token, SVC_ENDPOINT: SERVICE_NAME, SERVICE_FINGERPRINT: this.#service.fingerprint },
      ...{ HTTPS_PORT: `${this.#service.ingestPort}`, INTERFACE: 'far', EVENT_WINDOW_SECONDS: '0' },
    }
  }

  folder(name: string): string {
    const folder = join(this.directory, name)
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
    this.#service = await startService(this.data, port, {}, ['ip', ...this.inside()])
  }

  /** Sends the request that a Kubernetes probe sends from the node's network. */
  get(port: number, path: string): string {
    const url = `http://127.0.0.1:${port}${path}`
    return execFileSync('ip', this.inside('curl', '-s', '--fail', '--max-time', '2', url), {
      encoding: 'utf8',
      stdio: 'pipe',
    })
  }

  /** Waits until the health record of the collector satisfies the predicate. */
  untilHealth(what: string, holds: (health: Health) => boolean): Promise<Health> {
    return this.#until(what, '/health', holds)
  }

  /** Waits until the collector counts `count` events with this outcome. */
  async untilEvents(outcome: string, count: number): Promise<void> {
    await this.#until<Counters>(`${count} ${outcome}`, '/counters', ({ counters }) =>
      counters.some(({ counter, outcomes }) => counter === 'events' && outcomes[outcome] === count),
    )
  }

  #until<A>(what: string, path: string, holds: (answer: A) => boolean): Promise<A> {
    let last: unknown
    return until(
      () => `${what}: ${JSON.stringify(last)}`,
      () => {
        try {
          const answer = JSON.parse(this.get(HEALTH_PORT, path)) as A
          last = answer
          return holds(answer) && answer
        } catch (error) {
          last = (error as Error).message
          return false
        }
      },
    )
  }

  /** Sends DNS queries from the other end of the veth pair. */
  play(names: readonly string[], ...more: string[]): void {
    const frames = names.map((name, index) => {
      const addresses = { source: `10.9.${index >> 8}.${index & 255}`, destination: '10.9.0.2' }
      return ipFrame(addresses, udp({ sourcePort: 50_000, destinationPort: 53 }, dnsQuery([name])))
    })
    const path = join(this.directory, 'played.pcap')
    writeFileSync(path, pcapFile(framesAt(Date.UTC(2026, 2, 3), frames)))
    ip(...this.inside('tcpreplay', '-q', '--topspeed', '-i', 'near', ...more, path))
  }
}
