import { setTimeout as later } from 'node:timers/promises'
import {
  type ConsumerMessages,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  type JsMsg,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamInfo,
} from '@nats-io/jetstream'
import { headers, type NatsConnection, nuid } from '@nats-io/transport-node'
import { SECOND_MS } from '../process/clock.ts'
import { Fault } from '../process/error-codes.ts'
import type { Logger } from '../process/log.ts'
import { checkBrokers } from './broker-check.ts'
import { type BrokerOptions, connectToBrokers } from './connection.ts'
import {
  type AppendFailure,
  type EventLog,
  type LogMessage,
  type LogPosition,
  type LogState,
  partitionOf,
} from './event-log.ts'
import { APPENDING_BYTES_MAX, UNSTORED_BYTES_MAX } from './limits.ts'

const STREAM = 'events'
const SUBJECTS = 'ev.>'
/** Any two of three brokers have every message. */
const REPLICAS = 3
/** When the batch was received, in milliseconds since 1970. */
const RECEIVED = 'Posture-Received'
const REQUEST_MS = 5 * SECOND_MS
/** Two missing heartbeats end a subscription, so reading continues soon after an election. */
const HEARTBEAT_MS = 2 * SECOND_MS
const STATE_MS = SECOND_MS
/** Brokers elect another leader in 4 to 9 seconds. Senders wait up to 30. */
const PATIENCE_MS = 20 * SECOND_MS
const RETRY_MS = 250
const CHECK_EVERY_MS = 60 * SECOND_MS
/** The stream's limit of bytes or messages is reached (NATS, server/errors.json). */
const FULL_CODES: ReadonlySet<number> = new Set([10077, 10047, 10023])

export interface JetStreamOptions extends BrokerOptions {
  /** The limit of the stream, if this creates it. */
  readonly bytesMax: number
}

/** A log in a stream of NATS JetStream with three replicas. */
export class JetStreamLog implements EventLog {
  readonly created: string
  readonly #connection: NatsConnection
  readonly #stream: JetStreamClient
  readonly #manager: JetStreamManager
  readonly #log: Logger
  readonly #closing = new AbortController()
  #appendingBytes = 0
  #problem: AppendFailure | undefined
  #messages: ConsumerMessages | undefined
  #timer: NodeJS.Timeout | undefined

  private constructor(connection: NatsConnection, manager: JetStreamManager, created: string, log: Logger) {
    this.#connection = connection
    this.#stream = jetstream(connection, { timeout: REQUEST_MS })
    this.#manager = manager
    this.created = created
    this.#log = log
  }

  /**
   * Connects, checks the brokers now, after each reconnection and every minute, and creates the
   * stream unless `after` says that a store has read it.
   *
   * @param onUnsafe receives the Fault of a later check. The service must stop.
   * @throws Fault USAGE, BROKERS_REFUSED, BROKERS_UNREACHABLE, BROKERS_UNSAFE, BROKERS_LOST
   */
  static async open(
    options: JetStreamOptions,
    after: LogPosition | undefined,
    log: Logger,
    onUnsafe: (fault: Fault) => void,
  ): Promise<JetStreamLog> {
    const connection = await patiently(() => connectToBrokers(options, log))
    try {
      await patiently(() => checkBrokers(connection, REPLICAS))
      const manager = await patiently(() => jetstreamManager(connection, { timeout: REQUEST_MS }))
      const info = await provideStream(manager, options.bytesMax, after)
      assertReplicas(info)
      assertHas(info, after)
      const opened = new JetStreamLog(connection, manager, info.created, log)
      opened.#checkFromNowOn(onUnsafe)
      return opened
    } catch (error) {
      await connection.close()
      if (error instanceof Fault) throw error
      throw new Fault('BROKERS_UNREACHABLE', `JetStream: ${(error as Error).message}`, { cause: error })
    }
  }

  get problem(): AppendFailure | undefined {
    return this.#problem
  }

  async append(organizationId: string, bytes: Uint8Array, receivedMs: number): Promise<AppendFailure | undefined> {
    if (this.#appendingBytes > 0 && this.#appendingBytes + bytes.length > APPENDING_BYTES_MAX)
      return 'the service is busy'
    this.#appendingBytes += bytes.length
    try {
      this.#problem = await this.#appendPatiently(organizationId, bytes, receivedMs)
      return this.#problem
    } finally {
      this.#appendingBytes -= bytes.length
    }
  }

  /** Retries with the same message id, which the brokers remember for two minutes. */
  async #appendPatiently(
    organizationId: string,
    bytes: Uint8Array,
    receivedMs: number,
  ): Promise<AppendFailure | undefined> {
    const fields = headers()
    fields.set(RECEIVED, String(receivedMs))
    const options = { msgID: nuid.next(), headers: fields, timeout: REQUEST_MS, expect: { streamName: STREAM } }
    const subject = `ev.${partitionOf(organizationId)}.${organizationId}`
    const endMs = performance.now() + PATIENCE_MS
    for (;;) {
      try {
        await this.#stream.publish(subject, bytes, options)
        return undefined
      } catch (error) {
        if (error instanceof JetStreamApiError && FULL_CODES.has(error.code)) return 'the log is full'
        if (performance.now() + REQUEST_MS > endMs || this.#closing.signal.aborted) {
          this.#log.warn({ reason: (error as Error).message }, 'a batch was not appended to the log')
          return 'the log is not reachable'
        }
        await later(RETRY_MS, undefined, { signal: this.#closing.signal }).catch(() => {})
      }
    }
  }

  async *read(after: LogPosition | undefined): AsyncGenerator<LogMessage> {
    let last = after?.sequence ?? 0
    while (!this.#closing.signal.aborted) {
      try {
        assertHas(await this.#manager.streams.info(STREAM), { sequence: last, created: this.created })
        const consumer = await this.#stream.consumers.get(STREAM, {
          deliver_policy: DeliverPolicy.StartSequence,
          opt_start_seq: last + 1,
        })
        this.#messages = await consumer.consume({
          max_bytes: UNSTORED_BYTES_MAX,
          idle_heartbeat: HEARTBEAT_MS,
        })
        for await (const message of this.#messages) {
          // The trimming of another service, or a consumer that was created again.
          if (message.seq <= last) continue
          last = message.seq
          yield messageOf(message)
        }
      } catch (error) {
        if (error instanceof Fault) throw error
        if (error instanceof JetStreamApiError && error.code === NO_STREAM) throw lost('the stream was deleted')
        if (!this.#closing.signal.aborted)
          this.#log.warn({ reason: (error as Error).message }, 'the log cannot be read, trying again')
      } finally {
        this.#messages?.stop()
      }
      await later(RETRY_MS, undefined, { signal: this.#closing.signal }).catch(() => {})
    }
  }

  async trim(sequence: number): Promise<void> {
    // Deletes what is before the given one.
    await this.#manager.streams.purge(STREAM, { seq: sequence + 1 })
  }

  async state(): Promise<LogState | undefined> {
    try {
      const info = await Promise.race([this.#manager.streams.info(STREAM), later(STATE_MS, undefined, { ref: false })])
      return info && { lastSequence: info.state.last_seq, bytes: info.state.bytes, bytesMax: info.config.max_bytes }
    } catch {
      return undefined
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#closing.abort()
    this.#messages?.stop()
    await this.#connection.close()
  }

  #checkFromNowOn(onUnsafe: (fault: Fault) => void): void {
    const check = async (): Promise<void> => {
      try {
        await checkBrokers(this.#connection, REPLICAS)
      } catch (error) {
        if (error instanceof Fault && error.code === 'BROKERS_UNSAFE') onUnsafe(error)
        else if (!this.#closing.signal.aborted)
          this.#log.warn({ reason: (error as Error).message }, 'the brokers cannot be checked')
      }
    }
    this.#timer = setInterval(() => void check(), CHECK_EVERY_MS)
    void this.#connection.closed().then((error) => {
      // Brokers that refuse the credentials twice are not asked again.
      if (!this.#closing.signal.aborted)
        onUnsafe(
          new Fault(
            'BROKERS_REFUSED',
            `the connection to the brokers was closed: ${error?.message ?? 'too many attempts'}`,
          ),
        )
    })
    void (async () => {
      for await (const { type } of this.#connection.status()) {
        if (type === 'disconnect') this.#problem = 'the log is not reachable'
        if (type !== 'reconnect') continue
        this.#problem = undefined
        await check()
      }
    })()
  }
}

/** The stream does not exist (NATS, server/errors.json). */
const NO_STREAM = 10059

/** Returns the stream. Creates it if no store has read it. */
async function provideStream(
  manager: JetStreamManager,
  bytesMax: number,
  after: LogPosition | undefined,
): Promise<StreamInfo> {
  return patiently(async () => {
    try {
      return await manager.streams.info(STREAM)
    } catch (error) {
      if (!(error instanceof JetStreamApiError && error.code === NO_STREAM)) throw error
      if (after !== undefined) throw lost('the brokers have no stream of this name')
      return manager.streams.add({
        name: STREAM,
        subjects: [SUBJECTS],
        num_replicas: REPLICAS,
        storage: StorageType.File,
        retention: RetentionPolicy.Limits,
        max_bytes: bytesMax,
        // Senders keep what the log refuses. What it has, a store may still have to read.
        discard: DiscardPolicy.New,
      })
    }
  })
}

function assertReplicas({ config }: StreamInfo): void {
  if (config.num_replicas >= REPLICAS && config.storage === StorageType.File && config.discard === DiscardPolicy.New)
    return
  const { num_replicas: replicas, storage, discard } = config
  throw new Fault(
    'BROKERS_UNSAFE',
    `stream ${STREAM}: expected ${REPLICAS} replicas, storage file, discard new; found ${replicas}, ${storage}, ${discard}`,
  )
}

/** @throws Fault BROKERS_LOST if the stream lacks messages after `after`. */
function assertHas({ created, state }: StreamInfo, after: LogPosition | undefined): void {
  if (after === undefined) {
    if (state.first_seq > 1) throw lost(`it begins with message ${state.first_seq}, and the store has read none`)
    return
  }
  if (created !== after.created)
    throw lost(`it was created at ${created}, and the store has read one of ${after.created}`)
  if (state.last_seq < after.sequence)
    throw lost(`it ends with message ${state.last_seq}, and the store has read ${after.sequence}`)
  if (state.first_seq > after.sequence + 1)
    throw lost(`it begins with message ${state.first_seq}, and the store has read to ${after.sequence}`)
}

function lost(why: string): Fault {
  return new Fault('BROKERS_LOST', `stream ${STREAM}: ${why}`)
}

function messageOf(message: JsMsg): LogMessage {
  return {
    sequence: message.seq,
    organizationId: message.subject.slice(message.subject.lastIndexOf('.') + 1),
    bytes: message.data,
    receivedMs: Number(message.headers?.get(RECEIVED) ?? Number.NaN) || message.time.getTime(),
  }
}

/** Repeats while the brokers elect a leader. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const isFinal = error instanceof Fault && error.code !== 'BROKERS_UNREACHABLE'
      if (isFinal || performance.now() > endMs) throw error
      await later(RETRY_MS)
    }
  }
}
