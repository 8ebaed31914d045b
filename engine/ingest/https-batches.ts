import { type HttpHandler, type HttpRequest, type HttpResponse, refuse, sendError } from '../http/port.ts'
import { batchFromJson, batchLimits, isTooMany } from '../kernel/event/event.ts'
import { JsonCheck } from '../kernel/event/json.ts'
import { BytesCheck, type ShapeCheck } from '../kernel/event/shape.ts'
import { BATCH_BYTES_MAX, BATCH_EVENTS_MAX, BODY_MESSAGES_MAX, RETRY_AFTER_SECONDS } from '../limits.ts'
import { hashSecret, isMonitoringToken } from '../store/access-key.ts'
import { Outcome } from '../store/outcomes.ts'
import type { MonitoringToken } from '../store/secrets.ts'
import type { Store } from '../store/store.ts'
import type { Acceptance, BatchWriter, Malformed } from './accept.ts'
import { BodyMemory } from './body-memory.ts'
import type { HttpLogs, LogsTaken } from './http-logs.ts'
import { redact } from './redact.ts'
import { type BatchCounters, BODY_PACE, type BodyLimits, LogBodyCheck, refuseToken, withBody } from './request-body.ts'
import { type Source, type SourceOwner, SourceTable, UNATTRIBUTED } from './sources.ts'

/** Log messages: lines, or JSON objects. */
export const LOGS_PATH = '/ingest/v1/logs'

/**
 * The paths of Splunk's HTTP Event Collector for events, and for lines. Acknowledgements by channel
 * are not needed: the response follows when the matches are on disk.
 *
 * https://docs.splunk.com/Documentation/Splunk/latest/RESTREF/RESTinput
 */
const COLLECTOR_PATHS = new Set(
  ['', '/event', '/event/1.0', '/raw', '/raw/1.0'].map((path) => `/services/collector${path}`),
)
const HEALTH_PATHS: ReadonlySet<string> = new Set(['/services/collector/health', '/services/collector/health/1.0'])

const JSON_FIELDS = ['content-type', 'application/json']

function isLogsPath(path: string): boolean {
  return path === LOGS_PATH || COLLECTOR_PATHS.has(path)
}

/** Senders ask before they send, some without a token. */
function sendHealth(response: HttpResponse): void {
  response.send({ status: 200, fields: JSON_FIELDS, body: '{"text":"HEC is healthy","code":17}' })
}

/** A request with log messages. */
interface LogsRequest {
  readonly token: string
  readonly address: string
  readonly path: string
}

/** Reads the messages of a body, and answers. */
async function takeLogs(
  logs: HttpLogs,
  bytes: Buffer,
  { token, address, path }: LogsRequest,
  response: HttpResponse,
  counters: BatchCounters,
): Promise<void> {
  const outcome = await logs.take(bytes, token, address)
  if (outcome.kind === 'removed') return refuseToken(response, counters)
  if (outcome.kind === 'busy') return sendRetry(response, 503, `Try again later: ${outcome.why}`)
  counters.batches++
  if (outcome.isOverRate) {
    return sendRetry(
      response,
      429,
      `The token is over its rate (--token-max-messages-per-second). ${outcome.messages} messages were read; send the others later`,
    )
  }
  const body = COLLECTOR_PATHS.has(path) ? { text: 'Success', code: 0 } : countsOf(outcome)
  response.send({ status: 200, fields: JSON_FIELDS, body: JSON.stringify(body) })
}

function countsOf({ messages, counts }: LogsTaken) {
  const { stored, duplicate, outsideDedupWindow, unmatched, noDomain, skipped, ambiguous, rejected, unknown } = counts
  return {
    messages,
    ...{
      matched: stored,
      duplicates: duplicate,
      outside_dedup_window: outsideDedupWindow,
      unmatched,
      no_domain: noDomain,
    },
    ...{ skipped, ambiguous, rejected, unknown },
  }
}

function sendRetry(response: HttpResponse, status: number, message: string): void {
  sendError(response, status, message, ['retry-after', String(RETRY_AFTER_SECONDS)])
}

export const EVENTS_PATH = '/ingest/v1/events'

interface BodyFormat {
  readonly check: () => ShapeCheck
  readonly accept: (acceptor: BatchWriter, organizationId: string, bytes: Buffer) => Promise<Acceptance | Malformed>
}
const LIMITS = batchLimits(BATCH_EVENTS_MAX, BATCH_BYTES_MAX)
const MSGPACK: BodyFormat = {
  check: () => new BytesCheck(BATCH_BYTES_MAX),
  accept: (acceptor, organizationId, bytes) => acceptor.acceptPacked(organizationId, bytes, { deduplicate: true }),
}
const JSON_FORMAT: BodyFormat = {
  check: () => new JsonCheck(LIMITS),
  accept: async (acceptor, organizationId, bytes) => {
    const batch = batchFromJson(bytes.toString('utf8'), BATCH_EVENTS_MAX)
    if (typeof batch === 'string') return { kind: 'malformed', why: batch }
    return acceptor.accept(organizationId, batch.events, batch.coverage)
  },
}

/** By Content-Type. */
const FORMATS: Readonly<Record<string, BodyFormat | undefined>> = {
  'application/msgpack': MSGPACK,
  'application/x-msgpack': MSGPACK,
  'application/vnd.msgpack': MSGPACK,
  'application/json': JSON_FORMAT,
}

/** Shared by all requests of a listener. */
interface Shared extends BodyLimits {
  readonly acceptor: BatchWriter
  /** The version of the registry, for collectors. */
  readonly registry: () => string
}

interface EventsOptions {
  readonly memory?: BodyMemory
  readonly sources?: SourceTable
  readonly pace?: BodyLimits['pace']
  /** undefined: log messages are not accepted. */
  readonly logs?: HttpLogs | undefined
}

/**
 * POST /ingest/v1/events: `Authorization: Bearer <token>`, a batch in msgpack or JSON, optionally
 * gzip or zstd. The response follows when events and coverage report are durable: `{ accepted,
 * duplicates, outside_dedup_window, rejected: [{ index, error }], registry }` and, if the batch has
 * a report, `coverage: { accepted, error? }`. `registry` is the version in use.
 *
 * With `logs`, also log messages.
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
      const address = request.remoteAddress()
      const take = async (body: Buffer | string): Promise<void> => {
        if (typeof body !== 'string') return takeLogs(logs, body, { token: given, address, path }, response, counters)
        sendError(response, 413, `Expected a body of at most ${BODY_MESSAGES_MAX} messages`)
      }
      return withBody(request, response, organizationId, shared, take, new LogBodyCheck())
    }
    const contentType = request.header('content-type').split(';', 1)[0]?.trim().toLowerCase() ?? ''
    const format = Object.hasOwn(FORMATS, contentType) ? FORMATS[contentType] : undefined
    if (format === undefined)
      return sendError(response, 415, 'Expected Content-Type application/msgpack or application/json')
    const source = sourceOf(sources, { organizationId, tokenId, label }, request)
    const take = (body: Buffer | string): Promise<void> => takeBatch(source, body, response, format, shared)
    return withBody(request, response, organizationId, shared, take, format.check())
  }
}

function sourceOf(sources: SourceTable, owner: SourceOwner, request: HttpRequest): Source {
  return sources.get(owner, 'https', request.remoteAddress(), '')
}

async function takeBatch(
  source: Source,
  body: Buffer | string,
  response: HttpResponse,
  format: BodyFormat,
  { acceptor, counters, registry }: Shared,
): Promise<void> {
  const outcome: Acceptance | Malformed =
    typeof body === 'string'
      ? { kind: 'malformed', why: body }
      : await format.accept(acceptor, source.owner.organizationId, body)
  if (outcome.kind === 'malformed') {
    counters.malformed++
    source.receive(Date.now())
    source.count(Outcome.rejected, Date.now())
    if (isTooMany(outcome.why)) {
      return sendError(
        response,
        413,
        `Expected a batch of at most ${BATCH_EVENTS_MAX} events and ${BATCH_BYTES_MAX} bytes`,
      )
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
  { accepted, duplicates, outsideDedupWindow, rejected }: Extract<Acceptance, { kind: 'stored' }>,
): void {
  const nowMs = Date.now()
  source.receive(nowMs, accepted + duplicates + outsideDedupWindow + rejected.length)
  source.count(Outcome.stored, nowMs, accepted)
  source.count(Outcome.duplicate, nowMs, duplicates)
  source.count(Outcome.outsideDedupWindow, nowMs, outsideDedupWindow)
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
      const { accepted, duplicates, outsideDedupWindow, rejected } = acceptance
      const coverage = coverageAnswer(acceptance)
      const body = JSON.stringify({
        accepted,
        duplicates,
        outside_dedup_window: outsideDedupWindow,
        rejected,
        coverage,
        registry: registry(),
      })
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

export const REGISTRY_PATH = '/ingest/v1/registry'
const ROLLBACK_FIELD = 'posture-registry-rollback'

/**
 * GET /ingest/v1/registry: the installed update file, for collectors, which verify it themselves.
 * With `If-None-Match`, 304 if the collector has it. JSON if the built-in registry is in use. After
 * a rollback with the field ROLLBACK_FIELD, without which collectors accept no older release.
 */
function sendRegistry(store: Store, request: HttpRequest, response: HttpResponse): void {
  if (request.method !== 'GET') return refuse(response, 405, 'Ask by GET', ['allow', 'GET'])
  if (admit(store, bearerToken(request)) === undefined) {
    return refuse(response, 401, 'Invalid monitoring token', ['www-authenticate', 'Bearer'])
  }
  const { release, version, rollback } = store.environment.read(() => {
    const { inForce, version, state } = store.registryReleases
    return { release: inForce, version, rollback: state.isRolledBack ? [ROLLBACK_FIELD, 'true'] : [] }
  })
  if (release === undefined) {
    const body = JSON.stringify({ registry: version, built_in: true })
    return response.send({ status: 200, fields: ['content-type', 'application/json', ...rollback], body })
  }
  const tag = `"${release.sha256}"`
  const fields = ['etag', tag, 'cache-control', 'no-cache', ...rollback]
  if (request.header('if-none-match') === tag) return response.send({ status: 304, fields, body: '' })
  response.send({ status: 200, fields: [...fields, 'content-type', 'application/octet-stream'], body: release.bytes })
}

/**
 * Returns the active monitoring token with this text, or undefined. Malformed text is hashed and
 * looked up like any other, so that the response time does not reveal how close a guess is.
 */
function admit(store: Store, token: string): MonitoringToken | undefined {
  const found = store.environment.read(() => store.monitoringTokens.byHash(hashSecret(token)))
  return isMonitoringToken(token) ? found : undefined
}

/**
 * Returns the token of an HTTPS request, or ''. RFC 6750 §2.1. The scheme is case-insensitive (RFC
 * 9110 §11.1); `Splunk` is that of Splunk's HTTP Event Collector.
 */
function bearerToken(request: HttpRequest): string {
  return /^(?:bearer|splunk) +(\S+) *$/i.exec(request.header('authorization'))?.[1] ?? ''
}
