import { batchFromJson, isTooManyEvents } from '../event/event.ts'
import { type HttpHandler, type HttpRequest, type HttpResponse, refuse, sendError } from '../http/port.ts'
import { BATCH_EVENTS_MAX } from '../limits.ts'
import { canonicalAddress } from '../process/network.ts'
import { Outcome } from '../store/outcomes.ts'
import type { Store } from '../store/store.ts'
import type { Acceptance, BatchWriter, Malformed } from './accept.ts'
import { admit, bearerToken } from './admit.ts'
import { BodyMemory } from './body-memory.ts'
import type { HttpLogs } from './http-logs.ts'
import { HEALTH_PATHS, isLogsPath, sendHealth, takeLogs } from './http-logs-answers.ts'
import { redact } from './redact.ts'
import { REGISTRY_PATH, sendRegistry } from './registry-download.ts'
import { type BatchCounters, BODY_PACE, type BodyLimits, refuseToken, withBody } from './request-body.ts'
import { type Source, type SourceOwner, SourceTable, UNATTRIBUTED } from './sources.ts'

export const EVENTS_PATH = '/ingest/v1/events'

type Accept = (acceptor: BatchWriter, organizationId: string, bytes: Buffer) => Promise<Acceptance | Malformed>
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

/** Shared by all requests of a listener. */
interface Shared extends BodyLimits {
  readonly acceptor: BatchWriter
  /** The version of the registry, for collectors. */
  readonly registry: () => string
}

export interface EventsOptions {
  readonly memory?: BodyMemory
  readonly sources?: SourceTable
  readonly pace?: BodyLimits['pace']
  /** undefined: log messages are not accepted. */
  readonly logs?: HttpLogs | undefined
}

/**
 * POST /ingest/v1/events: `Authorization: Bearer <token>`, a batch in msgpack or JSON, optionally
 * gzip or zstd. The response follows when events and coverage report are durable: `{ accepted,
 * duplicates, too_late, rejected: [{ index, error }], registry }` and, if the batch has a report,
 * `coverage: { accepted, error? }`. `registry` is the version in use.
 *
 * With `logs`, also log messages (http-logs-answers.ts).
 */
export function eventsHandler(
  store: Store,
  acceptor: BatchWriter,
  counters: BatchCounters,
  { memory = new BodyMemory(), sources = new SourceTable(), pace = BODY_PACE, logs }: EventsOptions = {},
): HttpHandler {
  const registry = (): string => store.environment.read(() => store.registryReleases.version)
  const shared: Shared = { acceptor, counters, memory, pace, registry }
  return (request, response) => {
    const { path } = request
    if (path === REGISTRY_PATH) return sendRegistry(store, request, response)
    if (logs !== undefined && HEALTH_PATHS.has(path)) return sendHealth(response)
    const isLogs = logs !== undefined && isLogsPath(path)
    if (path !== EVENTS_PATH && !isLogs)
      return refuse(response, 404, `No such path. Send events to POST ${EVENTS_PATH}`)
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
    const { organizationId, id: tokenId, label } = token
    if (isLogs) {
      const address = canonicalAddress(request.remoteAddress())
      return withBody(request, response, organizationId, shared, (bytes) =>
        takeLogs(logs, bytes, { token: given, address, path }, response, counters),
      )
    }
    const contentType = request.header('content-type').split(';', 1)[0]?.trim().toLowerCase() ?? ''
    const accept = Object.hasOwn(ACCEPT, contentType) ? ACCEPT[contentType] : undefined
    if (accept === undefined)
      return sendError(response, 415, 'Expected Content-Type application/msgpack or application/json')
    const source = sourceOf(sources, { organizationId, tokenId, label }, request)
    return withBody(request, response, organizationId, shared, (bytes) =>
      takeBatch(source, bytes, response, accept, shared),
    )
  }
}

function sourceOf(sources: SourceTable, owner: SourceOwner, request: HttpRequest): Source {
  return sources.get(owner, 'https', canonicalAddress(request.remoteAddress()), '')
}

async function takeBatch(
  source: Source,
  bytes: Buffer,
  response: HttpResponse,
  accept: Accept,
  { acceptor, counters, registry }: Shared,
): Promise<void> {
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
