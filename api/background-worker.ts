import { Piscina } from 'piscina'
import { AlertRunner, type AlertStatus } from '../engine/alert/alert-runner.ts'
import { type ScheduledReportStatus, ScheduledReports } from '../engine/export/report/scheduled-reports.ts'
import { systemClock } from '../engine/kernel/process/clock.ts'
import { Fault, type PlainFault, plainFault } from '../engine/kernel/process/error-codes.ts'
import { createLogger, type Logger, type LogLevel, setLogLevel } from '../engine/kernel/process/log.ts'
import type { Network } from '../engine/kernel/process/network.ts'
import { SecretsKey } from '../engine/kernel/process/secrets-key.ts'
import { programVersion } from '../engine/kernel/process/version.ts'
import { type ScanOutcome, type ScanRequest, ScanRunner } from '../engine/scan/scan-runner.ts'
import { RegistryInForce } from '../engine/store/registry-in-force.ts'
import { Store } from '../engine/store/store.ts'

/** Options of the background thread. */
export interface BackgroundData {
  readonly dataDirectory: string
  /** Path of the key file of stored secrets. */
  readonly secretsKeyFile: string
}

/** Settings that a running service can change. */
export interface AlertSettings {
  readonly logLevel: LogLevel
  readonly outboundNetworks: readonly Network[]
  /** The public origin of the console, for links in alerts; '' if it is not set. */
  readonly consoleOrigin: string
}

/** A task of the background thread. `close` closes the store before the thread ends. */
export type BackgroundTask =
  | { readonly kind: 'scans'; readonly requests: readonly ScanRequest[] }
  | { readonly kind: 'alerts'; readonly settings: AlertSettings }
  | { readonly kind: 'close' }

/** The result, or the fault that prevented the task. `hasStarted`: its store was open. */
export type BackgroundAnswer =
  | { readonly kind: 'scanned'; readonly outcomes: readonly ScanOutcome[] }
  | { readonly kind: 'alerts'; readonly status: AlertStatus; readonly reports: ScheduledReportStatus }
  | { readonly kind: 'closed' }
  | { readonly kind: 'failed'; readonly fault: PlainFault; readonly hasStarted: boolean }

/** Milliseconds that messages in progress have to end when the service stops. */
const ALERT_GRACE_MS = 2000

/** What runs until the service stops. */
interface Sending {
  readonly runner: AlertRunner
  readonly reports: ScheduledReports
  readonly log: Logger
}

/** The thread runs scans on request, and evaluates and sends alerts and reports by itself. */
class Background {
  readonly #data: BackgroundData
  readonly #store: Store
  readonly #scans: ScanRunner
  readonly #registry: RegistryInForce
  #alerts: Sending | undefined

  constructor(data: BackgroundData) {
    this.#data = data
    this.#store = new Store(data.dataDirectory, { mustExist: true })
    this.#registry = new RegistryInForce(this.#store)
    this.#scans = new ScanRunner(this.#store, this.#registry, systemClock)
  }

  async run(task: BackgroundTask): Promise<BackgroundAnswer> {
    switch (task.kind) {
      case 'scans': {
        const outcomes = this.#scans.run(task.requests)
        this.#alerts?.runner.noteScanned(outcomes.map(({ scan }) => scan.organizationId))
        return { kind: 'scanned', outcomes }
      }
      case 'alerts': {
        const { runner, reports } = this.#alertsWith(task.settings)
        return { kind: 'alerts', status: runner.status(), reports: reports.status() }
      }
      case 'close':
        await this.#alerts?.reports.stop()
        await this.#alerts?.runner.stop(ALERT_GRACE_MS)
        await this.#store.close()
        return { kind: 'closed' }
      default:
        return task satisfies never
    }
  }

  #alertsWith({ logLevel, outboundNetworks: allowed, consoleOrigin }: AlertSettings): Sending {
    if (this.#alerts === undefined) {
      const log = createLogger('posture-service', logLevel)
      const secrets = new SecretsKey(this.#data.secretsKeyFile)
      const options = { secrets, allowed, version: programVersion(), consoleOrigin }
      const runner = new AlertRunner(this.#store, this.#registry, systemClock, log, options)
      const reports = new ScheduledReports({ store: this.#store, registry: this.#registry }, systemClock, log)
      this.#alerts = { runner, reports, log }
      runner.start()
      reports.start()
    }
    const { runner, log } = this.#alerts
    setLogLevel(log, logLevel)
    runner.allow(allowed)
    return this.#alerts
  }
}

const data = Piscina.workerData as BackgroundData
let background: Background | undefined

/** The piscina task. */
export default async function run(task: BackgroundTask): Promise<BackgroundAnswer> {
  try {
    if (task.kind === 'close' && background === undefined) return { kind: 'closed' }
    background ??= new Background(data)
    return await background.run(task)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { kind: 'failed', fault: plainFault(error), hasStarted: background !== undefined }
  }
}
