import { MESSAGE_BYTES_MAX } from '../limits.ts'
import { deferred } from '../process/deferred.ts'
import { SCRATCH_BYTES } from './formats/log-line.ts'
import type { Intake, Origin } from './intake.ts'
import { Outcome } from './outcome.ts'
import type { ReadBudget, WaitingConnection } from './read-budget.ts'
import { BROKEN, type FrameSink, Framing } from './syslog/framing.ts'

/** Why connections ended that their clients had not closed, or were never begun. */
export const CLOSED_FOR = [
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
export type ClosedFor = (typeof CLOSED_FOR)[number]

/** The listeners that have connections. */
export type StreamKind = 'tcp' | 'tls'

/** The socket of a connection, in this thread or another. */
export interface Peer {
  /** No more bytes for now. Those that are on their way still come. */
  pause(): void
  resume(): void
  /** Ends the connection, and counts why. */
  close(why: ClosedFor): void
  /** Tells whose messages the connection has. */
  noteToken(tokenId: string): void
}

/** Who reads what comes from a connection, or from the peer of datagrams. */
export interface ConnectionReader {
  data(chunk: Uint8Array): void
  /** The sender has sent its last byte. */
  end(): void
  /** The socket is closed. */
  close(): void
}

/** Bytes that are copied into the thread's buffer at a time, behind what was left of those before. */
const PIECE_BYTES = 64 * 1024

/** What the thread's buffer must hold: what is left of a message, a piece, a byte for the framing, and room for names in another form. */
export const WORK_BYTES = MESSAGE_BYTES_MAX + 16 + PIECE_BYTES + 1 + SCRATCH_BYTES

/** Room that a connection keeps for the rest of a message when it has none. */
const KEPT_BYTES = 4 * 1024
/** What a chunk that waits takes besides its bytes, about. */
const CHUNK_BYTES = 128

const NOTHING = Buffer.alloc(0)

/** What has ended of a connection. What waits is still read after the sender has ended it or the socket is closed. */
const Phase = {
  open: 0,
  /** The sender has sent its last byte. */
  ended: 1,
  /** The socket is closed after the last byte. */
  closed: 2,
  /** The socket is closed and the last byte never came, so the rest of a message is no message. */
  aborted: 3,
  /** Closed from this side: what still comes is not read. Nothing waits. */
  destroyed: 4,
} as const
type Phase = (typeof Phase)[keyof typeof Phase]

/** What is known of the sender by its messages so far. */
const Sender = { silent: 0, unauthenticated: 1, authenticated: 2 } as const
type Sender = (typeof Sender)[keyof typeof Sender]

/** Why the socket is not read: bits, since both reasons may apply at once. */
const Paused = {
  no: 0,
  /** The last message found no room. */
  stalled: 1,
  /** The organization has no room, and too much waits (read-budget.ts). */
  held: 2,
} as const

/** One connection. Its bytes are cut into messages in the thread's buffer; what is left of one waits in a small buffer of its own. */
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
  /** What is left of the bytes that came, in [0, #waitingBytes). */
  #waiting: Buffer = NOTHING
  #waitingBytes = 0
  /** What came behind while there was no room, in its order. */
  #unread: Buffer[] = []
  #unreadBytes = 0
  readonly #beganMs = Date.now()
  #lastByteMs = this.#beganMs
  /** When the last message came that was authorised. */
  #lastTakenMs = this.#beganMs
  /** When the first byte came of the message that is not whole. 0: none is. */
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

  /** The last message found no room: the connection is not read until there is room. */
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

  /** Reads on, if there is room now. */
  resume(): void {
    this.#paused &= ~Paused.stalled
    const nowMs = Date.now()
    this.#intake.line.referenceMs = nowMs
    // What waits first: with more behind it, it might be longer than the thread's buffer.
    this.#feed(NOTHING)
    while (!this.stalled && this.#unread.length > 0) this.#feed(this.#shiftUnread())
    if (!this.stalled && (this.#phase === Phase.ended || this.#phase === Phase.closed)) this.#takeLast()
    this.#countToken()
    this.#onTaken()
    if (this.stalled) return
    this.#restartClocks(nowMs)
    if (this.#isClosed) this.#finish()
    else this.#readOn()
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
    this.#readOn()
  }

  /** Closes the connection from this side. What was sent whole is lost only if there is no room even now. */
  destroy(why: ClosedFor): void {
    if (this.#isDestroyed) return
    const wasClosed = this.#isClosed
    this.#phase = Phase.destroyed
    this.#paused &= ~Paused.stalled
    this.#forget()
    this.#peer.close(why)
    if (wasClosed) this.#finish()
  }

  /** Why the connection is to be closed now, if it is. */
  overdue(nowMs: number, idleMs: number, helloMs: number, messageMs: number): ClosedFor | undefined {
    if (this.#paused !== Paused.no || this.#isDestroyed) return undefined
    if (this.#partialSinceMs > 0 && nowMs - this.#partialSinceMs >= messageMs) return 'slow'
    if (this.#sender !== Sender.authenticated && nowMs - this.#beganMs >= helloMs)
      return this.#sender === Sender.silent ? 'silent' : 'unauthorized'
    return nowMs - this.#lastTakenMs >= idleMs ? 'idle' : undefined
  }

  /** Takes what came. The bytes may change when this returns. */
  data(chunk: Uint8Array): void {
    if (this.#phase === Phase.destroyed) return
    this.#lastByteMs = Date.now()
    if (this.stalled) {
      // TLS may have had more in hand when it was paused.
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
      if (!this.#cut(chunk, from, from + piece)) {
        const rest = chunk.subarray(from + piece)
        if (this.stalled && rest.length > 0) this.#pushUnread(rest, true)
        return
      }
      from += piece
    } while (from < chunk.length)
  }

  /** Cuts what waits and a piece of the chunk into messages. Answers false where it cannot go on. */
  #cut(chunk: Uint8Array, from: number, to: number): boolean {
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
    // Keeping the bytes may have taken more than the bound allows.
    if (this.#isDestroyed) return false
    if (this.#framing.isDiscarding) {
      // Of a message that is left out nothing waits, and yet it is not whole.
      if (this.#partialSinceMs === 0 || (wasDiscarding && oversized > 0)) this.#partialSinceMs = this.#lastByteMs
    } else if (rest === end) this.#partialSinceMs = 0
    else if (rest > 0 || this.#partialSinceMs === 0) this.#partialSinceMs = this.#lastByteMs
    if (!this.stalled) return true
    this.#peer.pause()
    return false
  }

  /** Puts bytes behind those that wait. Room doubles, so that a byte is moved a few times at most. */
  #keep(bytes: Uint8Array): void {
    const needed = this.#waitingBytes + bytes.length
    if (needed > this.#waiting.length) {
      const room = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(this.#waiting.length * 2, WORK_BYTES)))
      this.#waiting.copy(room, 0, 0, this.#waitingBytes)
      const more = room.length - this.#waiting.length
      this.#waiting = room
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

  /** No more bytes come. */
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

  /** The client could not send while the socket was not read. */
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

  #readOn(): void {
    if (this.#paused === Paused.no && !this.#isDestroyed) this.#peer.resume()
  }

  #noteAuthenticated(): void {
    this.#budget.noteAuthenticated(this)
    this.#sender = Sender.authenticated
  }

  /** Tells whose messages it has, so that the connections of each token are counted. */
  #countToken(): void {
    const owner = this.#origin.source?.owner
    if (owner === undefined || owner.tokenId === this.#tokenId) return
    this.#tokenId = owner.tokenId
    this.organizationId = owner.organizationId
    this.#peer.noteToken(owner.tokenId)
    if (this.#budget.isHeld(owner.organizationId)) this.hold()
  }
}
