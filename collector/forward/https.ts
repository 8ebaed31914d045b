import { readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { Agent, buildConnector, type Dispatcher, EnvHttpProxyAgent } from 'undici'
import { z } from 'zod'
import { type Event, packBatch } from '../../engine/event.ts'
import { Fault } from '../../engine/process/error-codes.ts'
import { FORWARD_TIMEOUT_MS } from '../limits.ts'
import type { Forwarder, Outcome } from './forwarder.ts'
import { retryAfterMs } from './retry.ts'

const gzipped = promisify(gzip)
const EVENTS_PATH = '/ingest/v1/events'
/** An answer is a few numbers and the rejected events; a longer one is not the service's. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024

export interface HttpsSettings {
  readonly token: string
  readonly endpoint: string
  readonly httpsPort: number
  readonly ca: string
  /** 64 lower-case hex digits, or empty. */
  readonly fingerprint: string
}

const acceptance = z.object({
  accepted: z.number().int().nonnegative(),
  duplicates: z.number().int().nonnegative(),
  rejected: z.array(z.object({ index: z.number().int().nonnegative(), error: z.string() })),
})

/**
 * Sends batches by POST to the service's HTTPS ingest over one kept-alive connection, by the proxy that HTTPS_PROXY and
 * NO_PROXY name, if any. Certificates are checked; TLS 1.2 and up.
 */
export class HttpsForwarder implements Forwarder {
  readonly #settings: HttpsSettings
  readonly #origin: string
  readonly #dispatcher: Dispatcher

  /** @throws Fault USAGE where the file of the authority cannot be read. */
  constructor(settings: HttpsSettings) {
    this.#settings = settings
    const host = isIPv6(settings.endpoint) ? `[${settings.endpoint}]` : settings.endpoint
    this.#origin = `https://${host}:${settings.httpsPort}`
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
      return { kind: 'retry', why: this.#explain(error as NodeJS.ErrnoException) }
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

  #explain(error: NodeJS.ErrnoException): string {
    const cause = (error.cause as NodeJS.ErrnoException | undefined) ?? error
    switch (cause.code) {
      case 'ECONNREFUSED':
        return `nothing listens on ${this.#origin}`
      case 'ENOTFOUND':
      case 'EAI_AGAIN':
        return `the name ${this.#settings.endpoint} does not resolve`
      case 'DEPTH_ZERO_SELF_SIGNED_CERT':
      case 'SELF_SIGNED_CERT_IN_CHAIN':
      case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
        return `${this.#origin}: the certificate is not trusted; name its authority by --ca or pin it by --fingerprint`
      default:
        return `${this.#origin}: ${cause.message}`
    }
  }
}

function dispatcherFor(settings: HttpsSettings): Dispatcher {
  const tls = {
    minVersion: 'TLSv1.2' as const,
    ...(settings.ca === '' ? {} : { ca: readAuthority(settings.ca) }),
    timeout: FORWARD_TIMEOUT_MS,
    // A resumed session shows no certificate to compare with the pin.
    maxCachedSessions: 0,
  }
  // With a pin the certificate itself is the trust: it is compared before a byte is sent, whoever signed it.
  const connector = settings.fingerprint === '' ? tls : { ...tls, rejectUnauthorized: false }
  const options = { connect: pinned(buildConnector(connector), settings.fingerprint), connections: 1, pipelining: 1 }
  const proxied = process.env['HTTPS_PROXY'] ?? process.env['https_proxy']
  // Behind a proxy undici makes the TLS connection itself and the pin cannot be compared: the authority must be trusted.
  return proxied === undefined ? new Agent(options) : new EnvHttpProxyAgent({ ...options, requestTls: tls })
}

function readAuthority(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new Fault('USAGE', `--ca: ${(error as Error).message}`, { cause: error })
  }
}

/** The connector, refusing every certificate but the pinned one. */
function pinned(connector: buildConnector.connector, fingerprint: string): buildConnector.connector {
  if (fingerprint === '') return connector
  return (options, callback) => {
    connector(options, (...[error, socket]) => {
      if (error !== null) return callback(error, null)
      const found = (socket as TLSSocket).getPeerCertificate().fingerprint256?.replaceAll(':', '').toLowerCase()
      if (found === fingerprint) return callback(null, socket)
      socket.destroy()
      callback(new Error(`the certificate has the fingerprint ${found}, not the one that --fingerprint pins`), null)
    })
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
