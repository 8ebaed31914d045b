import { setTimeout as later } from 'node:timers/promises'
import { JetStreamApiError, type JetStreamPublishOptions, type JsMsg } from '@nats-io/jetstream'
import { headers, nuid } from '@nats-io/transport-node'
import { SECOND_MS } from '../../kernel/process/clock.ts'
import type { Logger } from '../../kernel/process/log.ts'
import { type Brokers, PATIENCE_MS, REQUEST_MS, RETRY_MS } from './brokers.ts'
import {
  type AppendFailure,
  type EventLog,
  type LogMessage,
  type LogPosition,
  type LogState,
  partitionOf,
} from './event-log.ts'
import { APPENDING_BYTES_MAX } from './limits.ts'
import { StreamReader } from './stream-reader.ts'

const STREAM = 'events'
const EVENT_SUBJECTS = 'ev.>'
/** Counters of the nodes: of senders, and uses of keys. */
const COUNTERS_SUBJECT = 'counters'
/** When the batch was received, in milliseconds since 1970. */
const RECEIVED = 'Posture-Received'
const STATE_MS = SECOND_MS
/** The stream's limit of bytes or messages is reached (NATS, server/errors.json). */
const FULL_CODES: ReadonlySet<number> = new Set([10077, 10047, 10023])

/** A log in a stream of NATS JetStream with three replicas. */
export class JetStreamLog implements EventLog {
  readonly created: string
  readonly #brokers: Brokers
  readonly #log: Logger
  #appendingBytes = 0
  #problem: AppendFailure | undefined
  readonly #reader: StreamReader

  private constructor(brokers: Brokers, created: string, log: Logger) {
    this.#brokers = brokers
    this.created = created
    this.#log = log
    this.#reader = new StreamReader(brokers, STREAM)
  }

  /**
   * Creates the stream unless it exists.
   *
   * @param bytesMax of the stream, if this creates it
   * @throws Fault BROKERS_UNREACHABLE, BROKERS_UNSAFE
   */
  static async open(brokers: Brokers, bytesMax: number, log: Logger): Promise<JetStreamLog> {
    const { created } = await brokers.provideStream(STREAM, [EVENT_SUBJECTS, COUNTERS_SUBJECT], bytesMax)
    return new JetStreamLog(brokers, created, log)
  }

  get problem(): AppendFailure | undefined {
    return this.#brokers.isConnected ? this.#problem : 'the log is not reachable'
  }

  append(organizationId: string, bytes: Uint8Array, receivedMs: number): Promise<AppendFailure | undefined> {
    return this.#append(`ev.${partitionOf(organizationId)}.${organizationId}`, bytes, receivedMs)
  }

  appendCounters(bytes: Uint8Array): Promise<AppendFailure | undefined> {
    return this.#append(COUNTERS_SUBJECT, bytes, Date.now())
  }

  async #append(subject: string, bytes: Uint8Array, receivedMs: number): Promise<AppendFailure | undefined> {
    if (this.#appendingBytes > 0 && this.#appendingBytes + bytes.length > APPENDING_BYTES_MAX)
      return 'the service is busy'
    this.#appendingBytes += bytes.length
    try {
      this.#problem = await this.#appendPatiently(subject, bytes, receivedMs)
      return this.#problem
    } finally {
      this.#appendingBytes -= bytes.length
    }
  }

  /** Retries with the same message id, which the brokers remember for two minutes. */
  async #appendPatiently(subject: string, bytes: Uint8Array, receivedMs: number): Promise<AppendFailure | undefined> {
    const { client, closing } = this.#brokers
    const fields = headers()
    fields.set(RECEIVED, String(receivedMs))
    const options: Partial<JetStreamPublishOptions> = { headers: fields, timeout: REQUEST_MS }
    const expectations = { msgID: nuid.next(), expect: { streamName: STREAM } }
    const endMs = performance.now() + PATIENCE_MS
    for (;;) {
      try {
        await client.publish(subject, bytes, { ...options, ...expectations })
        return undefined
      } catch (error) {
        if (error instanceof JetStreamApiError && FULL_CODES.has(error.code)) return 'the log is full'
        if (performance.now() + REQUEST_MS > endMs || closing.signal.aborted) {
          this.#log.warn({ reason: (error as Error).message }, 'a batch was not appended to the log')
          return 'the log is not reachable'
        }
        await later(RETRY_MS, undefined, { signal: closing.signal }).catch(() => {})
      }
    }
  }

  async *read(after: LogPosition | undefined): AsyncGenerator<LogMessage> {
    const position = after ?? { sequence: 0, created: this.created }
    for await (const message of this.#reader.follow(position, this.#log)) yield messageOf(message)
  }

  async trim(sequence: number): Promise<void> {
    await this.#brokers.trim(STREAM, sequence)
  }

  async state(): Promise<LogState | undefined> {
    try {
      const { streams } = this.#brokers.manager
      const info = await Promise.race([streams.info(STREAM), later(STATE_MS, undefined, { ref: false })])
      return info && { lastSequence: info.state.last_seq, bytes: info.state.bytes, bytesMax: info.config.max_bytes }
    } catch {
      return undefined
    }
  }

  stopReading(): void {
    this.#reader.stop()
  }
}

function messageOf(message: JsMsg): LogMessage {
  const { seq: sequence, subject, data: bytes } = message
  const receivedMs = Number(message.headers?.get(RECEIVED) ?? Number.NaN) || message.time.getTime()
  if (subject === COUNTERS_SUBJECT) return { kind: 'counters', sequence, bytes, receivedMs }
  return {
    kind: 'events',
    sequence,
    organizationId: subject.slice(subject.lastIndexOf('.') + 1),
    bytes,
    receivedMs,
  }
}
