import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Decompress } from 'fzstd'
import { type ByteSource, ChunkBytes, type FileKind, openBytes, WithHead } from './byte-source.ts'
import { Fault } from './error-codes.ts'

/** What a file is compressed with, by its first bytes: RFC 1952 §2.3.1, RFC 8878 §3.1.1 and, for skippable frames, §3.1.2. */
export function compressionOf(start: Uint8Array): Compression | undefined {
  const [first, second, third, fourth] = start
  if (first === 0x1f && second === 0x8b) return 'gzip'
  if (second === 0xb5 && third === 0x2f && fourth === 0xfd && first === 0x28) return 'zstd'
  if (((first ?? 0) & 0xf0) === 0x50 && second === 0x2a && third === 0x4d && fourth === 0x18) return 'zstd'
  return undefined
}

export type Compression = 'gzip' | 'zstd'

const READ_BYTES = 65_536
/** How much packed zstd is unpacked at once, in bytes: 4 of them can stand for 128 KiB (RFC 8878 §3.1.1.2). */
const COMPRESSED_PUSH_BYTES = 1024

/** The bytes of a compressed source, unpacked as they are asked for. Memory is a window and a few chunks, whatever the file's size. */
export class UnpackedBytes implements ByteSource {
  readonly #packed: ByteSource
  readonly #compression: Compression
  readonly #kind: FileKind
  readonly #chunks: ChunkBytes

  constructor(packed: ByteSource, compression: Compression, kind: FileKind) {
    this.#kind = kind
    this.#packed = packed
    this.#compression = compression
    this.#chunks = new ChunkBytes(unpack(packed, compression)[Symbol.asyncIterator]())
  }

  get bytesRead(): number {
    return this.#packed.bytesRead
  }
  get bytesTotal(): number {
    return this.#packed.bytesTotal
  }
  get live(): boolean {
    return this.#packed.live
  }

  /** @throws Fault of the kind's `damaged` where the file breaks off or is corrupt. */
  async read(into: Uint8Array, at: number, bytes: number): Promise<number> {
    try {
      return await this.#chunks.read(into, at, bytes)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).syscall !== undefined) throw error
      throw new Fault(this.#kind.damaged, `${this.#compression}: ${(error as Error).message}`, { cause: error })
    }
  }

  close(): void {
    this.#packed.close()
  }
}

/** The longest magic number of compressionOf. */
const MAGIC_BYTES = 4

/**
 * Opens a file, a named pipe, or standard input, and unpacks it if it is compressed.
 *
 * @throws Fault of the kind's `unreadable`, without the path.
 */
export async function openUnpacked(path: string, kind: FileKind): Promise<ByteSource> {
  const source = openBytes(path, kind)
  try {
    const head = new Uint8Array(MAGIC_BYTES)
    let filled = 0
    while (filled < head.length) {
      const got = await source.read(head, filled, head.length - filled)
      if (got === 0) break
      filled += got
    }
    const whole = new WithHead(source, head.subarray(0, filled))
    const compression = compressionOf(head)
    return compression === undefined ? whole : new UnpackedBytes(whole, compression, kind)
  } catch (error) {
    source.close()
    throw error
  }
}

function unpack(packed: ByteSource, compression: Compression): AsyncIterable<Uint8Array> {
  return compression === 'gzip' ? unpackGzip(packed) : unpackZstd(packed)
}

function unpackGzip(packed: ByteSource): AsyncIterable<Uint8Array> {
  const read = Readable.from(chunksOf(packed), { objectMode: false })
  const unpacked = createGunzip()
  // pipe() does not hand on errors, and a reader of the far end must hear of those of the near end.
  read.on('error', (error) => unpacked.destroy(error))
  return read.pipe(unpacked)
}

/** RFC 8878 by a library: Node 20 has no zstd, and that of Node 22 and 24 ends with a file's first frame. */
async function* unpackZstd(packed: ByteSource): AsyncIterable<Uint8Array> {
  let unpacked: Uint8Array[] = []
  const decompress = new Decompress((chunk) => void unpacked.push(chunk))
  for await (const chunk of chunksOf(packed)) {
    // A few bytes can stand for megabytes: so few go in at once that what comes out stays small.
    for (let at = 0; at < chunk.length; at += COMPRESSED_PUSH_BYTES) {
      decompress.push(chunk.subarray(at, at + COMPRESSED_PUSH_BYTES))
      yield* unpacked
      unpacked = []
    }
  }
  decompress.push(new Uint8Array(0), true)
  yield* unpacked
}

async function* chunksOf(source: ByteSource): AsyncGenerator<Uint8Array> {
  for (;;) {
    const chunk = new Uint8Array(READ_BYTES)
    const got = await source.read(chunk, 0, chunk.length)
    if (got === 0) return
    yield chunk.subarray(0, got)
  }
}
