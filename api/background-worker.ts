import { Piscina } from 'piscina'
import { AlertRunner } from '../engine/alert/alert-runner.ts'
import { systemClock } from '../engine/process/clock.ts'
import { Fault, plainFault } from '../engine/process/error-codes.ts'
import { createLogger, type Logger, setLogLevel } from '../engine/process/log.ts'
import { programVersion } from '../engine/process/program.ts'
import { SecretsKey } from '../engine/process/secrets-key.ts'
import { ScanRunner } from '../engine/scan/scan-runner.ts'
import { RegistryInForce } from '../engine/store/registry-in-force.ts'
import { Store } from '../engine/store/store.ts'
import type { AlertSettings, BackgroundAnswer, BackgroundData, BackgroundTask } from './background-task.ts'

/** Milliseconds that messages in progress have to end when the service stops. */
const ALERT_GRACE_MS = 2000

/** The thread runs scans when it is told to, and evaluates and sends alerts by itself. */
class Background {
  readonly #data: BackgroundData
  readonly #store: Store
  readonly #scans: ScanRunner
  #alerts: { readonly runner: AlertRunner; readonly log: Logger } | undefined

  constructor(data: BackgroundData) {
    this.#data = data
    this.#store = new Store(data.dataDirectory, { mustExist: true })
    this.#scans = new ScanRunner(this.#store, new RegistryInForce(this.#store), systemClock)
  }

  async run(task: BackgroundTask): Promise<BackgroundAnswer> {
    switch (task.kind) {
      case 'scans': {
        const outcomes = this.#scans.run(task.requests)
        this.#alerts?.runner.noteScanned(outcomes.map(({ scan }) => scan.organizationId))
        return { kind: 'scanned', outcomes }
      }
      case 'alerts':
        return { kind: 'alerts', status: this.#alertsWith(task.settings).status() }
      case 'close':
        await this.#alerts?.runner.stop(ALERT_GRACE_MS)
        await this.#store.close()
        return { kind: 'closed' }
      default:
        return task satisfies never
    }
  }

  #alertsWith({ logLevel, outboundNetworks: allowed }: AlertSettings): AlertRunner {
    if (this.#alerts === undefined) {
      const log = createLogger('posture-service', logLevel)
      const secrets = new SecretsKey(this.#data.secretsKeyFile)
      const options = { secrets, allowed, version: programVersion() }
      const runner = new AlertRunner(this.#store, systemClock, log, options)
      this.#alerts = { runner, log }
      runner.start()
    }
    const { runner, log } = this.#alerts
    setLogLevel(log, logLevel)
    runner.allow(allowed)
    return runner
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
    return { kind: 'failed', fault: plainFault(error) }
  }
}
