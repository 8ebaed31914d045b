import { TextDecoder } from 'node:util'
import type { ByteSource } from '../process/byte-source.ts'
import { CLOSE_BRACE, LF, SPACE, TAB } from './formats/bytes.ts'

/** How much of a file is known as one block (store/read-prefixes.ts), in bytes: whole lines, so a little more. */
export const BLOCK_BYTES = 1024 * 1024
const READ_BYTES = 256 * 1024

/** The largest block: its last line may be so long that only its beginning is read. */
export function blockBytesMax(lineBytesMax: number): number {
  return BLOCK_BYTES + lineBytesMax * 2
}

/** A part of a log file: whole lines, and at the end of the file what has no line feed. */
export interface LogBlock {
  readonly bytes: Buffer
  /** Number of its first line, from 1. */
  readonly firstLine: number
}

/** Cuts a file into blocks of whole lines, each at the same place whenever the file begins alike. UTF-16 with a mark becomes UTF-8. */
export class LogBlocks {
  readonly #source: ByteSource
  /** The longest line that is kept; the rest of a longer one is left out. */
  readonly #lineBytesMax: number
  #waiting: Buffer = Buffer.alloc(0)
  #decoder: TextDecoder | undefined
  #started = false
  #ended = false
  #lines = 0
  /** What comes up to the next line feed is the rest of a line that was cut. */
  #discarding = false

  constructor(source: ByteSource, lineBytesMax: number) {
    this.#source = source
    this.#lineBytesMax = lineBytesMax
  }

  /** The next block, or undefined at the end. @throws what reading throws; what came before it was given out. */
  async next(): Promise<LogBlock | undefined> {
    if (this.#discarding) this.#discard()
    let end = this.#blockEnd()
    while (end < 0 && !this.#ended) {
      await this.#fill()
      if (this.#discarding) this.#discard()
      end = this.#blockEnd()
    }
    if (end < 0) {
      // What is left is no whole block; a read that failed is told when it has been used.
      end = this.#waiting.length
      if (end === 0) {
        if (this.#failure !== undefined) throw this.#failure
        return undefined
      }
    }
    const bytes = this.#waiting.subarray(0, end)
    this.#waiting = this.#waiting.subarray(end)
    const firstLine = this.#lines + 1
    this.#lines += linesIn(bytes)
    return { bytes, firstLine }
  }

  /**
   * Behind the first line feed from BLOCK_BYTES on, or -1. A line that goes on with the one before it (JSON that is printed for people) stays
   * with it, if that is possible.
   */
  #blockEnd(): number {
    const waiting = this.#waiting
    if (waiting.length < BLOCK_BYTES) return -1
    const most = blockBytesMax(this.#lineBytesMax)
    const first = waiting.indexOf(LF, BLOCK_BYTES - 1)
    for (let lineFeed = first; lineFeed >= 0 && lineFeed < most; lineFeed = waiting.indexOf(LF, lineFeed + 1)) {
      const next = waiting[lineFeed + 1]
      if (next === undefined ? this.#ended : !goesOn(next)) return lineFeed + 1
    }
    if (waiting.length < most) return -1
    if (first >= 0 && first < most) return first + 1
    // A line that never ends: what is held of it is more than is read. Cut at a place that does not depend on how the bytes came.
    this.#discarding = true
    return most
  }

  /** Leaves out what is left of a line that was cut, but for its line feed, which counts. */
  #discard(): void {
    const lineFeed = this.#waiting.indexOf(LF)
    if (lineFeed >= 0) {
      this.#discarding = false
      this.#lines++
    }
    this.#waiting = lineFeed < 0 ? this.#waiting.subarray(this.#waiting.length) : this.#waiting.subarray(lineFeed + 1)
  }

  #failure: unknown

  async #fill(): Promise<void> {
    const chunk = Buffer.allocUnsafe(READ_BYTES)
    let got = 0
    try {
      got = await this.#source.read(chunk, 0, chunk.length)
    } catch (error) {
      this.#failure = error
    }
    if (got === 0) {
      this.#ended = true
      return
    }
    let bytes: Uint8Array = chunk.subarray(0, got)
    if (!this.#started) {
      this.#started = true
      bytes = this.#withoutMark(chunk.subarray(0, got))
    }
    if (this.#decoder !== undefined) bytes = Buffer.from(this.#decoder.decode(bytes, { stream: true }))
    this.#waiting = this.#waiting.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#waiting, bytes])
  }

  /** Byte order marks: PowerShell writes UTF-16, others put UTF-8's before a CSV. */
  #withoutMark(bytes: Buffer): Buffer {
    if (bytes[0] === 0xff && bytes[1] === 0xfe) this.#decoder = new TextDecoder('utf-16le')
    if (bytes[0] === 0xfe && bytes[1] === 0xff) this.#decoder = new TextDecoder('utf-16be')
    if (this.#decoder !== undefined) return bytes.subarray(2)
    return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes
  }
}

function goesOn(byte: number): boolean {
  return byte === SPACE || byte === TAB || byte === CLOSE_BRACE
}

function linesIn(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) lines++
  return lines
}
