import type { Environment } from '../engine/kernel/lmdb/environment.ts'
import { SECOND_MS } from '../engine/kernel/process/clock.ts'
import { DESCRIPTORS_WARN_SHARE, type Descriptors, fileDescriptors } from '../engine/kernel/process/descriptors.ts'
import { Fault } from '../engine/kernel/process/error-codes.ts'
import { failureText, logFailure } from '../engine/kernel/process/failure.ts'
import type { Answer } from '../engine/kernel/process/local-server.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import type { MetricRow } from '../engine/kernel/process/metrics.ts'
import type { ScanSchedule } from '../engine/scan/schedule.ts'

/** What health depends on in a cluster. */
export interface NodeHealth {
  readonly name: string
  /** What does not work between this node and the brokers, one line each. */
  readonly problems: readonly string[]
  /** No change of the primary was received for too long. */
  readonly isStale: boolean
  readonly isPrimary: boolean
}

/** Reports whether the service works, and logs when writing to the store fails and recovers. */
export class Health {
  readonly #environment: Environment
  readonly #schedule: Pick<ScanSchedule, 'failing'>
  readonly #log: Logger
  readonly #node: NodeHealth | undefined
  readonly #descriptors: () => Descriptors | undefined
  readonly #expired: () => readonly string[]
  #writes = true
  #hasDescriptors = true
  #timer: NodeJS.Timeout | undefined

  /**
   * @param node undefined: the service is alone
   * @param expired what has expired, one line each: the registry, certificates
   */
  constructor(
    environment: Environment,
    schedule: Pick<ScanSchedule, 'failing'>,
    log: Logger,
    node: NodeHealth | undefined = undefined,
    descriptors: () => Descriptors | undefined = fileDescriptors,
    expired: () => readonly string[] = () => [],
  ) {
    this.#environment = environment
    this.#schedule = schedule
    this.#log = log
    this.#node = node
    this.#descriptors = descriptors
    this.#expired = expired
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
      ...(this.#node?.problems ?? []),
      ...(fewDescriptors === undefined ? [] : [fewDescriptors]),
      ...(notWritten === undefined ? [] : [failureText(notWritten)]),
      ...this.#expired(),
      ...(failing === 0 ? [] : [`the last scan of ${failing} organization${failing === 1 ? '' : 's'} failed`]),
    ]
  }

  /** Answers 503 while degraded, so that a probe needs only the status. */
  answer(): Answer {
    const reasons = this.reasons()
    return reasons.length === 0 ? this.#answer({ status: 'running' }) : this.#refuse({ status: 'degraded', reasons })
  }

  /** Any answer means live: a restart fixes none of the reasons. */
  live(): Answer {
    return this.#answer({ status: 'live' })
  }

  /**
   * Answers 503 while the API of this node does, so that a load balancer uses other nodes. What
   * fails on all nodes at once is no reason: senders would get no answer instead of a 503.
   */
  ready(): Answer {
    const reasons = this.reasons()
    if (this.#node?.isStale) return this.#refuse({ status: 'stale', reasons })
    return this.#answer({ status: 'ready', reasons })
  }

  /** Answers 200 on one node only, which serves the console. */
  primary(): Answer {
    const isPrimary = this.#node === undefined || (this.#node.isPrimary && !this.#node.isStale)
    return isPrimary ? this.#answer({ status: 'primary' }) : this.#refuse({ status: 'replica' })
  }

  rows(): MetricRow[] {
    const degraded = this.reasons().length === 0 ? 0 : 1
    return [['posture_service_degraded', 'gauge', '1 while /healthz says degraded', degraded]]
  }

  /** Names the node, because a probe may have asked any. */
  #answer(body: object): Answer {
    const node = this.#node && { node: this.#node.name }
    return { type: 'application/json', body: JSON.stringify({ ...body, ...node }) }
  }

  #refuse(body: object): Answer {
    return { ...this.#answer(body), status: 503 }
  }

  #whyFewDescriptors(): string | undefined {
    const found = this.#descriptors()
    if (found === undefined || found.open < found.max * DESCRIPTORS_WARN_SHARE) return undefined
    const remedy = 'raise the limit (systemd: LimitNOFILE; shells: ulimit -n), or lower --max-connections-per-address'
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
