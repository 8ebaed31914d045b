import type { ConsumerMessages, JsMsg } from '@nats-io/jetstream'
import { CONSUMING, SILENT_HEARTBEATS_MAX, SILENT_HEARTBEATS_MIN } from './limits.ts'

/**
 * Notices that a consumer is silent. A consumer is on one broker. While that one is down, the
 * others neither send its messages nor report that it is gone, so the client waits. The next
 * consumer is on another broker.
 */
export class ConsumerWatch {
  #limit = SILENT_HEARTBEATS_MIN

  /** The messages of a consumer, until it is silent. */
  async *untilSilent(messages: ConsumerMessages): AsyncGenerator<JsMsg> {
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
