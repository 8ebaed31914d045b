import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http'
import { Agent, request } from 'node:https'
import type { Duplex } from 'node:stream'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { z } from 'zod'
import { type Event, packBatch } from '../../engine/event.ts'
import { FORWARD_TIMEOUT_MS, FORWARD_WHOLE_TIMEOUT_MS } from '../limits.ts'
import {
  connectionProblem,
  httpsPeer,
  type Peer,
  type ServiceSettings,
  stopped,
  TlsConnector,
  urlOf,
} from './connection.ts'
import type { Forwarder, Outcome } from './forwarder.ts'
import { retryAfterMs } from './retry.ts'

const gzipped = promisify(gzip)
const EVENTS_PATH = '/ingest/v1/events'
/** An answer is a few numbers and the rejected events; a longer one is not the service's. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024

export type HttpsSettings = Pick<ServiceSettings, 'endpoint' | 'httpsPort' | 'ca' | 'fingerprint'> & {
  readonly token: string
}

const acceptance = z.object({
  accepted: z.number().int().nonnegative(),
  duplicates: z.number().int().nonnegative(),
  rejected: z.array(z.object({ index: z.number().int().nonnegative(), error: z.string() })),
})

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** Sends batches by POST to the service's HTTPS ingest over one kept-alive connection (connection.ts). */
export class HttpsForwarder implements Forwarder {
  readonly alive = true
  readonly #token: string
  readonly #peer: Peer
  readonly #url: string
  readonly #connector: TlsConnector
  readonly #agent: PeerAgent
  #closed = false
  /** Cuts what is under way. */
  #cut: () => void = () => {}

  /** @throws Fault USAGE where the file of the authority cannot be read, or the proxy is no URL. */
  constructor(settings: HttpsSettings) {
    this.#token = settings.token
    this.#peer = httpsPeer(settings)
    this.#url = urlOf(this.#peer)
    this.#connector = new TlsConnector(this.#peer)
    this.#agent = new PeerAgent(this.#connector)
  }

  async send(events: readonly Event[]): Promise<Outcome> {
    try {
      const body = await gzipped(packBatch(events))
      const answer = await this.#post(body).catch((error: unknown) => {
        if (error instanceof StaleConnection) return this.#post(body)
        throw error
      })
      return this.#outcome(answer, events)
    } catch (error) {
      if (this.#closed) return { kind: 'retry', why: stopped().message }
      return { kind: 'retry', why: connectionProblem(error, this.#peer).why }
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#connector.cancel()
    this.#cut()
    this.#agent.destroy()
  }

  async #post(body: Buffer): Promise<Answer> {
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise((resolve, reject) => {
        const asked = request(`${this.#url}${EVENTS_PATH}`, {
          method: 'POST',
          agent: this.#agent,
          timeout: FORWARD_TIMEOUT_MS,
          headers: {
            authorization: `Bearer ${this.#token}`,
            'content-type': 'application/msgpack',
            'content-encoding': 'gzip',
            'content-length': body.length,
          },
        })
        const late = (ms: number) => () => asked.destroy(new Error(`no answer within ${ms / 1000} s`))
        timer = setTimeout(late(FORWARD_WHOLE_TIMEOUT_MS), FORWARD_WHOLE_TIMEOUT_MS)
        this.#cut = () => {
          asked.destroy()
          reject(stopped())
        }
        if (this.#closed) this.#cut()
        asked
          .once('response', (answer) => textOf(answer).then((text) => resolve(answerOf(answer, text)), reject))
          .once('timeout', late(FORWARD_TIMEOUT_MS))
          // There may be more than one; the first decides.
          .on('error', (error: NodeJS.ErrnoException) =>
            reject(asked.reusedSocket && error.code === 'ECONNRESET' ? new StaleConnection() : error),
          )
          .end(body)
      })
    } finally {
      clearTimeout(timer)
      this.#cut = () => {}
    }
  }

  #outcome({ status, headers, text }: Answer, events: readonly Event[]): Outcome {
    const said = messageOf(text)
    // A gateway or a captive portal answers, too; what it says is not the service's word on the events or the token.
    const stranger = `${this.#url} answered ${status}, but not as the service does`
    const answered = `${this.#url} answered ${status} ${said}`.trimEnd()
    switch (status) {
      case 200:
        return this.#accepted(text, events)
      case 401:
        if (said === '') return { kind: 'retry', why: stranger }
        return { kind: 'unauthorised', why: `${this.#url} does not know the monitoring token (401)` }
      case 400:
      case 413:
      case 415:
        if (said === '' || status === 415) return { kind: 'notPassed', why: said === '' ? stranger : answered }
        return { kind: 'refused', why: answered }
      default: {
        const field = headers['retry-after']
        const afterMs = field === undefined ? undefined : retryAfterMs(field, Date.now())
        return { kind: 'retry', why: answered, ...(afterMs === undefined ? {} : { afterMs }) }
      }
    }
  }

  /** Only an answer that is whole and accounts for every event counts: a captive portal answers 200, too. */
  #accepted(text: string, events: readonly Event[]): Outcome {
    const parsed = acceptance.safeParse(jsonOf(text))
    if (!parsed.success) return { kind: 'retry', why: `${this.#url} answered 200, but not as the service does` }
    const { accepted, duplicates, rejected } = parsed.data
    if (accepted + duplicates + rejected.length !== events.length) {
      return {
        kind: 'retry',
        why: `${this.#url} accounts for ${accepted + duplicates + rejected.length} of ${events.length} events`,
      }
    }
    return { kind: 'accepted', duplicates, rejected: rejected.map(({ error }) => error) }
  }
}

/** A kept connection that the other side closed while the request was on its way: no reason to wait before another try. */
class StaleConnection extends Error {
  constructor() {
    super('the connection was closed')
  }
}

/** Node's pool of connections, of one, made by the connector: a pin is compared before the token is sent. */
class PeerAgent extends Agent {
  readonly #connector: TlsConnector

  constructor(connector: TlsConnector) {
    super({ keepAlive: true, maxSockets: 1 })
    this.#connector = connector
  }

  override createConnection(
    _options: RequestOptions,
    callback: (error: Error | null, stream: Duplex) => void = () => {},
  ): undefined {
    this.#connector.connect().then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, undefined as never),
    )
  }
}

function answerOf({ statusCode = 0, headers }: IncomingMessage, text: string): Answer {
  return { status: statusCode, headers, text }
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
