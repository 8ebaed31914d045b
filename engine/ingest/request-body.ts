import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { type BodyPace, type HttpRequest, type HttpResponse, refuse, sendError } from '../http/port.ts'
import {
  BATCH_BYTES_MAX,
  BATCH_UNPACKED_BYTES_MAX,
  BODY_BYTES_PER_SECOND_MIN,
  BODY_GRACE_MS,
  RETRY_AFTER_SECONDS,
} from '../limits.ts'
import { BodyMemory } from './body-memory.ts'
import { unpackZstd } from './unpack-zstd.ts'

type Decompress = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>
const asDecompress = (one: unknown): Decompress =>
  promisify(one as (...parameters: never[]) => void) as unknown as Decompress

/** By Content-Encoding. Node itself has zstd (RFC 8878) since 22.15 and 23.8. */
const DECOMPRESS: Readonly<Record<string, Decompress | undefined>> = {
  gzip: asDecompress(zlib.gunzip),
  zstd: 'zstdDecompress' in zlib ? asDecompress(zlib.zstdDecompress) : unpackZstd,
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
 * Receives the body of a request of this organization and passes it on, decompressed. Answers
 * requests whose body exceeds a limit or is damaged. Must be called before the handler first
 * awaits.
 */
export async function withBody(
  request: HttpRequest,
  response: HttpResponse,
  organizationId: string,
  { memory, counters, pace }: BodyLimits,
  use: (bytes: Buffer) => Promise<void>,
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
    if (decompress === undefined) return await use(body)
    const bytes = await memory.decompress(() => decompressed(body, decompress))
    if (bytes === 'too large') {
      return sendError(response, 413, `Expected a batch of at most ${BATCH_UNPACKED_BYTES_MAX} bytes when decompressed`)
    }
    if (bytes === 'damaged') {
      counters.malformed++
      return sendError(response, 400, 'Malformed batch: the compressed body is damaged')
    }
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

async function decompressed(body: Buffer, decompress: Decompress): Promise<Buffer | 'too large' | 'damaged'> {
  try {
    return await decompress(body, { maxOutputLength: BATCH_UNPACKED_BYTES_MAX })
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'too large' : 'damaged'
  }
}
