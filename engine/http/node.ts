import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Fault } from '../process/error-codes.ts'
import { clientOf } from '../process/network.ts'
import { BodyStream } from './body-stream.ts'
import { usingTlsFiles } from './certificate.ts'
import { ExactCounts } from './client-counts.ts'
import { Connections, UNLIMITED } from './connections.ts'
import {
  type BodyEnd,
  type BodyPace,
  type HttpAnswer,
  type HttpListener,
  type HttpListenOptions,
  type HttpRequest,
  type HttpResponse,
  REASON_PHRASE,
  sendError,
  sentBytes,
  type TakeChunk,
  watchPace,
  whenIdle,
} from './port.ts'
import { NODE_TLS_OPTIONS } from './tls-ciphers.ts'
import { TurnBudget } from './turn-budget.ts'
import { type WaitingAnswer, WaitingAnswers } from './waiting-answers.ts'

/**
 * Implements port.ts over node:http and node:https, for Node versions and C libraries without a
 * uWebSockets.js binary.
 */
export async function listenNode(options: HttpListenOptions): Promise<HttpListener> {
  const traffic = new Traffic(options)
  const onRequest: RequestListener = (message, raw) => {
    if (!traffic.begin(message.socket, raw)) return stopReading(message.socket)
    closeUnreadBody(message, raw)
    const request = new NodeRequest(message)
    const response = new NodeResponse(raw, message.socket, request, traffic, options)
    const refusal = refusalOf(message)
    if (refusal !== undefined) return refuse(response, refusal, message.method === 'HEAD')
    const failed = (error: unknown): void => {
      options.log.error({ path: request.path, err: error }, 'request failed')
      sendError(response, 500, 'Internal error', [], request.method === 'HEAD')
    }
    Promise.resolve()
      .then(() => (response.aborted ? undefined : options.handler(request, response)))
      .catch(failed)
  }
  let { tls } = options
  const secure = tls && createTlsServer({ ...secureOptions(tls), ...LIMITS, handshakeTimeout: HEADERS_MS }, onRequest)
  const server = secure ?? createServer(LIMITS, onRequest)
  // refusalOf() counts the fields. Node would silently drop the fields over this limit.
  server.maxHeadersCount = 0
  server.headersTimeout = HEADERS_MS
  server.timeout = SILENCE_MS
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.on('connection', (socket) => {
    if (!traffic.open(socket)) socket.destroy()
  })
  server.on('timeout', (socket) => traffic.onSilence(socket))
  server.on('clientError', refuseMalformed)
  // Expectations other than 100-continue are ignored (RFC 9110 §10.1.1).
  server.on('checkExpectation', onRequest)
  // A client without a TLS session cannot receive a response. Node would send one and wait for the
  // client to read it.
  secure?.removeAllListeners('tlsClientError').on('tlsClientError', (_, socket) => socket.destroy())
  await listening(server, options)
  return {
    implementation: 'node:http',
    port: (server.address() as AddressInfo).port,
    async reload(files = tls) {
      if (files !== undefined) usingTlsFiles(files, () => secure?.setSecureContext(secureOptions(files)))
      tls = files
    },
    async drain(deadlineMs) {
      // http's own close() also closes connections whose responses are not fully written.
      const closed = new Promise((resolve) => NetServer.prototype.close.call(server, resolve))
      traffic.closeIdle()
      await whenIdle(() => traffic.requests, deadlineMs, options.log)
      traffic.closeAll()
      await closed
      // Stops http's timeout checks. The error that the server no longer listens is expected.
      server.close(() => {})
    },
  }
}

/** The limits of uWebSockets.js, so that both implementations behave alike. */
const HEADER_BYTES_MAX = 4096
const HEADERS_MAX = 98
/**
 * Milliseconds from the first byte of a request to the end of its fields, and for a TLS handshake.
 */
const HEADERS_MS = 10_000
/**
 * Maximum milliseconds without a read or write during a request or response. Up to twice as long if
 * the kernel accepted a part of the response before.
 */
const SILENCE_MS = 10_000
/**
 * Milliseconds between two requests of a connection, longer than the 60 s of most load balancers.
 * A client that reads the field sends nothing in the last seconds.
 */
const KEEP_ALIVE_MS = 75_000
const KEEP_ALIVE_FIELD = 'timeout=70'
/** Milliseconds in which an unread body must end. */
const UNREAD_BODY_MS = 10_000
const CHECK_CONNECTIONS_MS = 1000
const LIMITS = {
  maxHeaderSize: HEADER_BYTES_MAX,
  connectionsCheckingInterval: CHECK_CONNECTIONS_MS,
  requireHostHeader: false,
  joinDuplicateHeaders: true,
} as const

/** The connections of a listener, and their responses in progress. */
class Traffic {
  /** Requests whose response the kernel has not accepted completely. */
  requests = 0
  readonly #sockets = new Set<Socket>()
  /** Responses in progress by connection, in order. */
  readonly #answers = new Map<Socket, Set<ServerResponse>>()
  readonly connections: Connections
  readonly waiting: WaitingAnswers
  readonly #turn = new TurnBudget()

  constructor({ limits = UNLIMITED, connectionCounters, log }: HttpListenOptions) {
    this.connections = new Connections(limits, new ExactCounts(), connectionCounters, log)
    this.waiting = new WaitingAnswers(limits.perClientMax > 0)
  }

  /** Counts a connection, before any handshake. Returns whether to accept it. */
  open(socket: Socket): boolean {
    const client = clientOf(socket.remoteAddress ?? '')
    const isAccepted = this.connections.open(client)
    this.#sockets.add(socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      this.connections.close(isAccepted ? client : undefined)
    })
    return isAccepted
  }

  /**
   * Counts a request. Returns false if the connection is closed, or if it pipelined a request
   * beyond what this turn of the event loop answers.
   */
  begin(socket: Socket, answer: ServerResponse): boolean {
    const isOver = this.#turn.take()
    let answers = this.#answers.get(socket)
    if (answers === undefined) {
      answers = new Set()
      this.#answers.set(socket, answers)
      // Pipelined responses that have not begun emit no `close` when their connection closes.
      socket.once('close', () => {
        this.requests -= this.#answers.get(socket)?.size ?? 0
        this.#answers.delete(socket)
      })
    }
    if (socket.destroyed) return false
    if (isOver && answers.size > 0) {
      this.connections.notePipelined(clientOf(socket.remoteAddress ?? ''))
      return false
    }
    this.requests++
    answers.add(answer)
    answer.once('close', () => {
      if (this.#answers.get(socket)?.delete(answer)) this.requests--
    })
    return true
  }

  /** A handler may be slow. A client may not. */
  onSilence(socket: Socket): void {
    const [answer] = this.#answers.get(socket) ?? []
    if (answer === undefined || answer.headersSent) socket.destroy()
  }

  closeIdle(): void {
    const busy = new Set<string>()
    for (const [socket, answers] of this.#answers) if (answers.size > 0) busy.add(endpointOf(socket))
    for (const socket of this.#sockets) if (!busy.has(endpointOf(socket))) socket.destroy()
  }

  closeAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}

/** Result of parserOnIncoming (_http_server) if another protocol follows a request. */
const SKIP_REST = 2

/**
 * Closes a connection after the requests that were accepted from the same read: their handlers run
 * when the parser returns. One read brings up to 64 KB of pipelined requests, and Node parses them
 * all, even for a destroyed socket, in 15 ms. Its parser stops when a request announces another
 * protocol. A Node version without `onIncoming` parses the rest.
 */
function stopReading(socket: Socket): void {
  const { parser } = socket as { parser?: { onIncoming?: () => number } | null }
  if (parser?.onIncoming !== undefined) parser.onIncoming = () => SKIP_REST
  setImmediate(() => socket.destroy())
}

/** A TLS socket and its TCP socket are different objects with the same remote port. */
function endpointOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

/**
 * A response may be sent before the request ends. A client that keeps sending a body is
 * disconnected.
 */
function closeUnreadBody(message: IncomingMessage, raw: ServerResponse): void {
  raw.once('finish', () => {
    if (message.complete) return
    const timer = setTimeout(() => {
      if (!message.complete) message.socket.destroy()
    }, UNREAD_BODY_MS)
    timer.unref()
    message.once('end', () => clearTimeout(timer))
    // An unread body would never end.
    message.resume()
  })
}

/**
 * The status for requests that Node accepts and uWebSockets.js does not, except HTTP/1.0, which is
 * served.
 */
function refusalOf(message: IncomingMessage): number | undefined {
  if (message.httpVersionMajor !== 1) return 505
  if (message.rawHeaders.length / 2 > HEADERS_MAX) return 431
  return message.headers.host === undefined && message.httpVersionMinor > 0 ? 400 : undefined
}

function refuse(response: HttpResponse, status: number, bodyOmitted: boolean): void {
  sendError(response, status, REASON_PHRASE[status] ?? '', ['connection', 'close'], bodyOmitted)
}

/** Answers a malformed request once and closes the connection. */
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
  return { key: readFileSync(tls.keyFile), cert: readFileSync(tls.certificateFile), ...NODE_TLS_OPTIONS }
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

  bodyChunks(bytesMax: number, take: TakeChunk, pace?: BodyPace): Promise<BodyEnd> {
    const message = this.#message
    if (Number(message.headers['content-length'] ?? 0) > bytesMax) return Promise.resolve('too large')
    const pause = (): void => void message.pause()
    const resume = (): void => void message.resume()
    const stream = new BodyStream({ bytesMax, take, pace, pause, resume })
    message.on('data', (chunk: Buffer) => stream.push(chunk))
    message.once('end', () => stream.complete())
    message.once('close', () => stream.abort())
    // As in body().
    stream.ended.then((end) => end !== 'ended' && pause(), pause)
    return stream.ended
  }
}

class NodeResponse implements HttpResponse, WaitingAnswer {
  readonly #raw: ServerResponse
  /** Of the request: a response that waits for the one before it has no socket yet. */
  readonly #socket: Socket
  readonly #request: NodeRequest
  readonly #traffic: Traffic
  readonly #options: HttpListenOptions

  constructor(raw: ServerResponse, socket: Socket, request: NodeRequest, traffic: Traffic, options: HttpListenOptions) {
    this.#raw = raw
    this.#socket = socket
    this.#request = request
    this.#traffic = traffic
    this.#options = options
  }

  get aborted(): boolean {
    return this.#raw.destroyed || this.#socket.destroyed
  }

  send(answer: HttpAnswer): void {
    if (this.aborted || this.#raw.headersSent) return
    const { status, body, fields = [], block, bodyOmitted = false } = answer
    if (answer.isRefusal && this.#traffic.connections.isPastRefusals(this.#client())) return void this.#socket.destroy()
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
    if (this.#raw.shouldKeepAlive && !all.includes('connection')) headers['keep-alive'] = KEEP_ALIVE_FIELD
    this.#raw.writeHead(status, REASON_PHRASE[status] ?? '', headers)
    // Copied: the bytes may be a view of the store, and the socket may send them later.
    this.#raw.end(bodyOmitted || status === 304 ? undefined : typeof body === 'string' ? body : Buffer.from(body))
    if (this.#raw.writableLength > 0) this.#wait(sentBytes(answer))
    this.#options.onAnswer?.(this.#request, status, sentBytes(answer))
  }

  /** The kernel has not accepted all of this response, or of a response before it. */
  #wait(bytes: number): void {
    const { waiting } = this.#traffic
    waiting.add(this, this.#client(), bytes)
    this.#raw.once('close', () => waiting.remove(this))
  }

  abort(): void {
    this.#options.onAnswerAborted?.()
    this.#socket.destroy()
  }

  #client(): string {
    return clientOf(this.#request.remoteAddress())
  }
}
