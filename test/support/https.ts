import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { Agent, request } from 'undici'
import { type Certificate, provideCertificate } from '../../engine/http/certificate.ts'
import { type HttpImplementation, listenHttp } from '../../engine/http/listen.ts'
import type { HttpHandler, HttpListener, HttpListenOptions } from '../../engine/http/port.ts'
import { quietLog } from './store.ts'

/**
 * The implementations of the HTTP port on which HTTP suites run. uWebSockets.js needs glibc 2.38,
 * so engine/http/uws.full.test.ts runs suites once more in Debian 13, with UWS=1.
 */
export const IMPLEMENTATIONS: readonly ('uws' | 'node')[] = [process.env['UWS'] === undefined ? 'node' : 'uws']

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The body as received. `text` is the body without content coding. */
  readonly bytes: Buffer
  readonly text: string
  readonly body: unknown
}

export interface Ask {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: Uint8Array | string
}

/** The return value of `apiServer`. */
type ServedPaths = Required<Pick<HttpListenOptions, 'handler' | 'fastPaths'>>

export interface TestServer {
  readonly listener: HttpListener
  readonly certificate: Certificate
  readonly ask: AskServer
}

/** Listens on a free port of loopback until the test ends. */
export async function listenOnLoopback(
  t: { teardown(work: () => unknown): void },
  implementation: HttpImplementation,
  options: Omit<HttpListenOptions, 'address' | 'port' | 'log'> & Partial<Pick<HttpListenOptions, 'log'>>,
): Promise<HttpListener> {
  const listener = await listenHttp(implementation, { address: '127.0.0.1', port: 0, log: quietLog, ...options })
  t.teardown(() => listener.drain(100))
  return listener
}

/** Serves over real TLS on loopback until the test ends, with the same wiring as the service. */
export async function serve(
  t: { teardown(work: () => unknown): void },
  implementation: HttpImplementation,
  directory: string,
  served: HttpHandler | ServedPaths,
  port = 0,
): Promise<TestServer> {
  const certificate = await provideCertificate(`${directory}/tls`, undefined)
  const { keyFile, certificateFile } = certificate
  const listener = await listenHttp(implementation, {
    address: '127.0.0.1',
    port,
    tls: { keyFile, certificateFile },
    ...(typeof served === 'function' ? { handler: served } : served),
    log: quietLog,
  })
  const { ask, close } = httpsClient(listener.port, certificateFile)
  t.teardown(async () => {
    await close()
    await listener.drain(1000)
  })
  return { listener, certificate, ask }
}

export type AskServer = (path: string, options?: Ask) => Promise<Answer>

/** Sends requests to a port that has this certificate, by default of this machine. */
export function httpsClient(
  port: number,
  certificateFile: string,
  host = 'localhost',
): { ask: AskServer; close(): Promise<void> } {
  const dispatcher = new Agent({ connect: { ca: readFileSync(certificateFile) } })
  const ask: AskServer = async (path, options = {}) => {
    const { method = 'GET', headers = {}, body = null } = options
    const answer = await request(`https://${host}:${port}${path}`, {
      dispatcher,
      method: method as 'GET',
      headers,
      body: body as Buffer | string | null,
    })
    const bytes = Buffer.from(await answer.body.arrayBuffer())
    if (answer.statusCode === 401) assert.ok(answer.headers['www-authenticate'], `${path}: a 401 without a challenge`)
    const isCompressed = answer.headers['content-encoding'] === 'gzip' && bytes.length > 0
    const text = (isCompressed ? gunzipSync(bytes) : bytes).toString()
    return { status: answer.statusCode, headers: answer.headers, bytes, text, body: jsonOf(text) }
  }
  return { ask, close: () => dispatcher.close() }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
