import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Fault } from './error-codes.ts'
import { failureText, logFailure } from './failure.ts'
import type { Logger } from './log.ts'

/** It is told to those on this host alone (specification, "Collector local endpoint"). */
const LOOPBACK = '127.0.0.1'
/** Connections at once. More are closed. */
const CONNECTIONS_MAX = 32
/** Milliseconds that a request has. */
export const LOCAL_REQUEST_MS = 5000

export interface Answer {
  readonly type: string
  readonly body: string
  /** 200 where it is not given. */
  readonly status?: number
}

type Answers = Readonly<Record<string, () => Answer | undefined | Promise<Answer>>>

/** Answers GET by path on loopback, over node:http: a few requests a minute, none from elsewhere. */
export class LocalServer {
  readonly port: number
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
  }

  /**
   * @param setting that names the port, for error lines
   * @param port 0 lets the system choose one.
   * @param answers by path; an undefined one is 503, one that fails is 500.
   * @param log of failed answers; a server without answers needs none.
   * @throws Fault PORT_TAKEN, PORT_DENIED.
   */
  static async listen(setting: string, port: number, answers: Answers, log?: Logger): Promise<LocalServer> {
    const server = createServer(
      // Node looks every 30 s whether a request is late, unless told.
      {
        requestTimeout: LOCAL_REQUEST_MS,
        headersTimeout: LOCAL_REQUEST_MS,
        connectionsCheckingInterval: LOCAL_REQUEST_MS / 5,
      },
      (request, response) => answer(request, response, answers, log),
    )
    server.maxConnections = CONNECTIONS_MAX
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => reject(listenFault(setting, port, error)))
      server.listen(port, LOOPBACK, resolve)
    })
    return new LocalServer(server)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  answers: Answers,
  log: Logger | undefined,
): Promise<void> {
  const path = (request.url ?? '').split('?')[0] ?? ''
  const known = Object.hasOwn(answers, path) ? answers[path] : undefined
  if (known === undefined) return refuse(response, 404, `no ${path}, there are ${Object.keys(answers).join(', ')}`)
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    return refuse(response, 405, 'expected GET')
  }
  try {
    const said = await known()
    if (said === undefined) return refuse(response, 503, 'starting')
    const { type, body, status = 200 } = said
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

function listenFault(setting: string, port: number, error: NodeJS.ErrnoException): Error {
  if (error.code === 'EADDRINUSE') {
    return new Fault('PORT_TAKEN', `${setting}: ${LOOPBACK}:${port} is taken by another program; set another port`, {
      cause: error,
    })
  }
  if (error.code === 'EACCES') {
    return new Fault('PORT_DENIED', `${setting}: ${LOOPBACK}:${port}: no permission; set one from 1024 on`, {
      cause: error,
    })
  }
  return error
}
