import { REQUESTS_PER_TURN_MAX } from '../limits.ts'

/**
 * Counts the requests of a listener in each turn of the event loop. One read of a socket can bring
 * thousands of pipelined requests. Answering all at once would delay every other client.
 */
export class TurnBudget {
  #requests = 0

  /** Counts a request. Returns whether it exceeds REQUESTS_PER_TURN_MAX. */
  take(): boolean {
    if (this.#requests++ === 0) {
      setImmediate(() => {
        this.#requests = 0
      })
    }
    return this.#requests > REQUESTS_PER_TURN_MAX
  }
}
