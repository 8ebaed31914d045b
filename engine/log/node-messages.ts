import { type Msg, type NatsConnection, nuid, type Subscription } from '@nats-io/transport-node'

/** Each node listens on this and the id of its store. */
const SUBJECT = 'node.'
/**
 * And on this for one answer. Not on an inbox: who may publish to inboxes could forge the
 * answers of the brokers.
 */
const ANSWERS = 'answer.'

/**
 * Questions and answers between nodes, through the brokers, which store none of them. A question to
 * a node that does not listen fails at once.
 */
export class NodeMessages {
  readonly #connection: NatsConnection
  readonly #isConnected: () => boolean
  #subscription: Subscription | undefined

  constructor(connection: NatsConnection, isConnected: () => boolean) {
    this.#connection = connection
    this.#isConnected = isConnected
  }

  /** Answers questions to node `id`. A question without an answer times out at its sender. */
  listen(id: string, answer: (question: Uint8Array, respond: (answer: Uint8Array) => void) => void): void {
    const callback = (error: Error | null, message: Msg): void => {
      if (error === null) answer(message.data, (bytes) => message.respond(bytes))
    }
    this.#subscription = this.#connection.subscribe(SUBJECT + id, { callback })
  }

  stop(): void {
    this.#subscription?.unsubscribe()
  }

  /** undefined: the node does not listen, or did not answer in time. */
  async ask(id: string, question: Uint8Array, timeoutMs: number): Promise<Uint8Array | undefined> {
    // The client would send it after the reconnection, when nobody waits for the answer.
    if (!this.#isConnected()) return undefined
    const reply = ANSWERS + nuid.next()
    try {
      const options = { timeout: timeoutMs, noMux: true, reply }
      return (await this.#connection.request(SUBJECT + id, question, options)).data
    } catch {
      return undefined
    }
  }
}
