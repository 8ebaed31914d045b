import { LocalServer } from '../engine/kernel/process/local-server.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import { Metrics } from '../engine/kernel/process/metrics.ts'
import type { Catalog } from '../registry/catalog.ts'
import { type Balance, balancesOf } from './accounting.ts'
import { Collector, type CollectorOptions } from './collector.ts'
import { type CollectorSettings, liveOptions } from './config.ts'
import { CAPTURE_HANGING_CHECKS, SENSOR_POLL_MS, SILENT_THREAD_MS } from './limits.ts'
import { metricRows } from './metrics.ts'
import type { CaptureWorker } from './pipeline/capture-worker.ts'
import { degradedReasons, healthRecord } from './status.ts'

/** The response of GET /counters, which `posture-collector counters` prints. */
interface CountersRecord {
  readonly interface: string
  readonly uptime_seconds: number
  readonly counters: readonly Balance[]
}

/**
 * A collector that watches an interface, with its local endpoint. Logs changes of state.
 */
export class Sensor {
  readonly collector: Collector
  readonly #log: Logger
  readonly #settings: CollectorSettings
  readonly #metrics = new Metrics()
  #health: LocalServer | undefined
  #timer: NodeJS.Timeout | undefined
  #reasons = ''
  #hangingChecks = 0

  /** @throws Fault of the settings and of the outbox. */
  constructor(
    settings: CollectorSettings,
    thread: CaptureWorker | undefined,
    catalog: Catalog,
    log: Logger,
    options: CollectorOptions,
  ) {
    this.#settings = settings
    this.#log = log
    const onOpen = (): void => {
      log.info({ interface: settings.interface, health: `http://127.0.0.1:${this.#health?.port}/health` }, 'watching')
      this.#timer = setInterval(() => this.#poll(), SENSOR_POLL_MS)
    }
    const source = { kind: 'interface', live: liveOptions(settings), thread, onOpen } as const
    this.collector = new Collector(settings, source, catalog, log, options)
  }

  /** Runs until stopped. @throws Faults of Collector.run() and of the local endpoint. */
  async run(): ReturnType<Collector['run']> {
    const { collector } = this
    const started =
      <A>(answer: () => A) =>
      () =>
        collector.started ? answer() : undefined
    const json = (value: unknown) => ({ type: 'application/json', body: `${JSON.stringify(value)}\n` })
    const answers = {
      '/health': started(() => json(healthRecord(collector.status))),
      '/metrics': started(() => this.#metrics.render(metricRows(collector.status))),
      '/counters': started(() => json(countersRecord(collector))),
    }
    this.#health = await LocalServer.listen('HEALTH_PORT', this.#settings.healthPort, answers, this.#log)
    try {
      return await this.collector.run()
    } finally {
      clearInterval(this.#timer)
      this.#metrics.close()
      await this.#health.close()
    }
  }

  /** Logs a change of state with its reason. */
  #poll(): void {
    const { status } = this.collector
    // Counts checks instead of time: a process that was suspended for an hour has not hung.
    this.#hangingChecks = status.liveAgeMs >= SILENT_THREAD_MS && !status.outboxFull ? this.#hangingChecks + 1 : 0
    if (this.#hangingChecks >= CAPTURE_HANGING_CHECKS) {
      // A thread that hangs in a driver cannot be ended in another way. All matches are on disk.
      this.#log.fatal({ seconds: Math.round(status.liveAgeMs / 1000) }, 'the capture thread hangs, exiting')
      process.kill(process.pid, 'SIGKILL')
    }
    const reasons = degradedReasons(status).join('; ')
    // Numbers in a reason change all the time.
    if (reasons.replace(/\d+/g, '') === this.#reasons.replace(/\d+/g, '')) return
    this.#reasons = reasons
    if (reasons === '') this.#log.info('running again')
    else this.#log.warn({ reason: reasons }, 'degraded')
  }
}

function countersRecord({ status }: Collector): CountersRecord {
  return { interface: status.source, uptime_seconds: status.uptimeSeconds, counters: balancesOf(status) }
}
