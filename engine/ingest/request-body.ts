import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { Decompress } from 'fzstd'
import { COLON, LF, OPEN_BRACE } from '../formats/bytes.ts'
import { type BodyPace, type HttpRequest, type HttpResponse, refuse, sendError } from '../http/port.ts'
import type { ShapeCheck } from '../kernel/event/shape.ts'
import {
  BATCH_BYTES_MAX,
  BATCH_UNPACKED_BYTES_MAX,
  BODY_BYTES_PER_SECOND_MIN,
  BODY_GRACE_MS,
  BODY_MESSAGES_MAX,
  RETRY_AFTER_SECONDS,
} from '../limits.ts'
import { BodyMemory } from './body-memory.ts'

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

type Unpack = (body: Uint8Array) => AsyncIterable<Uint8Array>
/** Bytes that are decompressed in one step. */
const STEP_BYTES = 64 * 1024

const streamOf =
  (create: (options: { chunkSize: number }) => Transform): Unpack =>
  (body) =>
    create({ chunkSize: STEP_BYTES }).end(body)

/** By Content-Encoding. Node itself has zstd (RFC 8878) since 22.15 and 23.8. */
const DECOMPRESS: Readonly<Record<string, Unpack | undefined>> = {
  gzip: streamOf(zlib.createGunzip),
  zstd:
    'createZstdDecompress' in zlib
      ? streamOf(zlib.createZstdDecompress as typeof zlib.createGunzip)
      : (body) => unpackZstd(body, BATCH_UNPACKED_BYTES_MAX),
}

/** Counters of the HTTPS listener since its start. */
export interface BatchCounters {
  batches: number
  unauthorized: number
  malformed: number
  /** Answered 503 because too many bytes of bodies were held. Their events are not counted. */
  overloaded: number
}

export const BODY_PACE: BodyPace = { graceMs: BODY_GRACE_MS, bytesPerSecondMin: BODY_BYTES_PER_SECOND_MIN }

export interface BodyLimits {
  readonly memory: BodyMemory
  readonly counters: BatchCounters
  readonly pace: BodyPace
}

/**
 * Receives the body of a request of this organization and passes it on, decompressed, or the error
 * of `check`. Answers requests whose body exceeds a limit or is damaged. Must be called before the
 * handler first awaits.
 */
export async function withBody(
  request: HttpRequest,
  response: HttpResponse,
  organizationId: string,
  { memory, counters, pace }: BodyLimits,
  use: (body: Buffer | string) => Promise<void>,
  check?: ShapeCheck,
): Promise<void> {
  const encoding = request.header('content-encoding').trim().toLowerCase()
  const plain = encoding === '' || encoding === 'identity'
  const decompress = Object.hasOwn(DECOMPRESS, encoding) ? DECOMPRESS[encoding] : undefined
  if (!plain && decompress === undefined) {
    const known = Object.keys(DECOMPRESS)
    return sendError(response, 415, `Expected Content-Encoding ${known.join(' or ')}, or none`, [
      'accept-encoding',
      known.join(', '),
    ])
  }
  const need = BodyMemory.bytesNeeded(request.header('content-length'))
  if (!memory.reserveArriving(organizationId, need)) return refuseOverload(response, counters)
  try {
    const body = await request.body(BATCH_BYTES_MAX, pace).finally(() => memory.arrived(organizationId, need))
    if (body === 'aborted') return
    if (body === 'too slow')
      return sendError(response, 408, 'The request body arrives too slowly', ['connection', 'close'])
    if (body === 'too large') return sendError(response, 413, `Expected a batch of at most ${BATCH_BYTES_MAX} bytes`)
    if (decompress === undefined) return await use(check?.push(body) ?? check?.end?.() ?? body)
    const unpacked = await memory.decompress(() => decompressed(decompress(body), check))
    if (unpacked === 'too large') {
      return sendError(response, 413, `Expected a batch of at most ${BATCH_UNPACKED_BYTES_MAX} bytes when decompressed`)
    }
    if (unpacked === 'damaged') {
      counters.malformed++
      return sendError(response, 400, 'Malformed batch: the compressed body is damaged')
    }
    if ('error' in unpacked) return await use(unpacked.error)
    const { bytes } = unpacked
    if (!memory.reserve(bytes.length)) return refuseOverload(response, counters)
    try {
      await use(bytes)
    } finally {
      memory.release(bytes.length)
    }
  } finally {
    memory.release(need)
  }
}

export function refuseToken(response: HttpResponse, counters: BatchCounters): void {
  counters.unauthorized++
  refuse(response, 401, 'Invalid monitoring token', ['www-authenticate', 'Bearer'])
}

function refuseOverload(response: HttpResponse, counters: BatchCounters): void {
  counters.overloaded++
  sendError(response, 503, 'Try again later: the service is busy', ['retry-after', String(RETRY_AFTER_SECONDS)])
}

/** Decompresses in steps, no further than the first limit. */
async function decompressed(
  steps: AsyncIterable<Uint8Array>,
  check: ShapeCheck | undefined,
): Promise<{ readonly bytes: Buffer } | { readonly error: string } | 'too large' | 'damaged'> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of steps) {
      length += chunk.length
      if (length > BATCH_UNPACKED_BYTES_MAX) return 'too large'
      const error = check?.push(chunk)
      if (error !== undefined) return { error }
      chunks.push(chunk)
    }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'too large' : 'damaged'
  }
  const error = check?.end?.()
  return error === undefined ? { bytes: Buffer.concat(chunks, length) } : { error }
}

/**
 * Counts the messages of a body of log lines while it is decompressed: lines, and objects that are
 * not the value of a field. A message of two bytes costs as much as a long one.
 */
export class LogBodyCheck implements ShapeCheck {
  #messages = 0
  #before = 0

  push(chunk: Uint8Array): string | undefined {
    let before = this.#before
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      if (byte === LF || (byte === OPEN_BRACE && before !== COLON)) this.#messages++
      before = byte
    }
    this.#before = before
    return this.#messages > BODY_MESSAGES_MAX ? `too many messages: expected at most ${BODY_MESSAGES_MAX}` : undefined
  }
}
