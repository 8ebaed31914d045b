import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent, request } from 'undici'
import { type Discovery, PLATFORM_COLUMNS } from '../engine/admin/platform-rows.ts'
import { type AdminRow, adminRows } from '../engine/cli/program.ts'
import { ExitStatus, Fault } from '../engine/kernel/process/error-codes.ts'
import { createProgram, runProgram } from '../engine/kernel/process/program.ts'
import { stopSignal } from '../engine/kernel/process/signals.ts'
import { tableOf } from '../engine/kernel/process/table.ts'
import { SCOPES } from '../engine/store/secrets.ts'

/*
 * npm start: the complete path from packets to the API on this machine, with the released programs.
 * The service gets a demo organization, the collector reads the capture in the repository, and a
 * scan publishes the result.
 */
const DIST = fileURLToPath(new URL('..', import.meta.url))
const ROOT = join(DIST, '..')
const SERVICE = join(DIST, 'api/main.js')
const COLLECTOR = join(DIST, 'collector/main.js')
const CAPTURE = join(ROOT, 'test/captures/demo/input.pcap')
const ORGANIZATION = 'Demo'
const LABEL = 'npm start'
const LOOPBACK = '127.0.0.1'

interface DemoOptions {
  readonly dataDir: string
  readonly apiPort: string
  readonly consolePort: string
  readonly ingestPort: string
  readonly syslogPort: string
}

interface RunningService {
  readonly process: ChildProcess
  readonly apiPort: number
  readonly consolePort: number | undefined
  readonly ingestPort: number
  /** `tcp port 1514`; empty where syslog is off. */
  readonly syslog: readonly string[]
}

/**
 * Starts the service as a child that logs to this process's standard error. If the service fails to
 * start, it has printed the reason, and this process exits with the same status.
 */
async function startService(options: DemoOptions): Promise<RunningService> {
  const syslog = options.syslogPort === 'off' ? 'off' : `${LOOPBACK}:${options.syslogPort}`
  const parameters = [
    ...['--data-dir', join(options.dataDir, 'service')],
    ...['--api-address', LOOPBACK, '--api-port', options.apiPort, '--console-port', options.consolePort],
    ...['--ingest-address', LOOPBACK, '--ingest-port', options.ingestPort, '--metrics-port', '0'],
    // The standard port of syslog requires a privilege.
    ...['--sales-email', 'you@example.com'],
    ...['--syslog-tls', 'off', '--syslog-tcp', syslog, '--syslog-udp', syslog],
  ]
  const child = spawn(process.execPath, [SERVICE, ...parameters], {
    // On a terminal, the service would print a setup link of its own.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { LOG_LEVEL: 'WARNING', ...process.env },
  })
  const endEarly = (status: number | null): void => process.exit(status ?? ExitStatus.internal)
  child.once('exit', endEarly)
  const [{ apiPort, consolePort, ingestPort, syslog: listening }] = (await once(child, 'message')) as [Listening]
  child.off('exit', endEarly)
  // The channel stays open: if this process is killed, the service notices and stops.
  child.channel?.unref()
  const listeners = listening.map(({ kind, port }) => `${kind} port ${port}`)
  return { process: child, apiPort, consolePort, ingestPort, syslog: listeners }
}

/** How to open the console: by a setup link until somebody can sign in. */
async function showConsole(demo: Demo): Promise<void> {
  if (demo.consoleOrigin === '') return
  const [link] = (await demo.canSignIn())
    ? []
    : await demo.admin('setup-link', '--org', ORGANIZATION, '--console-origin', demo.consoleOrigin)
  print(
    `The console, in a browser that accepts the self-signed certificate:\n\n  ${link?.['url'] ?? demo.consoleOrigin}\n`,
  )
}

/** The message of posture-service to its parent when it serves. */
interface Listening {
  readonly apiPort: number
  /** undefined if the console is off. */
  readonly consolePort: number | undefined
  readonly ingestPort: number
  readonly syslog: readonly { readonly kind: string; readonly port: number }[]
}

/** Runs the first scan, or shows the scan of an earlier start. */
async function showDiscovery(demo: Demo): Promise<void> {
  if (await demo.hasCompletedScan()) {
    print(`continuing on the data in ${shortPath(demo.dataDir)}`)
    printTable(await demo.admin('scan', 'show', '--org', ORGANIZATION))
    printCurl(demo, '<the API key>')
    print('The API key was shown at the first start. To create another:')
    print(
      `  npx posture-admin key create mine --org ${ORGANIZATION} --scope discovery:read --data-dir ${shortPath(demo.serviceData)}\n`,
    )
  } else {
    const { key, token } = await demo.makeOrganization()
    print(`the collector reads ${shortPath(CAPTURE)} and forwards matches to the organization ${ORGANIZATION}`)
    await demo.collect(token)
    await demo.admin('scan', 'run', '--org', ORGANIZATION)
    const found = await demo.discovery(key)
    printTable(found.platforms)
    printSummary(found)
    printCurl(demo, key)
    print(`The monitoring token, for collectors and log forwarders: ${token}\n`)
  }
  if (demo.syslog.length > 0) print(`syslog listens on ${LOOPBACK}: ${demo.syslog.join(', ')}`)
  await showConsole(demo)
  print('serving until Ctrl-C')
}

class Demo {
  readonly dataDir: string
  readonly serviceData: string
  readonly certificate: string
  readonly url: string
  readonly syslog: readonly string[]
  /** '' if the console is off. */
  readonly consoleOrigin: string
  readonly #ingestPort: number

  constructor(options: DemoOptions, service: RunningService) {
    this.dataDir = options.dataDir
    this.serviceData = join(options.dataDir, 'service')
    this.certificate = join(this.serviceData, 'tls/certificate.pem')
    this.url = `https://localhost:${service.apiPort}/api/v1/discovery`
    this.syslog = service.syslog
    this.consoleOrigin = service.consolePort === undefined ? '' : `https://localhost:${service.consolePort}`
    this.#ingestPort = service.ingestPort
  }

  /**
   * Runs a posture-admin command on the service's data in this process. A new process takes most of
   * a second to start.
   */
  admin(...words: string[]): Promise<AdminRow[]> {
    return adminRows(...words, '--data-dir', this.serviceData)
  }

  /** Whether a member of the organization has an account for the console. */
  async canSignIn(): Promise<boolean> {
    const members = await this.admin('member', 'list', '--org', ORGANIZATION)
    return members.some((member) => member['can_sign_in'] === true)
  }

  async hasCompletedScan(): Promise<boolean> {
    if (!(await this.#hasOrganization())) return false
    const scans = await this.admin('scan', 'list', '--org', ORGANIZATION)
    return scans.some((scan) => scan['status'] === 'completed')
  }

  /**
   * Revokes the secrets of an interrupted start, which the user may not have seen, and creates new
   * ones.
   */
  async makeOrganization(): Promise<{ key: string; token: string }> {
    const exists = await this.#hasOrganization()
    for (const kind of exists ? ['key', 'token'] : []) {
      for (const old of await this.admin(kind, 'list', '--org', ORGANIZATION)) {
        if (old['label'] !== LABEL || old['revoked_at'] !== null) continue
        await this.admin(kind, 'revoke', String(old['id']), '--org', ORGANIZATION)
      }
    }
    const about = ['--org', ORGANIZATION, '--domain', 'demo.example', '--label', LABEL, '--scope', ...SCOPES]
    const [made] = await this.admin('setup', ...about, '--no-wait')
    return { key: String(made?.['key']), token: String(made?.['token']) }
  }

  async collect(token: string): Promise<void> {
    const parameters = [
      ...['--read', CAPTURE, '--shift-to-now', '--outbox', join(this.dataDir, 'collector')],
      ...['--endpoint', 'localhost', '--https-port', String(this.#ingestPort), '--service-ca-file', this.certificate],
    ]
    await runCollector(parameters, { LOG_LEVEL: 'WARNING', SVC_TOKEN: token })
  }

  /** Sends the request of the printed curl command: GET /api/v1/discovery. */
  async discovery(key: string): Promise<Discovery> {
    const dispatcher = new Agent({ connect: { ca: readFileSync(this.certificate) } })
    try {
      const answer = await request(this.url, { dispatcher, headers: { 'x-api-key': key } })
      if (answer.statusCode !== 200)
        throw new Fault('SERVICE_UNREACHABLE', `GET ${this.url} answered ${answer.statusCode}`)
      return (await answer.body.json()) as Discovery
    } finally {
      await dispatcher.close()
    }
  }

  async #hasOrganization(): Promise<boolean> {
    const organizations = await this.admin('organization', 'list')
    return organizations.some((organization) => organization['name'] === ORGANIZATION)
  }
}

/** Runs the collector until it exits. */
async function runCollector(parameters: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn(process.execPath, [COLLECTOR, ...parameters], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...environment },
  })
  const [status] = (await once(child, 'close')) as [number | null]
  if (status !== 0) throw new Fault('SERVICE_UNREACHABLE', `${shortPath(COLLECTOR)} ended with status ${status}`)
}

function printTable(rows: readonly AdminRow[]): void {
  print(`\n${tableOf({ columns: PLATFORM_COLUMNS, rows })}\n`)
}

function printSummary({ scan }: Discovery): void {
  if (scan === null) return
  const { platforms_discovered, shadow_ai_count, overall_risk_score } = scan.summary
  print(
    `${platforms_discovered} AI platforms, ${shadow_ai_count} not approved, overall risk ${overall_risk_score} of 100\n`,
  )
}

function printCurl(demo: Demo, key: string): void {
  print(`The same from the API:\n\n  curl --cacert ${shortPath(demo.certificate)} -H 'X-API-Key: ${key}' ${demo.url}\n`)
}

/** Relative to the working directory if the path is below it. */
function shortPath(path: string): string {
  const short = relative(process.cwd(), path)
  return short.startsWith('..') ? path : short
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

const program = createProgram('npm start --', 'Run the service and the collector on a sample capture')
  .option('--data-dir <directory>', 'Keep data in this directory between starts', join(ROOT, 'data'))
  .option('--api-port <port>', 'Serve the REST API on this port', '8443')
  .option('--console-port <port>', 'Serve the web console on this port', '8444')
  .option('--ingest-port <port>', 'Listen for HTTPS ingest on this port', '9443')
  .option('--syslog-port <port>', 'Listen for syslog over TCP and UDP on this port; "off" turns it off', '1514')
program.action(async (options: DemoOptions) => {
  const stop = stopSignal()
  const service = await startService(options)
  const ended = once(service.process, 'exit')
  try {
    await Promise.race([showDiscovery(new Demo(options, service)), stop.received])
    await Promise.race([stop.received, ended])
  } finally {
    if (service.process.exitCode === null) service.process.kill('SIGTERM')
    await ended
  }
  if (service.process.exitCode === 0) print('stopped')
  else process.exitCode = service.process.exitCode ?? ExitStatus.internal
})
await runProgram(program)
