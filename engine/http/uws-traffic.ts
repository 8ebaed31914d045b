import { BODILESS_ANSWERS_MEAN } from '../limits.ts'
import { EstimatedCounts } from './client-counts.ts'
import { Connections, UNLIMITED } from './connections.ts'
import { connectionsByClient } from './kernel-connections.ts'
import type { HttpListenOptions } from './port.ts'
import { TurnBudget } from './turn-budget.ts'
import { WaitingAnswers } from './waiting-answers.ts'

/** State shared by the connections and responses of a listener over uWebSockets.js. */
export class Traffic {
  /** Requests whose response the kernel has not accepted completely. */
  requests = 0
  /** The port that the listener is bound to. */
  port = 0
  readonly connections: Connections
  readonly waiting: WaitingAnswers
  readonly turn = new TurnBudget()
  #bodiless = 0

  constructor({ limits = UNLIMITED, connectionCounters, log }: HttpListenOptions) {
    const counts = new EstimatedCounts(() => connectionsByClient(this.port), log)
    this.connections = new Connections(limits, counts, connectionCounters, log)
    this.waiting = new WaitingAnswers(limits.perClientMax > 0)
  }

  /**
   * Whether to close the connection after a response without a body. The library buffers these for
   * clients that do not read, and reveals neither the buffered size nor the connection. So
   * connections are closed at random, which bounds the expected number per connection. The first
   * responses of a listener are exempt.
   */
  closesBodiless(): boolean {
    return ++this.#bodiless > BODILESS_ANSWERS_MEAN && Math.random() * BODILESS_ANSWERS_MEAN < 1
  }
}
