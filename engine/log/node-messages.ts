import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node'

/** Each node listens on this and the id of its store. */
const SUBJECT = 'node.'

/**
 * Questions and answers between nodes, through the brokers, which store none of them. A question to
 * a node that does not listen fails at once.
 */
export class NodeMessages {
  readonly #connection: NatsConnection
  #subscription: Subscription | undefined

  constructor(connection: NatsConnection) {
    this.#connection = connection
  }

  /** Answers questions to node `id`. A question without an answer times out at its sender. */
  listen(id: string, answer: (question: Uint8Array) => Uint8Array | undefined): void {
    const callback = (error: Error | null, message: Msg): void => {
      const bytes = error === null ? answer(message.data) : undefined
      if (bytes !== undefined) message.respond(bytes)
    }
    this.#subscription = this.#connection.subscribe(SUBJECT + id, { callback })
  }

  stop(): void {
    this.#subscription?.unsubscribe()
  }

  /** undefined: the node does not listen, or did not answer in time. */
  async ask(id: string, question: Uint8Array, timeoutMs: number): Promise<Uint8Array | undefined> {
    try {
      return (await this.#connection.request(SUBJECT + id, question, { timeout: timeoutMs })).data
    } catch {
      return undefined
    }
  }
}
