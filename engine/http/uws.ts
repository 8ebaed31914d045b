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

/*
 * The only file that touches uWebSockets.js. Two rules of that library end the process when broken, without a JavaScript
 * exception: a handler must answer or set onAborted before it returns, and an aborted response must not be touched.
 * So onAborted is set for who has not answered when the handler returns or waits for a body, and every write asks `aborted`.
 *
 * A call into the library costs 0.15 us, however little it does: fields are written by one call, as the lines that they are.
 *
 * `end` keeps whatever the client does not take, without a bound, so a body goes by `tryEnd`: what the system does not take at once waits here, once, and a
 * client that asks for more meanwhile is let go, by the library.
 */

type Library = typeof Uws & { _cfg?: (option: string) => void }

/** Why there is no uWebSockets.js: it has no binary for this Node or C library. Undefined where there is one. */
export async function whyNoUws(): Promise<Error | undefined> {
  try {
    await import('uWebSockets.js')
    return undefined
  } catch (error) {
    return error as Error
  }
}

/**
 * Starts a listener over uWebSockets.js. Several threads may listen on one port; the kernel then spreads the connections.
 *
 * @throws Fault PORT_TAKEN; CERTIFICATE, from reload, too; and whatever importing the library throws where `whyNoUws` tells of it.
 */
export async function listenUws(options: HttpListenOptions): Promise<HttpListener> {
  const uws = (await import('uWebSockets.js')) as Library
  // No `uWebSockets` banner in the answers.
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
      // An app keeps its certificate for ever, so another one takes the port over. They share it for a moment.
      const next = await open(uws, { ...options, port }, traffic)
      await briefTurn()
      const before = apps.at(-1)
      if (before !== undefined) uws.us_listen_socket_close(before.socket)
      apps.push(next)
    },
    async drain(deadlineMs) {
      // The library takes no socket that is closed twice.
      const open = apps.splice(0)
      const last = open.at(-1)
      if (last !== undefined) uws.us_listen_socket_close(last.socket)
      await whenIdle(() => traffic.requests, deadlineMs, options.log)
      for (const { app } of open) app.close()
    },
  }
}

/** Turns of the event loop that are looked at for a brief one. */
const TURNS_MAX = 30
const BRIEF_TURN_MS = 0.3

/**
 * A moment right behind a turn in which little happened. The system resets connections that a socket has not taken yet when it is closed: behind such a turn
 * there are next to none.
 */
async function briefTurn(): Promise<void> {
  for (let turns = 0; turns < TURNS_MAX; turns++) {
    const began = performance.now()
    await new Promise((resolve) => setImmediate(resolve))
    if (turns > 0 && performance.now() - began < BRIEF_TURN_MS) return
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

/** The library takes fewer kinds of keys than Node does. */
function secureApp(uws: typeof Uws, { keyFile, certificateFile }: TlsFiles): Uws.TemplatedApp {
  try {
    return uws.SSLApp({ key_file_name: keyFile, cert_file_name: certificateFile })
  } catch (error) {
    throw new Fault(
      'CERTIFICATE',
      `${certificateFile}, ${keyFile}: uWebSockets.js cannot use this kind of key; take RSA, or ECDSA on P-256, P-384 or P-521, or serve with --http node`,
      { cause: error },
    )
  }
}

/** What the answers of a listener share. */
class Traffic {
  /** Whose answers the system has not taken whole. */
  requests = 0
  #waitingBytes = 0
  #bodiless = 0
  /** The one that waits longest first. */
  readonly #waiting = new Set<UwsResponse>()

  /** The system has taken a part of an answer. Where too much waits, whoever has waited longest is let go: a client that reads is soon done. */
  wait(response: UwsResponse, bytes: number): void {
    this.#waiting.add(response)
    this.#waitingBytes += bytes
    for (const longest of this.#waiting) {
      if (this.#waitingBytes <= ANSWERS_WAITING_BYTES_MAX) break
      longest.cut()
    }
  }

  /**
   * Whether an answer without a body is to be the last of its connection. The library does not tell what it keeps of these for a client that does not read,
   * nor which connection a request came by: so one of many closes, by chance, and none has many more. The first ones of a listener never do.
   */
  closesBodiless(): boolean {
    return ++this.#bodiless > BODILESS_ANSWERS_MEAN && Math.random() * BODILESS_ANSWERS_MEAN < 1
  }

  /** The answer is over. `waitingBytes` are those that it told of by `wait`. */
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
  if (length !== '' && comesTwice(rawRequest, 'content-length')) {
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

/** The library takes the first length, whoever stands before it may have taken another (RFC 9112 §6.3). */
function comesTwice(request: Uws.HttpRequest, wanted: string): boolean {
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

  /** A list may come in several lines, which are one (RFC 9110 §5.3). The library tells the first; only who asks under a condition waits for the others. */
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
    // uWebSockets.js ends a body where its announced length ends, so it is copied once, to where it stays.
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
        // uWebSockets.js takes the chunk back when this returns.
        if (whole === undefined) chunks.push(Buffer.from(Buffer.from(chunk)))
        else whole.set(new Uint8Array(chunk), at)
        if (isLast) resolve(whole?.subarray(0, bytes) ?? Buffer.concat(chunks, bytes))
      })
    })
  }
}

class UwsResponse implements HttpResponse {
  aborted = false
  /** For onAnswer. */
  request: UwsRequest | undefined
  #answered = false
  /** The system has taken the answer, or will never. */
  #over = false
  /** The library has put writes together for as long as the handler runs; later we must ask for that. */
  #corked = true
  #watched = false
  /** Of the answer, when the system had taken its first part. */
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

  /** The handler has returned. Who has not answered will be told when the peer goes. */
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
    // Before anything is written: where a field cannot be, another answer can.
    const lines = linesOf(closes ? withoutConnection(fields) : fields, block)
    this.#answered = true
    const isBodiless = bodyOmitted || status === 304
    try {
      // Before the answer is written, since the library knows no address after it.
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

  /** What waits of the answer takes room that others need. */
  cut(): void {
    this.#options.onCut?.()
    this.#raw.close()
  }

  /**
   * Closes the connection behind the answer, with the field that says so. While the handler runs the library would go on with what came behind the request,
   * and forget to close; one turn later it lets a client go that has sent more.
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

  /** The library closes behind a body only. Here it is told nothing of the end of the fields, which is an empty line, and is closed. */
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
    if (this.#over) return
    this.#over = true
    this.#traffic.forget(this, this.#waitingBytes)
  }

  #write(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean): void {
    this.#writeHead(status, lines)
    if (!isBodiless) return this.#writeBody(body)
    // A 304 has no body and no length (RFC 9110 §15.4.5). The length of a body that is omitted is a field like others: told of it in another way the library
    // waits for that body, and drops the connection at its next request.
    if (status !== 304) this.#raw.writeHeader('content-length', String(Buffer.byteLength(body)))
    // The library does not take an answer without a body for one, and ends the process where nobody watches.
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

  /** The system has taken a part only: the rest is kept until the client has read so much. The library lets a client go that reads nothing for 10 s. */
  #writeRest(body: Uint8Array | string, bytes: number): void {
    this.#watch()
    const from = this.#raw.getWriteOffset()
    const rest = typeof body === 'string' ? Buffer.from(body).subarray(from) : Buffer.from(body.subarray(from))
    this.#raw.onWritable((at) => {
      if (this.aborted) return true
      const [wasTaken, isWhole] = this.#raw.tryEnd(rest.subarray(at - from), bytes)
      if (isWhole) this.#end()
      return wasTaken
    })
    this.#waitingBytes = rest.length
    this.#traffic.wait(this, rest.length)
  }
}
