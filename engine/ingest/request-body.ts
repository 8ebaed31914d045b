import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
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
import { unpackZstd } from './unpack-zstd.ts'

type Decompress = (body: Uint8Array) => AsyncIterable<Uint8Array>
/** Bytes that are decompressed in one step. */
const STEP_BYTES = 64 * 1024

const streamOf =
  (create: (options: { chunkSize: number }) => Transform): Decompress =>
  (body) =>
    create({ chunkSize: STEP_BYTES }).end(body)

/** By Content-Encoding. Node itself has zstd (RFC 8878) since 22.15 and 23.8. */
const DECOMPRESS: Readonly<Record<string, Decompress | undefined>> = {
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

export function refuseOverload(response: HttpResponse, counters: BatchCounters): void {
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
