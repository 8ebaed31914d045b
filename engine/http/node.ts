import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { Fault } from '../kernel/process/error-codes.ts'
import { canonicalAddress, clientOf } from '../kernel/process/network.ts'
import { BodyStream } from './body-stream.ts'
import { usingTlsFiles } from './certificate.ts'
import { ExactCounts } from './client-counts.ts'
import { Connections, UNLIMITED } from './connections.ts'
import {
  type BodyEnd,
  type BodyPace,
  HSTS,
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
import { TurnBudget, type WaitingAnswer, WaitingAnswers } from './waiting-answers.ts'

/** Implements port.ts over node:http and node:https. */
export async function listenNode(options: HttpListenOptions): Promise<HttpListener> {
  const traffic = new Traffic(options)
  const onRequest: RequestListener = (message, raw) => {
    if (!traffic.begin(message.socket, raw)) return stopReading(message.socket)
    closeUnreadBody(message, raw)
    const refusal = refusalOf(message)
    const request = new NodeRequest(message)
    const response = new NodeResponse(raw, message.socket, request, traffic, options)
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
  server.on('clientError', (error, socket) => traffic.onMalformed(error, socket as Socket))
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
/** A handshake and the first request take less. */
export const FIRST_REQUEST_MS = 2000
const LIMITS = {
  maxHeaderSize: HEADER_BYTES_MAX,
  connectionsCheckingInterval: CHECK_CONNECTIONS_MS,
  requireHostHeader: false,
  joinDuplicateHeaders: true,
} as const

interface Connection {
  /** The TCP socket, also under TLS. */
  readonly socket: Socket
  readonly client: string
  /** Responses in progress, in order. */
  readonly answers: Set<ServerResponse>
  hasSentRequest: boolean
  /** When it was opened, or when its last response ended (performance.now()). */
  sinceMs: number
}

/** The connections of a listener, and their responses in progress. */
class Traffic {
  /** Requests whose response the kernel has not accepted completely. */
  requests = 0
  /** Accepted connections by TCP socket, the oldest first. */
  readonly #open = new Map<Socket, Connection>()
  readonly #byEndpoint = new Map<string, Connection>()
  readonly #byTlsSocket = new WeakMap<Socket, Connection>()
  readonly #malformed = new WeakSet<Socket>()
  readonly connections: Connections
  readonly waiting: WaitingAnswers
  readonly #turn = new TurnBudget()

  constructor({ limits = UNLIMITED, connectionCounters, log }: HttpListenOptions) {
    this.connections = new Connections(limits, new ExactCounts(), connectionCounters, log, (rankOf) =>
      this.#closeIdle(rankOf),
    )
    this.waiting = new WaitingAnswers(limits.perClientMax > 0)
  }

  /** Counts a connection, before any handshake. Returns whether to accept it. */
  open(socket: Socket): boolean {
    const client = clientOf(socket.remoteAddress ?? '')
    if (!this.connections.open(client)) {
      socket.once('close', () => this.connections.close())
      return false
    }
    const sinceMs = performance.now()
    const connection = { socket, client, answers: new Set<ServerResponse>(), hasSentRequest: false, sinceMs }
    const endpoint = endpointOf(socket)
    this.#open.set(socket, connection)
    this.#byEndpoint.set(endpoint, connection)
    socket.once('close', () => {
      this.#close(connection)
      if (this.#byEndpoint.get(endpoint) === connection) this.#byEndpoint.delete(endpoint)
    })
    return true
  }

  #close({ socket, client, answers }: Connection): void {
    if (!this.#open.delete(socket)) return
    // Pipelined responses that have not begun emit no `close` when their connection closes.
    this.requests -= answers.size
    answers.clear()
    this.connections.close(client)
  }

  /** A TLS socket and its TCP socket are different objects with the same remote port. */
  #connectionOf(socket: Socket): Connection | undefined {
    const known = this.#open.get(socket) ?? this.#byTlsSocket.get(socket)
    if (known !== undefined) return known
    const connection = this.#byEndpoint.get(endpointOf(socket))
    if (connection !== undefined) this.#byTlsSocket.set(socket, connection)
    return connection
  }

  /**
   * Of a client, first those that have sent no request, then the one that is idle for the longest
   * time. Never one that may still be sending its first request: a client that opens many could
   * otherwise close those of all others at its address.
   */
  #closeIdle(rankOf: (client: string) => number): boolean {
    const nowMs = performance.now()
    let idle: Connection | undefined
    let best = 0
    for (const connection of this.#open.values()) {
      const { client, answers, hasSentRequest, sinceMs } = connection
      if (answers.size > 0 || (!hasSentRequest && nowMs - sinceMs < FIRST_REQUEST_MS)) continue
      const rank = 2 * rankOf(client) + (hasSentRequest ? 0 : 1)
      if (rank < 2 || rank < best || (rank === best && sinceMs >= (idle?.sinceMs ?? 0))) continue
      idle = connection
      best = rank
    }
    if (idle === undefined) return false
    this.#close(idle)
    idle.socket.destroy()
    return true
  }

  /**
   * Counts a request. Returns false if the connection is closed, or if it pipelined a request
   * beyond what this turn of the event loop answers.
   */
  begin(socket: Socket, answer: ServerResponse): boolean {
    const isOver = this.#turn.take()
    const connection = this.#connectionOf(socket)
    if (connection === undefined || socket.destroyed || !this.#open.has(connection.socket)) return false
    const { answers, client } = connection
    connection.hasSentRequest = true
    if (isOver && answers.size > 0) {
      this.connections.notePipelined(client)
      return false
    }
    this.requests++
    answers.add(answer)
    answer.once('close', () => {
      if (answers.delete(answer)) this.requests--
      connection.sinceMs = performance.now()
    })
    return true
  }

  /** A handler may be slow. A client may not. */
  onSilence(socket: Socket): void {
    const [answer] = this.#connectionOf(socket)?.answers ?? []
    if (answer === undefined || answer.headersSent) socket.destroy()
  }

  /**
   * Rejects what cannot be parsed, after the responses to the requests before it. Node reports the
   * error again for whatever else the client sends.
   */
  onMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
    if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
    if (this.#malformed.has(socket)) return
    this.#malformed.add(socket)
    this.#refuseAfterAnswers(error, socket)
  }

  #refuseAfterAnswers(error: NodeJS.ErrnoException, socket: Socket): void {
    const [answer] = this.#connectionOf(socket)?.answers ?? []
    // The body of an incomplete request is malformed itself.
    if (answer?.req.complete) answer.once('close', () => this.#refuseAfterAnswers(error, socket))
    else if (answer?.headersSent) socket.destroy()
    else refuseMalformed(error, socket)
  }

  closeIdle(): void {
    for (const { socket, answers } of this.#open.values()) if (answers.size === 0) socket.destroy()
  }

  closeAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy()
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
 * The status for requests that Node accepts, but that exceed a limit or are not valid HTTP/1.x.
 */
function refusalOf(message: IncomingMessage): number | undefined {
  if (message.httpVersionMajor !== 1) return 505
  if (message.rawHeaders.length / 2 > HEADERS_MAX) return 431
  // RFC 9112 §3.2. Node joins repeated fields by ', ', which is no valid host either.
  const { host } = message.headers
  const isValid = host === undefined ? message.httpVersionMinor === 0 : !host.includes(', ')
  return isValid ? undefined : 400
}

function refuse(response: HttpResponse, status: number, bodyOmitted: boolean): void {
  sendError(response, status, REASON_PHRASE[status] ?? '', ['connection', 'close'], bodyOmitted)
}

/** Statuses of errors of Node's parser. All others are 400. */
const STATUS_OF_ERROR: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_INVALID_VERSION: 505,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** Answers a malformed request and closes the connection. */
function refuseMalformed({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) return void socket.destroy()
  const status = STATUS_OF_ERROR[code] ?? 400
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

const ABSOLUTE_FORM = /^https?:\/\/([^/?#]+)(.*)$/i

/**
 * The target of a request as path and query. The host of a target in absolute form replaces the
 * field Host (RFC 9112 §3.2.2).
 */
function originForm({ url = '/', headers }: IncomingMessage): string {
  if (url.startsWith('/')) return url
  const [, host, target = ''] = ABSOLUTE_FORM.exec(url) ?? []
  if (host === undefined) return url
  headers.host = host
  return target.startsWith('/') ? target : `/${target}`
}

class NodeRequest implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly #message: IncomingMessage

  constructor(message: IncomingMessage) {
    const url = originForm(message)
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
    return canonicalAddress(this.#message.socket.remoteAddress ?? '')
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
    if (this.#options.hsts) headers[HSTS[0]] = HSTS[1]
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
