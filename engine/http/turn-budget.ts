import { REQUESTS_PER_TURN_MAX } from '../limits.ts'

/**
 * Counts the requests of a listener in each turn of the event loop. One read of a socket can bring thousands of pipelined requests,
 * and answering them all at once would keep every other client waiting.
 */
export class TurnBudget {
  #requests = 0

  /** Counts a request. Returns whether it is beyond what one turn answers. */
  take(): boolean {
    if (this.#requests++ === 0) {
      setImmediate(() => {
        this.#requests = 0
      })
    }
    return this.#requests > REQUESTS_PER_TURN_MAX
  }
}
