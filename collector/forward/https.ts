import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Dispatcher } from 'undici'
import { z } from 'zod'
import { type Event, packBatch } from '../../engine/event.ts'
import { FORWARD_TIMEOUT_MS } from '../limits.ts'
import { type ConnectionSettings, connectionProblem, dispatcherFor, originOf } from './connection.ts'
import type { Forwarder, Outcome } from './forwarder.ts'
import { retryAfterMs } from './retry.ts'

const gzipped = promisify(gzip)
export const EVENTS_PATH = '/ingest/v1/events'
/** An answer is a few numbers and the rejected events; a longer one is not the service's. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024

export interface HttpsSettings extends ConnectionSettings {
  readonly token: string
}

const acceptance = z.object({
  accepted: z.number().int().nonnegative(),
  duplicates: z.number().int().nonnegative(),
  rejected: z.array(z.object({ index: z.number().int().nonnegative(), error: z.string() })),
})

/** Sends batches by POST to the service's HTTPS ingest over one kept-alive connection (connection.ts). */
export class HttpsForwarder implements Forwarder {
  readonly #settings: HttpsSettings
  readonly #origin: string
  readonly #dispatcher: Dispatcher

  /** @throws Fault USAGE where the file of the authority cannot be read, or the proxy is no URL. */
  constructor(settings: HttpsSettings) {
    this.#settings = settings
    this.#origin = originOf(settings)
    this.#dispatcher = dispatcherFor(settings)
  }

  async send(events: readonly Event[]): Promise<Outcome> {
    try {
      const body = await gzipped(packBatch(events))
      const answer = await this.#dispatcher.request({
        origin: this.#origin,
        path: EVENTS_PATH,
        method: 'POST',
        headers: {
          authorization: `Bearer ${this.#settings.token}`,
          'content-type': 'application/msgpack',
          'content-encoding': 'gzip',
        },
        body,
        headersTimeout: FORWARD_TIMEOUT_MS,
        bodyTimeout: FORWARD_TIMEOUT_MS,
      })
      return this.#outcome(answer, await textOf(answer.body), events)
    } catch (error) {
      return { kind: 'retry', why: connectionProblem(error, this.#settings).why }
    }
  }

  close(): Promise<void> {
    return this.#dispatcher.destroy()
  }

  #outcome(answer: Dispatcher.ResponseData, text: string, events: readonly Event[]): Outcome {
    const said = messageOf(text)
    // A gateway or a captive portal answers, too; what it says is not the service's word on the events or the token.
    const stranger = `${this.#origin} answered ${answer.statusCode}, but not as the service does`
    switch (answer.statusCode) {
      case 200:
        return this.#accepted(text, events)
      case 401:
        if (said === '') return { kind: 'retry', why: stranger }
        return { kind: 'unauthorised', why: `${this.#origin} does not know the monitoring token (401)` }
      case 400:
      case 413:
      case 415:
        if (said === '') return { kind: 'notPassed', why: stranger }
        return { kind: 'refused', why: `${answer.statusCode} ${said}` }
      default: {
        const field = answer.headers['retry-after']
        const afterMs = typeof field === 'string' ? retryAfterMs(field, Date.now()) : undefined
        const why = `${this.#origin} answered ${answer.statusCode} ${said}`
        return { kind: 'retry', why, ...(afterMs === undefined ? {} : { afterMs }) }
      }
    }
  }

  /** Only an answer that is whole and accounts for every event counts: a captive portal answers 200, too. */
  #accepted(text: string, events: readonly Event[]): Outcome {
    const parsed = acceptance.safeParse(jsonOf(text))
    if (!parsed.success) return { kind: 'retry', why: `${this.#origin} answered 200, but not as the service does` }
    const { accepted, duplicates, rejected } = parsed.data
    if (accepted + duplicates + rejected.length !== events.length) {
      return {
        kind: 'retry',
        why: `${this.#origin} accounts for ${accepted + duplicates + rejected.length} of ${events.length} events`,
      }
    }
    return { kind: 'accepted', duplicates, rejected: rejected.map(({ error }) => error) }
  }
}

async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX) throw new Error(`the answer is longer than ${ANSWER_BYTES_MAX} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The service's own words, if they are. */
function messageOf(text: string): string {
  const message = (jsonOf(text) as { error?: unknown } | undefined)?.error
  return typeof message === 'string' ? message.slice(0, 200) : ''
}
