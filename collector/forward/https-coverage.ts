import { type CoverageReport, coverageReportToJson } from '../../engine/event/coverage-report.ts'
import { COVERAGE_TIMEOUT_MS } from '../limits.ts'
import { connectionProblem, stopped } from './connection.ts'
import type { CoverageOutcome, CoverageWay } from './coverage-way.ts'
import { type Answer, HttpsClient, type HttpsSettings, jsonOf, messageOf } from './https-client.ts'

const COVERAGE_PATH = '/ingest/v1/coverage'

/** Sends reports of coverage by POST, each over a connection that is made for it: none stands idle for a minute. */
export class HttpsCoverage implements CoverageWay {
  readonly #client: HttpsClient

  /** @throws Fault USAGE where the file of the authority cannot be read, or the proxy is no URL. */
  constructor(settings: HttpsSettings) {
    const timeoutMs = COVERAGE_TIMEOUT_MS
    this.#client = new HttpsClient(settings, { keepAlive: false, timeoutMs, wholeTimeoutMs: timeoutMs })
  }

  async send(report: CoverageReport): Promise<CoverageOutcome> {
    try {
      const body = Buffer.from(coverageReportToJson(report))
      return this.#outcome(await this.#client.post(COVERAGE_PATH, { 'content-type': 'application/json' }, body))
    } catch (error) {
      const why = this.#client.closed ? stopped().message : connectionProblem(error, this.#client.peer).why
      return { kind: 'failed', why }
    }
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  /** A gateway answers, too: only the service's own words refuse a report or the token. */
  #outcome({ status, text }: Answer): CoverageOutcome {
    const said = messageOf(text)
    const why = `${this.#client.url} answered ${status} ${said}`.trimEnd()
    if (status === 200) {
      const accepted = (jsonOf(text) as { accepted?: unknown } | undefined)?.accepted
      return accepted === true ? { kind: 'sent' } : { kind: 'failed', why: `${why}, but not as the service does` }
    }
    if (said === '') return { kind: 'failed', why }
    switch (status) {
      case 401:
        return { kind: 'unauthorised', why: `${this.#client.url} does not know the monitoring token (401)` }
      case 400:
      case 404:
      case 405:
      case 413:
      case 415:
        return { kind: 'refused', why }
      default:
        return { kind: 'failed', why }
    }
  }
}
