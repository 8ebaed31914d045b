import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { z } from 'zod'
import type { CoverageReport } from '../../engine/kernel/event/coverage-report.ts'
import { type Event, packBatch } from '../../engine/kernel/event/event.ts'
import { dataVersion } from '../../registry/data-version-schema.ts'
import { connectionProblem, stopped } from './connection.ts'
import { type Forwarder, type Outcome, retryAfterMs } from './forwarder.ts'
import { type Answer, HttpsClient, type HttpsSettings, jsonOf, messageOf } from './https-client.ts'

export type { HttpsSettings } from './https-client.ts'

const gzipped = promisify(gzip)
const EVENTS_PATH = '/ingest/v1/events'
const FIELDS = { 'content-type': 'application/msgpack', 'content-encoding': 'gzip' } as const

const acceptance = z.object({
  accepted: z.number().int().nonnegative(),
  duplicates: z.number().int().nonnegative(),
  outside_dedup_window: z.number().int().nonnegative().default(0),
  rejected: z.array(z.object({ index: z.number().int().nonnegative(), error: z.string() })),
  coverage: z.object({ accepted: z.boolean(), error: z.string().optional() }).optional(),
  registry: dataVersion.optional().catch(undefined),
})

/** Sends batches by POST to the service's HTTPS ingest over one kept-alive connection. */
export class HttpsForwarder implements Forwarder {
  readonly alive = true
  readonly #client: HttpsClient
  readonly #onRegistry: (version: string) => void

  /**
   * @param onRegistry receives the version of the registry that the service uses
   * @throws Fault USAGE if the CA certificate cannot be read or the proxy is not a URL.
   */
  constructor(settings: HttpsSettings, onRegistry: (version: string) => void = () => {}) {
    this.#client = new HttpsClient(settings)
    this.#onRegistry = onRegistry
  }

  async send(events: readonly Event[], coverage?: CoverageReport): Promise<Outcome> {
    const body = await gzipped(packBatch(events, coverage))
    let answer: Answer
    try {
      answer = await this.#client.post(EVENTS_PATH, FIELDS, body)
    } catch (error) {
      const why = this.#client.closed ? stopped().message : connectionProblem(error, this.#client.peer).why
      return { kind: 'retry', why }
    }
    return this.#outcome(answer, events, coverage)
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  #outcome({ status, headers, text }: Answer, events: readonly Event[], coverage?: CoverageReport): Outcome {
    const { url } = this.#client
    const message = messageOf(text)
    // The answer may come from a gateway or a captive portal, which cannot decide about the events
    // or the token.
    const unexpected = `${url} answered ${status}, but not as the service does`
    const answered = `${url} answered ${status} ${message}`.trimEnd()
    switch (status) {
      case 200:
        return this.#accepted(text, events, coverage)
      case 401:
        if (message === '') return { kind: 'retry', why: unexpected }
        return { kind: 'unauthorized', why: `${url} does not know the monitoring token (401)` }
      case 400:
      case 413:
      case 415:
        if (message === '' || status === 415) return { kind: 'notPassed', why: message === '' ? unexpected : answered }
        return { kind: 'refused', why: answered }
      default: {
        const field = headers['retry-after']
        const afterMs = field === undefined ? undefined : retryAfterMs(field, Date.now())
        return { kind: 'retry', why: answered, ...(afterMs === undefined ? {} : { afterMs }) }
      }
    }
  }

  /**
   * Accepts only a complete answer that accounts for every event: a captive portal also answers
   * 200.
   */
  #accepted(text: string, events: readonly Event[], coverage?: CoverageReport): Outcome {
    const { url } = this.#client
    const parsed = acceptance.safeParse(jsonOf(text))
    if (!parsed.success) return { kind: 'retry', why: `${url} answered 200, but not as the service does` }
    const { accepted, duplicates, outside_dedup_window: outsideDedupWindow, rejected, coverage: report } = parsed.data
    const answered = accepted + duplicates + outsideDedupWindow + rejected.length
    if (answered !== events.length) {
      return { kind: 'retry', why: `${url} accounts for ${answered} of ${events.length} events` }
    }
    if (parsed.data.registry !== undefined) this.#onRegistry(parsed.data.registry)
    const isAccepted = coverage === undefined || report?.accepted === true
    const failure = isAccepted ? {} : { coverageError: report?.error ?? `${url} did not accept the coverage report` }
    return {
      kind: 'accepted',
      duplicates,
      outsideDedupWindow,
      rejected: rejected.map(({ error }) => error),
      ...failure,
    }
  }
}
