import {
  LOG_BATCH_MS,
  MESSAGE_BYTES_MAX,
  SYSLOG_HELLO_MS,
  SYSLOG_MESSAGE_MS,
  UNAUTHENTICATED_NOTICES_PER_SECOND_MAX,
} from '../limits.ts'
import { HOUR_MS, SECOND_MS, systemClock } from '../process/clock.ts'
import { type Deferred, deferred } from '../process/deferred.ts'
import type { Store } from '../store/store.ts'
import type { UnstoredPlaces } from './accept.ts'
import { Connection, type ConnectionReader, type Peer, WORK_BYTES } from './connection.ts'
import { CR, digitsEnd, isDigit, LESS, LF, SPACE } from './formats/bytes.ts'
import { FORMATS } from './formats/formats.ts'
import { Intake, Origin, type OutgoingBatch, VERDICTS } from './intake.ts'
import { NoticeLimiter } from './notice-limiter.ts'
import { ReadBudget } from './read-budget.ts'
import { LISTENERS, type Listener } from './sources.ts'
import type { FromLane, LaneStatus } from './thread-protocol.ts'
import { TokenAuthenticator } from './token-authenticator.ts'
import type { TokenRate } from './token-rate.ts'

/** A source that was silent for so long is forgotten; what was counted of it is in the store. */
const SOURCE_SILENT_MS = HOUR_MS

/** A datagram has at most 65,527 bytes. */
const LENGTH_DIGITS_MAX = 5

/** Where the bytes of connections are read: in this thread, or in another. */
export interface ConnectionLane {
  /** How many connections it reads. */
  readonly load: number
  /** A new connection, or a new peer of datagrams, of which each chunk is a whole message. */
  open(listener: Listener, address: string, port: number, peer: Peer): ConnectionReader
}

export interface LaneOptions {
  readonly store: Store
  /** Compiled registry (registry/compile-trie.ts). */
  readonly trie: SharedArrayBuffer
  /** Messages of one token in a second, over all lanes; undefined: any number. */
  readonly tokenRate: TokenRate | undefined
  /** Milliseconds without a byte after which a connection is closed. */
  readonly idleMs: number
  /** This lane's part of SYSLOG_WAITING_BYTES_MAX. */
  readonly waitingBytesMax?: number
  /** Instead of SYSLOG_HELLO_MS and SYSLOG_MESSAGE_MS. */
  readonly helloMs?: number
  readonly messageMs?: number
  /** To the writer's thread. */
  readonly notify: (message: FromLane, transfer: readonly ArrayBuffer[]) => void
}

/** What a lane could not hand over when it had to end. */
export interface Unsettled {
  readonly messages: number
  readonly bytes: number
}

/** Reads connections and datagrams, and hands what matches to the writer in batches. One belongs to one thread. */
export class Lane implements ConnectionLane {
  readonly intake: Intake
  readonly budget: ReadBudget
  /** Datagrams that were let go because their organization had no room: UDP has no way to say so. */
  datagramsDropped = 0
  readonly #options: LaneOptions
  readonly #unauthenticated = new NoticeLimiter(UNAUTHENTICATED_NOTICES_PER_SECOND_MAX, SECOND_MS)
  readonly #connections = new Set<Connection>()
  /** Batches that are with the writer. */
  readonly #inFlight = new Map<number, OutgoingBatch>()
  #batchId = 0
  #flushTimer: NodeJS.Timeout | undefined
  /** Resolves when nothing is left to store. Undefined while the lane is not draining. */
  #drained: Deferred<void> | undefined
  readonly #onTaken = (): void => this.#taken()

  constructor(options: LaneOptions) {
    this.#options = options
    this.budget = new ReadBudget(this.#connections, options.waitingBytesMax)
    const authenticator = new TokenAuthenticator(options.store, systemClock)
    this.intake = new Intake(new Uint8Array(WORK_BYTES), options.trie, authenticator, {
      tokenRate: options.tokenRate,
      noteUnauthorized: ({ listener, address, port }, hasToken) => {
        // Before anything is made of it: what strangers send must cost the writer's thread nothing.
        if (!this.#unauthenticated.admit(address, this.intake.line.referenceMs)) return
        options.notify({ kind: 'unauthorized', listener, address, port, hasToken }, [])
      },
      takesCoverage: true,
    })
  }

  get load(): number {
    return this.#connections.size
  }

  open(listener: Listener, address: string, port: number, peer: Peer): ConnectionReader {
    const origin = new Origin(listener, address, port)
    if (listener === 'udp') return new DatagramReader(this, origin)
    const connection = new Connection(peer, origin, this.intake, this.budget, this.#onTaken)
    this.#connections.add(connection)
    connection.ended.then(() => this.#connections.delete(connection))
    return connection
  }

  /** One datagram is one message (RFC 5426 §3.1). */
  takeDatagram(datagram: Uint8Array, origin: Origin): void {
    const { line } = this.intake
    let end = Math.min(datagram.length, MESSAGE_BYTES_MAX)
    // Some senders end the message as they would in a stream.
    while (end > 0 && isTrailer(datagram[end - 1] ?? 0)) end--
    if (end === 0) return
    line.bytes.set(end === datagram.length ? datagram : datagram.subarray(0, end))
    line.referenceMs = Date.now()
    if (!this.intake.take(behindCount(line.view, end), end, origin)) this.datagramsDropped++
    this.#taken()
  }

  /** Gives those another chance whose messages found no room. */
  resumeStalled(): void {
    for (const connection of this.#connections) if (connection.stalled) connection.resume()
    this.budget.releaseHold()
    this.#checkDrained()
  }

  /** Closes connections whose time is up, and tells who sent what. To be called about once a second. */
  sweep(nowMs: number): void {
    const { idleMs, helloMs = SYSLOG_HELLO_MS, messageMs = SYSLOG_MESSAGE_MS } = this.#options
    for (const connection of this.#connections) {
      const why = connection.overdue(nowMs, idleMs, helloMs, messageMs)
      if (why !== undefined) connection.destroy(why)
    }
    this.resumeStalled()
    this.postCounters(nowMs)
  }

  postCounters(nowMs: number): void {
    const sources = this.intake.sources.takeDeltas(nowMs - SOURCE_SILENT_MS)
    const rejects = this.intake.takeRejects()
    if (sources.length > 0 || rejects.length > 0) this.#options.notify({ kind: 'counters', sources, rejects }, [])
  }

  /** The writer has stored a batch. */
  settled(id: number, unstored: UnstoredPlaces): void {
    const batch = this.#inFlight.get(id)
    if (batch === undefined) return
    this.#inFlight.delete(id)
    this.intake.settled(batch, unstored)
    this.resumeStalled()
    this.#taken()
    this.#checkDrained()
  }

  /**
   * Resolves when everything that was read is taken and stored, at the deadline at the latest. Answers what was not: messages that were taken and are
   * not stored, and bytes that wait for room.
   */
  async drain(deadlineMs: number): Promise<Unsettled> {
    const drained = deferred()
    this.#drained = drained
    this.resumeStalled()
    const late = setTimeout(drained.resolve, deadlineMs)
    await drained.promise
    clearTimeout(late)
    clearTimeout(this.#flushTimer)
    this.#drained = undefined
    this.postCounters(Date.now())
    const messages = this.intake.unsettled
    let bytes = 0
    for (const { stalled, heldBytes } of this.#connections) if (stalled) bytes += heldBytes
    return { messages, bytes }
  }

  status(): LaneStatus {
    const { sources, formatCounts, coverageLeftOut } = this.intake
    const messages = {} as Record<Listener, readonly number[]>
    for (const listener of LISTENERS) messages[listener] = Array.from(sources.listeners[listener])
    const formats = [...FORMATS.map(({ id }) => id), ''].map((format, index) => ({
      format,
      verdicts: Array.from(formatCounts.subarray(index * VERDICTS, (index + 1) * VERDICTS)),
    }))
    return {
      received: { ...sources.received },
      messages,
      formats,
      tokens: Array.from(sources.tokens.values(), ({ organizationId, tokenId, label, counts }) => {
        return { organizationId, tokenId, label, counts: Array.from(counts) }
      }),
      oversized: this.budget.oversized,
      datagramsDropped: this.datagramsDropped,
      sourcesOverflowed: sources.overflowed,
      coverageLeftOut,
    }
  }

  /** Messages were taken: full batches go at once, others after a moment. */
  #taken(): void {
    this.#send(false)
    if (this.#flushTimer !== undefined || this.intake.idle) return
    this.#flushTimer = setTimeout(() => {
      this.#flushTimer = undefined
      this.#send(true)
      // Those that found no place with the writer wait for the next time.
      this.#taken()
      this.resumeStalled()
    }, LOG_BATCH_MS)
  }

  #send(all: boolean): void {
    for (const batch of this.intake.takeBatches(all)) {
      const id = ++this.#batchId
      this.#inFlight.set(id, batch)
      const { organizationId, deduplicate, bytes, reports } = batch
      this.#options.notify({ kind: 'batch', id, organizationId, deduplicate, bytes, reports }, [bytes.buffer])
    }
  }

  #checkDrained(): void {
    if (this.#drained === undefined) return
    this.#send(true)
    if (!this.intake.idle) return
    // What finds no room now, while nothing waits, is asked again in a moment: the rate of a token.
    for (const { stalled } of this.#connections) if (stalled) return
    this.#drained.resolve()
  }
}

/** The messages of one peer of datagrams. */
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

/** Behind `MSGLEN SP`, which some senders put before datagrams, too; 0 where there is none. */
function behindCount(view: DataView, end: number): number {
  if (!isDigit(view.getUint8(0))) return 0
  const digits = digitsEnd(view, 0, Math.min(end, LENGTH_DIGITS_MAX + 1))
  const isCount = digits + 1 < end && view.getUint8(digits) === SPACE && view.getUint8(digits + 1) === LESS
  return isCount ? digits + 1 : 0
}

function isTrailer(byte: number): boolean {
  return byte === LF || byte === CR || byte === 0
}
