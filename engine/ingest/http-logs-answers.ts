import { type HttpResponse, sendError } from '../http/port.ts'
import { RETRY_AFTER_SECONDS } from '../limits.ts'
import type { HttpLogs, LogsTaken } from './http-logs.ts'
import { type BatchCounters, refuseToken } from './request-body.ts'

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
export const HEALTH_PATHS: ReadonlySet<string> = new Set([
  '/services/collector/health',
  '/services/collector/health/1.0',
])

const JSON_FIELDS = ['content-type', 'application/json']

export function isLogsPath(path: string): boolean {
  return path === LOGS_PATH || COLLECTOR_PATHS.has(path)
}

/** Senders ask before they send, some without a token. */
export function sendHealth(response: HttpResponse): void {
  response.send({ status: 200, fields: JSON_FIELDS, body: '{"text":"HEC is healthy","code":17}' })
}

/** A request with log messages. */
export interface LogsRequest {
  readonly token: string
  readonly address: string
  readonly path: string
}

/** Reads the messages of a body, and answers. */
export async function takeLogs(
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
  const { stored, duplicate, tooLate, unmatched, noDomain, skipped, ambiguous, rejected, unknown } = counts
  return {
    messages,
    ...{ matched: stored, duplicates: duplicate, too_late: tooLate, unmatched, no_domain: noDomain },
    ...{ skipped, ambiguous, rejected, unknown },
  }
}

function sendRetry(response: HttpResponse, status: number, message: string): void {
  sendError(response, status, message, ['retry-after', String(RETRY_AFTER_SECONDS)])
}
