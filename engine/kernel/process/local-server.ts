import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { hostname } from 'node:os'
import { Fault } from './error-codes.ts'
import { failureText, logFailure } from './failure.ts'
import type { Logger } from './log.ts'
import { withoutBrackets } from './network.ts'

/** Only this host may connect (specification, "Collector local endpoint"). */
const LOOPBACK = '127.0.0.1'
/** Maximum concurrent connections. Further ones are closed. */
const CONNECTIONS_MAX = 32
/** Milliseconds for a request. */
const LOCAL_REQUEST_MS = 5000

export interface Answer {
  readonly type: string
  readonly body: string
  /** Default: 200. */
  readonly status?: number
}

type Answers = Readonly<Record<string, () => Answer | undefined | Promise<Answer>>>

/** Serves GET requests by path over node:http, on loopback by default. Expects a few per minute. */
export class LocalServer {
  readonly port: number
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
  }

  /**
   * @param setting the name of the port's setting, for error messages
   * @param port 0: chosen by the system
   * @param answers by path; undefined becomes 503, an exception 500
   * @param log for failed requests
   * @param address of this host
   * @param names of this host, in addition to its host name
   * @throws Fault PORT_TAKEN, PORT_DENIED
   */
  static async listen(
    setting: string,
    port: number,
    answers: Answers,
    log?: Logger,
    address = LOOPBACK,
    names: readonly string[] = [],
  ): Promise<LocalServer> {
    const ownNames = new Set(['localhost', hostname().toLowerCase(), ...names])
    const server = createServer(
      // By default Node checks for slow requests only every 30 s.
      {
        requestTimeout: LOCAL_REQUEST_MS,
        headersTimeout: LOCAL_REQUEST_MS,
        connectionsCheckingInterval: LOCAL_REQUEST_MS / 5,
      },
      (request, response) => {
        const { host } = request.headers
        if (isOwnHost(host, ownNames)) void answer(request, response, answers, log)
        else refuse(response, 421, `${host} is not this host. Use an IP address, or ${[...ownNames].join(' or ')}`)
      },
    )
    server.maxConnections = CONNECTIONS_MAX
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => reject(listenFault(setting, address, port, error)))
      server.listen(port, address, resolve)
    })
    return new LocalServer(server)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/**
 * Whether a Host field names this host: by an address or one of its names. A page of another site
 * could let its own name resolve to this host, and its script would read the response (DNS
 * rebinding). A client without the field is not a browser.
 */
function isOwnHost(field: string | undefined, ownNames: ReadonlySet<string>): boolean {
  if (field === undefined) return true
  const host = withoutBrackets(field.replace(/:\d*$/, ''))
  return isIP(host) !== 0 || ownNames.has(host.toLowerCase().replace(/\.$/, ''))
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  answers: Answers,
  log: Logger | undefined,
): Promise<void> {
  const path = (request.url ?? '').split('?')[0] ?? ''
  const known = Object.hasOwn(answers, path) ? answers[path] : undefined
  if (known === undefined)
    return refuse(response, 404, `no such path: ${path}. Available: ${Object.keys(answers).join(', ')}`)
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    return refuse(response, 405, 'expected GET')
  }
  try {
    const result = await known()
    if (result === undefined) return refuse(response, 503, 'starting')
    const { type, body, status = 200 } = result
    response.writeHead(status, {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  } catch (error) {
    if (log !== undefined) logFailure(log, error, 'request failed', { fields: { path } })
    refuse(response, 500, failureText(error))
  }
}

function refuse(response: ServerResponse, status: number, error: string): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ error }))
}

function listenFault(setting: string, address: string, port: number, error: NodeJS.ErrnoException): Error {
  if (error.code === 'EADDRINUSE') {
    return new Fault('PORT_TAKEN', `${setting}: ${address}:${port} is in use by another program. Set another port`, {
      cause: error,
    })
  }
  if (error.code === 'EACCES') {
    return new Fault('PORT_DENIED', `${setting}: ${address}:${port}: permission denied. Set a port above 1023`, {
      cause: error,
    })
  }
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND')
    return new Fault('USAGE', `${setting}: no interface has the address ${address}`, { cause: error })
  return error
}

/**
 * Sends a request to the local endpoint. Not by fetch(), which refuses some ports ("bad ports").
 *
 * @throws connection errors, and a timeout after LOCAL_REQUEST_MS
 */
export async function askLocal(
  port: number,
  path: string,
): Promise<{ readonly status: number; readonly text: string }> {
  const request = get({ host: '127.0.0.1', port, path, signal: AbortSignal.timeout(LOCAL_REQUEST_MS) })
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  return { status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }
}
