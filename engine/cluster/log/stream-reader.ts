import { setTimeout as later } from 'node:timers/promises'
import { type ConsumerMessages, DeliverPolicy, type JsMsg } from '@nats-io/jetstream'
import type { Logger } from '../../kernel/process/log.ts'
import { assertHas, type Brokers, lostMessages, RETRY_MS, StreamPatience } from './brokers.ts'
import type { LogPosition } from './event-log.ts'
import { CONSUMING, READ_AHEAD_BYTES_MAX, SILENT_HEARTBEATS_MAX, SILENT_HEARTBEATS_MIN } from './limits.ts'

/**
 * Reads a stream by one consumer after another. A consumer is on one broker. While that one is
 * down, the others neither send its messages nor report that it is gone, so the client waits. The
 * next consumer is on another broker.
 */
export class StreamReader {
  readonly #brokers: Brokers
  readonly #stream: string
  readonly #filter: { readonly filter_subjects?: string }
  #limit = SILENT_HEARTBEATS_MIN
  #messages: ConsumerMessages | undefined
  #isStopped = false

  /** @param subject of the messages to read. Otherwise all. */
  constructor(brokers: Brokers, stream: string, subject?: string) {
    this.#brokers = brokers
    this.#stream = stream
    this.#filter = subject === undefined ? {} : { filter_subjects: subject }
  }

  /** Whether nothing is read any more: after stop(), and when the connection is closed. */
  get isOver(): boolean {
    return this.#isStopped || this.#brokers.closing.signal.aborted
  }

  stop(): void {
    this.#isStopped = true
    this.#messages?.stop()
  }

  /**
   * The messages after `position`, ascending, without end until stop(). Waits while the brokers are
   * not reachable.
   *
   * @throws Fault BROKERS_LOST if messages after it are missing
   */
  async *follow({ sequence: first, created }: LogPosition, log: Logger): AsyncGenerator<JsMsg> {
    let sequence = first
    const patience = new StreamPatience()
    while (!this.isOver) {
      try {
        assertHas(await this.#brokers.info(this.#stream), { sequence, created })
        patience.reset()
        for await (const message of this.read(sequence + 1)) {
          // A consumer that was created again.
          if (message.seq <= sequence) continue
          if (message.seq > sequence + 1) throw lostMessages(this.#stream, `message ${sequence + 1} is missing`)
          sequence = message.seq
          yield message
        }
      } catch (error) {
        if (!patience.mayPass(error)) throw error
        const { message: reason } = error as Error
        if (!this.isOver) log.warn({ reason }, `stream ${this.#stream} cannot be read, trying again`)
      }
      await later(RETRY_MS, undefined, { signal: this.#brokers.closing.signal }).catch(() => {})
    }
  }

  /** The messages of a new consumer from number `first` on, until it is silent. */
  async *read(first: number): AsyncGenerator<JsMsg> {
    const consumer = await this.#brokers.client.consumers.get(this.#stream, {
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: first,
      ...this.#filter,
    })
    const messages = await consumer.consume({ max_bytes: READ_AHEAD_BYTES_MAX, ...CONSUMING })
    this.#messages = messages
    // stop() had nothing to stop yet.
    if (this.isOver) messages.stop()
    let isWaiting = true
    let isHeard = false
    /** Counted by the timer: a process that was paused does not take its pause for silence. */
    let missed = 0
    const heard = (): void => {
      isHeard = true
      missed = 0
    }
    const timer = setInterval(() => {
      if (isWaiting && ++missed > this.#limit) messages.stop()
    }, CONSUMING.idle_heartbeat)
    void (async () => {
      for await (const { type } of messages.status()) if (type === 'heartbeat') heard()
    })()
    try {
      for await (const message of messages) {
        isWaiting = false
        yield message
        isWaiting = true
        heard()
      }
    } finally {
      clearInterval(timer)
      messages.stop()
      // A large message may take longer on a slow link, and has no heartbeats in it.
      this.#limit = isHeard ? SILENT_HEARTBEATS_MIN : Math.min(2 * this.#limit, SILENT_HEARTBEATS_MAX)
    }
  }
}
