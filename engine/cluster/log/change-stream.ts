import { JetStreamApiError, type StreamInfo } from '@nats-io/jetstream'
import { Fault } from '../../kernel/process/error-codes.ts'
import type { Logger } from '../../kernel/process/log.ts'
import { assertHas, type Brokers } from './brokers.ts'
import type { LogState } from './event-log.ts'
import { APPEND_MS, APPEND_MS_PER_KIBIBYTE } from './limits.ts'
import { StreamReader } from './stream-reader.ts'

const STREAM = 'changes'
const SUBJECT = 'changes'
/** The last message of the stream is another one than expected (NATS, server/errors.json). */
const CONFLICT_CODES: ReadonlySet<number> = new Set([10071, 10164])
/** No message of this number. */
const NO_MESSAGE = 10037

export interface StreamMessage {
  readonly sequence: number
  readonly bytes: Uint8Array
  /** Messages after it when the brokers sent it. */
  readonly pending: number
}

/**
 * The outcome of one attempt. `conflict`: another message has the number. `unknown`: the message
 * may be in the stream.
 */
export type AppendOutcome =
  | { readonly kind: 'appended' }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'unknown'; readonly why: string }

/**
 * The stream with what primaries write: changes, and who the primary is. A message is appended only
 * after the message that its writer expects. So there is one writer at a time, and a primary that
 * was replaced appends nothing.
 */
export class ChangeStream {
  readonly created: string
  readonly #brokers: Brokers
  readonly #log: Logger
  readonly #reader: StreamReader

  private constructor(brokers: Brokers, created: string, log: Logger) {
    this.#brokers = brokers
    this.#log = log
    this.created = created
    this.#reader = new StreamReader(brokers, STREAM)
  }

  /**
   * Creates the stream unless it exists.
   *
   * @param bytesMax of the stream, if this creates it
   * @throws Fault BROKERS_UNREACHABLE, BROKERS_UNSAFE
   */
  static async open(brokers: Brokers, bytesMax: number, log: Logger): Promise<ChangeStream> {
    const { created } = await brokers.provideStream(STREAM, [SUBJECT], bytesMax)
    return new ChangeStream(brokers, created, log)
  }

  /** Appends a message as number `sequence`, in one attempt. Attempts may be in flight in order. */
  async append(bytes: Uint8Array, sequence: number): Promise<AppendOutcome> {
    // The client loses what it publishes before it has connected again.
    if (!this.#brokers.isConnected) return { kind: 'unknown', why: 'no broker is connected' }
    try {
      await this.#brokers.client.publish(SUBJECT, bytes, {
        timeout: APPEND_MS + (bytes.length / 1024) * APPEND_MS_PER_KIBIBYTE,
        expect: { streamName: STREAM, lastSequence: sequence - 1 },
        retries: 0,
      })
      return { kind: 'appended' }
    } catch (error) {
      if (error instanceof JetStreamApiError && CONFLICT_CODES.has(error.code)) return { kind: 'conflict' }
      return { kind: 'unknown', why: (error as Error).message }
    }
  }

  /**
   * Message number `sequence`. undefined: there is none.
   *
   * @throws Fault BROKERS_UNREACHABLE
   */
  async message(sequence: number): Promise<Uint8Array | undefined> {
    try {
      const found = await this.#brokers.manager.streams.getMessage(STREAM, { seq: sequence })
      return found?.data
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === NO_MESSAGE) return undefined
      throw unreachable(error)
    }
  }

  /**
   * The messages after `after`, ascending, without end until stopReading(). Waits while the brokers
   * are not reachable.
   *
   * @throws Fault BROKERS_LOST if messages after `after` are missing
   */
  async *read(after: number): AsyncGenerator<StreamMessage> {
    const position = { sequence: after, created: this.created }
    for await (const { seq, data, info } of this.#reader.follow(position, this.#log))
      yield { sequence: seq, bytes: data, pending: info.pending }
  }

  /**
   * @throws Fault BROKERS_LOST unless the stream has every message after `sequence`;
   *   BROKERS_UNREACHABLE
   */
  async assertHas(sequence: number): Promise<void> {
    assertHas(await this.#info(), { sequence, created: this.created })
  }

  /** The number of the last message. @throws Fault BROKERS_UNREACHABLE, BROKERS_LOST */
  async lastSequence(): Promise<number> {
    return (await this.state()).lastSequence
  }

  /** How full it is. @throws Fault BROKERS_UNREACHABLE, BROKERS_LOST */
  async state(): Promise<LogState> {
    const { state, config } = await this.#info()
    return { lastSequence: state.last_seq, bytes: state.bytes, bytesMax: config.max_bytes }
  }

  async #info(): Promise<StreamInfo> {
    try {
      return await this.#brokers.info(STREAM)
    } catch (error) {
      throw error instanceof Fault ? error : unreachable(error)
    }
  }

  /** Deletes the messages up to `sequence`. */
  async trim(sequence: number): Promise<void> {
    await this.#brokers.trim(STREAM, sequence)
  }

  stopReading(): void {
    this.#reader.stop()
  }
}

function unreachable(error: unknown): Fault {
  return new Fault('BROKERS_UNREACHABLE', `stream ${STREAM}: ${(error as Error).message}`, { cause: error })
}
