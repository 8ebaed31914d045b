import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Fault } from '../process/error-codes.ts'
import { usingTlsFiles } from './certificate.ts'
import {
  type BodyPace,
  type HttpAnswer,
  type HttpListener,
  type HttpListenOptions,
  type HttpRequest,
  type HttpResponse,
  type OnAnswer,
  REASON_PHRASE,
  sendError,
  sentBytes,
  watchPace,
  whenIdle,
} from './port.ts'

/** The same port over node:http and node:https, for Node versions and C libraries without a uWebSockets.js binary. */
export async function listenNode(options: HttpListenOptions): Promise<HttpListener> {
  const traffic = new Traffic()
  const onRequest: RequestListener = (message, raw) => {
    traffic.begin(message.socket, raw)
    closeUnreadBody(message, raw)
    const request = new NodeRequest(message)
    const response = new NodeResponse(raw, request, options.onAnswer)
    const refusal = refusalOf(message)
    if (refusal !== undefined) return refuse(response, refusal, message.method === 'HEAD')
    const failed = (error: unknown): void => {
      options.log.error({ path: request.path, err: error }, 'request failed')
      sendError(response, 500, 'Internal error', [], request.method === 'HEAD')
    }
    Promise.resolve()
      .then(() => options.handler(request, response))
      .catch(failed)
  }
  const { tls } = options
  const secure = tls && createTlsServer({ ...secureOptions(tls), ...LIMITS, handshakeTimeout: HEADERS_MS }, onRequest)
  const server = secure ?? createServer(LIMITS, onRequest)
  // Fields are counted by refusalOf: what is beyond this number would not be refused, but left out.
  server.maxHeadersCount = 0
  server.headersTimeout = HEADERS_MS
  server.timeout = SILENCE_MS
  server.on('connection', (socket) => traffic.open(socket))
  server.on('timeout', (socket) => traffic.onSilence(socket))
  server.on('clientError', refuseMalformed)
  // Expectations other than 100-continue have no meaning here (RFC 9110 §10.1.1).
  server.on('checkExpectation', onRequest)
  // Nothing can be said to who has not shaken hands. Node would say it all the same, and wait until it is heard.
  secure?.removeAllListeners('tlsClientError').on('tlsClientError', (_, socket) => socket.destroy())
  await listening(server, options)
  return {
    implementation: 'node:http',
    port: (server.address() as AddressInfo).port,
    async reload() {
      if (tls !== undefined) usingTlsFiles(tls, () => secure?.setSecureContext(secureOptions(tls)))
    },
    async drain(deadlineMs) {
      // Not http's own close: what it takes for idle are also connections whose answers are not written to their end.
      const closed = new Promise((resolve) => NetServer.prototype.close.call(server, resolve))
      traffic.closeIdle()
      await whenIdle(() => traffic.requests, deadlineMs, options.log)
      traffic.closeAll()
      await closed
      // The rest of it, which looks after timeouts; that nothing listens any more is no fault.
      server.close(() => {})
    },
  }
}

/** As uWebSockets.js has them, so that a client is treated alike. */
const HEADER_BYTES_MAX = 4096
const HEADERS_MAX = 98
/** Milliseconds from the first byte of a request to the end of its fields, and of a TLS handshake. */
const HEADERS_MS = 10_000
/** Milliseconds in which nothing is read or written of a request or an answer; up to twice as many where the system took a part of an answer first. */
const SILENCE_MS = 10_000
/** Milliseconds in which a body must end that nobody reads. */
const UNREAD_BODY_MS = 10_000
const CHECK_CONNECTIONS_MS = 1000
const LIMITS = {
  maxHeaderSize: HEADER_BYTES_MAX,
  connectionsCheckingInterval: CHECK_CONNECTIONS_MS,
  requireHostHeader: false,
} as const

/** The connections of a listener, and what is under way on them. */
class Traffic {
  /** Whose answers the system has not taken whole. */
  requests = 0
  readonly #sockets = new Set<Socket>()
  /** The answers under way of each connection that has any, in their order. */
  readonly #answers = new Map<Socket, Set<ServerResponse>>()

  /** A connection, before any handshake. */
  open(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  begin(socket: Socket, answer: ServerResponse): void {
    let answers = this.#answers.get(socket)
    if (answers === undefined) {
      answers = new Set()
      this.#answers.set(socket, answers)
      // Answers whose turn has not come yet are not told that their connection has gone.
      socket.once('close', () => {
        this.requests -= this.#answers.get(socket)?.size ?? 0
        this.#answers.delete(socket)
      })
    }
    this.requests++
    answers.add(answer)
    answer.once('close', () => {
      if (this.#answers.get(socket)?.delete(answer)) this.requests--
    })
  }

  /** A handler may take its time; a client may not. */
  onSilence(socket: Socket): void {
    const [answer] = this.#answers.get(socket) ?? []
    if (answer === undefined || answer.headersSent) socket.destroy()
  }

  closeIdle(): void {
    const busy = new Set<string>()
    for (const [socket, answers] of this.#answers) if (answers.size > 0) busy.add(lineOf(socket))
    for (const socket of this.#sockets) if (!busy.has(lineOf(socket))) socket.destroy()
  }

  closeAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}

/** A TLS connection is another object than the one that it goes over; their ports are the same. */
function lineOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

/** An answer may come before its request's end; who then goes on sending, and never ends, is let go. */
function closeUnreadBody(message: IncomingMessage, raw: ServerResponse): void {
  raw.once('finish', () => {
    if (message.complete) return
    const timer = setTimeout(() => {
      if (!message.complete) message.socket.destroy()
    }, UNREAD_BODY_MS)
    timer.unref()
    message.once('end', () => clearTimeout(timer))
    // What nobody reads would not end.
    message.resume()
  })
}

/** The status of what Node takes for a request and uWebSockets.js does not. HTTP/1.0 is no such thing: it is answered here. */
function refusalOf(message: IncomingMessage): number | undefined {
  if (message.httpVersionMajor !== 1) return 505
  if (message.rawHeaders.length / 2 > HEADERS_MAX) return 431
  return message.headers.host === undefined && message.httpVersionMinor > 0 ? 400 : undefined
}

function refuse(response: HttpResponse, status: number, bodyOmitted: boolean): void {
  sendError(response, status, REASON_PHRASE[status] ?? '', ['connection', 'close'], bodyOmitted)
}

/** What cannot be read as a request is answered once, and its connection closed. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400
  const body = JSON.stringify({ error: REASON_PHRASE[status] })
  socket.end(
    `HTTP/1.1 ${status} ${REASON_PHRASE[status]}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    () => socket.destroy(),
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
  readonly #request: NodeRequest
  readonly #onAnswer: OnAnswer | undefined

  constructor(raw: ServerResponse, request: NodeRequest, onAnswer: OnAnswer | undefined) {
    this.#raw = raw
    this.#request = request
    this.#onAnswer = onAnswer
  }

  get aborted(): boolean {
    return this.#raw.destroyed
  }

  send(answer: HttpAnswer): void {
    if (this.aborted || this.#raw.headersSent) return
    const { status, body, fields = [], block, bodyOmitted = false } = answer
    const headers: Record<string, string | number | string[]> = {}
    const all = block === undefined ? fields : [...block.fields, ...fields]
    // Each cookie has a field of its own (RFC 6265 §3).
    const cookies: string[] = []
    for (let at = 0; at + 1 < all.length; at += 2) {
      if (all[at] === 'set-cookie') cookies.push(all[at + 1] ?? '')
      else headers[all[at] ?? ''] = all[at + 1] ?? ''
    }
    if (cookies.length > 0) headers['set-cookie'] = cookies
    if (status !== 304) headers['content-length'] = Buffer.byteLength(body)
    this.#raw.writeHead(status, REASON_PHRASE[status] ?? '', headers)
    // The caller's bytes may be a view of the store's, and the socket may take them later.
    this.#raw.end(bodyOmitted || status === 304 ? undefined : typeof body === 'string' ? body : Buffer.from(body))
    this.#onAnswer?.(this.#request, status, sentBytes(answer))
  }
}
