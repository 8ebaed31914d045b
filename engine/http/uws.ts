import type * as Uws from 'uWebSockets.js'
import { ANSWERS_WAITING_BYTES_MAX, BODILESS_ANSWERS_MEAN } from '../limits.ts'
import { Fault } from '../process/error-codes.ts'
import type { TlsFiles } from './certificate.ts'
import { type FieldLines, linesOf, withoutConnection } from './fields.ts'
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
import { shortTurn } from './short-turn.ts'

/*
 * The only file that uses uWebSockets.js. Breaking one of two rules of that library ends the
 * process without a JavaScript exception: a handler must respond or set onAborted before it
 * returns, and an aborted response must not be used. Therefore onAborted is set for each handler
 * that returns without a response or waits for a body, and every write checks `aborted`.
 *
 * A call into the library costs 0.15 us, whatever it does, so all fields are written by one call.
 *
 * `end` buffers whatever the client does not read, without a limit. Bodies are therefore sent by
 * `tryEnd`: bytes that the kernel does not accept are kept here, once. The library disconnects a
 * client that sends further requests in the meantime.
 */

type Library = typeof Uws & { _cfg?: (option: string) => void }

/**
 * Returns the error of loading uWebSockets.js, which has no binary for every Node version and C
 * library.
 */
export async function uwsLoadError(): Promise<Error | undefined> {
  try {
    await import('uWebSockets.js')
    return undefined
  } catch (error) {
    return error as Error
  }
}

/**
 * Starts a listener over uWebSockets.js. Several threads can listen on one port. The kernel then
 * distributes the connections.
 *
 * @throws Fault PORT_TAKEN; CERTIFICATE, also from reload(); and the error of importing the
 *   library, which `uwsLoadError` returns
 */
export async function listenUws(options: HttpListenOptions): Promise<HttpListener> {
  const uws = (await import('uWebSockets.js')) as Library
  // Removes the `uWebSockets` banner from responses.
  uws._cfg?.('silent')
  const traffic = new Traffic()
  const first = await open(uws, options, traffic)
  const apps = [first]
  const port = uws.us_socket_local_port(first.socket)
  return {
    implementation: 'uWebSockets.js',
    port,
    async reload() {
      if (apps.length === 0) return
      // An app cannot change its certificate, so a new app takes over the port. Both share it
      // briefly.
      const next = await open(uws, { ...options, port }, traffic)
      await shortTurn()
      const before = apps.at(-1)
      if (before !== undefined) uws.us_listen_socket_close(before.socket)
      apps.push(next)
    },
    async drain(deadlineMs) {
      // Closing a socket twice crashes the library.
      const open = apps.splice(0)
      const last = open.at(-1)
      if (last !== undefined) uws.us_listen_socket_close(last.socket)
      await whenIdle(() => traffic.requests, deadlineMs, options.log)
      for (const { app } of open) app.close()
    },
  }
}

interface OpenApp {
  readonly app: Uws.TemplatedApp
  readonly socket: Uws.us_listen_socket
}

async function open(uws: typeof Uws, options: HttpListenOptions, traffic: Traffic): Promise<OpenApp> {
  const app = options.tls ? secureApp(uws, options.tls) : uws.App()
  for (const path of options.fastPaths ?? []) {
    app.get(path, (raw, request) => answer(raw, request, 'GET', path, options, traffic))
  }
  app.any('/*', (raw, request) => {
    answer(raw, request, request.getCaseSensitiveMethod(), request.getUrl(), options, traffic)
  })
  const socket = await new Promise<Uws.us_listen_socket | false>((resolve) => {
    app.listen(options.address, options.port, resolve)
  })
  if (socket === false) throw new Fault('PORT_TAKEN', `${options.address} port ${options.port}: cannot listen`)
  return { app, socket }
}

/** The library supports fewer key types than Node. */
function secureApp(uws: typeof Uws, { keyFile, certificateFile }: TlsFiles): Uws.TemplatedApp {
  try {
    return uws.SSLApp({ key_file_name: keyFile, cert_file_name: certificateFile })
  } catch (error) {
    throw new Fault(
      'CERTIFICATE',
      `${certificateFile}, ${keyFile}: uWebSockets.js does not support this key type. Use RSA, ECDSA on P-256, P-384 or P-521, or --http node`,
      { cause: error },
    )
  }
}

/** State shared by the responses of a listener. */
class Traffic {
  /** Requests whose response the kernel has not accepted completely. */
  requests = 0
  #waitingBytes = 0
  #bodiless = 0
  /** In order of waiting time, longest first. */
  readonly #waiting = new Set<UwsResponse>()

  /**
   * The kernel accepted a part of a response. If too many bytes wait, the responses that waited
   * longest are aborted: a client that reads finishes soon.
   */
  wait(response: UwsResponse, bytes: number): void {
    this.#waiting.add(response)
    this.#waitingBytes += bytes
    for (const longest of this.#waiting) {
      if (this.#waitingBytes <= ANSWERS_WAITING_BYTES_MAX) break
      longest.abort()
    }
  }

  /**
   * Whether to close the connection after a response without a body. The library buffers these for
   * clients that do not read, and reveals neither the buffered size nor the connection. So
   * connections are closed at random, which bounds the expected number per connection. The first
   * responses of a listener are exempt.
   */
  closesBodiless(): boolean {
    return ++this.#bodiless > BODILESS_ANSWERS_MEAN && Math.random() * BODILESS_ANSWERS_MEAN < 1
  }

  /** The response has ended. `waitingBytes` is the number that was passed to `wait`. */
  forget(response: UwsResponse, waitingBytes: number): void {
    this.requests--
    if (waitingBytes === 0) return
    this.#waitingBytes -= waitingBytes
    this.#waiting.delete(response)
  }
}

function answer(
  raw: Uws.HttpResponse,
  rawRequest: Uws.HttpRequest,
  method: string,
  path: string,
  options: HttpListenOptions,
  traffic: Traffic,
): void {
  traffic.requests++
  const response = new UwsResponse(raw, traffic, options)
  const length = rawRequest.getHeader('content-length')
  const request = new UwsRequest(rawRequest, raw, response, method, path, length)
  response.request = request
  if (length !== '' && isRepeated(rawRequest, 'content-length')) {
    sendError(response, 400, REASON_PHRASE[400] ?? '', ['connection', 'close'], method === 'HEAD')
    return
  }
  try {
    const later = options.handler(request, response)
    response.returned()
    if (later !== undefined) later.catch((error: unknown) => fail(error, request, response, options))
  } catch (error) {
    fail(error, request, response, options)
  }
}

function fail(error: unknown, { method, path }: UwsRequest, response: UwsResponse, { log }: HttpListenOptions): void {
  log.error({ path, err: error }, 'request failed')
  sendError(response, 500, 'Internal error', [], method === 'HEAD')
}

/**
 * The library uses the first Content-Length. A proxy in front may have used another one (RFC 9112
 * §6.3).
 */
function isRepeated(request: Uws.HttpRequest, wanted: string): boolean {
  let times = 0
  request.forEach((name) => {
    if (name === wanted) times++
  })
  return times > 1
}

class UwsRequest implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly #request: Uws.HttpRequest
  readonly #raw: Uws.HttpResponse
  readonly #response: UwsResponse
  readonly #length: string

  constructor(
    request: Uws.HttpRequest,
    raw: Uws.HttpResponse,
    response: UwsResponse,
    method: string,
    path: string,
    length: string,
  ) {
    this.method = method
    this.path = path
    this.#request = request
    this.#raw = raw
    this.#response = response
    this.#length = length
  }

  get query(): string {
    return this.#request.getQuery() ?? ''
  }

  header(name: string): string {
    if (name === 'content-length') return this.#length
    const first = this.#request.getHeader(name)
    return first !== '' && (name === 'if-match' || name === 'if-none-match') ? this.#joined(name) : first
  }

  /**
   * Joins the lines of a list field (RFC 9110 §5.3), of which the library returns only the first.
   * Needed for conditional requests only, so only they pay for it.
   */
  #joined(wanted: string): string {
    let joined = ''
    this.#request.forEach((name, value) => {
      if (name === wanted) joined += joined === '' ? value : `, ${value}`
    })
    return joined
  }

  remoteAddress(): string {
    return Buffer.from(this.#raw.getRemoteAddressAsText()).toString()
  }

  body(bytesMax: number, pace?: BodyPace): Promise<Buffer | 'too large' | 'too slow' | 'aborted'> {
    const field = this.#length
    const announced = Number(field || 0)
    if (announced > bytesMax) return Promise.resolve('too large')
    // uWebSockets.js ends a body at its announced length, so the body is copied once, into its
    // final buffer.
    const whole = field === '' || !(announced >= 0) ? undefined : Buffer.allocUnsafe(announced)
    const most = whole?.length ?? bytesMax
    return new Promise((settle) => {
      const chunks: Buffer[] = []
      let bytes = 0
      let isEnded = false
      const stopWatch = watchPace(
        pace,
        () => bytes,
        () => resolve('too slow'),
      )
      const resolve = (body: Buffer | 'too large' | 'too slow' | 'aborted'): void => {
        stopWatch()
        isEnded = true
        settle(body)
      }
      this.#response.onAborted(() => resolve('aborted'))
      this.#raw.onData((chunk, isLast) => {
        if (isEnded) return
        const at = bytes
        bytes += chunk.byteLength
        if (bytes > most) {
          chunks.length = 0
          resolve('too large')
          return
        }
        // uWebSockets.js invalidates the chunk when this callback returns.
        if (whole === undefined) chunks.push(Buffer.from(Buffer.from(chunk)))
        else whole.set(new Uint8Array(chunk), at)
        if (isLast) resolve(whole?.subarray(0, bytes) ?? Buffer.concat(chunks, bytes))
      })
    })
  }
}

class UwsResponse implements HttpResponse {
  aborted = false
  /** The argument of onAnswer. */
  request: UwsRequest | undefined
  #answered = false
  /** The kernel has accepted the response, or the connection is closed. */
  #isDone = false
  /** The library corks writes while the handler runs. Later writes must be corked explicitly. */
  #corked = true
  #watched = false
  /** Bytes that remained after the kernel accepted the first part. */
  #waitingBytes = 0
  #notifyAborted: (() => void) | undefined
  readonly #raw: Uws.HttpResponse
  readonly #traffic: Traffic
  readonly #options: HttpListenOptions

  constructor(raw: Uws.HttpResponse, traffic: Traffic, options: HttpListenOptions) {
    this.#raw = raw
    this.#traffic = traffic
    this.#options = options
  }

  /** The handler has returned. A later response needs the abort callback. */
  returned(): void {
    this.#corked = false
    if (!this.#answered) this.#watch()
  }

  onAborted(notify: () => void): void {
    this.#notifyAborted = notify
    this.#watch()
  }

  send(answer: HttpAnswer): void {
    if (this.aborted || this.#answered) return
    const { status, body, fields = [], block, bodyOmitted = false } = answer
    const closes = fields.includes('connection')
    // Before anything is written, so that an invalid field can still be answered with an error.
    const lines = linesOf(closes ? withoutConnection(fields) : fields, block)
    this.#answered = true
    const isBodiless = bodyOmitted || status === 304
    try {
      // Before the response is written: the library does not know the address afterward.
      if (this.request !== undefined) this.#options.onAnswer?.(this.request, status, sentBytes(answer))
    } finally {
      this.#sendNow(status, lines, body, isBodiless, closes)
    }
  }

  #sendNow(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean, closes: boolean): void {
    if (closes || (isBodiless && this.#traffic.closesBodiless())) this.#sendLast(status, lines, body, isBodiless)
    else if (this.#corked) this.#write(status, lines, body, isBodiless)
    else this.#raw.cork(() => this.#write(status, lines, body, isBodiless))
  }

  /** Aborts the response, whose waiting bytes exceed the limit. */
  abort(): void {
    this.#options.onAnswerAborted?.()
    this.#raw.close()
  }

  /**
   * Closes the connection after the response, with `connection: close`. While the handler runs, the
   * library would process the next pipelined request and not close. One turn later it disconnects a
   * client that has sent more.
   */
  #sendLast(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean): void {
    this.#watch()
    const taken = typeof body === 'string' ? body : Buffer.from(body)
    setImmediate(() => {
      if (this.aborted) return
      this.#raw.cork(() => {
        if (isBodiless) this.#writeLastBodiless(status, lines, Buffer.byteLength(taken))
        else {
          this.#writeHead(status, lines)
          this.#raw.end(taken, true)
          this.#end()
        }
      })
      if (isBodiless) this.#raw.close()
    })
  }

  /**
   * The library closes only after a body. So this writes the header section, including its empty
   * last line, as fields, and the caller closes the connection.
   */
  #writeLastBodiless(status: number, lines: FieldLines, bytes: number): void {
    this.#writeHead(status, lines)
    if (status !== 304) this.#raw.writeHeader('content-length', String(bytes))
    this.#raw.writeHeader('date', new Date().toUTCString())
    this.#raw.writeHeader('connection', 'close\r\n')
  }

  #watch(): void {
    if (this.#watched) return
    this.#watched = true
    this.#raw.onAborted(() => {
      this.aborted = true
      this.#notifyAborted?.()
      this.#end()
    })
  }

  #end(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#traffic.forget(this, this.#waitingBytes)
  }

  #write(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean): void {
    this.#writeHead(status, lines)
    if (!isBodiless) return this.#writeBody(body)
    // A 304 has neither body nor length (RFC 9110 §15.4.5). For an omitted body, the length is
    // written as an ordinary field: otherwise the library waits for the body and drops the
    // connection at its next request.
    if (status !== 304) this.#raw.writeHeader('content-length', String(Buffer.byteLength(body)))
    // The library does not count a response without a body as a response: without an abort callback
    // it would end the process.
    this.#watch()
    this.#raw.endWithoutBody()
    this.#end()
  }

  #writeHead(status: number, { firstName, rest }: FieldLines): void {
    if (status !== 200) this.#raw.writeStatus(`${status} ${REASON_PHRASE[status] ?? ''}`)
    if (firstName !== '') this.#raw.writeHeader(firstName, rest)
  }

  #writeBody(body: Uint8Array | string): void {
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    if (this.#raw.tryEnd(body, bytes)[1]) this.#end()
    else this.#writeRest(body, bytes)
  }

  /**
   * The kernel accepted only a part. The rest is kept until the client reads it. The library
   * disconnects a client that reads nothing for 10 s.
   */
  #writeRest(body: Uint8Array | string, bytes: number): void {
    this.#watch()
    const from = this.#raw.getWriteOffset()
    const rest = typeof body === 'string' ? Buffer.from(body).subarray(from) : Buffer.from(body.subarray(from))
    this.#raw.onWritable((at) => {
      if (this.aborted) return true
      const [wasTaken, isComplete] = this.#raw.tryEnd(rest.subarray(at - from), bytes)
      if (isComplete) this.#end()
      return wasTaken
    })
    this.#waitingBytes = rest.length
    this.#traffic.wait(this, rest.length)
  }
}
