import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Fault } from '../process/error-codes.ts'
import { clientOf } from '../process/network.ts'
import { usingTlsFiles } from './certificate.ts'
import { ExactCounts } from './client-counts.ts'
import { Connections, UNLIMITED } from './connections.ts'
import {
  type BodyPace,
  type HttpAnswer,
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
import { TurnBudget } from './turn-budget.ts'
import { type WaitingAnswer, WaitingAnswers } from './waiting-answers.ts'

/** The same port over node:http and node:https, for Node versions and C libraries without a uWebSockets.js binary. */
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
  const { tls } = options
  const secure = tls && createTlsServer({ ...secureOptions(tls), ...LIMITS, handshakeTimeout: HEADERS_MS }, onRequest)
  const server = secure ?? createServer(LIMITS, onRequest)
  // Fields are counted by refusalOf: what is beyond this number would not be refused, but left out.
  server.maxHeadersCount = 0
  server.headersTimeout = HEADERS_MS
  server.timeout = SILENCE_MS
  server.on('connection', (socket) => {
    if (!traffic.open(socket)) socket.destroy()
  })
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
  readonly connections: Connections
  readonly waiting: WaitingAnswers
  readonly #turn = new TurnBudget()

  constructor({ limits = UNLIMITED, connectionCounters, log }: HttpListenOptions) {
    this.connections = new Connections(limits, new ExactCounts(), connectionCounters, log)
    this.waiting = new WaitingAnswers(limits.perClientMax > 0)
  }

  /** A connection, before any handshake. Returns whether it may stay. */
  open(socket: Socket): boolean {
    const client = clientOf(socket.remoteAddress ?? '')
    const mayStay = this.connections.open(client)
    this.#sockets.add(socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      this.connections.close(mayStay ? client : undefined)
    })
    return mayStay
  }

  /** An answer begins. Returns false where the connection has pipelined a request that is one too many in this turn of the event loop. */
  begin(socket: Socket, answer: ServerResponse): boolean {
    const isOver = this.#turn.take()
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

/** What the parser is told for a request after which the bytes are no HTTP (node:_http_server, parserOnIncoming). */
const SKIP_REST = 2

/**
 * Closes a connection. One read brings up to 64 KB of pipelined requests, and Node parses them all,
 * also for a socket that is destroyed: 15 ms. Its parser stops where a handler of requests says
 * that another protocol follows. A version of Node without this handler parses them all.
 */
function stopReading(socket: Socket): void {
  const { parser } = socket as { parser?: { onIncoming?: () => number } | null }
  if (parser?.onIncoming !== undefined) parser.onIncoming = () => SKIP_REST
  socket.destroy()
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

class NodeResponse implements HttpResponse, WaitingAnswer {
  readonly #raw: ServerResponse
  /** Of the request: an answer whose turn has not come has none. */
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
    const headers: Record<string, string | number> = {}
    const all = block === undefined ? fields : [...block.fields, ...fields]
    for (let at = 0; at + 1 < all.length; at += 2) headers[all[at] ?? ''] = all[at + 1] ?? ''
    if (status !== 304) headers['content-length'] = Buffer.byteLength(body)
    this.#raw.writeHead(status, REASON_PHRASE[status] ?? '', headers)
    // The caller's bytes may be a view of the store's, and the socket may take them later.
    this.#raw.end(bodyOmitted || status === 304 ? undefined : typeof body === 'string' ? body : Buffer.from(body))
    if (this.#raw.writableLength > 0) this.#wait(sentBytes(answer))
    this.#options.onAnswer?.(this.#request, status, sentBytes(answer))
  }

  /** The system has not taken all of the answer, or an answer before it. */
  #wait(bytes: number): void {
    const { waiting } = this.#traffic
    waiting.add(this, this.#client(), bytes)
    this.#raw.once('close', () => waiting.remove(this))
  }

  cut(): void {
    this.#options.onCut?.()
    this.#socket.destroy()
  }

  #client(): string {
    return clientOf(this.#request.remoteAddress())
  }
}
