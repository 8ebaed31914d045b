import { setMaxListeners } from 'node:events'
import { setTimeout as later } from 'node:timers/promises'
import {
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  StoreCompression,
  type StreamInfo,
} from '@nats-io/jetstream'
import { AuthorizationError, type NatsConnection } from '@nats-io/transport-node'
import { z } from 'zod'
import { SECOND_MS } from '../../kernel/process/clock.ts'
import { Fault, isFault } from '../../kernel/process/error-codes.ts'
import type { Logger } from '../../kernel/process/log.ts'
import { type BrokerOptions, connectToBrokers, destroySocket } from './connection.ts'
import type { LogPosition, StreamReport } from './event-log.ts'
import { ENDS_BEFORE_MS, REFUSALS_MAX } from './limits.ts'
import { NodeMessages } from './node-messages.ts'

/** The first release with which this service was tested. */
const VERSION_MIN = [2, 15] as const

/** Exported by the system account to services (deploy/nats/nats.conf). */
const STATE_SUBJECT = '$SYS.REQ.SERVER.PING.JSZ'
const ANSWER_MS = 3000

const answerSchema = z.object({
  server: z.object({ name: z.string(), ver: z.string() }),
  data: z
    .object({
      disabled: z.boolean().optional(),
      config: z.object({ sync_always: z.boolean().optional() }).optional(),
    })
    .optional(),
})

/**
 * Checks that every broker is new enough, and flushes each message before it acknowledges it: with
 * the default of NATS, a power failure of all brokers loses the acknowledged messages of two
 * minutes. A broker that is down or has disabled JetStream does not count, so a majority of `count`
 * has to answer.
 *
 * @throws Fault BROKERS_UNSAFE; BROKERS_UNREACHABLE if fewer than a majority answers
 */
export async function checkBrokers(connection: NatsConnection, count: number): Promise<void> {
  const names = new Set<string>()
  try {
    const answers = await connection.requestMany(STATE_SUBJECT, '{}', {
      // Ends early if one is down: after 300 ms without an answer.
      strategy: 'stall',
      maxMessages: count,
      maxWait: ANSWER_MS,
    })
    for await (const answer of answers) {
      const { server, data } = answerSchema.parse(answer.json())
      // A broker whose disk is full disables JetStream, so it acknowledges nothing.
      if (data?.disabled === true) continue
      names.add(server.name)
      if (!isVersionEnough(server.ver)) {
        const expected = VERSION_MIN.join('.')
        throw new Fault('BROKERS_UNSAFE', `${server.name}: expected NATS ${expected} or later, found ${server.ver}`)
      }
      if (data?.config?.sync_always !== true) {
        throw new Fault(
          'BROKERS_UNSAFE',
          `${server.name}: acknowledges messages before they are on disk; set jetstream { sync_interval: always }`,
        )
      }
    }
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault('BROKERS_UNREACHABLE', `${STATE_SUBJECT}: ${(error as Error).message}`, { cause: error })
  }
  if (names.size <= count / 2) {
    throw new Fault(
      'BROKERS_UNREACHABLE',
      `${names.size} of ${count} brokers report that JetStream runs; deploy/nats/nats.conf has the permission`,
    )
  }
}

/** @param version such as 2.15.1 or 2.16.0-beta.1 */
function isVersionEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [majorMin, minorMin] = VERSION_MIN
  return major > majorMin || (major === majorMin && minor >= minorMin)
}

/** Any two of three brokers have every message. */
export const REPLICAS = 3
export const REQUEST_MS = 5 * SECOND_MS
/** Brokers elect another leader in 4 to 9 seconds. Senders wait up to 30. */
export const PATIENCE_MS = 20 * SECOND_MS
export const RETRY_MS = 250
/** Interval of log lines while the service waits for the brokers. */
const WAITING_LOG_MS = 2 * SECOND_MS
const CHECK_EVERY_MS = 60 * SECOND_MS
/** The stream does not exist (NATS, server/errors.json). */
const NO_STREAM = 10059

/** A connection to three brokers that were checked, now and from then on. */
export class Brokers {
  readonly client: JetStreamClient
  readonly manager: JetStreamManager
  readonly closing = new AbortController()
  /** Whether a broker is connected. */
  isConnected = true
  readonly #connection: NatsConnection
  readonly #log: Logger
  /** Streams that must keep what they have, and whether the service has to stop without them. */
  readonly #streams = new Map<string, boolean>()
  #timer: NodeJS.Timeout | undefined

  private constructor(connection: NatsConnection, manager: JetStreamManager, log: Logger) {
    this.#connection = connection
    this.client = jetstream(connection, { timeout: REQUEST_MS })
    this.manager = manager
    this.#log = log
  }

  /**
   * Connects, and checks the brokers now, after each reconnection and every minute.
   *
   * @param onUnsafe receives the Fault of a later check. The service must stop.
   * @throws Fault USAGE, BROKERS_REFUSED, BROKERS_UNREACHABLE, BROKERS_UNSAFE
   */
  static async open(options: BrokerOptions, log: Logger, onUnsafe: (fault: Fault) => void): Promise<Brokers> {
    const { servers } = options
    const waiting = setInterval(() => log.warn({ servers }, 'waiting for the brokers'), WAITING_LOG_MS)
    try {
      return await Brokers.#opened(options, log, onUnsafe)
    } finally {
      clearInterval(waiting)
    }
  }

  static async #opened(options: BrokerOptions, log: Logger, onUnsafe: (fault: Fault) => void): Promise<Brokers> {
    const connection = await patiently(() => connectToBrokers(options, log))
    try {
      await patiently(() => checkBrokers(connection, REPLICAS))
      const manager = await patiently(() => jetstreamManager(connection, { timeout: REQUEST_MS }))
      const brokers = new Brokers(connection, manager, log)
      // Each append that waits for a retry listens.
      setMaxListeners(0, brokers.closing.signal)
      brokers.#checkFromNowOn(onUnsafe)
      return brokers
    } catch (error) {
      await connection.close()
      if (error instanceof Fault) throw error
      throw new Fault('BROKERS_UNREACHABLE', `JetStream: ${(error as Error).message}`, { cause: error })
    }
  }

  /**
   * Returns a stream. Creates it with three replicas if it does not exist.
   *
   * @throws Fault BROKERS_UNREACHABLE; BROKERS_UNSAFE if it has fewer replicas, or limits by which
   *   it deletes messages
   */
  async provideStream(name: string, subjects: readonly string[], bytesMax: number): Promise<StreamInfo> {
    const provide = async (): Promise<StreamInfo> => {
      try {
        return await this.manager.streams.info(name)
      } catch (error) {
        if (!isNoStream(error)) throw error
        return this.manager.streams.add({
          name,
          subjects: [...subjects],
          num_replicas: REPLICAS,
          storage: StorageType.File,
          retention: RetentionPolicy.Limits,
          max_bytes: bytesMax,
          // With S2, NATS 2.15.1 cannot write to a stream after its processes were killed.
          compression: StoreCompression.None,
          // Senders keep what the log refuses. What it has, a store may still have to read.
          discard: DiscardPolicy.New,
        })
      }
    }
    const info = await orUnreachable(`stream ${name}`, () => patiently(provide))
    this.keep(info)
    return info
  }

  /**
   * Checks a stream now, after each reconnection and every minute.
   *
   * @param isNeeded whether the service has to stop when it was deleted
   * @throws Fault BROKERS_UNSAFE
   */
  keep(info: StreamInfo, isNeeded = true): void {
    assertKeeps(info)
    this.#streams.set(info.config.name, isNeeded)
  }

  /**
   * The state of a stream that exists.
   *
   * @throws Fault BROKERS_LOST if it was deleted. An error of the client if the brokers do not
   *   answer. Not so the creation of a consumer: a broker that restores its copy of the stream
   *   answers that there is none.
   */
  async info(stream: string): Promise<StreamInfo> {
    try {
      return await this.manager.streams.info(stream)
    } catch (error) {
      throw isNoStream(error) ? lostMessages(stream, 'it was deleted') : error
    }
  }

  /** The state of these streams. Throws if the brokers do not answer. */
  reports(names: readonly string[]): Promise<StreamReport[]> {
    return Promise.all(
      names.map(async (name) => {
        const { state, config, cluster } = await this.manager.streams.info(name)
        const followers = (cluster?.replicas ?? []).filter(({ current, offline }) => current && offline !== true)
        const leader = cluster?.leader ?? ''
        return {
          name,
          leader,
          current: followers.length + (leader === '' ? 0 : 1),
          replicas: config.num_replicas,
          messages: state.messages,
          bytes: state.bytes,
          bytesMax: config.max_bytes,
        }
      }),
    )
  }

  /**
   * Deletes the messages up to `sequence`, and never numbers that no message had yet.
   *
   * @throws Fault BROKERS_UNREACHABLE
   */
  trim(stream: string, sequence: number): Promise<void> {
    return orUnreachable(`stream ${stream}`, async () => {
      const { state } = await this.manager.streams.info(stream)
      // Deletes what is before the given one.
      await this.manager.streams.purge(stream, { seq: Math.min(sequence, state.last_seq) + 1 })
    })
  }

  /** @param node id of the store of this node */
  messagesOf(node: string): NodeMessages {
    return new NodeMessages(this.#connection, node, () => this.isConnected)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.closing.abort()
    await this.#connection.close()
    // An attempt to connect again is not ended by close().
    destroySocket(this.#connection)
  }

  /** @throws Fault BROKERS_UNSAFE, BROKERS_LOST */
  async #checkStream(name: string, isNeeded: boolean): Promise<void> {
    // The primary only writes to the stream of changes, and gets no answer when it was deleted.
    assertKeeps(await (isNeeded ? this.info(name) : this.manager.streams.info(name)))
  }

  #checkFromNowOn(onUnsafe: (fault: Fault) => void): void {
    const check = async (): Promise<void> => {
      try {
        await checkBrokers(this.#connection, REPLICAS)
        for (const [name, isNeeded] of this.#streams) await this.#checkStream(name, isNeeded)
      } catch (error) {
        if (isFault(error, 'BROKERS_UNSAFE') || isFault(error, 'BROKERS_LOST')) onUnsafe(error)
        else if (!this.closing.signal.aborted)
          this.#log.warn({ reason: (error as Error).message }, 'the brokers cannot be checked')
      }
    }
    this.#timer = setInterval(() => void check(), CHECK_EVERY_MS)
    void this.#connection.closed().then((error) => {
      if (this.closing.signal.aborted) return
      // Unexpected: the client tries to connect without end.
      const why = error?.message ?? 'no reason given'
      onUnsafe(new Fault('BROKERS_UNREACHABLE', `the connection to the brokers was closed: ${why}; start again`))
    })
    void (async () => {
      let refusals = 0
      for await (const status of this.#connection.status()) {
        if (status.type === 'disconnect') this.isConnected = false
        else if (status.type === 'error' && status.error instanceof AuthorizationError) {
          if (++refusals < REFUSALS_MAX) continue
          onUnsafe(new Fault('BROKERS_REFUSED', `${status.error.message}; check --broker-credentials-file`))
        } else if (status.type === 'reconnect' && !this.isConnected) {
          // The client says this again for each refusal, which it also keeps in memory until now.
          this.isConnected = true
          refusals = 0
          void check()
        }
      }
    })()
  }
}

export function isNoStream(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === NO_STREAM
}

/** The messages that a reader needs are gone. */
export function lostMessages(stream: string, why: string): Fault {
  return new Fault('BROKERS_LOST', `stream ${stream}: ${why}`)
}

/**
 * The broker that answered has lost the others, and does not know yet what they have. Or all have
 * lost messages that the store has. Then the store must not be replaced by a snapshot of theirs.
 */
export class StreamEndsBefore extends Fault {
  constructor(stream: string, last: number, sequence: number) {
    const fix = 'if the brokers have lost messages, see docs/operate/cluster.md'
    super('BROKERS_LOST', `stream ${stream}: it ends with message ${last}, and the store has ${sequence}; ${fix}`)
  }
}

/** Messages were trimmed that the store lacks. It has what the cluster had until then. */
export class StreamBeginsAfter extends Fault {
  constructor(stream: string, first: number, sequence: number) {
    super('BROKERS_LOST', `stream ${stream}: it begins with message ${first}, and the store has ${sequence}`)
  }
}

/** @throws Fault BROKERS_LOST unless the stream has every message after `position` */
export function assertHas({ config, created, state }: StreamInfo, position: LogPosition): void {
  const { name } = config
  const { sequence } = position
  if (created !== position.created)
    throw lostMessages(name, `it was created at ${created}, and the store has one of ${position.created}`)
  if (state.last_seq < sequence) throw new StreamEndsBefore(name, state.last_seq, sequence)
  if (state.first_seq > sequence + 1) throw new StreamBeginsAfter(name, state.first_seq, sequence)
}

/** What a stream must have, or more replicas. Limits of age or number delete messages. */
const KEEPING = {
  num_replicas: REPLICAS,
  storage: StorageType.File,
  retention: RetentionPolicy.Limits,
  discard: DiscardPolicy.New,
  max_age: 0,
  max_msgs: -1,
  max_msgs_per_subject: -1,
} as const

/** @throws Fault BROKERS_UNSAFE if the stream can lose what a reader has not read. */
function assertKeeps({ config }: StreamInfo): void {
  for (const [name, expected] of Object.entries(KEEPING)) {
    const found = config[name as keyof typeof KEEPING]
    const isGood = name === 'num_replicas' ? config.num_replicas >= REPLICAS : found === expected
    if (isGood) continue
    throw new Fault('BROKERS_UNSAFE', `stream ${config.name}: expected ${name} ${expected}, found ${found}`)
  }
}

/** Repeats while the brokers elect a leader, also while one answers that has lost the others. */
export async function patiently<T>(work: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!mayPass(error) || performance.now() > endMs) throw error
      await later(RETRY_MS)
    }
  }
}

/** Whether the next attempt may succeed. */
function mayPass(error: unknown): boolean {
  return !(error instanceof Fault) || error.code === 'BROKERS_UNREACHABLE' || error instanceof StreamEndsBefore
}

/** Waits for a stream that ends too early, until it has certainly lost messages. */
export class StreamPatience {
  #shortSinceMs: number | undefined

  /** Whether the next attempt may succeed. */
  mayPass(error: unknown): boolean {
    this.#shortSinceMs = error instanceof StreamEndsBefore ? (this.#shortSinceMs ?? performance.now()) : undefined
    const isLost = this.#shortSinceMs !== undefined && performance.now() - this.#shortSinceMs > ENDS_BEFORE_MS
    return !isLost && mayPass(error)
  }

  /** The stream has what it must have. */
  reset(): void {
    this.#shortSinceMs = undefined
  }
}

/** @throws Fault BROKERS_UNREACHABLE instead of the client's errors. Others are as they are. */
export async function orUnreachable<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Fault || (error as NodeJS.ErrnoException).syscall !== undefined) throw error
    throw new Fault('BROKERS_UNREACHABLE', `${what}: ${(error as Error).message}`, { cause: error })
  }
}
