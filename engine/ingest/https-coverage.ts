import { type BodyPace, type HttpHandler, type HttpResponse, sendError } from '../http/port.ts'
import { BODY_BYTES_PER_SECOND_MIN, BODY_GRACE_MS, COVERAGE_BYTES_MAX, RETRY_AFTER_SECONDS } from '../limits.ts'
import type { Store } from '../store/store.ts'
import type { CoverageAcceptance, CoverageAcceptor } from './accept-coverage.ts'
import { admit, bearerToken } from './admit.ts'
import { BodyMemory } from './body-memory.ts'
import { canonicalAddress } from './network.ts'
import { Outcome } from './outcome.ts'
import { coverageReportFromJson } from './read-coverage.ts'
import { NOBODYS, SourceTable } from './sources.ts'

export const COVERAGE_PATH = '/ingest/v1/coverage'

/**
 * POST /ingest/v1/coverage: `Authorization: Bearer <token>`, a report in JSON (engine/event/coverage-report.ts). Answered by `{ accepted: true }` when
 * what it says is durable. `memory` and `sources` are those of the events' handler, whose listener it shares.
 */
export function coverageHandler(
  store: Store,
  acceptor: CoverageAcceptor,
  memory = new BodyMemory(),
  sources = new SourceTable(),
  pace: BodyPace = { graceMs: BODY_GRACE_MS, bytesPerSecondMin: BODY_BYTES_PER_SECOND_MIN },
): HttpHandler {
  return (request, response) => {
    if (request.method !== 'POST') return sendError(response, 405, 'Coverage is sent by POST', ['allow', 'POST'])
    const token = admit(store, bearerToken(request))
    if (token === undefined) {
      acceptor.counts.unauthorised++
      const stranger = sources.get(NOBODYS, 'https', canonicalAddress(request.remoteAddress()), '')
      stranger.receive(Date.now())
      stranger.count(Outcome.unauthorised, Date.now())
      return sendError(response, 401, 'Invalid monitoring token', ['www-authenticate', 'Bearer'])
    }
    const contentType = request.header('content-type').split(';', 1)[0]?.trim().toLowerCase()
    if (contentType !== 'application/json') return sendError(response, 415, 'Expected Content-Type application/json')
    const encoding = request.header('content-encoding').trim().toLowerCase()
    if (encoding !== '' && encoding !== 'identity') {
      return sendError(response, 415, 'Expected no Content-Encoding', ['accept-encoding', 'identity'])
    }
    const { organizationId } = token
    const need = Math.min(BodyMemory.needOf(request.header('content-length')), COVERAGE_BYTES_MAX)
    if (!memory.takeArriving(organizationId, need)) {
      return later(response, 503, 'the service is busy', RETRY_AFTER_SECONDS)
    }
    const body = request.body(COVERAGE_BYTES_MAX, pace).finally(() => memory.arrived(organizationId, need))
    return takeReport(organizationId, body, response, acceptor).finally(() => memory.give(need))
  }
}

async function takeReport(
  organizationId: string,
  arriving: Promise<Buffer | 'too large' | 'too slow' | 'aborted'>,
  response: HttpResponse,
  acceptor: CoverageAcceptor,
): Promise<void> {
  const body = await arriving
  if (body === 'aborted') return
  if (body === 'too slow')
    return sendError(response, 408, 'The body of the report comes too slowly', ['connection', 'close'])
  if (body === 'too large') return sendError(response, 413, `Expected a report of at most ${COVERAGE_BYTES_MAX} bytes`)
  const report = coverageReportFromJson(body.toString('utf8'))
  if (typeof report === 'string') {
    acceptor.counts.malformed++
    return sendError(response, 400, `Malformed report: ${report}`)
  }
  answer(response, await acceptor.accept(organizationId, report))
}

function answer(response: HttpResponse, acceptance: CoverageAcceptance): void {
  switch (acceptance.kind) {
    case 'stored':
      response.send({ status: 200, fields: ['content-type', 'application/json'], body: '{"accepted":true}' })
      return
    case 'tooOften':
      return later(response, 429, acceptance.why, acceptance.afterSeconds)
    case 'retry':
      return later(response, 503, acceptance.why, acceptance.afterSeconds)
    default:
      acceptance satisfies never
  }
}

function later(response: HttpResponse, status: 429 | 503, why: string, afterSeconds: number): void {
  sendError(response, status, `Try again later: ${why}`, ['retry-after', String(afterSeconds)])
}
