import { BODILESS_ANSWERS_MEAN } from '../limits.ts'
import { EstimatedCounts } from './client-counts.ts'
import { Connections, UNLIMITED } from './connections.ts'
import type { HttpListenOptions } from './port.ts'
import { TurnBudget } from './turn-budget.ts'
import { WaitingAnswers } from './waiting-answers.ts'

/** What the connections and answers of a listener over uWebSockets.js share. */
export class Traffic {
  /** Whose answers the system has not taken whole. */
  requests = 0
  /** The port that the listener is bound to. */
  port = 0
  readonly connections: Connections
  readonly waiting: WaitingAnswers
  readonly turn = new TurnBudget()
  #bodiless = 0

  constructor({ limits = UNLIMITED, connectionCounters, log }: HttpListenOptions) {
    this.connections = new Connections(limits, new EstimatedCounts(() => this.port, log), connectionCounters, log)
    this.waiting = new WaitingAnswers(limits.perClientMax > 0)
  }

  /**
   * Whether an answer without a body is to be the last of its connection. The library does not tell what it keeps of these for a client that does not read,
   * nor which connection a request came by: so one of many closes, by chance, and none has many more. The first ones of a listener never do.
   */
  closesBodiless(): boolean {
    return ++this.#bodiless > BODILESS_ANSWERS_MEAN && Math.random() * BODILESS_ANSWERS_MEAN < 1
  }
}
