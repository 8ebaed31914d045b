import { DamagedChunk } from '../kernel/lmdb/queue.ts'
import { type Clock, SECOND_MS } from '../kernel/process/clock.ts'
import { failureText, logFailure } from '../kernel/process/failure.ts'
import { faultPoint } from '../kernel/process/fault-point.ts'
import type { Logger } from '../kernel/process/log.ts'
import type { Network } from '../kernel/process/network.ts'
import type { SecretsKey } from '../kernel/process/secrets-key.ts'
import { within } from '../kernel/process/signals.ts'
import { ALERT_ATTEMPT_MS, ALERT_RETRY_FOR_MS } from '../limits.ts'
import type { AlertChannel, AlertChannelKind, QueuedMessage } from '../store/alert-channels.ts'
import type { Store } from '../store/store.ts'
import { openSettings } from './channel-settings.ts'
import { completedMessage } from './completed-message.ts'
import type { ChannelMessage } from './message.ts'
import { send } from './send.ts'
import type { SendOutcome } from './send-outcome.ts'

/** The delay after the first failed attempt, and the longest one, in milliseconds. */
const RETRY_FIRST_MS = 2 * SECOND_MS
const RETRY_LONGEST_MS = 300 * SECOND_MS
/** How often a failing channel is logged at most. */
const LOG_FAILURE_EVERY_MS = 3600 * SECOND_MS

export interface DeliveryOptions {
  readonly secrets: SecretsKey
  /** Networks to which the service may connect although they are not public. */
  allowed: readonly Network[]
  readonly version: string
  /** The public origin of the console; '' or absent: messages have no links. */
  readonly consoleOrigin?: string
  readonly attemptMs?: number
  readonly random?: () => number
}

/** Counters since the start, by kind of channel and outcome. */
export type DeliveryCounters = Record<string, number>

/** What is remembered of a channel with messages. */
interface Channel {
  /** When the next attempt is due, in milliseconds since 1970. 0: now. */
  dueMs: number
  running: Promise<void> | undefined
  loggedMs: number
}

/**
 * Sends the queued messages of all channels: in order for each channel, and all channels at the
 * same time, so that a slow receiver delays no other. After a failure a message is sent again with
 * increasing delays for ALERT_RETRY_FOR_MS, then it becomes a dead letter. The time counts from its
 * first failed attempt: a message that waited for others, or for the service, has all of it left.
 *
 * A message is removed from its queue after the receiver accepted it. After a kill in between it is
 * sent again, with the same ids.
 */
export class Deliveries {
  readonly counters: DeliveryCounters = {}
  readonly #store: Store
  readonly #clock: Clock
  readonly #log: Logger
  readonly #options: DeliveryOptions
  readonly #channels = new Map<string, Channel>()
  readonly #abort = new AbortController()
  #stopped = false

  constructor(store: Store, clock: Clock, log: Logger, options: DeliveryOptions) {
    this.#store = store
    this.#clock = clock
    this.#log = log
    this.#options = options
  }

  /** Applies to attempts from now on. */
  allow(networks: readonly Network[]): void {
    this.#options.allowed = networks
  }

  /** Starts the attempts that are due. */
  poll(): void {
    if (this.#stopped) return
    const { environment, alertChannels } = this.#store
    const waiting = environment.read(() => {
      return [...alertChannels.all()].filter((each) => alertChannels.waiting(...each) > 0)
    })
    const keys = new Set(waiting.map((each) => each.join(' ')))
    for (const [key, { running }] of this.#channels) {
      if (!keys.has(key) && running === undefined) this.#channels.delete(key)
    }
    for (const [organizationId, channelId] of waiting) {
      const key = `${organizationId} ${channelId}`
      const channel = this.#channels.get(key) ?? { dueMs: 0, running: undefined, loggedMs: 0 }
      this.#channels.set(key, channel)
      if (channel.running !== undefined || !this.#isDue(channel)) continue
      channel.running = this.#run(organizationId, channelId, channel).finally(() => {
        channel.running = undefined
      })
    }
  }

  /** Resolves when no attempt is in progress. */
  async idle(): Promise<void> {
    while (true) {
      const running = [...this.#channels.values()].flatMap((channel) => channel.running ?? [])
      if (running.length === 0) return
      await Promise.all(running)
    }
  }

  /** Starts no more attempts. Those in progress have `graceMs` to end. */
  async stop(graceMs: number): Promise<void> {
    this.#stopped = true
    if (await within(graceMs, this.idle())) return
    this.#abort.abort()
    await this.idle()
  }

  /** After the clock was set back, a delay longer than any is over. */
  #isDue({ dueMs }: Channel): boolean {
    const waitMs = dueMs - this.#clock.nowMs()
    return waitMs <= 0 || waitMs > RETRY_LONGEST_MS * 12
  }

  /** Sends messages of one channel until none is left or one fails. Never rejects. */
  async #run(organizationId: string, channelId: string, channel: Channel): Promise<void> {
    try {
      while (!this.#stopped) {
        const next = this.#next(organizationId, channelId)
        if (next === undefined) return
        const outcome = await this.#attempt(next.channel, next.message)
        // Not a failure of the receiver. The message is sent again after the next start.
        if (outcome.kind !== 'delivered' && this.#abort.signal.aborted) return
        if (!this.#record(next.channel, next.message, outcome, channel)) return
      }
    } catch (error) {
      logFailure(this.#log, error, 'could not send an alert; retrying', { fields: { channel: channelId } })
      channel.dueMs = this.#clock.nowMs() + RETRY_LONGEST_MS
    }
  }

  #next(
    organizationId: string,
    channelId: string,
  ): { readonly channel: AlertChannel; readonly message: QueuedMessage } | undefined {
    const { environment, alertChannels, organizations } = this.#store
    const read = () => {
      const channel = alertChannels.get(organizationId, channelId)
      if (channel === undefined || !organizations.exists(organizationId)) return undefined
      const message = alertChannels.first(organizationId, channelId)
      return message && { channel, message }
    }
    try {
      return environment.read(read)
    } catch (error) {
      if (!(error instanceof DamagedChunk)) throw error
      logFailure(this.#log, error, 'messages to an alert channel are damaged and are lost', {
        fields: { channel: channelId },
      })
      environment.shrink(() => alertChannels.removeDamaged(organizationId, channelId, this.#clock.nowMs()))
      return environment.read(read)
    }
  }

  async #attempt(channel: AlertChannel, message: QueuedMessage): Promise<SendOutcome> {
    const { secrets, allowed, version, consoleOrigin = '', attemptMs = ALERT_ATTEMPT_MS } = this.#options
    faultPoint('alerts:before-send')
    try {
      const settings = openSettings(secrets, channel)
      const queued = JSON.parse(message.json) as ChannelMessage
      const json = this.#store.environment.read(() => completedMessage(this.#store, queued, consoleOrigin))
      // Until an erasure ends, it is not known who is left.
      if (json === undefined && this.#store.clientErasures.isErasing(channel.organizationId))
        return { kind: 'retry', why: 'clients are being erased' }
      if (json === undefined) return { kind: 'refused', why: 'the group has no manager or no use any more' }
      const options = { allowed, version, timeoutMs: attemptMs, signal: this.#abort.signal }
      const outcome = await send(settings, json, this.#clock, options)
      faultPoint('alerts:after-send')
      return outcome
    } catch (error) {
      logFailure(this.#log, error, 'an alert could not be sent', { fields: { channel: channel.id } })
      return { kind: 'retry', why: failureText(error) }
    }
  }

  /** Returns whether the next message is to be sent. */
  #record(channel: AlertChannel, message: QueuedMessage, outcome: SendOutcome, remembered: Channel): boolean {
    const { environment, alertChannels } = this.#store
    const { organizationId, id, kind } = channel
    const nowMs = this.#clock.nowMs()
    if (outcome.kind === 'delivered') {
      environment.shrink(() => alertChannels.deliver(organizationId, id, message.sequence, nowMs))
      faultPoint('alerts:delivered')
      this.#count(kind, 'delivered')
      remembered.dueMs = 0
      return true
    }
    const { why } = outcome
    const { failingSinceMs = nowMs } = alertChannels.state(organizationId, id)
    const isLate = nowMs - failingSinceMs >= ALERT_RETRY_FOR_MS
    if (outcome.kind === 'refused' || isLate) {
      environment.shrink(() => {
        alertChannels.postpone(organizationId, id, why, nowMs)
        alertChannels.fail(organizationId, id, message.sequence, why, nowMs)
      })
      this.#count(kind, 'dead')
      this.#log.error({ organization: organizationId, channel: id, kind, why }, 'an alert became a dead letter')
      remembered.dueMs = 0
      return true
    }
    const attempts = environment.shrink(() => {
      alertChannels.postpone(organizationId, id, why, nowMs)
      return alertChannels.state(organizationId, id).attempts
    })
    this.#count(kind, 'failed')
    remembered.dueMs = nowMs + Math.max(outcome.afterMs ?? 0, this.#backoffMs(attempts))
    if (nowMs - remembered.loggedMs >= LOG_FAILURE_EVERY_MS) {
      remembered.loggedMs = nowMs
      this.#log.warn({ organization: organizationId, channel: id, kind, why }, 'cannot send alerts; they wait')
    }
    return false
  }

  /** Exponential backoff with equal jitter: between half of a bound that doubles, and the bound. */
  #backoffMs(attempts: number): number {
    const { random = Math.random } = this.#options
    const bound = Math.min(RETRY_LONGEST_MS, RETRY_FIRST_MS * 2 ** Math.min(attempts - 1, 20))
    return Math.round(bound / 2 + (random() * bound) / 2)
  }

  #count(kind: AlertChannelKind, outcome: string): void {
    const name = `${kind} ${outcome}`
    this.counters[name] = (this.counters[name] ?? 0) + 1
  }
}
