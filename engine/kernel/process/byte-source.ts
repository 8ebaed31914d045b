import { closeSync, fstatSync, readSync } from 'node:fs'
import { Socket } from 'node:net'
import { isatty } from 'node:tty'
import { Fault, type FaultCode } from './error-codes.ts'
import { openInput } from './input-file.ts'

/** The kind of a file, for error messages. */
export interface FileKind {
  /** For example `capture file`. */
  readonly what: string
  readonly unreadable: FaultCode
  readonly damaged: FaultCode
}

/** A source of bytes: a file or a pipe. */
export interface ByteSource {
  /**
   * Reads up to `bytes` bytes into `into` at offset `at`. Returns 0 at the end. A pipe waits for
   * data.
   */
  read(into: Uint8Array, at: number, bytes: number): number | Promise<number>
  /** Bytes read from the disk or the pipe, before decompression. */
  readonly bytesRead: number
  /** The total of `bytesRead`; 0 if unknown. */
  readonly bytesTotal: number
  /** A pipe: data should be processed as soon as it arrives. */
  readonly live: boolean
  close(): void
}

/** The path that means standard input. */
export const STANDARD_INPUT = '-'

/**
 * Opens a file, a named pipe, or standard input.
 *
 * @param opened a descriptor of the path, if it was opened before
 * @throws Fault of the kind's `unreadable`, without the path
 */
export function openBytes(path: string, kind: FileKind, opened?: number): ByteSource {
  const { what, unreadable } = kind
  const descriptor = path === STANDARD_INPUT ? 0 : (opened ?? openInput(path, { what, code: unreadable }))
  try {
    const stat = fstatSync(descriptor)
    if (stat.isDirectory()) throw new Fault(kind.unreadable, `is a directory, expected a ${kind.what}`)
    if (stat.isFIFO() || stat.isSocket()) return new PipeBytes(descriptor)
    if (isatty(descriptor)) {
      throw new Fault(kind.unreadable, `is a terminal, expected a ${kind.what}: pipe one in, or name a file`)
    }
    return new FileBytes(descriptor, stat.isFile() ? stat.size : 0)
  } catch (error) {
    if (descriptor !== 0) closeSync(descriptor)
    throw error
  }
}

class FileBytes implements ByteSource {
  readonly live = false
  readonly bytesTotal: number
  bytesRead = 0
  readonly #descriptor: number

  constructor(descriptor: number, bytesTotal: number) {
    this.#descriptor = descriptor
    this.bytesTotal = bytesTotal
  }

  read(into: Uint8Array, at: number, bytes: number): number {
    const got = readSync(this.#descriptor, into, at, bytes, null)
    this.bytesRead += got
    return got
  }

  close(): void {
    if (this.#descriptor !== 0) closeSync(this.#descriptor)
  }
}

class PipeBytes implements ByteSource {
  readonly live = true
  readonly bytesTotal = 0
  bytesRead = 0
  readonly #socket: Socket
  readonly #chunks: ChunkBytes

  constructor(descriptor: number) {
    this.#socket = new Socket({ fd: descriptor, readable: true, writable: false })
    this.#chunks = new ChunkBytes(this.#socket[Symbol.asyncIterator]())
  }

  async read(into: Uint8Array, at: number, bytes: number): Promise<number> {
    const got = await this.#chunks.read(into, at, bytes)
    this.bytesRead += got
    return got
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** Reads pieces of any size from chunks of any size. */
export class ChunkBytes {
  readonly #chunks: AsyncIterator<Uint8Array>
  #chunk: Uint8Array = new Uint8Array(0)
  #used = 0

  constructor(chunks: AsyncIterator<Uint8Array>) {
    this.#chunks = chunks
  }

  async read(into: Uint8Array, at: number, bytes: number): Promise<number> {
    while (this.#used === this.#chunk.length) {
      const { done, value } = await this.#chunks.next()
      if (done === true) return 0
      this.#chunk = value
      this.#used = 0
    }
    const got = Math.min(bytes, this.#chunk.length - this.#used)
    into.set(this.#chunk.subarray(this.#used, this.#used + got), at)
    this.#used += got
    return got
  }
}

/** Changes the bytes of another source, whose progress it reports. */
export abstract class WrappedBytes implements ByteSource {
  protected readonly source: ByteSource

  constructor(source: ByteSource) {
    this.source = source
  }

  get bytesRead(): number {
    return this.source.bytesRead
  }
  get bytesTotal(): number {
    return this.source.bytesTotal
  }
  get live(): boolean {
    return this.source.live
  }

  abstract read(into: Uint8Array, at: number, bytes: number): number | Promise<number>

  close(): void {
    this.source.close()
  }
}

/** A source whose first bytes were already read for inspection. */
export class WithHead extends WrappedBytes {
  #head: Uint8Array

  constructor(source: ByteSource, head: Uint8Array) {
    super(source)
    this.#head = head
  }

  read(into: Uint8Array, at: number, bytes: number): number | Promise<number> {
    if (this.#head.length === 0) return this.source.read(into, at, bytes)
    const given = Math.min(bytes, this.#head.length)
    into.set(this.#head.subarray(0, given), at)
    this.#head = this.#head.subarray(given)
    return given
  }
}

/** Adds the path to a Fault. A system error becomes the kind's `unreadable`. */
export function withPathOf(kind: FileKind, path: string, error: unknown): Error {
  if (error instanceof Fault) return new Fault(error.code, `${path}: ${error.message}`, { cause: error })
  const code = (error as NodeJS.ErrnoException).code
  if (code === undefined) return error as Error
  const reason: Record<string, string> = {
    ENOENT: 'no such file',
    EACCES: 'no permission to read it',
    EPERM: 'no permission to read it',
    ENOTDIR: 'a part of the path is not a directory',
    EISDIR: `is a directory, expected a ${kind.what}`,
    EIO: 'the disk reports a read error',
  }
  return new Fault(kind.unreadable, `${path}: ${reason[code] ?? code}`, { cause: error })
}
