import type { Environment } from '../engine/lmdb/environment.ts'
import { SECOND_MS } from '../engine/process/clock.ts'
import { DESCRIPTORS_WARN_SHARE, type Descriptors, fileDescriptors } from '../engine/process/descriptors.ts'
import { Fault } from '../engine/process/error-codes.ts'
import { failureText, logFailure } from '../engine/process/failure.ts'
import type { Answer } from '../engine/process/local-server.ts'
import type { Logger } from '../engine/process/log.ts'
import type { MetricRow } from '../engine/process/metrics.ts'
import type { ScanSchedule } from '../engine/scan/schedule.ts'

/** Reports whether the service works, and logs when writing to the store fails and recovers. */
export class Health {
  readonly #environment: Environment
  readonly #schedule: Pick<ScanSchedule, 'failing'>
  readonly #log: Logger
  readonly #clusterProblems: () => readonly string[]
  readonly #descriptors: () => Descriptors | undefined
  #writes = true
  #hasDescriptors = true
  #timer: NodeJS.Timeout | undefined

  /** @param clusterProblems what does not work between this node and the brokers, one line each */
  constructor(
    environment: Environment,
    schedule: Pick<ScanSchedule, 'failing'>,
    log: Logger,
    clusterProblems: () => readonly string[] = () => [],
    descriptors: () => Descriptors | undefined = fileDescriptors,
  ) {
    this.#environment = environment
    this.#schedule = schedule
    this.#log = log
    this.#clusterProblems = clusterProblems
    this.#descriptors = descriptors
  }

  start(): void {
    this.poll()
    this.#timer = setInterval(() => this.poll(), SECOND_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Logs each change once. */
  poll(): void {
    const failure = this.#writeFailure()
    if (failure === undefined && !this.#writes) this.#log.info('the store is written again')
    if (failure !== undefined && this.#writes) {
      logFailure(this.#log, failure, 'the store is not written, senders are asked to wait; the API answers')
    }
    this.#writes = failure === undefined
    const fewDescriptors = this.#whyFewDescriptors()
    if (fewDescriptors !== undefined && this.#hasDescriptors) this.#log.warn(fewDescriptors)
    if (fewDescriptors === undefined && !this.#hasDescriptors) this.#log.info('enough file descriptors are free again')
    this.#hasDescriptors = fewDescriptors === undefined
  }

  /** Returns the problems, one line each; empty if there is none. */
  reasons(): string[] {
    const notWritten = this.#writeFailure()
    const failing = this.#schedule.failing
    const fewDescriptors = this.#whyFewDescriptors()
    return [
      ...this.#clusterProblems(),
      ...(fewDescriptors === undefined ? [] : [fewDescriptors]),
      ...(notWritten === undefined ? [] : [failureText(notWritten)]),
      ...(failing === 0 ? [] : [`the last scan of ${failing} organization${failing === 1 ? '' : 's'} failed`]),
    ]
  }

  /** Answers 503 while degraded, so that a probe needs only the status. */
  answer(): Answer {
    const reasons = this.reasons()
    const type = 'application/json'
    if (reasons.length === 0) return { type, body: JSON.stringify({ status: 'running' }) }
    return { type, status: 503, body: JSON.stringify({ status: 'degraded', reasons }) }
  }

  rows(): MetricRow[] {
    const degraded = this.reasons().length === 0 ? 0 : 1
    return [['posture_service_degraded', 'gauge', '1 while /healthz says degraded', degraded]]
  }

  #whyFewDescriptors(): string | undefined {
    const found = this.#descriptors()
    if (found === undefined || found.open < found.max * DESCRIPTORS_WARN_SHARE) return undefined
    const remedy = 'raise the limit (systemd: LimitNOFILE; shells: ulimit -n), or lower --connections-per-address'
    return `${found.open} of ${found.max} file descriptors are open; ${remedy}`
  }

  #writeFailure(): unknown {
    try {
      return this.#environment.full ? new Fault('STORE_FULL', 'the disk is full') : undefined
    } catch (error) {
      return error
    }
  }
}
