import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { batchFromJson, isTooManyEvents } from '../event/event.ts'
import {
  type BodyPace,
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  refuse,
  sendError,
} from '../http/port.ts'
import {
  BATCH_BYTES_MAX,
  BATCH_EVENTS_MAX,
  BATCH_UNPACKED_BYTES_MAX,
  BODY_BYTES_PER_SECOND_MIN,
  BODY_GRACE_MS,
  RETRY_AFTER_SECONDS,
} from '../limits.ts'
import { canonicalAddress } from '../process/network.ts'
import { Outcome } from '../store/outcomes.ts'
import type { Store } from '../store/store.ts'
import type { Acceptance, EventAcceptor, Malformed } from './accept.ts'
import { admit, bearerToken } from './admit.ts'
import { BodyMemory } from './body-memory.ts'
import { redact } from './redact.ts'
import { REGISTRY_PATH, sendRegistry } from './registry-download.ts'
import { type Source, type SourceOwner, SourceTable, UNATTRIBUTED } from './sources.ts'
import { unpackZstd } from './unpack-zstd.ts'

export const EVENTS_PATH = '/ingest/v1/events'

type Decompress = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>
const asDecompress = (one: unknown): Decompress =>
  promisify(one as (...parameters: never[]) => void) as unknown as Decompress

/** By Content-Encoding. Node itself has zstd (RFC 8878) since 22.15 and 23.8. */
const DECOMPRESS: Readonly<Record<string, Decompress | undefined>> = {
  gzip: asDecompress(zlib.gunzip),
  zstd: 'zstdDecompress' in zlib ? asDecompress(zlib.zstdDecompress) : unpackZstd,
}

type Accept = (acceptor: EventAcceptor, organizationId: string, bytes: Buffer) => Promise<Acceptance | Malformed>
const acceptMsgpack: Accept = (acceptor, organizationId, bytes) =>
  acceptor.acceptPacked(organizationId, bytes, { deduplicate: true })
const acceptJson: Accept = async (acceptor, organizationId, bytes) => {
  const batch = batchFromJson(bytes.toString('utf8'), BATCH_EVENTS_MAX)
  if (typeof batch === 'string') return { kind: 'malformed', why: batch }
  return acceptor.accept(organizationId, batch.events, batch.coverage)
}

/** By Content-Type. */
const ACCEPT: Readonly<Record<string, Accept | undefined>> = {
  'application/msgpack': acceptMsgpack,
  'application/x-msgpack': acceptMsgpack,
  'application/vnd.msgpack': acceptMsgpack,
  'application/json': acceptJson,
}

/** Counters of the HTTPS listener since its start. */
export interface BatchCounters {
  batches: number
  unauthorized: number
  malformed: number
  /** Answered 503 because too many bytes of bodies were held. Their events are not counted. */
  overloaded: number
}

/** Shared by all requests of a listener. */
interface Shared {
  readonly acceptor: EventAcceptor
  readonly counters: BatchCounters
  readonly memory: BodyMemory
  readonly sources: SourceTable
  /** The version of the registry, for collectors. */
  readonly registry: () => string
}

/**
 * POST /ingest/v1/events: `Authorization: Bearer <token>`, a batch in msgpack or JSON, optionally
 * gzip or zstd. The response follows when events and coverage report are durable: `{ accepted,
 * duplicates, too_late, rejected: [{ index, error }], registry }` and, if the batch has a report,
 * `coverage: { accepted, error? }`. `registry` is the version in use.
 */
export function eventsHandler(
  store: Store,
  acceptor: EventAcceptor,
  counters: BatchCounters,
  memory = new BodyMemory(),
  sources = new SourceTable(),
  pace: BodyPace = { graceMs: BODY_GRACE_MS, bytesPerSecondMin: BODY_BYTES_PER_SECOND_MIN },
): HttpHandler {
  const registry = (): string => store.environment.read(() => store.registryReleases.version)
  const shared: Shared = { acceptor, counters, memory, sources, registry }
  return (request, response) => {
    if (request.path === REGISTRY_PATH) return sendRegistry(store, request, response)
    if (request.path !== EVENTS_PATH) return refuse(response, 404, `No such path. Send events to POST ${EVENTS_PATH}`)
    if (request.method !== 'POST') return refuse(response, 405, 'Send events by POST', ['allow', 'POST'])
    const given = bearerToken(request)
    const token = admit(store, given)
    if (token === undefined) {
      const unauthenticated = sourceOf(sources, UNATTRIBUTED, request)
      unauthenticated.receive(Date.now())
      unauthenticated.count(Outcome.unauthorized, Date.now())
      unauthenticated.hasUnknownToken = given !== ''
      return refuseToken(response, counters)
    }
    const contentType = request.header('content-type').split(';', 1)[0]?.trim().toLowerCase() ?? ''
    const accept = Object.hasOwn(ACCEPT, contentType) ? ACCEPT[contentType] : undefined
    if (accept === undefined)
      return sendError(response, 415, 'Expected Content-Type application/msgpack or application/json')
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
    const { organizationId, id: tokenId, label } = token
    if (!memory.reserveArriving(organizationId, need)) return refuseOverload(response, counters)
    const source = sourceOf(sources, { organizationId, tokenId, label }, request)
    const body = request.body(BATCH_BYTES_MAX, pace).finally(() => memory.arrived(organizationId, need))
    return takeBatch(source, body, response, accept, decompress, shared).finally(() => memory.release(need))
  }
}

function sourceOf(sources: SourceTable, owner: SourceOwner, request: HttpRequest): Source {
  return sources.get(owner, 'https', canonicalAddress(request.remoteAddress()), '')
}

async function takeBatch(
  source: Source,
  arriving: ReturnType<HttpRequest['body']>,
  response: HttpResponse,
  accept: Accept,
  decompress: Decompress | undefined,
  { acceptor, counters, memory, registry }: Shared,
): Promise<void> {
  const body = await arriving
  if (body === 'aborted') return
  if (body === 'too slow')
    return sendError(response, 408, 'The request body arrives too slowly', ['connection', 'close'])
  if (body === 'too large') return sendError(response, 413, `Expected a batch of at most ${BATCH_BYTES_MAX} bytes`)
  const bytes = decompress === undefined ? body : await memory.decompress(() => decompressed(body, decompress))
  if (bytes === 'too large') {
    return sendError(response, 413, `Expected a batch of at most ${BATCH_UNPACKED_BYTES_MAX} bytes when decompressed`)
  }
  if (bytes === 'damaged') {
    counters.malformed++
    return sendError(response, 400, 'Malformed batch: the compressed body is damaged')
  }
  const unpackedBytes = decompress === undefined ? 0 : bytes.length
  if (!memory.reserve(unpackedBytes)) return refuseOverload(response, counters)
  try {
    const outcome = await accept(acceptor, source.owner.organizationId, bytes)
    if (outcome.kind === 'malformed') {
      counters.malformed++
      source.receive(Date.now())
      source.count(Outcome.rejected, Date.now())
      if (isTooManyEvents(outcome.why)) {
        return sendError(response, 413, `Expected a batch of at most ${BATCH_EVENTS_MAX} events`)
      }
      return sendError(response, 400, `Malformed batch: ${outcome.why}`)
    }
    if (outcome.kind === 'removed') {
      // As the next request is answered, which finds the token unknown.
      source.receive(Date.now())
      source.count(Outcome.unauthorized, Date.now())
      return refuseToken(response, counters)
    }
    counters.batches++
    if (outcome.kind === 'stored') countStored(source, outcome)
    answer(response, outcome, registry)
  } finally {
    memory.release(unpackedBytes)
  }
}

function countStored(
  source: Source,
  { accepted, duplicates, tooLate, rejected }: Extract<Acceptance, { kind: 'stored' }>,
): void {
  const nowMs = Date.now()
  source.receive(nowMs, accepted + duplicates + tooLate + rejected.length)
  source.count(Outcome.stored, nowMs, accepted)
  source.count(Outcome.duplicate, nowMs, duplicates)
  source.count(Outcome.tooLate, nowMs, tooLate)
  source.count(Outcome.rejected, nowMs, rejected.length)
  const first = rejected[0]
  if (first !== undefined) source.sample = redact(first.error)
}

function refuseToken(response: HttpResponse, counters: BatchCounters): void {
  counters.unauthorized++
  refuse(response, 401, 'Invalid monitoring token', ['www-authenticate', 'Bearer'])
}

function refuseOverload(response: HttpResponse, counters: BatchCounters): void {
  counters.overloaded++
  sendError(response, 503, 'Try again later: the service is busy', ['retry-after', String(RETRY_AFTER_SECONDS)])
}

function answer(
  response: HttpResponse,
  acceptance: Exclude<Acceptance, { kind: 'removed' }>,
  registry: Shared['registry'],
): void {
  switch (acceptance.kind) {
    case 'stored': {
      const { accepted, duplicates, tooLate, rejected } = acceptance
      const coverage = coverageAnswer(acceptance)
      const body = JSON.stringify({ accepted, duplicates, too_late: tooLate, rejected, coverage, registry: registry() })
      response.send({ status: 200, fields: ['content-type', 'application/json'], body })
      return
    }
    case 'retry':
      sendError(response, 503, `Try again later: ${acceptance.why}`, ['retry-after', String(acceptance.afterSeconds)])
      return
    default:
      acceptance satisfies never
  }
}

/** A batch by HTTPS has at most one report. */
function coverageAnswer({ coverage: [fate] }: Extract<Acceptance, { kind: 'stored' }>) {
  if (fate === undefined) return undefined
  switch (fate) {
    case 'added':
    case 'known':
      return { accepted: true }
    case 'tooSoon':
      return { accepted: false, error: 'coverage: reports are sent too often' }
    case 'damaged':
      return { accepted: false, error: 'coverage: the report of this instance in the store is damaged' }
    default:
      return { accepted: false, error: fate.error }
  }
}

async function decompressed(body: Buffer, decompress: Decompress): Promise<Buffer | 'too large' | 'damaged'> {
  try {
    return await decompress(body, { maxOutputLength: BATCH_UNPACKED_BYTES_MAX })
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'too large' : 'damaged'
  }
}
