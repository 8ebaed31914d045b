import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { Fault } from '../process/error-codes.ts'
import {
  type BodyPace,
  type FieldBlock,
  type HttpListener,
  type HttpListenOptions,
  type HttpRequest,
  type HttpResponse,
  REASON_PHRASE,
  sendError,
  sentBytes,
  watchPace,
  whenIdle,
} from './port.ts'

/** The same port over node:http and node:https, for Node versions and C libraries without a uWebSockets.js binary. */
export async function listenNode(options: HttpListenOptions): Promise<HttpListener> {
  const busy = { requests: 0 }
  const onRequest: RequestListener = (message, raw) => {
    busy.requests++
    raw.once('close', () => busy.requests--)
    const response = new NodeResponse(raw, options.onAnswer)
    const failed = (error: unknown): void => {
      options.log.error({ path: message.url, err: error }, 'request failed')
      sendError(response, 500, 'Internal error')
    }
    Promise.resolve()
      .then(() => options.handler(new NodeRequest(message), response))
      .catch(failed)
  }
  const { tls } = options
  const secure = tls && createTlsServer({ ...secureOptions(tls), ...LIMITS }, onRequest)
  const server = secure ?? createServer(LIMITS, onRequest)
  server.maxHeadersCount = HEADERS_MAX
  server.headersTimeout = HEADERS_MS
  server.on('clientError', refuseMalformed)
  await listening(server, options)
  return {
    implementation: 'node:http',
    port: (server.address() as AddressInfo).port,
    async reload() {
      if (tls !== undefined) secure?.setSecureContext(secureOptions(tls))
    },
    async drain(deadlineMs) {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeIdleConnections()
      await whenIdle(() => busy.requests, deadlineMs)
      server.closeAllConnections()
      await closed
    },
  }
}

/** As uWebSockets.js has them, so that a client is treated alike. */
const HEADER_BYTES_MAX = 4096
const HEADERS_MAX = 50
/** Milliseconds from the first byte of a request to the end of its fields. */
const HEADERS_MS = 10_000
const CHECK_CONNECTIONS_MS = 1000
const LIMITS = { maxHeaderSize: HEADER_BYTES_MAX, connectionsCheckingInterval: CHECK_CONNECTIONS_MS } as const

/** What cannot be read as a request is answered once, and its connection closed. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400
  const body = JSON.stringify({ error: REASON_PHRASE[status] })
  socket.end(
    `HTTP/1.1 ${status} ${REASON_PHRASE[status]}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
}

function secureOptions(tls: { keyFile: string; certificateFile: string }) {
  return { key: readFileSync(tls.keyFile), cert: readFileSync(tls.certificateFile), minVersion: 'TLSv1.2' as const }
}

function listening(server: Server, options: HttpListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const code = error.code === 'EACCES' ? 'PORT_DENIED' : 'PORT_TAKEN'
      reject(new Fault(code, `${options.address} port ${options.port}: ${error.message}`, { cause: error }))
    })
    server.listen({ host: options.address, port: options.port, reusePort: true } as object, resolve)
  })
}

class NodeRequest implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly #message: IncomingMessage

  constructor(message: IncomingMessage) {
    const url = message.url ?? '/'
    const mark = url.indexOf('?')
    this.method = message.method ?? 'GET'
    this.path = mark < 0 ? url : url.slice(0, mark)
    this.query = mark < 0 ? '' : url.slice(mark + 1)
    this.#message = message
  }

  header(name: string): string {
    const value = this.#message.headers[name]
    return Array.isArray(value) ? value.join(', ') : (value ?? '')
  }

  remoteAddress(): string {
    return this.#message.socket.remoteAddress ?? ''
  }

  body(bytesMax: number, pace?: BodyPace): Promise<Buffer | 'too large' | 'too slow' | 'aborted'> {
    const message = this.#message
    if (Number(message.headers['content-length'] ?? 0) > bytesMax) return Promise.resolve('too large')
    return new Promise((settle) => {
      const chunks: Buffer[] = []
      let bytes = 0
      const stopWatch = watchPace(
        pace,
        () => bytes,
        () => {
          message.pause()
          resolve('too slow')
        },
      )
      const resolve = (body: Buffer | 'too large' | 'too slow' | 'aborted'): void => {
        stopWatch()
        settle(body)
      }
      message.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > bytesMax) {
          message.pause()
          resolve('too large')
        } else chunks.push(chunk)
      })
      message.once('end', () => resolve(Buffer.concat(chunks, bytes)))
      message.once('close', () => resolve('aborted'))
    })
  }
}

class NodeResponse implements HttpResponse {
  readonly #raw: ServerResponse
  readonly #onAnswer: HttpListenOptions['onAnswer']

  constructor(raw: ServerResponse, onAnswer: HttpListenOptions['onAnswer']) {
    this.#raw = raw
    this.#onAnswer = onAnswer
  }

  get aborted(): boolean {
    return this.#raw.destroyed
  }

  send(
    status: number,
    fields: readonly string[],
    body: Uint8Array | string,
    bodyOmitted = false,
    block?: FieldBlock,
  ): void {
    if (this.aborted || this.#raw.headersSent) return
    this.#onAnswer?.(status, sentBytes(status, body, bodyOmitted))
    const headers: Record<string, string | number> = {}
    const all = block === undefined ? fields : [...block.fields, ...fields]
    for (let at = 0; at + 1 < all.length; at += 2) headers[all[at] ?? ''] = all[at + 1] ?? ''
    if (status !== 304) headers['content-length'] = Buffer.byteLength(body)
    this.#raw.writeHead(status, REASON_PHRASE[status] ?? '', headers)
    // The caller's bytes may be a view of the store's, and the socket may take them later.
    this.#raw.end(bodyOmitted || status === 304 ? undefined : typeof body === 'string' ? body : Buffer.from(body))
  }
}
