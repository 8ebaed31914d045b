import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node'

/** Each node publishes on this and the id of its store. */
const SUBJECT = 'node.'

/** Messages of this node to all others and from them, through the brokers, which store none. */
export class NodeMessages {
  readonly #connection: NatsConnection
  readonly #isConnected: () => boolean
  readonly #subject: string
  #subscription: Subscription | undefined

  /** @param id of the store of this node */
  constructor(connection: NatsConnection, id: string, isConnected: () => boolean) {
    this.#connection = connection
    this.#subject = SUBJECT + id
    this.#isConnected = isConnected
  }

  /** The client would send later what is published while it is not connected. */
  get isConnected(): boolean {
    return this.#isConnected() && !this.#connection.isClosed()
  }

  publish(message: Uint8Array): void {
    this.#connection.publish(this.#subject, message)
  }

  /** Receives the messages of the other nodes, as views that are valid during the call. */
  subscribe(receive: (message: Buffer) => void): void {
    const callback = (error: Error | null, { subject, data }: Msg): void => {
      if (error === null && subject !== this.#subject) receive(Buffer.from(data.buffer, data.byteOffset, data.length))
    }
    this.#subscription = this.#connection.subscribe(`${SUBJECT}*`, { callback })
  }

  stop(): void {
    this.#subscription?.unsubscribe()
  }
}
