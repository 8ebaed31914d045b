import { createGunzip } from 'node:zlib'
import { Decompress } from 'fzstd'
import { type ByteSource, ChunkBytes, type FileKind, WithHead, WrappedBytes } from './byte-source.ts'
import { Fault } from './error-codes.ts'

/**
 * Detects compression by the first bytes: RFC 1952 §2.3.1, RFC 8878 §3.1.1 and, for skippable
 * frames, §3.1.2.
 */
export function compressionOf(start: Uint8Array): Compression | undefined {
  const [first, second, third, fourth] = start
  if (first === 0x1f && second === 0x8b) return 'gzip'
  if (second === 0xb5 && third === 0x2f && fourth === 0xfd && first === 0x28) return 'zstd'
  if (((first ?? 0) & 0xf0) === 0x50 && second === 0x2a && third === 0x4d && fourth === 0x18) return 'zstd'
  return undefined
}

export type Compression = 'gzip' | 'zstd'

const READ_BYTES = 65_536
/** Formats that are not read: magic number in hexadecimal, name, and how to get a file that is. */
const OTHER_FORMATS: readonly (readonly [magic: string, format: string, remedy: string])[] = [
  ['736e6f6f', 'snoop', 'convert it with: editcap -F pcap IN OUT'],
  ['fd377a58', 'xz', 'unpack it first'],
  ['425a68', 'bzip2', 'unpack it first'],
  ['04224d18', 'lz4', 'unpack it first'],
  ['504b0304', 'zip', 'unpack it first'],
]

/** The format of a file that begins with these bytes, if no program here reads it. */
export function otherFormat(start: Uint8Array): { readonly format: string; readonly remedy: string } | undefined {
  const hex = Buffer.from(start.subarray(0, 4)).toString('hex')
  const found = OTHER_FORMATS.find(([magic]) => hex.startsWith(magic))
  return found && { format: found[1], remedy: found[2] }
}

/** Compressed bytes of gzip that are decompressed at once, to at most 16 MiB. */
const GZIP_PUSH_BYTES = 16 * 1024
/**
 * Compressed bytes of zstd that are decompressed at once: 4 bytes can represent 128 KiB (RFC 8878
 * §3.1.1.2).
 */
const COMPRESSED_PUSH_BYTES = 1024

/**
 * Decompresses a source on demand. Needs memory for a window and a few chunks, regardless of the
 * file size.
 */
export class DecompressedBytes extends WrappedBytes {
  readonly #compression: Compression
  readonly #kind: FileKind
  readonly #chunks: ChunkBytes

  constructor(compressed: ByteSource, compression: Compression, kind: FileKind) {
    super(compressed)
    this.#kind = kind
    this.#compression = compression
    this.#chunks = new ChunkBytes(decompress(compressed, compression)[Symbol.asyncIterator]())
  }

  /** @throws Fault of the kind's `damaged` if the file is truncated or corrupt */
  async read(into: Uint8Array, at: number, bytes: number): Promise<number> {
    try {
      return await this.#chunks.read(into, at, bytes)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).syscall !== undefined) throw error
      throw new Fault(this.#kind.damaged, `${this.#compression}: ${(error as Error).message}`, { cause: error })
    }
  }
}

/** Length of the longest magic number in compressionOf. */
const MAGIC_BYTES = 4

/** The decompressed bytes of a source, and how they were compressed. */
export async function decompressedIfNeeded(
  source: ByteSource,
  kind: FileKind,
): Promise<{ readonly source: ByteSource; readonly compression: Compression | undefined }> {
  const head = await readHead(source, MAGIC_BYTES)
  const whole = new WithHead(source, head)
  const compression = compressionOf(head)
  return { source: compression === undefined ? whole : new DecompressedBytes(whole, compression, kind), compression }
}

/** Reads the first bytes of a source, fewer only at its end. */
export async function readHead(source: ByteSource, bytes: number): Promise<Uint8Array> {
  const head = new Uint8Array(bytes)
  let filled = 0
  while (filled < head.length) {
    const got = await source.read(head, filled, head.length - filled)
    if (got === 0) break
    filled += got
  }
  return head.subarray(0, filled)
}

function decompress(compressed: ByteSource, compression: Compression): AsyncIterable<Uint8Array> {
  return compression === 'gzip' ? unpackGzip(compressed) : decompressZstd(compressed)
}

/** A stream drops what it has decompressed before damage, so each piece is taken before the next. */
async function* unpackGzip(compressed: ByteSource): AsyncIterable<Uint8Array> {
  const gunzip = createGunzip()
  let decompressed: Uint8Array[] = []
  gunzip.on('data', (chunk: Uint8Array) => void decompressed.push(chunk))
  let settle = (_error?: Error): void => {}
  gunzip.on('error', (error) => settle(error)).on('end', () => settle())
  for await (const chunk of chunksOf(compressed)) {
    for (let at = 0; at < chunk.length; at += GZIP_PUSH_BYTES) {
      const piece = chunk.subarray(at, at + GZIP_PUSH_BYTES)
      const error = await new Promise<Error | undefined>((resolve) => {
        settle = resolve
        gunzip.write(piece, (failure) => resolve(failure ?? undefined))
      })
      yield* decompressed
      decompressed = []
      if (error !== undefined) throw error
    }
  }
  const error = await new Promise<Error | undefined>((resolve) => {
    settle = resolve
    gunzip.end()
  })
  yield* decompressed
  if (error !== undefined) throw error
}

/**
 * Uses a library for zstd: Node 20 has none, and Node 22 and 24 stop after the first frame of a
 * file.
 */
async function* decompressZstd(compressed: ByteSource): AsyncIterable<Uint8Array> {
  let decompressed: Uint8Array[] = []
  const decompress = new Decompress((chunk) => void decompressed.push(chunk))
  for await (const chunk of chunksOf(compressed)) {
    // A few bytes can expand to megabytes, so small pieces are pushed.
    for (let at = 0; at < chunk.length; at += COMPRESSED_PUSH_BYTES) {
      decompress.push(chunk.subarray(at, at + COMPRESSED_PUSH_BYTES))
      yield* decompressed
      decompressed = []
    }
  }
  decompress.push(new Uint8Array(0), true)
  yield* decompressed
}

async function* chunksOf(source: ByteSource): AsyncGenerator<Uint8Array> {
  for (;;) {
    const chunk = new Uint8Array(READ_BYTES)
    const got = await source.read(chunk, 0, chunk.length)
    if (got === 0) return
    yield chunk.subarray(0, got)
  }
}
