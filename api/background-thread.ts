import type { AlertStatus } from '../engine/alert/alert-runner.ts'
import { alertRows } from '../engine/alert/metrics.ts'
import { reportRows, type ScheduledReportStatus } from '../engine/export/report/scheduled-reports.ts'
import { SECOND_MS } from '../engine/kernel/process/clock.ts'
import { Fault } from '../engine/kernel/process/error-codes.ts'
import { logFailure } from '../engine/kernel/process/failure.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import type { MetricRow } from '../engine/kernel/process/metrics.ts'
import { secretsKeyFile } from '../engine/kernel/process/secrets-key.ts'
import { TaskThread } from '../engine/kernel/process/task-thread.ts'
import type { ScanOutcome, ScanRequest } from '../engine/scan/scan-runner.ts'
import type { ScanExecutor } from '../engine/scan/schedule.ts'
import type { Store } from '../engine/store/store.ts'
import type { AlertSettings, BackgroundAnswer, BackgroundData, BackgroundTask } from './background-worker.ts'

/** How often the service asks for the status, and restarts alerts after their thread ended. */
const ALERTS_EVERY_MS = 10 * SECOND_MS

/**
 * The thread of work that nobody waits for: scans, so that a full buffer blocks neither ingest nor
 * other work of the main thread; alerts; and scheduled reports. The thread starts with the first
 * scan, or with the first organization.
 */
export class BackgroundThread implements ScanExecutor {
  readonly #thread: TaskThread<BackgroundTask, BackgroundAnswer>
  readonly #log: Logger
  #status: AlertStatus | undefined
  #reports: ScheduledReportStatus | undefined
  #timer: NodeJS.Timeout | undefined
  #asking = false

  constructor(dataDirectory: string, keyFileSetting: string, log: Logger) {
    const data: BackgroundData = { dataDirectory, secretsKeyFile: secretsKeyFile(keyFileSetting, dataDirectory) }
    this.#log = log
    this.#thread = new TaskThread({
      file: new URL('./background-worker.js', import.meta.url),
      data,
      onError: (error) => log.error({ err: error }, 'the thread of scans and alerts ended'),
    })
  }

  async run(requests: readonly ScanRequest[]): Promise<readonly ScanOutcome[]> {
    const answer = await this.#answer({ kind: 'scans', requests })
    if (answer.kind !== 'scanned') throw new Error(`a scan was answered with ${answer.kind}`)
    return answer.outcomes
  }

  /**
   * Starts alerts as soon as there is an organization.
   *
   * @param settings called each time, so that changes apply
   */
  startAlerts({ environment, organizations }: Store, settings: () => AlertSettings): void {
    const hasOrganization = (): boolean => environment.read(() => organizations.ids().length > 0)
    const ask = (): void => {
      if (this.#asking || !(this.#thread.hasStarted || hasOrganization())) return
      this.#asking = true
      this.#pollAlerts(settings())
        .catch((error) => logFailure(this.#log, error, 'alerts could not be started; retrying'))
        .finally(() => {
          this.#asking = false
        })
    }
    ask()
    this.#timer = setInterval(ask, ALERTS_EVERY_MS)
  }

  metricRows(): MetricRow[] {
    return [...alertRows(this.#status), ...reportRows(this.#reports)]
  }

  /** Waits for running scans, and briefly for messages in progress. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#thread.close({ kind: 'close' })
  }

  async #pollAlerts(settings: AlertSettings): Promise<void> {
    const answer = await this.#answer({ kind: 'alerts', settings })
    if (answer.kind !== 'alerts') return
    this.#status = answer.status
    this.#reports = answer.reports
  }

  async #answer(task: BackgroundTask): Promise<Exclude<BackgroundAnswer, { readonly kind: 'failed' }>> {
    const answer = await this.#thread.run(task)
    if (answer.kind !== 'failed') return answer
    // Otherwise alerts that it is just sending would be sent again.
    if (!answer.hasStarted) await this.#thread.discard()
    throw new Fault(answer.fault.code, answer.fault.message)
  }
}
