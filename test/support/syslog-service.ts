import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { LISTENERS, type Listener } from '../../engine/ingest/sources.ts'
import { OUTCOMES, type OutcomeName } from '../../engine/store/outcomes.ts'
import { Store } from '../../engine/store/store.ts'
import { ALL_SCOPES, admin, type RunningService, startService } from './programs.ts'
import { testFolder } from './test-folder.ts'
import { until } from './wait.ts'

/** Long enough for a loaded machine. Only an event that never comes takes this long. */
const WAIT_SECONDS = 300

/** All three transports on loopback, on ports that the system chooses. */
export const SYSLOG_ON_LOOPBACK = [
  ...['--syslog-tls', '127.0.0.1:0', '--syslog-tcp', '127.0.0.1:0', '--syslog-udp', '127.0.0.1:0'],
]

/** Messages received, and messages per outcome. */
export type Counts = Readonly<Record<OutcomeName | 'received', number>>

/** A posture-service with syslog listeners, an organization and a token. */
export class SyslogService {
  readonly service: RunningService
  /** Its data directory. */
  readonly data: string
  readonly directory: string
  readonly token: string
  readonly organizationId: string

  private constructor(service: RunningService, directory: string, data: string, token: string, organizationId: string) {
    this.service = service
    this.directory = directory
    this.data = data
    this.token = token
    this.organizationId = organizationId
  }

  /** Runs until the test ends. */
  static async start(
    t: { testdir(): string; teardown(work: () => unknown): void },
    parameters: readonly string[] = SYSLOG_ON_LOOPBACK,
    directory = testFolder(t),
    where = dataOf(directory),
  ): Promise<SyslogService> {
    const { token, organizationId } = await organizationWithToken(where, 'Acme', 'devices')
    const service = await startService(where, parameters)
    t.teardown(async () => {
      service.child.kill('SIGKILL')
      await service.ended
    })
    return new SyslogService(service, directory, where, token, organizationId)
  }

  get certificateFile(): string {
    return join(this.data, 'tls/certificate.pem')
  }

  /** The port of the first listener of this transport. */
  port(kind: 'tls' | 'tcp' | 'udp'): number {
    const found = this.service.syslog.find((endpoint) => endpoint.kind === kind)
    if (found === undefined) throw new Error(`the service does not listen by ${kind}`)
    return found.port
  }

  /** All metrics by name and labels as exposed: `posture_ingest_received_total{listener="tcp"}`. */
  async metrics(): Promise<ReadonlyMap<string, number>> {
    return metricsOf(this.service.metricsPort)
  }

  async counts(listener: Listener): Promise<Counts> {
    return countsOf(await this.metrics(), listener)
  }

  /**
   * Waits until the listener has received `messages` messages and all have an outcome. Returns the
   * counts.
   *
   * @throws Error with the last counts at the time limit.
   */
  async settled(listener: Listener, messages: number, seconds = WAIT_SECONDS): Promise<Counts> {
    let last: Counts | undefined
    for (const endMs = Date.now() + seconds * 1000; Date.now() < endMs; await later(25)) {
      last = await this.counts(listener)
      const { received, ...outcomes } = last
      const known = Object.values(outcomes).reduce((sum, count) => sum + count, 0)
      if (received === messages && known === messages) return last
    }
    throw new Error(`not ${messages} messages by ${listener} within ${seconds} s: ${JSON.stringify(last)}`)
  }

  /** Polls until `ask` returns a result. */
  async until<Result>(what: string, ask: () => Promise<Result | undefined> | Result | undefined): Promise<Result> {
    return until(what, ask)
  }

  admin(...args: string[]): Promise<Record<string, unknown>[]> {
    return admin(...args, '--data-dir', this.data)
  }

  withStore<Result>(read: (store: Store) => Result): Result {
    const store = new Store(this.data, { mustExist: true })
    try {
      return read(store)
    } finally {
      void store.close()
    }
  }

  /**
   * Number of lookups per name: those that wait for a scan, and those that a scan has added to the
   * evidence, because the first scans of an organization come soon.
   */
  stored(organizationId = this.organizationId): Map<string, number> {
    const names = new Map<string, number>()
    const add = (name: string, count: number): void => void names.set(name, (names.get(name) ?? 0) + count)
    this.withStore((store) =>
      store.environment.read(() => {
        for (const { event } of store.buffer.read(organizationId, 0, 100_000)) add(event.name, event.count)
        for (const { evidence } of store.evidence.since(organizationId, 0)) {
          for (const [name, count] of Object.entries(evidence.byName)) add(name, count)
        }
      }),
    )
    return names
  }
}

export function dataOf(directory: string): string {
  return join(directory, 'service')
}

/** Makes an organization with a token in this data directory. */
export async function organizationWithToken(
  data: string,
  name = 'Acme',
  label = 'sensor',
): Promise<{ token: string; tokenId: string; organizationId: string }> {
  const where = ['--data-dir', data]
  const domain = `${name.toLowerCase()}.example`
  const [organization] = await admin('organization', 'create', name, '--domain', domain, ...where)
  const [token] = await admin('token', 'generate', label, '--org', name, ...where)
  return {
    token: String(token?.['token']),
    tokenId: String(token?.['id']),
    organizationId: String(organization?.['id']),
  }
}

/** Makes the organization Acme with a token, and a key with all scopes. */
export async function organizationWithKey(data: string) {
  const made = await organizationWithToken(data)
  const [key] = await admin('key', 'create', 'dashboard', '--org', 'Acme', ...ALL_SCOPES, '--data-dir', data)
  return { ...made, key: String(key?.['key']) }
}

export async function metricsOf(port: number): Promise<ReadonlyMap<string, number>> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
  const lines = (await answer.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ')
      return [line.slice(0, at), Number(line.slice(at + 1))]
    }),
  )
}

export function countsOf(metrics: ReadonlyMap<string, number>, listener: Listener): Counts {
  if (!LISTENERS.includes(listener)) throw new Error(`no listener ${listener}`)
  const counts = OUTCOMES.map(
    (outcome) =>
      [
        outcome,
        metrics.get(`posture_ingest_messages_total{listener="${listener}",outcome="${outcome}"}`) ?? Number.NaN,
      ] as const,
  )
  const received = metrics.get(`posture_ingest_received_total{listener="${listener}"}`) ?? Number.NaN
  return { ...Object.fromEntries(counts), received } as Counts
}

/** A line of Squid's log. A line with a host in MATCHING matches. */
export function squid(host: string, client = '192.0.2.45', timeMs = Date.now()): string {
  const time = `${Math.floor(timeMs / 1000)}.${String(timeMs % 1000).padStart(3, '0')}`
  return `${time}    318 ${client} TCP_TUNNEL/200 6120 CONNECT ${host}:443 jdoe HIER_DIRECT/198.51.100.20 -`
}

export const MATCHING = ['api.anthropic.com', 'claude.ai', 'chatgpt.com'] as const

/** An RFC 5424 message with the token in its SD-ELEMENT. */
export function rfc5424(token: string, message: string, host = 'proxy-1'): string {
  return `<134>1 2026-11-20T09:15:02.123Z ${host} squid 4711 - [svc@00000 key="${token}"] ${message}`
}
