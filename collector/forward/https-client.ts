import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http'
import { Agent, request } from 'node:https'
import type { Duplex } from 'node:stream'
import { FORWARD_TIMEOUT_MS, FORWARD_WHOLE_TIMEOUT_MS } from '../limits.ts'
import { httpsPeer, type Peer, type ServiceSettings, stopped, TlsConnector, urlOf } from './connection.ts'

/**
 * A response is a few numbers and the rejected events, or an update of the registry. A longer one
 * is not from the service.
 */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024

export type HttpsSettings = Pick<ServiceSettings, 'endpoint' | 'httpsPort' | 'ca' | 'fingerprint'> & {
  readonly token: string
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  readonly text: string
}

/**
 * Sends requests to the service's HTTPS ingest, one at a time over one connection (connection.ts).
 */
export class HttpsClient {
  readonly peer: Peer
  readonly url: string
  readonly #token: string
  readonly #connector: TlsConnector
  readonly #agent: PeerAgent
  #closed = false
  /** Aborts the request in progress. */
  #abort: (() => void) | undefined

  /** @throws Fault USAGE if the CA certificate cannot be read or the proxy is not a URL. */
  constructor(settings: HttpsSettings) {
    this.#token = settings.token
    this.peer = httpsPeer(settings)
    this.url = urlOf(this.peer)
    this.#connector = new TlsConnector(this.peer)
    this.#agent = new PeerAgent(this.#connector)
  }

  get closed(): boolean {
    return this.#closed
  }

  /** @throws errors for connectionProblem(), and stopped() after close(). */
  async post(path: string, fields: Readonly<Record<string, string>>, body: Buffer): Promise<Answer> {
    const headers = { ...fields, 'content-length': body.length }
    try {
      return await this.#send('POST', path, headers, body)
    } catch (error) {
      if (error instanceof StaleConnection) return this.#send('POST', path, headers, body)
      throw error
    }
  }

  /** The same for a request without a body, on a new connection. */
  get(path: string, fields: Readonly<Record<string, string>>): Promise<Answer> {
    return this.#send('GET', path, fields)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#connector.cancel()
    this.#abort?.()
    this.#agent.destroy()
  }

  async #send(
    method: 'GET' | 'POST',
    path: string,
    fields: Readonly<Record<string, string | number>>,
    body?: Buffer,
  ): Promise<Answer> {
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise((resolve, reject) => {
        const outgoing = request(`${this.url}${path}`, {
          method,
          agent: this.#agent,
          timeout: FORWARD_TIMEOUT_MS,
          headers: { authorization: `Bearer ${this.#token}`, ...fields },
        })
        const late = (ms: number) => () => outgoing.destroy(new Error(`no answer within ${ms / 1000} s`))
        timer = setTimeout(late(FORWARD_WHOLE_TIMEOUT_MS), FORWARD_WHOLE_TIMEOUT_MS)
        this.#abort = () => {
          outgoing.destroy()
          reject(stopped())
        }
        if (this.#closed) this.#abort()
        outgoing
          .once('response', (answer) => bytesOf(answer).then((bytes) => resolve(answerOf(answer, bytes)), reject))
          .once('timeout', late(FORWARD_TIMEOUT_MS))
          // There may be more than one error. The first one decides.
          .on('error', (error: NodeJS.ErrnoException) =>
            reject(outgoing.reusedSocket && error.code === 'ECONNRESET' ? new StaleConnection() : error),
          )
          .end(body)
      })
    } finally {
      clearTimeout(timer)
      this.#abort = undefined
    }
  }
}

/**
 * The peer closed a kept-alive connection while the request was being sent. A retry need not wait.
 */
class StaleConnection extends Error {
  constructor() {
    super('the connection was closed')
  }
}

/**
 * A Node connection pool of size one that uses the connector, so that a pin is checked before the
 * token is sent.
 */
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

function answerOf({ statusCode = 0, headers }: IncomingMessage, bytes: Buffer): Answer {
  return { status: statusCode, headers, bytes, text: bytes.toString('utf8') }
}

async function bytesOf(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX) throw new Error(`the answer is longer than ${ANSWER_BYTES_MAX} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the service's error message, or an empty string if the text has none. */
export function messageOf(text: string): string {
  const message = (jsonOf(text) as { error?: unknown } | undefined)?.error
  return typeof message === 'string' ? message.slice(0, 200) : ''
}
