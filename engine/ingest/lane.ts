import { CR, digitsEnd, isDigit, LESS, LF, SPACE } from '../formats/bytes.ts'
import { HOUR_MS, SECOND_MS, systemClock } from '../kernel/process/clock.ts'
import { type Deferred, deferred } from '../kernel/process/deferred.ts'
import {
  LOG_BATCH_MS,
  MESSAGE_BYTES_MAX,
  NOTICES_PER_SECOND_MAX,
  SYSLOG_HELLO_MS,
  SYSLOG_MESSAGE_MS,
  SYSLOG_WAITING_BYTES_MAX,
} from '../limits.ts'
import type { KnownHosts } from '../store/registry-in-force.ts'
import type { Store } from '../store/store.ts'
import type { UnstoredPlaces } from './accept.ts'
import { Connection, type ConnectionReader, type Peer, WORK_BYTES } from './connection.ts'
import { MessagePipeline, type OutgoingBatch, type Taken } from './message-pipeline.ts'
import { NoticeLimiter } from './notice-limiter.ts'
import { Origin } from './origin.ts'
import type { TokenRate } from './rates.ts'
import { ReadBudget } from './read-budget.ts'
import { LISTENERS, type Listener } from './sources.ts'
import type { FromLane, LaneStatus, SenderNotice } from './thread-protocol.ts'
import { TokenAuthenticator } from './token-authenticator.ts'
import { DATAGRAM_WAIT_MS, WaitingDatagrams } from './waiting-datagrams.ts'

/** An inactive source is forgotten after this time. Its counters are in the store. */
const SOURCE_SILENT_MS = HOUR_MS

/** A UDP payload has at most 65,527 bytes. */
const LENGTH_DIGITS_MAX = 5
/** Of the lane's share of waiting bytes. */
const DATAGRAMS_SHARE = 0.25

/** Reads the bytes of connections, in this thread or another one. */
export interface ConnectionLane {
  /** Number of its connections. */
  readonly load: number
  /** Opens a connection, or a datagram peer of which each chunk is one message. */
  open(listener: Listener, address: string, port: number, peer: Peer): ConnectionReader
}

export interface LaneOptions {
  readonly store: Store
  readonly known: KnownHosts
  /** Maximum messages per token and second over all lanes. undefined: no limit. */
  readonly tokenRate: TokenRate | undefined
  /** Milliseconds without an authorized message after which a connection is closed. */
  readonly idleMs: number
  /** This lane's share of SYSLOG_WAITING_BYTES_MAX. */
  readonly waitingBytesMax?: number
  /** Replaces SYSLOG_HELLO_MS in tests. */
  readonly helloMs?: number
  readonly messageMs?: number
  /** Replaces DATAGRAM_WAIT_MS in tests. */
  readonly datagramWaitMs?: number
  /** Sends a message to the writer thread. */
  readonly notify: (message: FromLane, transfer: readonly ArrayBuffer[]) => void
}

/** What a lane could not store before it ended. */
export interface Unsettled {
  readonly messages: number
  readonly bytes: number
}

/**
 * Reads connections and datagrams and sends matches to the writer in batches. One instance per
 * thread.
 */
export class Lane implements ConnectionLane {
  readonly pipeline: MessagePipeline
  readonly budget: ReadBudget
  readonly #options: LaneOptions
  readonly #unauthenticated = new NoticeLimiter(NOTICES_PER_SECOND_MAX, SECOND_MS)
  readonly #misframed = new NoticeLimiter(NOTICES_PER_SECOND_MAX, SECOND_MS)
  readonly #connections = new Set<Connection>()
  readonly #datagrams: WaitingDatagrams
  /** Batches in transit to the writer. */
  readonly #inFlight = new Map<number, OutgoingBatch>()
  #batchId = 0
  #flushTimer: NodeJS.Timeout | undefined
  /** Resolves when nothing is left to store. Undefined unless the lane is draining. */
  #drained: Deferred<void> | undefined
  readonly #onTaken = (): void => this.#taken()

  constructor(options: LaneOptions) {
    this.#options = options
    this.budget = new ReadBudget(this.#connections, options.waitingBytesMax)
    this.#datagrams = new WaitingDatagrams({
      bytesMax: (options.waitingBytesMax ?? SYSLOG_WAITING_BYTES_MAX) * DATAGRAMS_SHARE,
      waitMs: options.datagramWaitMs ?? DATAGRAM_WAIT_MS,
      take: (datagram, origin) => this.#takeDatagram(datagram, origin),
    })
    const authenticator = new TokenAuthenticator(options.store, systemClock)
    this.pipeline = new MessagePipeline(new Uint8Array(WORK_BYTES), options.known, authenticator, {
      tokenRate: options.tokenRate,
      noteUnauthorized: (origin, hasToken) =>
        this.#notice(this.#unauthenticated, origin, hasToken ? 'unknownToken' : 'noToken'),
      noteFraming: (origin, fault) => this.#notice(this.#misframed, origin, fault),
      storesCoverage: true,
      holdsQuestions: true,
    })
  }

  get load(): number {
    return this.#connections.size
  }

  open(listener: Listener, address: string, port: number, peer: Peer): ConnectionReader {
    const origin = new Origin(listener, address, port)
    if (listener === 'udp') return new DatagramReader(this, origin)
    const connection = new Connection(peer, origin, this.pipeline, this.budget, this.#onTaken)
    this.#connections.add(connection)
    connection.ended.then(() => this.#connections.delete(connection))
    return connection
  }

  /** One datagram is one message (RFC 5426 §3.1). */
  takeDatagram(datagram: Uint8Array, origin: Origin): void {
    let end = Math.min(datagram.length, MESSAGE_BYTES_MAX)
    // Some senders append the delimiter of a stream.
    while (end > 0 && isTrailer(datagram[end - 1] ?? 0)) end--
    if (end === 0) return
    this.#datagrams.add(end === datagram.length ? datagram : datagram.subarray(0, end), origin, Date.now())
    this.#taken()
  }

  #takeDatagram(datagram: Uint8Array, origin: Origin): Taken {
    const { line } = this.pipeline
    const end = datagram.length
    line.bytes.set(datagram)
    // As for a connection that was stalled, the time at which it is processed.
    line.referenceMs = Date.now()
    return this.pipeline.take(afterCount(line.view, end), end, origin)
  }

  /** Limits before allocating: senders must not load the writer thread. */
  #notice(limiter: NoticeLimiter, { listener, address, port }: Origin, problem: SenderNotice['problem']): void {
    if (limiter.admit(address, this.pipeline.line.referenceMs))
      this.#options.notify({ kind: 'notice', problem, listener, address, port }, [])
  }

  /** Retries stalled messages. */
  resumeStalled(): void {
    for (const connection of this.#connections) if (connection.stalled) connection.resume()
    this.#datagrams.resume(Date.now())
    this.budget.releaseHold()
    this.#checkDrained()
  }

  /** Closes overdue connections and posts counters. Call about once a second. */
  sweep(nowMs: number): void {
    const { idleMs, helloMs = SYSLOG_HELLO_MS, messageMs = SYSLOG_MESSAGE_MS } = this.#options
    for (const connection of this.#connections) connection.sweep(nowMs, idleMs, helloMs, messageMs)
    this.resumeStalled()
    this.postCounters(nowMs)
  }

  postCounters(nowMs: number): void {
    const sources = this.pipeline.sources.takeDeltas(nowMs - SOURCE_SILENT_MS)
    const rejects = this.pipeline.takeRejects()
    const candidates = this.pipeline.candidates.take()
    if (sources.length + rejects.length + candidates.length > 0)
      this.#options.notify({ kind: 'counters', sources, rejects, candidates }, [])
  }

  /** The writer has stored a batch, or refused it because its organization was removed. */
  settled(id: number, unstored: UnstoredPlaces | 'all'): void {
    const batch = this.#inFlight.get(id)
    if (batch === undefined) return
    this.#inFlight.delete(id)
    this.pipeline.settled(batch, unstored)
    this.resumeStalled()
    this.#taken()
    this.#checkDrained()
  }

  /**
   * Resolves when everything read is stored, or at the deadline. Returns the remainder: messages
   * accepted but not stored, and bytes of stalled connections.
   */
  async drain(deadlineMs: number): Promise<Unsettled> {
    const drained = deferred()
    this.#drained = drained
    for (const connection of this.#connections) connection.settle()
    this.resumeStalled()
    const late = setTimeout(drained.resolve, deadlineMs)
    await drained.promise
    clearTimeout(late)
    clearTimeout(this.#flushTimer)
    this.#drained = undefined
    this.postCounters(Date.now())
    const messages = this.pipeline.unsettled + this.#datagrams.count
    let bytes = 0
    for (const { stalled, heldBytes } of this.#connections) if (stalled) bytes += heldBytes
    return { messages, bytes }
  }

  status(): LaneStatus {
    const { sources } = this.pipeline
    const messages = {} as Record<Listener, readonly number[]>
    for (const listener of LISTENERS) messages[listener] = Array.from(sources.listeners[listener])
    return {
      received: { ...sources.received },
      messages,
      tokens: Array.from(sources.tokens.values(), ({ organizationId, tokenId, label, counts }) => {
        return { organizationId, tokenId, label, counts: Array.from(counts) }
      }),
      oversized: this.budget.oversized,
      datagramsDropped: this.#datagrams.dropped,
      datagramsWaiting: this.#datagrams.count,
      sourcesOverflowed: sources.overflowed,
      ...this.pipeline.lineStatus(),
    }
  }

  /** Sends full batches now and partly filled ones after LOG_BATCH_MS. */
  #taken(): void {
    this.#send('full')
    if (this.#flushTimer !== undefined || this.pipeline.idle) return
    this.#flushTimer = setTimeout(() => {
      this.#flushTimer = undefined
      this.#send('due')
      // Batches over the in-flight limit wait for the next timer.
      this.#taken()
      this.resumeStalled()
    }, LOG_BATCH_MS)
  }

  #send(which: 'full' | 'due' | 'all'): void {
    for (const batch of this.pipeline.takeBatches(which)) {
      const id = ++this.#batchId
      this.#inFlight.set(id, batch)
      const { organizationId, deduplicate, bytes, reports } = batch
      this.#options.notify({ kind: 'batch', id, organizationId, deduplicate, bytes, reports }, [bytes.buffer])
    }
  }

  #checkDrained(): void {
    if (this.#drained === undefined) return
    this.#send('all')
    if (!this.pipeline.idle || this.#datagrams.count > 0) return
    // A stalled message may wait only for the token's rate. sweep() retries it.
    for (const { stalled } of this.#connections) if (stalled) return
    this.#drained.resolve()
  }
}

/** The messages of one datagram peer. */
class DatagramReader implements ConnectionReader {
  readonly #lane: Lane
  readonly #origin: Origin

  constructor(lane: Lane, origin: Origin) {
    this.#lane = lane
    this.#origin = origin
  }

  data(datagram: Uint8Array): void {
    this.#lane.takeDatagram(datagram, this.#origin)
  }

  end(): void {}

  close(): void {}
}

/** Returns the offset after `MSGLEN SP`, which some senders also put in datagrams, or 0. */
function afterCount(view: DataView, end: number): number {
  if (!isDigit(view.getUint8(0))) return 0
  const digits = digitsEnd(view, 0, Math.min(end, LENGTH_DIGITS_MAX + 1))
  const isCount = digits + 1 < end && view.getUint8(digits) === SPACE && view.getUint8(digits + 1) === LESS
  return isCount ? digits + 1 : 0
}

function isTrailer(byte: number): boolean {
  return byte === LF || byte === CR || byte === 0
}
