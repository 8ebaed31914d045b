import { MESSAGE_BYTES_MAX, SYSLOG_WAITING_BYTES_MAX } from '../limits.ts'
import { SCRATCH_BYTES } from './formats/log-line.ts'
import type { Intake, Origin } from './intake.ts'
import { BROKEN, type FrameSink, Framing } from './syslog/framing.ts'

/** Why connections ended that their clients had not closed, or were never begun. */
export const CLOSED_FOR = ['limit', 'idle', 'slow', 'silent', 'framing', 'tls', 'proxy', 'error'] as const
export type ClosedFor = (typeof CLOSED_FOR)[number]

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

/** What all connections of a lane share. */
export interface ReadingBook {
  oversized: number
  /** Room taken by messages that are not whole yet. */
  waitingBytes: number
}

/** Bytes that are copied into the thread's buffer at a time, behind what was left of those before. */
const PIECE_BYTES = 64 * 1024

/** What the thread's buffer must hold: what is left of a message, a piece, a byte for the framing, and room for names in another form. */
export const WORK_BYTES = MESSAGE_BYTES_MAX + 16 + PIECE_BYTES + 1 + SCRATCH_BYTES

const NOTHING = Buffer.alloc(0)

/** One connection. Its bytes are cut into messages in the thread's buffer; what is left of one waits in a small buffer of its own. */
export class Connection implements FrameSink, ConnectionReader {
  /** Its last message found no room: it is not read until there is. */
  stalled = false
  readonly ended: Promise<void>
  readonly #peer: Peer
  readonly #origin: Origin
  readonly #intake: Intake
  readonly #book: ReadingBook
  readonly #onTaken: () => void
  readonly #framing = new Framing(MESSAGE_BYTES_MAX)
  /** What is left of the bytes that came, in [0, #waitingBytes). */
  #waiting: Buffer = NOTHING
  #waitingBytes = 0
  /** What came behind while there was no room. */
  #unread: Buffer | undefined
  readonly #beganMs = Date.now()
  #lastByteMs = this.#beganMs
  /** When the first byte came of the message that is not whole. 0: none is. */
  #partialSinceMs = 0
  #taken = false
  #tokenId = ''
  #streamEnded = false
  #closed = false
  #settleEnded: () => void = () => {}

  constructor(peer: Peer, origin: Origin, intake: Intake, book: ReadingBook, onTaken: () => void) {
    this.#peer = peer
    this.#origin = origin
    this.#intake = intake
    this.#book = book
    this.#onTaken = onTaken
    this.ended = new Promise((resolve) => {
      this.#settleEnded = resolve
    })
  }

  frame(start: number, end: number): boolean {
    if (!this.#intake.take(start, end, this.#origin)) return false
    this.#taken = true
    return true
  }

  /** Reads on, if there is room now. */
  resume(): void {
    this.stalled = false
    const nowMs = Date.now()
    this.#intake.line.referenceMs = nowMs
    // What waits first: with more behind it, it might be longer than the thread's buffer.
    this.#feed(NOTHING)
    const unread = this.#unread
    if (!this.stalled && unread !== undefined) {
      this.#unread = undefined
      this.#feed(unread)
    }
    if (!this.stalled && this.#streamEnded) this.end()
    this.#countToken()
    this.#onTaken()
    if (this.stalled) return
    // Its client could not send while it was not read.
    this.#lastByteMs = nowMs
    if (this.#partialSinceMs > 0) this.#partialSinceMs = nowMs
    if (this.#closed) this.#finish()
    else this.#peer.resume()
  }

  destroy(why: ClosedFor): void {
    this.#peer.close(why)
    // What it had sent whole is lost only if there is no room even now.
    if (this.#closed) this.#finish()
  }

  /** Why the connection is to be closed now, if it is. */
  overdue(nowMs: number, idleMs: number, helloMs: number, messageMs: number): ClosedFor | undefined {
    if (this.stalled) return undefined
    if (this.#partialSinceMs > 0 && nowMs - this.#partialSinceMs >= messageMs) return 'slow'
    if (!this.#taken && nowMs - this.#beganMs >= helloMs) return 'silent'
    return nowMs - this.#lastByteMs >= idleMs ? 'idle' : undefined
  }

  /** Takes what came. The bytes may change when this returns. */
  data(chunk: Uint8Array): void {
    this.#lastByteMs = Date.now()
    if (this.stalled) {
      // TLS may have had more in hand when it was paused.
      this.#unread = this.#unread === undefined ? Buffer.from(chunk) : Buffer.concat([this.#unread, chunk])
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
        if (this.stalled && rest.length > 0) this.#unread = Buffer.from(rest)
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
    const rest = this.#framing.cut(bytes, view, 0, end, this)
    this.#book.oversized += this.#framing.oversized - before
    if (rest === BROKEN) {
      this.#waitingBytes = 0
      this.#peer.close('framing')
      return false
    }
    this.#waitingBytes = 0
    if (rest < end) this.#keep(bytes.subarray(rest, end))
    this.#partialSinceMs =
      rest === end ? 0 : rest > 0 || this.#partialSinceMs === 0 ? this.#lastByteMs : this.#partialSinceMs
    if (!this.#framing.stalled) return true
    this.stalled = true
    this.#peer.pause()
    return false
  }

  /** Puts bytes behind those that wait. Room doubles, so that a byte is moved a few times at most. */
  #keep(bytes: Uint8Array): void {
    const needed = this.#waitingBytes + bytes.length
    if (needed > this.#waiting.length) {
      const room = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(this.#waiting.length * 2, WORK_BYTES)))
      this.#waiting.copy(room, 0, 0, this.#waitingBytes)
      this.#book.waitingBytes += room.length - this.#waiting.length
      this.#waiting = room
      if (this.#book.waitingBytes > SYSLOG_WAITING_BYTES_MAX) {
        this.#peer.close('limit')
      }
    }
    this.#waiting.set(bytes, this.#waitingBytes)
    this.#waitingBytes = needed
  }

  /** The last message may lack its delimiter. */
  end(): void {
    this.#streamEnded = true
    if (this.stalled || this.#waitingBytes === 0) return
    const { bytes, view } = this.#intake.line
    bytes.set(this.#waiting.subarray(0, this.#waitingBytes))
    this.#intake.line.referenceMs = Date.now()
    if (this.#framing.end(view, 0, this.#waitingBytes, this)) {
      this.#waitingBytes = 0
      this.#onTaken()
    } else this.stalled = true
  }

  /** No more bytes come. */
  close(): void {
    this.#closed = true
    if (!this.stalled) this.#finish()
  }

  #finish(): void {
    this.#book.waitingBytes -= this.#waiting.length
    this.#waiting = NOTHING
    this.#waitingBytes = 0
    this.#settleEnded()
  }

  /** Tells whose messages it has, so that the connections of each token are counted. */
  #countToken(): void {
    const tokenId = this.#origin.source?.owner.tokenId ?? ''
    if (tokenId === this.#tokenId || tokenId === '') return
    this.#tokenId = tokenId
    this.#peer.noteToken(tokenId)
  }
}
