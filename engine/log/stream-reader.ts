import { type ConsumerMessages, DeliverPolicy, type JsMsg } from '@nats-io/jetstream'
import type { Brokers } from './brokers.ts'
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
