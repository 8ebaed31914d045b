import { ANSWERS_WAITING_BYTES_MAX, ANSWERS_WAITING_PER_CLIENT_BYTES_MAX } from '../limits.ts'

/** An answer that the system has not taken whole. */
export interface WaitingAnswer {
  /** Closes its connection, after which `remove` is called. */
  cut(): void
}

interface Held {
  readonly client: string
  readonly bytes: number
}

/**
 * The answers of a listener that wait for clients to read. Where too much waits, for one client or for all, the answer that has waited
 * longest is cut: a client that reads is soon done.
 */
export class WaitingAnswers {
  /** In the order in which they began to wait. */
  readonly #held = new Map<WaitingAnswer, Held>()
  readonly #byClient = new Map<string, number>()
  readonly #limitsClients: boolean
  #bytes = 0

  /** @param limitsClients false if addresses do not tell clients apart. */
  constructor(limitsClients: boolean) {
    this.#limitsClients = limitsClients
  }

  add(answer: WaitingAnswer, client: string, bytes: number): void {
    this.#held.set(answer, { client, bytes })
    this.#byClient.set(client, (this.#byClient.get(client) ?? 0) + bytes)
    this.#bytes += bytes
    if (this.#bytes > ANSWERS_WAITING_BYTES_MAX) this.#cut(() => this.#bytes <= ANSWERS_WAITING_BYTES_MAX)
    if (!this.#limitsClients) return
    const isWithin = (): boolean => (this.#byClient.get(client) ?? 0) <= ANSWERS_WAITING_PER_CLIENT_BYTES_MAX
    if (!isWithin()) this.#cut(isWithin, client)
  }

  /** The answer is over. Does nothing for an answer that does not wait. */
  remove(answer: WaitingAnswer): void {
    const held = this.#held.get(answer)
    if (held === undefined) return
    this.#held.delete(answer)
    this.#bytes -= held.bytes
    const left = (this.#byClient.get(held.client) ?? 0) - held.bytes
    if (left > 0) this.#byClient.set(held.client, left)
    else this.#byClient.delete(held.client)
  }

  /** Cuts the answers that have waited longest, of the client if there is one, until `isWithin`. */
  #cut(isWithin: () => boolean, client?: string): void {
    for (const [answer, held] of this.#held) {
      if (isWithin()) return
      if (client !== undefined && held.client !== client) continue
      answer.cut()
      this.remove(answer)
    }
  }
}
