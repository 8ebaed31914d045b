import { SCRATCH_BYTES } from '../formats/log-line.ts'
import { SECOND_MS } from '../kernel/process/clock.ts'
import { deferred } from '../kernel/process/deferred.ts'
import { MESSAGE_BYTES_MAX } from '../limits.ts'
import type { MessagePipeline } from './message-pipeline.ts'
import type { Origin } from './origin.ts'
import type { ReadBudget, WaitingConnection } from './read-budget.ts'
import { Follows, HEADERS_BYTES_MAX } from './syslog/counted.ts'
import { type FrameSink, Framing } from './syslog/framing.ts'

const NOTHING = Buffer.alloc(0)
/** Space that stays while no bytes are kept. */
const KEPT_BYTES = 4 * 1024

/** The bytes of a connection that wait for more bytes, or for space in a queue. */
class KeptBytes {
  length = 0
  #buffer: Buffer = NOTHING
  readonly #onSize: (bytes: number) => void

  /** @param onSize receives each change of `capacity`. May call release(). */
  constructor(onSize: (bytes: number) => void) {
    this.#onSize = onSize
  }

  /** Bytes of memory. */
  get capacity(): number {
    return this.#buffer.length
  }

  /** Removes all bytes. The result is valid until bytes are appended. */
  take(): Uint8Array {
    const bytes = this.#buffer.subarray(0, this.length)
    this.length = 0
    return bytes
  }

  /** The space doubles, so that copying stays linear. */
  append(bytes: Uint8Array): void {
    const needed = this.length + bytes.length
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.length * 2))
      this.#buffer.copy(larger, 0, 0, this.length)
      const more = larger.length - this.#buffer.length
      this.#buffer = larger
      this.#onSize(more)
      if (this.#buffer !== larger) return
    }
    this.#buffer.set(bytes, this.length)
    this.length = needed
  }

  /** Releases space that `bytes` bytes do not need. */
  shrink(bytes: number): void {
    if (this.#buffer.length > KEPT_BYTES && bytes * 2 < this.#buffer.length) this.release()
  }

  release(): void {
    const bytes = this.#buffer.length
    this.#buffer = NOTHING
    this.length = 0
    if (bytes > 0) this.#onSize(-bytes)
  }
}

/** Why the service closed a connection, or refused it. */
export const CLOSE_REASONS = [
  'limit',
  'idle',
  'slow',
  'silent',
  'unauthorized',
  'framing',
  'tls',
  'proxy',
  'error',
] as const
export type CloseReason = (typeof CLOSE_REASONS)[number]

/** Listeners with connections. */
export type StreamKind = 'tcp' | 'tls'

/** The socket of a connection, in this thread or another one. */
export interface Peer {
  /** Stops reading the socket. Bytes already in transit still arrive. */
  pause(): void
  resume(): void
  /** Closes the connection and counts the reason. */
  close(why: CloseReason): void
  /** Reports the token of the connection's messages. */
  noteToken(tokenId: string): void
}

/** Receives the bytes of a connection or of a datagram peer. */
export interface ConnectionReader {
  data(chunk: Uint8Array): void
  /** The sender closed its side: no more bytes follow. */
  end(): void
  /** The socket is closed. */
  close(): void
}

/** Bytes copied into the thread's buffer at a time, after the rest of the previous bytes. */
const PIECE_BYTES = 64 * 1024

/** The longest incomplete message, with the headers around it. */
const REST_BYTES_MAX = MESSAGE_BYTES_MAX + HEADERS_BYTES_MAX

/**
 * Minimum size of the thread's buffer: an incomplete message, a piece, a byte for the framing, and
 * scratch space for names in another form.
 */
export const WORK_BYTES = REST_BYTES_MAX + PIECE_BYTES + 1 + SCRATCH_BYTES

/** After this time without a byte, a message that only its count completes is complete. */
const PAUSE_MS = SECOND_MS

/** How far a connection has ended. Kept bytes are still read after `ended` and `closed`. */
const Phase = {
  open: 0,
  /** The sender closed its side. */
  ended: 1,
  /** The socket closed after the sender's last byte. */
  closed: 2,
  /** The socket closed before the sender's last byte. An incomplete message is discarded. */
  aborted: 3,
  /** The service closed the connection. Further bytes are ignored, nothing is kept. */
  destroyed: 4,
} as const
type Phase = (typeof Phase)[keyof typeof Phase]

/** What the messages so far revealed about the sender. */
const Sender = { silent: 0, unauthenticated: 1, authenticated: 2 } as const
type Sender = (typeof Sender)[keyof typeof Sender]

/** Pauses a socket while there is a reason. */
class SocketGate {
  /** The queue had no space for the last message. */
  isStalled = false
  /** The organization's queue is full, and the lane holds too many bytes (read-budget.ts). */
  isHeld = false
  readonly #peer: Peer

  constructor(peer: Peer) {
    this.#peer = peer
  }

  get isOpen(): boolean {
    return !this.isStalled && !this.isHeld
  }

  close(reason: 'isStalled' | 'isHeld'): void {
    if (this.isOpen) this.#peer.pause()
    this[reason] = true
  }

  open(reason: 'isStalled' | 'isHeld'): void {
    this[reason] = false
    if (this.isOpen) this.#peer.resume()
  }
}

/** When a connection did what. Milliseconds since 1970. */
class Clocks {
  readonly beganMs = Date.now()
  lastByteMs = this.beganMs
  /** When the last authorized message arrived. */
  lastTakenMs = this.beganMs
  /** When the first byte of the incomplete message arrived. 0: there is none. */
  partialSinceMs = 0

  /** The client could not send while the socket was paused. */
  restart(nowMs: number): void {
    this.lastByteMs = nowMs
    this.lastTakenMs = nowMs
    if (this.partialSinceMs > 0) this.partialSinceMs = nowMs
  }
}

/**
 * One connection. Its bytes are split into messages (framing.ts) in the thread's buffer; the rest is
 * kept (class KeptBytes) until more bytes or space follow.
 */
export class Connection implements FrameSink, ConnectionReader, WaitingConnection {
  organizationId = ''
  readonly #ended = deferred()
  readonly ended = this.#ended.promise
  readonly #peer: Peer
  readonly #origin: Origin
  readonly #pipeline: MessagePipeline
  readonly #budget: ReadBudget
  readonly #onTaken: () => void
  readonly #framing = new Framing(MESSAGE_BYTES_MAX)
  readonly #kept: KeptBytes
  readonly #gate: SocketGate
  readonly #clocks = new Clocks()
  #tokenId = ''
  #phase: Phase = Phase.open
  #sender: Sender = Sender.silent

  constructor(peer: Peer, origin: Origin, pipeline: MessagePipeline, budget: ReadBudget, onTaken: () => void) {
    this.#peer = peer
    this.#origin = origin
    this.#pipeline = pipeline
    this.#budget = budget
    this.#onTaken = onTaken
    this.#kept = new KeptBytes((bytes) => budget.add(this, bytes))
    this.#gate = new SocketGate(peer)
  }

  /** The queue had no space for the last message. The socket is not read until there is space. */
  get stalled(): boolean {
    return this.#gate.isStalled
  }

  get isAuthenticated(): boolean {
    return this.#sender === Sender.authenticated
  }

  get heldBytes(): number {
    return this.#kept.capacity
  }

  frame(start: number, end: number): boolean {
    if (this.#isDestroyed) return true
    const taken = this.#pipeline.take(start, end, this.#origin)
    if (taken === 'full' || taken === 'overRate') return false
    if (taken === 'unauthorized') {
      if (this.#sender === Sender.silent) this.#sender = Sender.unauthenticated
      return true
    }
    this.#clocks.lastTakenMs = this.#clocks.lastByteMs
    if (this.#sender !== Sender.authenticated) {
      this.#budget.noteAuthenticated(this)
      this.#sender = Sender.authenticated
    }
    return true
  }

  /** Processes received bytes. The caller may reuse the chunk afterward. */
  data(chunk: Uint8Array): void {
    if (this.#isDestroyed) return
    this.#clocks.lastByteMs = Date.now()
    // TLS may deliver bytes that it had already decrypted when it was paused.
    if (this.stalled) this.#kept.append(chunk)
    else this.#read(chunk)
  }

  /** The last message may lack its delimiter. */
  end(): void {
    if (this.#phase === Phase.open) this.#phase = Phase.ended
    if (!this.stalled) this.#read(NOTHING)
  }

  /** No more bytes follow. */
  close(): void {
    if (this.#phase === Phase.open) this.#phase = Phase.aborted
    else if (this.#phase === Phase.ended) this.#phase = Phase.closed
    this.settle()
    if (!this.stalled) this.#finish()
  }

  /** Reads a whole message that waits for bytes which would confirm its count. */
  settle(): void {
    if (this.#framing.isUnconfirmed && !this.stalled && !this.#isDestroyed) this.#read(NOTHING, Follows.pause)
  }

  /** Retries the stalled message and continues. */
  resume(): void {
    this.#gate.isStalled = false
    this.#read(NOTHING)
    if (this.stalled || this.#isDestroyed) return
    this.#clocks.restart(Date.now())
    if (this.#isClosed) this.#finish()
    else this.#gate.open('isStalled')
  }

  hold(): void {
    if (!this.#gate.isHeld) this.#gate.close('isHeld')
  }

  releaseHold(): void {
    if (!this.#gate.isHeld) return
    this.#clocks.restart(Date.now())
    this.#gate.open('isHeld')
  }

  /** Closes the connection. Kept bytes are lost. */
  destroy(why: CloseReason): void {
    if (this.#isDestroyed) return
    const wasClosed = this.#isClosed
    this.#phase = Phase.destroyed
    this.#gate.isStalled = false
    this.#kept.release()
    this.#peer.close(why)
    if (wasClosed) this.#finish()
  }

  /** Returns the reason to close the connection now, if any. */
  overdue(nowMs: number, idleMs: number, helloMs: number, messageMs: number): CloseReason | undefined {
    if (!this.#gate.isOpen || this.#isDestroyed) return undefined
    const { partialSinceMs, beganMs, lastTakenMs } = this.#clocks
    if (partialSinceMs > 0 && nowMs - partialSinceMs >= messageMs) return 'slow'
    if (this.#sender !== Sender.authenticated && nowMs - beganMs >= helloMs)
      return this.#sender === Sender.silent ? 'silent' : 'unauthorized'
    return nowMs - lastTakenMs >= idleMs ? 'idle' : undefined
  }

  /** Reads what a pause completes, and closes the connection if it is overdue. */
  sweep(nowMs: number, idleMs: number, helloMs: number, messageMs: number): void {
    if (this.#gate.isOpen && nowMs - this.#clocks.lastByteMs >= PAUSE_MS) this.settle()
    const why = this.overdue(nowMs, idleMs, helloMs, messageMs)
    if (why === undefined) return
    // A count that is too large has made whole messages wait.
    if (why === 'slow' && this.#framing.isCounted) this.#read(NOTHING, Follows.nothing)
    this.destroy(why)
  }

  /** Reads the kept bytes and the chunk. */
  #read(chunk: Uint8Array, follows: Follows = this.#hasEnded ? Follows.nothing : Follows.more): void {
    const kept = this.#kept
    const { line } = this.#pipeline
    if (chunk.length > 0 && kept.length > 0 && !this.#framing.mayComplete(kept.length, chunk)) {
      kept.append(chunk)
      return
    }
    line.referenceMs = Date.now()
    const before = kept.take()
    const first = before.length <= REST_BYTES_MAX ? before : before.subarray(0, REST_BYTES_MAX)
    line.bytes.set(first)
    // A stalled connection may have kept more than the thread's buffer has space for.
    const input = first === before ? chunk : Buffer.concat([before.subarray(REST_BYTES_MAX), chunk])
    let size = first.length
    let from = 0
    do {
      const to = Math.min(from + PIECE_BYTES, input.length)
      line.bytes.set(to - from === input.length ? input : input.subarray(from, to), size)
      size += to - from
      from = to
      const rest = this.#split(size, from === input.length ? follows : Follows.more)
      if (this.#framing.stalled) {
        this.organizationId = this.#origin.source?.owner.organizationId ?? ''
        this.#gate.close('isStalled')
      }
      size -= rest
      if (from === input.length || this.stalled) {
        kept.shrink(size + input.length - from)
        if (size > 0) kept.append(line.bytes.subarray(rest, rest + size))
        if (from < input.length && !this.#isDestroyed) kept.append(input.subarray(from))
      } else line.bytes.copyWithin(0, rest, rest + size)
      // Keeping the bytes may exceed the budget, which closes connections.
      if (this.#isDestroyed) return
    } while (from < input.length && !this.stalled)
    this.#noteSender()
    this.#onTaken()
  }

  /** Splits the first `size` bytes of the thread's buffer. Returns the offset of the rest. */
  #split(size: number, follows: Follows): number {
    const framing = this.#framing
    const { bytes, view } = this.#pipeline.line
    const oversizedBefore = framing.oversized
    const wasDiscarding = framing.isDiscarding
    const rest = framing.split(bytes, view, 0, size, this, follows)
    const oversized = framing.oversized - oversizedBefore
    this.#budget.oversized += oversized
    const clocks = this.#clocks
    // A discarded message keeps no bytes, but it is incomplete all the same.
    const isNext = framing.isDiscarding ? wasDiscarding && oversized > 0 : rest > 0
    if (rest === size && !framing.isDiscarding) clocks.partialSinceMs = 0
    else if (isNext || clocks.partialSinceMs === 0) clocks.partialSinceMs = clocks.lastByteMs
    return rest
  }

  get #isDestroyed(): boolean {
    return this.#phase === Phase.destroyed
  }

  get #hasEnded(): boolean {
    return this.#phase === Phase.ended || this.#phase === Phase.closed
  }

  get #isClosed(): boolean {
    return this.#phase === Phase.closed || this.#phase === Phase.aborted
  }

  #finish(): void {
    this.#kept.release()
    this.#ended.resolve()
  }

  /** Reports wrong counts, and the token, so that connections are counted by token. */
  #noteSender(): void {
    const faults = this.#framing.takeFaults()
    if (faults !== undefined) this.#pipeline.noteFraming(this.#origin, faults)
    const owner = this.#origin.source?.owner
    if (owner === undefined || owner.tokenId === this.#tokenId) return
    this.#tokenId = owner.tokenId
    this.organizationId = owner.organizationId
    this.#peer.noteToken(owner.tokenId)
    if (this.#budget.isHeld(owner.organizationId)) this.hold()
  }
}
