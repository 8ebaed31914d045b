import { MESSAGE_BYTES_MAX } from '../limits.ts'
import { deferred } from '../process/deferred.ts'
import { Outcome } from '../store/outcomes.ts'
import { SCRATCH_BYTES } from './formats/log-line.ts'
import type { Intake } from './intake.ts'
import type { Origin } from './origin.ts'
import type { ReadBudget, WaitingConnection } from './read-budget.ts'
import { BROKEN, type FrameSink, Framing } from './syslog/framing.ts'

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

/** Bytes copied into the thread's buffer at a time, after the remainder of the previous bytes. */
const PIECE_BYTES = 64 * 1024

/**
 * Minimum size of the thread's buffer: an incomplete message, a piece, a byte for the framing, and
 * scratch space for names in another form.
 */
export const WORK_BYTES = MESSAGE_BYTES_MAX + 16 + PIECE_BYTES + 1 + SCRATCH_BYTES

/** Buffer that a connection keeps while it has no incomplete message. */
const KEPT_BYTES = 4 * 1024
/** Approximate overhead of a queued chunk. */
const CHUNK_BYTES = 128

const NOTHING = Buffer.alloc(0)

/** How far a connection has ended. Queued bytes are still read after `ended` and `closed`. */
const Phase = {
  open: 0,
  /** The sender closed its side. */
  ended: 1,
  /** The socket closed after the sender's last byte. */
  closed: 2,
  /** The socket closed before the sender's last byte. An incomplete message is discarded. */
  aborted: 3,
  /** The service closed the connection. Further bytes are ignored, nothing is queued. */
  destroyed: 4,
} as const
type Phase = (typeof Phase)[keyof typeof Phase]

/** What the messages so far revealed about the sender. */
const Sender = { silent: 0, unauthenticated: 1, authenticated: 2 } as const
type Sender = (typeof Sender)[keyof typeof Sender]

/** Why the socket is paused: bit flags, since both reasons may apply. */
const Paused = {
  no: 0,
  /** The queue had no space for the last message. */
  stalled: 1,
  /** The organization's queue is full, and the lane holds too many bytes (read-budget.ts). */
  held: 2,
} as const

/**
 * One connection. Splits its bytes into messages in the thread's buffer. An incomplete message
 * waits in a small buffer of the connection.
 */
export class Connection implements FrameSink, ConnectionReader, WaitingConnection {
  organizationId = ''
  readonly #ended = deferred()
  readonly ended = this.#ended.promise
  readonly #peer: Peer
  readonly #origin: Origin
  readonly #intake: Intake
  readonly #budget: ReadBudget
  readonly #onTaken: () => void
  readonly #framing = new Framing(MESSAGE_BYTES_MAX)
  /** The incomplete message, in [0, #waitingBytes). */
  #waiting: Buffer = NOTHING
  #waitingBytes = 0
  /** Chunks that arrived after a stalled message, in order. */
  #unread: Buffer[] = []
  #unreadBytes = 0
  readonly #beganMs = Date.now()
  #lastByteMs = this.#beganMs
  /** When the last authorized message arrived. */
  #lastTakenMs = this.#beganMs
  /** When the first byte of the incomplete message arrived. 0: there is none. */
  #partialSinceMs = 0
  #tokenId = ''
  #phase: Phase = Phase.open
  #sender: Sender = Sender.silent
  #paused: number = Paused.no

  constructor(peer: Peer, origin: Origin, intake: Intake, budget: ReadBudget, onTaken: () => void) {
    this.#peer = peer
    this.#origin = origin
    this.#intake = intake
    this.#budget = budget
    this.#onTaken = onTaken
  }

  /**
   * The queue had no space for the last message. The connection is not read until there is space.
   */
  get stalled(): boolean {
    return (this.#paused & Paused.stalled) !== 0
  }

  get isAuthenticated(): boolean {
    return this.#sender === Sender.authenticated
  }

  get heldBytes(): number {
    return this.#waiting.length + this.#unreadBytes
  }

  frame(start: number, end: number): boolean {
    if (this.#phase === Phase.destroyed) return true
    if (!this.#intake.take(start, end, this.#origin)) return false
    if (this.#intake.outcome === Outcome.unauthorized) {
      if (this.#sender === Sender.silent) this.#sender = Sender.unauthenticated
    } else {
      this.#lastTakenMs = this.#lastByteMs
      if (this.#sender !== Sender.authenticated) this.#noteAuthenticated()
    }
    return true
  }

  /** Retries the stalled message and continues. */
  resume(): void {
    this.#paused &= ~Paused.stalled
    const nowMs = Date.now()
    this.#intake.line.referenceMs = nowMs
    // Process the stalled bytes first: together with later chunks they might exceed the thread's
    // buffer.
    this.#feed(NOTHING)
    while (!this.stalled && this.#unread.length > 0) this.#feed(this.#shiftUnread())
    if (!this.stalled && (this.#phase === Phase.ended || this.#phase === Phase.closed)) this.#takeLast()
    this.#countToken()
    this.#onTaken()
    if (this.stalled) return
    this.#restartClocks(nowMs)
    if (this.#isClosed) this.#finish()
    else this.#resumeReading()
  }

  hold(): void {
    if ((this.#paused & Paused.held) !== 0) return
    if (this.#paused === Paused.no) this.#peer.pause()
    this.#paused |= Paused.held
  }

  releaseHold(): void {
    if ((this.#paused & Paused.held) === 0) return
    this.#paused &= ~Paused.held
    this.#restartClocks(Date.now())
    this.#resumeReading()
  }

  /** Closes the connection. Queued bytes are lost. */
  destroy(why: CloseReason): void {
    if (this.#isDestroyed) return
    const wasClosed = this.#isClosed
    this.#phase = Phase.destroyed
    this.#paused &= ~Paused.stalled
    this.#forget()
    this.#peer.close(why)
    if (wasClosed) this.#finish()
  }

  /** Returns the reason to close the connection now, if any. */
  overdue(nowMs: number, idleMs: number, helloMs: number, messageMs: number): CloseReason | undefined {
    if (this.#paused !== Paused.no || this.#isDestroyed) return undefined
    if (this.#partialSinceMs > 0 && nowMs - this.#partialSinceMs >= messageMs) return 'slow'
    if (this.#sender !== Sender.authenticated && nowMs - this.#beganMs >= helloMs)
      return this.#sender === Sender.silent ? 'silent' : 'unauthorized'
    return nowMs - this.#lastTakenMs >= idleMs ? 'idle' : undefined
  }

  /** Processes received bytes. The caller may reuse the chunk afterward. */
  data(chunk: Uint8Array): void {
    if (this.#phase === Phase.destroyed) return
    this.#lastByteMs = Date.now()
    if (this.stalled) {
      // TLS may deliver bytes that it had already decrypted when it was paused.
      this.#pushUnread(chunk)
      return
    }
    this.#intake.line.referenceMs = this.#lastByteMs
    this.#feed(chunk)
    this.#countToken()
    this.#onTaken()
  }

  #feed(chunk: Uint8Array): void {
    if (chunk.length > 0 && this.#waitingBytes > 0 && !this.#framing.mayComplete(this.#waitingBytes, chunk)) {
      this.#keep(chunk)
      return
    }
    let from = 0
    do {
      const piece = Math.min(chunk.length - from, PIECE_BYTES)
      if (!this.#splitPiece(chunk, from, from + piece)) {
        const rest = chunk.subarray(from + piece)
        if (this.stalled && rest.length > 0) this.#pushUnread(rest, true)
        return
      }
      from += piece
    } while (from < chunk.length)
  }

  /**
   * Splits the incomplete message and a piece of the chunk into messages. Returns false if the
   * connection cannot continue.
   */
  #splitPiece(chunk: Uint8Array, from: number, to: number): boolean {
    const { bytes, view } = this.#intake.line
    const waiting = this.#waitingBytes
    if (waiting > 0) bytes.set(this.#waiting.subarray(0, waiting))
    bytes.set(from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to), waiting)
    const end = waiting + to - from
    const before = this.#framing.oversized
    const wasDiscarding = this.#framing.isDiscarding
    const rest = this.#framing.split(bytes, view, 0, end, this)
    const oversized = this.#framing.oversized - before
    this.#budget.oversized += oversized
    this.#waitingBytes = 0
    if (rest === BROKEN) {
      this.destroy('framing')
      return false
    }
    if (this.#isDestroyed) return false
    if (this.#framing.stalled) {
      this.#paused |= Paused.stalled
      this.organizationId = this.#origin.source?.owner.organizationId ?? ''
    }
    if (this.#waiting.length > KEPT_BYTES && (end - rest) * 2 < this.#waiting.length) this.#release()
    if (rest < end) this.#keep(bytes.subarray(rest, end))
    // Keeping the bytes may exceed the budget, which closes connections.
    if (this.#isDestroyed) return false
    if (this.#framing.isDiscarding) {
      // A discarded message keeps no bytes, but it is incomplete all the same.
      if (this.#partialSinceMs === 0 || (wasDiscarding && oversized > 0)) this.#partialSinceMs = this.#lastByteMs
    } else if (rest === end) this.#partialSinceMs = 0
    else if (rest > 0 || this.#partialSinceMs === 0) this.#partialSinceMs = this.#lastByteMs
    if (!this.stalled) return true
    this.#peer.pause()
    return false
  }

  /** Appends bytes to the incomplete message. The buffer doubles, so that copying stays linear. */
  #keep(bytes: Uint8Array): void {
    const needed = this.#waitingBytes + bytes.length
    if (needed > this.#waiting.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(this.#waiting.length * 2, WORK_BYTES)))
      this.#waiting.copy(larger, 0, 0, this.#waitingBytes)
      const more = larger.length - this.#waiting.length
      this.#waiting = larger
      this.#budget.add(this, more)
      if (this.#isDestroyed) return
    }
    this.#waiting.set(bytes, this.#waitingBytes)
    this.#waitingBytes = needed
  }

  #release(): void {
    const bytes = this.#waiting.length
    this.#waiting = NOTHING
    if (bytes > 0) this.#budget.add(this, -bytes)
  }

  #pushUnread(chunk: Uint8Array, first = false): void {
    const kept = Buffer.from(chunk)
    if (first) this.#unread.unshift(kept)
    else this.#unread.push(kept)
    this.#unreadBytes += kept.length + CHUNK_BYTES
    this.#budget.add(this, kept.length + CHUNK_BYTES)
  }

  #shiftUnread(): Buffer {
    const chunk = this.#unread.shift() ?? NOTHING
    this.#unreadBytes -= chunk.length + CHUNK_BYTES
    this.#budget.add(this, -chunk.length - CHUNK_BYTES)
    return chunk
  }

  end(): void {
    if (this.#phase === Phase.open) this.#phase = Phase.ended
    this.#takeLast()
  }

  /** The last message may lack its delimiter. */
  #takeLast(): void {
    if (this.stalled || this.#waitingBytes === 0) return
    const { bytes, view } = this.#intake.line
    bytes.set(this.#waiting.subarray(0, this.#waitingBytes))
    this.#intake.line.referenceMs = Date.now()
    if (this.#framing.end(view, 0, this.#waitingBytes, this)) {
      this.#waitingBytes = 0
      this.#onTaken()
    } else this.#paused |= Paused.stalled
  }

  /** No more bytes follow. */
  close(): void {
    if (this.#phase === Phase.open) this.#phase = Phase.aborted
    else if (this.#phase === Phase.ended) this.#phase = Phase.closed
    if (!this.stalled) this.#finish()
  }

  get #isDestroyed(): boolean {
    return this.#phase === Phase.destroyed
  }

  get #isClosed(): boolean {
    return this.#phase === Phase.closed || this.#phase === Phase.aborted
  }

  /** The client could not send while the socket was paused. */
  #restartClocks(nowMs: number): void {
    this.#lastByteMs = nowMs
    this.#lastTakenMs = nowMs
    if (this.#partialSinceMs > 0) this.#partialSinceMs = nowMs
  }

  #forget(): void {
    this.#release()
    this.#waitingBytes = 0
    if (this.#unreadBytes > 0) this.#budget.add(this, -this.#unreadBytes)
    this.#unread = []
    this.#unreadBytes = 0
  }

  #finish(): void {
    this.#forget()
    this.#ended.resolve()
  }

  #resumeReading(): void {
    if (this.#paused === Paused.no && !this.#isDestroyed) this.#peer.resume()
  }

  #noteAuthenticated(): void {
    this.#budget.noteAuthenticated(this)
    this.#sender = Sender.authenticated
  }

  /** Reports the token, so that connections are counted by token. */
  #countToken(): void {
    const owner = this.#origin.source?.owner
    if (owner === undefined || owner.tokenId === this.#tokenId) return
    this.#tokenId = owner.tokenId
    this.organizationId = owner.organizationId
    this.#peer.noteToken(owner.tokenId)
    if (this.#budget.isHeld(owner.organizationId)) this.hold()
  }
}
