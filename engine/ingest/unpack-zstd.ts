import { Decompress } from 'fzstd'

/** Compressed bytes that are decompressed at once: 4 can become 128 KiB (RFC 8878 §3.1.1.2). */
const PUSH_BYTES = 1024
/** Decompressed bytes after which other work gets a turn of the event loop: about a millisecond. */
const TURN_BYTES = 128 * 1024
/** Every decoder supports a window of this size (RFC 8878 §3.1.1.1.2). */
const WINDOW_BYTES_MIN = 8 * 1024 * 1024
/** RFC 8878 §3.1.1 */
const MAGIC = 0xfd2fb528
const HEADER_BYTES_MIN = 6
const BLOCK_HEADER_BYTES = 3
const CHECKSUM_BYTES = 4
const RLE_BLOCK = 1
const RESERVED_BLOCK = 3

/**
 * Decompresses one zstd frame (RFC 8878), for Node 20, which has no zlib.createZstdDecompress. A
 * window beyond `windowMax`, or beyond the size that every decoder supports if that is larger, is
 * rejected before it is allocated.
 */
export async function* unpackZstd(packed: Uint8Array, windowMax: number): AsyncGenerator<Uint8Array> {
  checkFrame(Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength), Math.max(windowMax, WINDOW_BYTES_MIN))
  let chunks: Uint8Array[] = []
  let bytes = 0
  const decompress = new Decompress((chunk) => {
    chunks.push(chunk)
    bytes += chunk.length
  })
  let turnEndBytes = TURN_BYTES
  for (let at = 0; at < packed.length; at += PUSH_BYTES) {
    decompress.push(packed.subarray(at, at + PUSH_BYTES), at + PUSH_BYTES >= packed.length)
    yield* chunks
    chunks = []
    if (bytes < turnEndBytes) continue
    turnEndBytes = bytes + TURN_BYTES
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Throws unless the bytes are one complete frame with a window within the limit. */
function checkFrame(bytes: Buffer, windowMax: number): void {
  if (bytes.length < HEADER_BYTES_MIN || bytes.readUInt32LE(0) !== MAGIC) throw new Error('expected a zstd frame')
  const { windowBytes, end, hasChecksum } = frameHeader(bytes)
  if (windowBytes > windowMax) throw tooLarge()
  let at = end
  for (let isLast = false; !isLast; ) {
    if (at + BLOCK_HEADER_BYTES > bytes.length) throw new Error('the frame is truncated')
    const header = bytes.readUIntLE(at, BLOCK_HEADER_BYTES)
    const type = (header >> 1) & 3
    if (type === RESERVED_BLOCK) throw new Error('the frame has a block of a reserved type')
    isLast = (header & 1) === 1
    at += BLOCK_HEADER_BYTES + (type === RLE_BLOCK ? 1 : header >> 3)
  }
  if (hasChecksum) at += CHECKSUM_BYTES
  if (at !== bytes.length) throw new Error('expected exactly one zstd frame')
}

/** RFC 8878 §3.1.1.1 */
function frameHeader(bytes: Buffer): { windowBytes: number; end: number; hasChecksum: boolean } {
  const descriptor = bytes[4] ?? 0
  const isSingleSegment = (descriptor & 0x20) !== 0
  const sizeFlag = descriptor >> 6
  const sizeBytes = sizeFlag > 0 ? 1 << sizeFlag : Number(isSingleSegment)
  const sizeAt = 5 + Number(!isSingleSegment) + ([0, 1, 2, 4][descriptor & 3] ?? 0)
  const end = sizeAt + sizeBytes
  if (end > bytes.length) throw new Error('the frame is truncated')
  const window = bytes[5] ?? 0
  const powerOfTwo = 2 ** (10 + (window >> 3))
  const windowBytes = isSingleSegment
    ? contentSize(bytes, sizeAt, sizeBytes)
    : powerOfTwo + (powerOfTwo / 8) * (window & 7)
  return { windowBytes, end, hasChecksum: (descriptor & 4) !== 0 }
}

function contentSize(bytes: Buffer, at: number, length: number): number {
  if (length === 8) return Number(bytes.readBigUInt64LE(at))
  return bytes.readUIntLE(at, length) + (length === 2 ? 256 : 0)
}

function tooLarge(): Error {
  return Object.assign(new RangeError('too large when decompressed'), { code: 'ERR_BUFFER_TOO_LARGE' })
}
