import { SECOND_MS } from '../../kernel/process/clock.ts'
import { DNSTAP_LINE_BYTES_MAX, DnstapLine } from './dnstap-line.ts'
import { DnstapKind, DnstapMessage } from './dnstap-message.ts'

/**
 * The longest frame that is read. A client's query has less than 2 kB; longer frames are answers,
 * which are not read anyway.
 */
export const DNSTAP_FRAME_BYTES_MAX = 4096

/*
 * Frame Streams (the format of farsightsec/fstrm). Each frame has its length before it. Length 0
 * begins a control frame: length, type, fields.
 *
 *     sender   READY          START  data ...  STOP
 *     service          ACCEPT                        FINISH
 *
 * A sender that does not wait for answers begins with START.
 */
const LENGTH_BYTES = 4
const CONTROL_BYTES_MAX = 512
const Control = { accept: 1, start: 2, stop: 3, ready: 4, finish: 5 } as const
type Control = (typeof Control)[keyof typeof Control]
const FIELD_CONTENT_TYPE = 1
const CONTENT_TYPE = Buffer.from('protobuf:dnstap.Dnstap')

/** Frames since the start, by kind. */
export class DnstapCounts {
  readonly frames = { client_query: 0, other: 0, oversized: 0, malformed: 0 }
}

/** Receives the lines. */
export interface LineReader {
  /** The caller may reuse the chunk afterward. */
  data(chunk: Uint8Array): void
  end(): void
  close(): void
}

/** The socket of a dnstap connection. */
export interface DnstapPeer {
  /** Answers a control frame. */
  write(bytes: Uint8Array): void
  /** Closes the connection after a last answer. */
  end(bytes: Uint8Array): void
  /** Closes a connection that breaks the rules of Frame Streams. */
  refuse(): void
}

/** Lines of one chunk. All connections of a thread use it in turn. */
const LINES_BYTES = 64 * 1024
const lines = Buffer.alloc(LINES_BYTES)
const line = new DnstapLine(lines)
const message = new DnstapMessage()

/**
 * A dnstap connection. Client queries become lines for the reader; all other frames are counted and
 * discarded.
 */
export class DnstapReader implements LineReader {
  readonly #peer: DnstapPeer
  readonly #reader: LineReader
  readonly #counts: DnstapCounts
  /** An incomplete frame, at most the longest with its length. */
  #waiting = Buffer.alloc(0)
  /** Bytes to discard, of a frame that is too long. */
  #skip = 0
  #isStarted = false
  #isBidirectional = false
  #isClosed = false

  constructor(peer: DnstapPeer, reader: LineReader, counts: DnstapCounts) {
    this.#peer = peer
    this.#reader = reader
    this.#counts = counts
  }

  data(chunk: Uint8Array): void {
    if (this.#isClosed) return
    const bytes = this.#waiting.length === 0 ? chunk : Buffer.concat([this.#waiting, chunk])
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    const rest = this.#readFrames(view)
    if (this.#isClosed) this.#waiting = Buffer.alloc(0)
    else if (rest < bytes.length || this.#waiting.length > 0) this.#waiting = Buffer.from(bytes.subarray(rest))
  }

  /** An incomplete frame is discarded. */
  end(): void {
    this.#isClosed = true
    this.#reader.end()
  }

  close(): void {
    this.#isClosed = true
    this.#reader.close()
  }

  /** Returns the offset of the first incomplete frame. */
  #readFrames(view: DataView): number {
    const end = view.byteLength
    const nowSeconds = Math.floor(Date.now() / SECOND_MS)
    let at = 0
    let used = 0
    while (!this.#isClosed) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, end - at)
        this.#skip -= skipped
        at += skipped
      }
      if (at + LENGTH_BYTES > end) break
      const length = view.getUint32(at)
      const start = at + LENGTH_BYTES
      if (length === 0) {
        if (start + LENGTH_BYTES > end) break
        const controlBytes = view.getUint32(start)
        if (controlBytes < LENGTH_BYTES || controlBytes > CONTROL_BYTES_MAX) {
          this.#refuse()
          break
        }
        const control = start + LENGTH_BYTES
        if (control + controlBytes > end) break
        at = control + controlBytes
        if (this.#control(view, control, at)) used = line.writeStart(used)
      } else if (!this.#isStarted) {
        this.#refuse()
      } else if (length > DNSTAP_FRAME_BYTES_MAX) {
        this.#counts.frames.oversized++
        this.#skip = length
        at = start
      } else {
        if (start + length > end) break
        at = start + length
        used = this.#frame(view, start, at, used, nowSeconds)
      }
      if (used > LINES_BYTES - DNSTAP_LINE_BYTES_MAX) {
        this.#reader.data(lines.subarray(0, used))
        used = 0
      }
    }
    if (used > 0) this.#reader.data(lines.subarray(0, used))
    return at
  }

  /** Returns the end of the lines. */
  #frame(view: DataView, start: number, end: number, used: number, nowSeconds: number): number {
    const { frames } = this.#counts
    const kind = message.read(view, start, end)
    if (kind === DnstapKind.other) {
      frames.other++
      return used
    }
    const after = kind === DnstapKind.clientQuery ? line.write(view, message, used, nowSeconds) : -1
    if (after < 0) {
      frames.malformed++
      return used
    }
    frames.client_query++
    return after
  }

  /** Returns whether the stream starts. */
  #control(view: DataView, start: number, end: number): boolean {
    switch (view.getUint32(start)) {
      case Control.ready:
        if (this.#isStarted || this.#isBidirectional || !hasContentType(view, start + LENGTH_BYTES, end)) break
        this.#isBidirectional = true
        this.#peer.write(controlFrame(Control.accept, CONTENT_TYPE))
        return false
      case Control.start:
        if (this.#isStarted || !hasContentType(view, start + LENGTH_BYTES, end)) break
        this.#isStarted = true
        return true
      case Control.stop:
        if (!this.#isStarted) break
        this.#isStarted = false
        this.#peer.end(this.#isBidirectional ? controlFrame(Control.finish) : Buffer.alloc(0))
        return false
      default:
    }
    this.#refuse()
    return false
  }

  #refuse(): void {
    this.#isClosed = true
    this.#peer.refuse()
  }
}

/** Whether the fields [start, end) of a control frame have the content type of dnstap, or none. */
function hasContentType(view: DataView, start: number, end: number): boolean {
  let at = start
  let isOther = false
  while (at < end) {
    if (at + 2 * LENGTH_BYTES > end) return false
    const field = view.getUint32(at)
    const valueStart = at + 2 * LENGTH_BYTES
    const valueEnd = valueStart + view.getUint32(at + LENGTH_BYTES)
    if (valueEnd > end) return false
    if (field === FIELD_CONTENT_TYPE) {
      const value = Buffer.from(view.buffer, view.byteOffset + valueStart, valueEnd - valueStart)
      if (value.equals(CONTENT_TYPE)) return true
      isOther = true
    }
    at = valueEnd
  }
  return !isOther
}

function controlFrame(type: Control, contentType?: Buffer): Buffer {
  const fieldBytes = contentType === undefined ? 0 : 2 * LENGTH_BYTES + contentType.length
  const frame = Buffer.alloc(3 * LENGTH_BYTES + fieldBytes)
  frame.writeUInt32BE(LENGTH_BYTES + fieldBytes, LENGTH_BYTES)
  frame.writeUInt32BE(type, 2 * LENGTH_BYTES)
  if (contentType === undefined) return frame
  frame.writeUInt32BE(FIELD_CONTENT_TYPE, 3 * LENGTH_BYTES)
  frame.writeUInt32BE(contentType.length, 4 * LENGTH_BYTES)
  contentType.copy(frame, 5 * LENGTH_BYTES)
  return frame
}
