import { ANSWERS_WAITING_BYTES_MAX, ANSWERS_WAITING_PER_CLIENT_BYTES_MAX, REQUESTS_PER_TURN_MAX } from '../limits.ts'

/** A response that the kernel has not accepted completely. */
export interface WaitingAnswer {
  /** Closes the connection of the response. `remove` is called afterwards. */
  abort(): void
}

interface Held {
  readonly client: string
  readonly bytes: number
}

/**
 * The responses of a listener that wait for clients to read. If too many bytes wait, for one client
 * or for all, the responses that waited longest are aborted: a client that reads finishes soon.
 */
export class WaitingAnswers {
  /** Ordered by waiting time, longest first. */
  readonly #held = new Map<WaitingAnswer, Held>()
  readonly #byClient = new Map<string, number>()
  readonly #limitsClients: boolean
  #bytes = 0

  /** @param limitsClients false if all clients may share an address */
  constructor(limitsClients: boolean) {
    this.#limitsClients = limitsClients
  }

  add(answer: WaitingAnswer, client: string, bytes: number): void {
    this.#held.set(answer, { client, bytes })
    this.#byClient.set(client, (this.#byClient.get(client) ?? 0) + bytes)
    this.#bytes += bytes
    if (this.#bytes > ANSWERS_WAITING_BYTES_MAX) this.#abort(() => this.#bytes <= ANSWERS_WAITING_BYTES_MAX)
    if (!this.#limitsClients) return
    const isWithin = (): boolean => (this.#byClient.get(client) ?? 0) <= ANSWERS_WAITING_PER_CLIENT_BYTES_MAX
    if (!isWithin()) this.#abort(isWithin, client)
  }

  /** Call when the response has ended. Does nothing for a response that does not wait. */
  remove(answer: WaitingAnswer): void {
    const held = this.#held.get(answer)
    if (held === undefined) return
    this.#held.delete(answer)
    this.#bytes -= held.bytes
    const left = (this.#byClient.get(held.client) ?? 0) - held.bytes
    if (left > 0) this.#byClient.set(held.client, left)
    else this.#byClient.delete(held.client)
  }

  /** Aborts the responses that waited longest, of one client or of all, until `isWithin`. */
  #abort(isWithin: () => boolean, client?: string): void {
    for (const [answer, held] of this.#held) {
      if (isWithin()) return
      if (client !== undefined && held.client !== client) continue
      answer.abort()
      this.remove(answer)
    }
  }
}

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
