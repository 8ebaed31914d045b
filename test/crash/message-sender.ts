import { randomUUID } from 'node:crypto'
import { setTimeout as later } from 'node:timers/promises'
import { DeliverPolicy, DiscardPolicy, JetStreamApiError, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { headers, type NatsConnection } from '@nats-io/transport-node'
import { partitionOf } from '../../engine/cluster/log/event-log.ts'
import { packBatch } from '../../engine/kernel/event/event.ts'
import { BROKER_COUNT, type Brokers } from '../support/brokers.ts'
import { Sender } from '../support/store.ts'
import { until } from '../support/wait.ts'

const STREAM = 'events'
/** The stream does not exist (NATS, server/errors.json). */
const NO_STREAM = 10059
const ANSWER_MS = 2000
const PAUSE_MS = 20
const NUMBER = 'Number'

/**
 * Publishes messages without pause, and knows which ones the brokers acknowledged. Messages of an
 * organization that no service has, so services ignore them.
 */
export class MessageSender {
  readonly acknowledged: number[] = []
  readonly #connection: NatsConnection
  readonly #subject: string
  #isStopped = false
  #sending: Promise<void> | undefined

  private constructor(connection: NatsConnection) {
    this.#connection = connection
    const organizationId = randomUUID()
    this.#subject = `ev.${partitionOf(organizationId)}.${organizationId}`
  }

  /** Sends until `stop`. Waits for the stream, or creates it. */
  static async start(
    t: { teardown(work: () => unknown): void },
    brokers: Brokers,
    { createStream }: { readonly createStream: boolean },
  ): Promise<MessageSender> {
    const connection = await brokers.connect()
    t.teardown(() => connection.close())
    const sender = new MessageSender(connection)
    if (createStream) await until('no stream', () => sender.#createStream())
    sender.#sending = sender.#send()
    return sender
  }

  /** Waits until this many more messages are acknowledged. */
  async more(count: number): Promise<void> {
    const enough = this.acknowledged.length + count
    await until('no acknowledgements', () => this.acknowledged.length >= enough)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#sending
  }

  /** The acknowledged messages that the brokers do not have. */
  async lost(): Promise<number[]> {
    const { messages: count } = await this.stream()
    const kept = new Set<number>()
    if (count > 0) {
      const consumer = await jetstream(this.#connection).consumers.get(STREAM, { deliver_policy: DeliverPolicy.All })
      for await (const message of await consumer.consume()) {
        if (message.subject === this.#subject) kept.add(Number(message.headers?.get(NUMBER)))
        if (message.info.pending === 0) break
      }
    }
    return this.acknowledged.filter((number) => !kept.has(number))
  }

  /** The state of the stream, as soon as it has a leader, and the brokers with all its messages. */
  stream(): Promise<{ readonly messages: number; readonly leader: string; readonly current: readonly string[] }> {
    return until('no leader', async () => {
      try {
        const manager = await jetstreamManager(this.#connection, { timeout: ANSWER_MS })
        const { state, cluster: { leader = '', replicas = [] } = {} } = await manager.streams.info(STREAM)
        const followers = replicas.filter(({ current, offline }) => current && offline !== true)
        return (
          leader !== '' && { messages: state.messages, leader, current: [leader, ...followers.map(({ name }) => name)] }
        )
      } catch (error) {
        return isMissing(error) && { messages: 0, leader: '', current: [] }
      }
    })
  }

  async #createStream(): Promise<boolean> {
    try {
      const manager = await jetstreamManager(this.#connection, { timeout: ANSWER_MS })
      await manager.streams.add({
        name: STREAM,
        subjects: ['ev.>'],
        num_replicas: BROKER_COUNT,
        discard: DiscardPolicy.New,
      })
      return true
    } catch {
      return false
    }
  }

  async #send(): Promise<void> {
    const stream = jetstream(this.#connection, { timeout: ANSWER_MS })
    const sender = new Sender()
    for (let number = 0; !this.#isStopped; number++) {
      const fields = headers()
      fields.set(NUMBER, `${number}`)
      const body = packBatch([sender.event('claude.ai', Date.now())])
      try {
        await stream.publish(this.#subject, body, { headers: fields, timeout: ANSWER_MS })
        this.acknowledged.push(number)
      } catch {
        // Not acknowledged: the message may be kept or lost.
      }
      await later(PAUSE_MS)
    }
  }
}

const isMissing = (error: unknown): boolean => error instanceof JetStreamApiError && error.code === NO_STREAM
