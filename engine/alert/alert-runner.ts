import { setImmediate as othersTurn } from 'node:timers/promises'
import { type Clock, SECOND_MS } from '../kernel/process/clock.ts'
import { isFault } from '../kernel/process/error-codes.ts'
import { logFailure } from '../kernel/process/failure.ts'
import type { Logger } from '../kernel/process/log.ts'
import type { Network } from '../kernel/process/network.ts'
import type { Registries } from '../store/registry-in-force.ts'
import type { Store } from '../store/store.ts'
import { Deliveries, type DeliveryCounters, type DeliveryOptions } from './deliveries.ts'
import { AlertEvaluator } from './evaluator.ts'

/** Silent senders, and keys that expire, are noticed within this time. */
const EVALUATE_EVERY_MS = 30 * SECOND_MS
const POLL_MESSAGES_EVERY_MS = SECOND_MS

/** What the alerts did since the start, and what waits. */
export interface AlertStatus {
  /** Alerts by rule. */
  readonly raised: Readonly<Record<string, number>>
  readonly evaluations: number
  readonly failedEvaluations: number
  readonly evaluationMs: number
  /** Messages by kind of channel and outcome, such as `webhook delivered`. */
  readonly messages: DeliveryCounters
  readonly channels: number
  readonly waiting: number
  readonly deadLetters: number
}

/** Evaluates the rules of all organizations, and delivers their messages. */
export class AlertRunner {
  readonly #store: Store
  readonly #log: Logger
  readonly #evaluator: AlertEvaluator
  readonly #deliveries: Deliveries
  readonly #raised: Record<string, number> = {}
  #evaluations = 0
  #failedEvaluations = 0
  #evaluationMs = 0
  /** Organizations to evaluate at once. */
  readonly #scanned = new Set<string>()
  #evaluating: Promise<void> | undefined
  readonly #timers: NodeJS.Timeout[] = []
  #stopped = false

  constructor(store: Store, registries: Registries, clock: Clock, log: Logger, options: DeliveryOptions) {
    this.#store = store
    this.#log = log
    this.#evaluator = new AlertEvaluator(store, registries, clock)
    this.#deliveries = new Deliveries(store, clock, log, options)
  }

  start(): void {
    this.#timers.push(
      setInterval(() => this.#evaluateAll(), EVALUATE_EVERY_MS),
      setInterval(() => this.#deliveries.poll(), POLL_MESSAGES_EVERY_MS),
    )
    this.#evaluateAll()
  }

  /** Evaluates organizations soon whose scan was completed. */
  noteScanned(organizationIds: readonly string[]): void {
    for (const id of organizationIds) this.#scanned.add(id)
    this.#evaluating ??= this.#evaluate()
  }

  /** Networks to which the service may connect although they are not public, from now on. */
  allow(networks: readonly Network[]): void {
    this.#deliveries.allow(networks)
  }

  status(): AlertStatus {
    const { environment, alertChannels } = this.#store
    const found = environment.read(() =>
      [...alertChannels.all()].map((each) => ({
        waiting: alertChannels.waiting(...each),
        deadLetters: alertChannels.deadLetterCount(...each),
      })),
    )
    return {
      raised: { ...this.#raised },
      evaluations: this.#evaluations,
      failedEvaluations: this.#failedEvaluations,
      evaluationMs: this.#evaluationMs,
      messages: { ...this.#deliveries.counters },
      channels: found.length,
      waiting: found.reduce((sum, { waiting }) => sum + waiting, 0),
      deadLetters: found.reduce((sum, { deadLetters }) => sum + deadLetters, 0),
    }
  }

  /** Resolves when nothing is being evaluated or sent. */
  async idle(): Promise<void> {
    while (this.#evaluating !== undefined) await this.#evaluating
    this.#deliveries.poll()
    await this.#deliveries.idle()
  }

  /** Messages in progress have `graceMs` to end. */
  async stop(graceMs: number): Promise<void> {
    this.#stopped = true
    for (const timer of this.#timers) clearInterval(timer)
    await this.#evaluating
    await this.#deliveries.stop(graceMs)
  }

  #evaluateAll(): void {
    const ids = this.#store.environment.read(() => this.#store.organizations.ids())
    for (const id of ids) this.#scanned.add(id)
    this.#evaluating ??= this.#evaluate()
  }

  /** One organization after the other, with other work in between. Never rejects. */
  async #evaluate(): Promise<void> {
    while (this.#scanned.size > 0 && !this.#stopped) {
      await othersTurn()
      for (const organizationId of this.#scanned) {
        this.#scanned.delete(organizationId)
        this.#evaluateOne(organizationId)
        break
      }
    }
    this.#evaluating = undefined
    if (!this.#stopped) this.#deliveries.poll()
  }

  #evaluateOne(organizationId: string): void {
    const startMs = performance.now()
    try {
      const { alerts } = this.#evaluator.evaluate(organizationId)
      for (const [rule, count] of Object.entries(alerts)) this.#raised[rule] = (this.#raised[rule] ?? 0) + count
    } catch (error) {
      this.#failedEvaluations++
      // Logged by the service while the disk is full.
      if (!isFault(error, 'STORE_FULL')) {
        logFailure(this.#log, error, 'could not evaluate alert rules; retrying', {
          fields: { organization: organizationId },
        })
      }
    }
    this.#evaluations++
    this.#evaluationMs += performance.now() - startMs
  }
}
